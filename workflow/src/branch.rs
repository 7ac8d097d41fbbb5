//! History as a tree: a run's branch, and which failover version wrote what.

use uuid::Uuid;

use crate::ids::EventId;

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
