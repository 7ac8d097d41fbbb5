//! Which workflow ids the shard may have, so that the start of a new one need not ask the store.
//!
//! In a wide row the database has no bloom filter that would tell it where a row is not: it looks into every file. So the
//! owner, who alone adds ids, keeps a filter of its own. It begins with nothing, and reads all ids once that costs less than the
//! reads which found none so far. A filter that is full is thrown away, and so made anew with room for more and without
//! the ids that are gone.

use std::sync::{Arc, Mutex, MutexGuard};

use cluster::errors::ServiceError;
use tokio::sync::Notify;
use tracing::warn;
use workflow::NamespaceId;

use super::shard::Shard;
use super::transact::TransactError;

mod filter;

use filter::Filter;

/// To look for an id that is not there costs the database as much as to read so many ids, one after the other.
const IDS_PER_LOOK: usize = 64;
/// Room that is worth having: 20 KiB.
const IDS_MIN: usize = 1 << 14;
/// After a failure, learning is not tried again before so many looks; after the next one not before twice as many, and so on. What
/// makes it fail may last: many ids that were deleted side by side are more than the database reads over.
const LOOKS_AFTER_FAILURE: usize = 1 << 10;
const DOUBLINGS_MAX: u32 = 16;

pub(crate) struct WorkflowIds {
    knowledge: Mutex<Knowledge>,
    ids_max: usize,
    wanted: Notify,
}

enum Knowledge {
    Nothing(Ignorance),
    /// Has what was added since it was begun, and what was read so far.
    Learning {
        filter: Filter,
        n_failures: u32,
    },
    /// Whoever is not in it is not there.
    All(Filter),
}

#[derive(Default)]
struct Ignorance {
    /// Looks that found nothing.
    n_looks: usize,
    /// So many ids were seen when there was a filter.
    n_seen: usize,
    /// Times in a row that learning failed.
    n_failures: u32,
}

impl Ignorance {
    /// How many looks must have been in vain before it pays to read this many ids.
    fn looks_wanted(&self, n_ids: usize) -> usize {
        let worth = n_ids.div_ceil(IDS_PER_LOOK);
        match self.n_failures {
            0 => worth,
            n => worth.max(LOOKS_AFTER_FAILURE << (n - 1).min(DOUBLINGS_MAX)),
        }
    }
}

impl Knowledge {
    /// A filter that is full is of no use.
    fn forget(filter: &Filter) -> Self {
        Self::Nothing(Ignorance { n_seen: filter.n_ids(), ..Ignorance::default() })
    }
}

impl WorkflowIds {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let knowledge = Mutex::new(Knowledge::Nothing(Ignorance::default()));
        Self { knowledge, ids_max: Filter::ids_in(bytes_max), wanted: Notify::new() }
    }

    /// False: the workflow surely has no run.
    pub(crate) fn may_have(&self, namespace_id: NamespaceId, workflow_id: &str) -> bool {
        match &*self.lock() {
            Knowledge::Nothing(_) | Knowledge::Learning { .. } => true,
            Knowledge::All(filter) => filter.may_have(namespace_id, workflow_id),
        }
    }

    /// The workflow has a run. To be told after its submission: whoever begins to learn waits for what was submitted before,
    /// and finds it in the store.
    pub(crate) fn add(&self, namespace_id: NamespaceId, workflow_id: &str) {
        let mut knowledge = self.lock();
        match &mut *knowledge {
            Knowledge::Nothing(_) => {}
            Knowledge::Learning { filter, .. } | Knowledge::All(filter) => {
                filter.add(namespace_id, workflow_id);
                if filter.is_full() {
                    *knowledge = Knowledge::forget(filter);
                }
            }
        }
    }

    /// The store was asked for a workflow that it does not have. `n_runs` tells how many runs the shard has, as far as they are
    /// counted: about as many ids would have to be read.
    pub(crate) fn looked_in_vain(&self, n_runs: impl FnOnce() -> usize) {
        let Knowledge::Nothing(ignorance) = &mut *self.lock() else { return };
        ignorance.n_looks += 1;
        // Not at every look: there may be many namespaces to add up.
        if ignorance.n_looks.is_power_of_two() {
            let n_ids = n_runs().max(ignorance.n_seen);
            if ignorance.n_looks >= ignorance.looks_wanted(n_ids) {
                self.wanted.notify_one();
            }
        }
    }

    /// From here on, what is added is not lost. False: there is nothing to learn, or too much.
    fn begin(&self, n_runs: usize) -> bool {
        let mut knowledge = self.lock();
        let Knowledge::Nothing(ignorance) = &mut *knowledge else { return false };
        ignorance.n_looks = 0;
        let n_ids = n_runs.max(ignorance.n_seen);
        if n_ids >= self.ids_max {
            return false;
        }
        // Twice what is there, so that it is not full soon.
        let filter = Filter::new((2 * n_ids).max(IDS_MIN).min(self.ids_max));
        *knowledge = Knowledge::Learning { filter, n_failures: ignorance.n_failures };
        true
    }

    /// Adds what was read. False: the filter became full, and the rest need not be read.
    fn learn(&self, ids: &[(NamespaceId, Arc<str>)]) -> bool {
        ids.iter().for_each(|(namespace_id, workflow_id)| self.add(*namespace_id, workflow_id));
        matches!(&*self.lock(), Knowledge::Learning { .. })
    }

    /// All that was there at the beginning has been added.
    fn complete(&self) {
        let mut knowledge = self.lock();
        *knowledge = match std::mem::replace(&mut *knowledge, Knowledge::Nothing(Ignorance::default())) {
            Knowledge::Learning { filter, .. } => Knowledge::All(filter),
            // It became full meanwhile.
            other @ (Knowledge::Nothing(_) | Knowledge::All(_)) => other,
        };
    }

    fn fail(&self) {
        let mut knowledge = self.lock();
        if let Knowledge::Learning { n_failures, .. } = &*knowledge {
            let n_failures = n_failures.saturating_add(1);
            *knowledge = Knowledge::Nothing(Ignorance { n_failures, ..Ignorance::default() });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock().expect("nobody panics while holding it")
    }
}

/// Reads all ids whenever that is worth it, until the shard is closed.
pub(crate) async fn run_learning(shard: Arc<Shard>) {
    loop {
        tokio::select! {
            biased;
            _ = shard.committer.ended() => return,
            () = learn_when_wanted(&shard) => {}
        }
    }
}

async fn learn_when_wanted(shard: &Shard) {
    let ids = &shard.workflow_ids;
    ids.wanted.notified().await;
    if let Err(error) = learn(shard).await {
        warn!(shard = shard.id.0, %error, "cannot read the workflow ids; each new one is looked for");
        ids.fail();
    }
}

async fn learn(shard: &Shard) -> Result<(), ServiceError> {
    let ids = &shard.workflow_ids;
    if !ids.begin(shard.tally.n_runs()) {
        return Ok(());
    }
    // What was submitted before is in the store after this; what is submitted later is added by whoever does.
    shard.committer.confirmed().await.map_err(TransactError::from)?;
    let mut after = None;
    loop {
        let page = shard.stores.executions.workflow_ids(shard.id, after).await?;
        if !ids.learn(&page.ids) {
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
