//! Which workflow ids the shard may have, so that the start of a new one need not ask the store.
//!
//! In a wide row the database has no bloom filter that would tell it where a row is not: it looks into every file. So the
//! owner, who alone adds ids, keeps a filter of its own. It begins with nothing, and reads all ids once that costs less than the
//! reads which found none so far. A filter that is full is thrown away, and so made anew with room for more and without
//! the ids that are gone.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tracing::warn;
use workflow::NamespaceId;

use super::shard::Shard;
use super::transact::TransactError;
use crate::errors::ServiceError;

mod filter;

use filter::Filter;

/// To look for an id that is not there costs the database as much as to read so many ids, one after the other.
const IDS_PER_LOOK: usize = 64;
/// Room that is worth having: 20 KiB.
const IDS_MIN: usize = 1 << 14;

pub(crate) struct WorkflowIds {
    knowledge: Mutex<Knowledge>,
    ids_max: usize,
    wanted: Notify,
}

enum Knowledge {
    /// Looks that found nothing.
    Nothing { n_looks: usize },
    /// Has what was added since it was begun, and what was read so far.
    Learning(Filter),
    /// Whoever is not in it is not there.
    All(Filter),
}

impl Default for Knowledge {
    fn default() -> Self {
        Self::Nothing { n_looks: 0 }
    }
}

impl WorkflowIds {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { knowledge: Mutex::default(), ids_max: Filter::ids_in(bytes_max), wanted: Notify::new() }
    }

    /// False: the workflow surely has no run.
    pub(crate) fn may_have(&self, namespace_id: NamespaceId, workflow_id: &str) -> bool {
        match &*self.lock() {
            Knowledge::Nothing { .. } | Knowledge::Learning(_) => true,
            Knowledge::All(filter) => filter.may_have(namespace_id, workflow_id),
        }
    }

    /// The workflow has a run. To be told after its submission: whoever begins to learn waits for what was submitted before,
    /// and finds it in the store.
    pub(crate) fn add(&self, namespace_id: NamespaceId, workflow_id: &str) {
        let mut knowledge = self.lock();
        match &mut *knowledge {
            Knowledge::Nothing { .. } => return,
            Knowledge::Learning(filter) | Knowledge::All(filter) => {
                filter.add(namespace_id, workflow_id);
                if !filter.is_full() {
                    return;
                }
            }
        }
        *knowledge = Knowledge::default();
    }

    /// The store was asked for a workflow that it does not have. `n_runs` tells how many runs the shard has, which is as many
    /// workflows at most.
    pub(crate) fn looked_in_vain(&self, n_runs: impl FnOnce() -> usize) {
        let Knowledge::Nothing { n_looks } = &mut *self.lock() else { return };
        *n_looks += 1;
        // Not at every look: there may be many namespaces to add up.
        if n_looks.is_power_of_two() && n_looks.saturating_mul(IDS_PER_LOOK) >= n_runs() {
            self.wanted.notify_one();
        }
    }

    /// From here on, what is added is not lost. False: there are too many.
    fn begin(&self, n_runs: usize) -> bool {
        let fits = n_runs < self.ids_max;
        // Twice what is there, so that it is not full soon.
        let ids_max = n_runs.saturating_mul(2).max(IDS_MIN).min(self.ids_max);
        *self.lock() = if fits { Knowledge::Learning(Filter::new(ids_max)) } else { Knowledge::default() };
        fits
    }

    /// All that was there at the beginning has been added.
    fn complete(&self) {
        let mut knowledge = self.lock();
        // Unless it became full meanwhile.
        if let Knowledge::Learning(filter) = std::mem::take(&mut *knowledge) {
            *knowledge = Knowledge::All(filter);
        }
    }

    fn give_up(&self) {
        *self.lock() = Knowledge::default();
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
        ids.give_up();
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
        for (namespace_id, workflow_id) in &page.ids {
            ids.add(*namespace_id, workflow_id);
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
