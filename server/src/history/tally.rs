//! Run counts of a shard by namespace and status: updated with every commit, so that counting reads no visibility rows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use cluster::search_attributes::attribute::NAMESPACE_DIVISION;
use persistence::stores::executions::RunCounts;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use workflow::{ExecutionState, NamespaceId};

use super::describe::shown_status;

#[derive(Default)]
pub(crate) struct Tally {
    counts: Mutex<HashMap<NamespaceId, RunCounts>>,
}

/// A run's status before and after a commit; `None` where the run does not exist or is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatusChange {
    pub(crate) before: Option<WorkflowExecutionStatus>,
    pub(crate) after: Option<WorkflowExecutionStatus>,
}

impl Tally {
    pub(crate) fn new(counts: Vec<(NamespaceId, RunCounts)>) -> Self {
        Self { counts: Mutex::new(counts.into_iter().collect()) }
    }

    /// The namespace's counts after the change; `None` if they stay the same.
    pub(crate) fn change(&self, namespace_id: NamespaceId, change: StatusChange) -> Option<RunCounts> {
        if change.before == change.after {
            return None;
        }
        let mut counts = self.lock();
        let of_namespace = counts.entry(namespace_id).or_default();
        of_namespace.change(change.before, change.after);
        Some(of_namespace.clone())
    }

    /// Removes the counts of a namespace without runs. False: it still has runs.
    pub(crate) fn forget(&self, namespace_id: NamespaceId) -> bool {
        let mut counts = self.lock();
        let is_empty = counts.get(&namespace_id).is_none_or(|counts| counts.iter().next().is_none());
        if is_empty {
            counts.remove(&namespace_id);
        }
        is_empty
    }

    /// Counted runs of all namespaces.
    pub(crate) fn n_runs(&self) -> usize {
        let n_runs: i64 = self.lock().values().flat_map(RunCounts::iter).map(|(_, count)| count).sum();
        usize::try_from(n_runs).unwrap_or_default()
    }

    pub(crate) fn of(&self, namespace_id: NamespaceId) -> RunCounts {
        self.lock().get(&namespace_id).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NamespaceId, RunCounts>> {
        self.counts.lock().expect("nobody panics while holding it")
    }
}

/// The status that a run counts under. The server's own runs, which visibility hides, are not counted.
pub(crate) fn counted_status(state: &ExecutionState) -> Option<WorkflowExecutionStatus> {
    let is_hidden = state.search_attributes.indexed_fields.contains_key(NAMESPACE_DIVISION);
    (!is_hidden).then(|| shown_status(state))
}
