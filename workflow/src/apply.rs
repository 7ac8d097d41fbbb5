//! apply: how an event changes a state. Live transitions and replay share it.

use proto::temporal::api::history::v1::HistoryEvent;
use thiserror::Error;

use crate::branch::Branch;
use crate::ids::ExecutionKey;
use crate::state::ExecutionState;

/// A history that no run of ours can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    #[error("history is empty")]
    Empty,
    #[error("event {found} stands where event {expected} should")]
    Gap { expected: i64, found: i64 },
    #[error("event {event_id} does not fit: {reason}")]
    Misfit { event_id: i64, reason: String },
}

/// Rebuilds a state from its events, given as the batches they were written in.
///
/// # Errors
/// If an event cannot follow those before it. Each is checked before it is applied, for it may come from elsewhere.
pub fn replay(key: ExecutionKey, branch: Branch, batches: &[Vec<HistoryEvent>]) -> Result<ExecutionState, ReplayError> {
    let _ = (key, branch, batches);
    Err(ReplayError::Empty)
}
