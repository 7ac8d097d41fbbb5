//! Bloom filter of the shard's workflow ids, so that the start of a new one need not read the store.
//!
//! The database has no bloom filter for rows inside a partition: a read of an absent row looks into every file. So the
//! shard owner, the only writer of ids, keeps a filter of its own. It builds the filter by reading all ids, once that
//! costs less than the reads that found none so far. A full filter is discarded, and later rebuilt with more room and
//! without the deleted ids.

use std::sync::{Arc, Mutex, MutexGuard};

use cluster::errors::ServiceError;
use tokio::sync::Notify;
use tracing::warn;
use workflow::NamespaceId;

use super::shard::Shard;
use super::transact::TransactError;

mod filter;

use filter::Filter;

/// A read of an absent id costs the database as much as a sequential read of this many ids.
const IDS_PER_MISS: usize = 64;
/// Smallest capacity of a filter, in ids: 20 KiB.
const IDS_MIN: usize = 1 << 14;
/// Backoff after a failed build, in reads that find nothing; doubled with each further failure. The cause may last: the
/// database refuses to read over too many tombstones of adjacent deleted ids.
const MISSES_AFTER_FAILURE: usize = 1 << 10;
const DOUBLINGS_MAX: u32 = 16;

pub(crate) struct WorkflowIds {
    state: Mutex<FilterState>,
    ids_max: usize,
    wanted: Notify,
}

enum FilterState {
    Absent(Misses),
    /// Has the ids added since the build began, and the ids read so far.
    Building {
        filter: Filter,
        n_failures: u32,
    },
    /// An id that is not in the filter has no run.
    Complete(Filter),
}

#[derive(Default)]
struct Misses {
    /// Store reads that found nothing.
    n_misses: usize,
    /// Ids in the last filter when it was full.
    n_seen: usize,
    /// Consecutive failed builds.
    n_failures: u32,
}

impl Misses {
    /// Reads that must have found nothing before it pays to read this many ids.
    fn misses_wanted(&self, n_ids: usize) -> usize {
        let worth = n_ids.div_ceil(IDS_PER_MISS);
        match self.n_failures {
            0 => worth,
            n => worth.max(MISSES_AFTER_FAILURE << (n - 1).min(DOUBLINGS_MAX)),
        }
    }
}

impl FilterState {
    /// A full filter is discarded; its number of ids is kept.
    fn forget(filter: &Filter) -> Self {
        Self::Absent(Misses { n_seen: filter.n_ids(), ..Misses::default() })
    }
}

impl WorkflowIds {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let state = Mutex::new(FilterState::Absent(Misses::default()));
        Self { state, ids_max: Filter::ids_in(bytes_max), wanted: Notify::new() }
    }

    /// False: the workflow surely has no run.
    pub(crate) fn may_have(&self, namespace_id: NamespaceId, workflow_id: &str) -> bool {
        match &*self.lock() {
            FilterState::Absent(_) | FilterState::Building { .. } => true,
            FilterState::Complete(filter) => filter.may_have(namespace_id, workflow_id),
        }
    }

    /// The workflow has a run. Called after its submission: a build that begins later waits for earlier submissions
    /// and reads them from the store.
    pub(crate) fn add(&self, namespace_id: NamespaceId, workflow_id: &str) {
        let mut state = self.lock();
        match &mut *state {
            FilterState::Absent(_) => {}
            FilterState::Building { filter, .. } | FilterState::Complete(filter) => {
                filter.add(namespace_id, workflow_id);
                if filter.is_full() {
                    *state = FilterState::forget(filter);
                }
            }
        }
    }

    /// Counts a store read that found no workflow. `n_runs` returns the shard's counted runs: about as many ids would
    /// have to be read.
    pub(crate) fn record_miss(&self, n_runs: impl FnOnce() -> usize) {
        let FilterState::Absent(misses) = &mut *self.lock() else { return };
        misses.n_misses += 1;
        // Not at every read: there may be many namespaces to add up.
        if misses.n_misses.is_power_of_two() {
            let n_ids = n_runs().max(misses.n_seen);
            if misses.n_misses >= misses.misses_wanted(n_ids) {
                self.wanted.notify_one();
            }
        }
    }

    /// Begins a build: from here on added ids are kept. False: there is a filter already, or the ids do not fit one.
    fn begin(&self, n_runs: usize) -> bool {
        let mut state = self.lock();
        let FilterState::Absent(misses) = &mut *state else { return false };
        misses.n_misses = 0;
        let n_ids = n_runs.max(misses.n_seen);
        if n_ids >= self.ids_max {
            return false;
        }
        // Twice the present ids, so that it is not full soon.
        let filter = Filter::new((2 * n_ids).max(IDS_MIN).min(self.ids_max));
        *state = FilterState::Building { filter, n_failures: misses.n_failures };
        true
    }

    /// Adds a page of ids. False: the filter became full, and the rest need not be read.
    fn add_page(&self, ids: &[(NamespaceId, Arc<str>)]) -> bool {
        ids.iter().for_each(|(namespace_id, workflow_id)| self.add(*namespace_id, workflow_id));
        matches!(&*self.lock(), FilterState::Building { .. })
    }

    /// Ends a build: all ids that existed when it began have been added.
    fn complete(&self) {
        let mut state = self.lock();
        *state = match std::mem::replace(&mut *state, FilterState::Absent(Misses::default())) {
            FilterState::Building { filter, .. } => FilterState::Complete(filter),
            // It became full during the build.
            other @ (FilterState::Absent(_) | FilterState::Complete(_)) => other,
        };
    }

    fn fail(&self) {
        let mut state = self.lock();
        if let FilterState::Building { n_failures, .. } = &*state {
            let n_failures = n_failures.saturating_add(1);
            *state = FilterState::Absent(Misses { n_failures, ..Misses::default() });
        }
    }

    fn lock(&self) -> MutexGuard<'_, FilterState> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

/// Builds the filter whenever that pays, until the shard is closed.
pub(crate) async fn run_filter_builds(shard: Arc<Shard>) {
    loop {
        tokio::select! {
            biased;
            _ = shard.committer.ended() => return,
            () = build_when_wanted(&shard) => {}
        }
    }
}

async fn build_when_wanted(shard: &Shard) {
    let ids = &shard.workflow_ids;
    ids.wanted.notified().await;
    if let Err(error) = build(shard).await {
        warn!(shard = shard.id.0, %error, "cannot read the workflow ids; starts of new ones read the store");
        ids.fail();
    }
}

async fn build(shard: &Shard) -> Result<(), ServiceError> {
    let ids = &shard.workflow_ids;
    if !ids.begin(shard.tally.n_runs()) {
        return Ok(());
    }
    // Earlier submissions are in the store after this; later ones call `add`.
    shard.committer.confirmed().await.map_err(TransactError::from)?;
    let mut after = None;
    loop {
        let page = shard.stores.executions.workflow_ids(shard.id, after).await?;
        if !ids.add_page(&page.ids) {
            return Ok(());
        }
        after = page.next;
        if after.is_none() {
            ids.complete();
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
