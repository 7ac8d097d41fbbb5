//! History as a tree: a run's branch, and which failover version wrote what.

use uuid::Uuid;

use crate::ids::{EventId, RunId};

/// A branch of a history tree. Events below the end of an ancestor's range are read there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub tree_id: Uuid,
    pub branch_id: Uuid,
    /// Oldest first; empty for the root branch.
    pub ancestors: Vec<BranchRange>,
}

/// Events `[begin, end)` that live on an ancestor's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchRange {
    pub branch_id: Uuid,
    pub begin: EventId,
    pub end: EventId,
}

/// Events up to `event_id` were written under `version`, from where the item before ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionHistoryItem {
    pub event_id: EventId,
    pub version: i64,
}

impl Branch {
    /// The only branch of a run that was not reset. Its ids are the run's: nothing here draws random ones.
    #[must_use]
    pub fn root(run_id: RunId) -> Self {
        Self { tree_id: run_id.0, branch_id: run_id.0, ancestors: Vec::new() }
    }

    /// The branch on which an event lives: that of the run which recorded it.
    pub(crate) fn holding(&self, event_id: EventId) -> Uuid {
        let ancestor = self.ancestors.iter().find(|range| event_id < range.end);
        ancestor.map_or(self.branch_id, |range| range.branch_id)
    }

    /// A run's branch that shares all events before `at` with this one.
    #[must_use]
    pub fn fork(&self, at: EventId, run_id: RunId) -> Self {
        assert!(at > EventId::FIRST, "a fork shares at least the first event");
        assert_ne!(self.branch_id, run_id.0, "a fork is a new branch");
        let begin = self.ancestors.last().map_or(EventId::FIRST, |range| range.end);
        let own = BranchRange { branch_id: self.branch_id, begin, end: EventId(i64::MAX) };
        let shared = self.ancestors.iter().chain([&own]).filter(|range| range.begin < at);
        let ancestors = shared.map(|range| BranchRange { end: range.end.min(at), ..range.clone() }).collect();
        Self { tree_id: self.tree_id, branch_id: run_id.0, ancestors }
    }
}

/// Adds an event to a version history: it lengthens the last item, or begins a new one.
pub(crate) fn extend(items: &mut Vec<VersionHistoryItem>, event_id: EventId, version: i64) {
    if let Some(last) = items.last_mut() {
        assert_eq!(last.event_id.next(), event_id, "version history has no gap");
        assert!(version >= last.version, "failover versions do not go back");
        if last.version == version {
            last.event_id = event_id;
            return;
        }
    }
    assert!(!items.is_empty() || event_id == EventId::FIRST, "a version history begins with the first event");
    items.push(VersionHistoryItem { event_id, version });
}
