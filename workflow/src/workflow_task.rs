//! Workflow tasks: the record of the one that is pending; scheduled, started, then completed, failed or timed out.

use std::time::Duration;

use proto::temporal::api::enums::v1::SuggestContinueAsNewReason;

use crate::ids::EventId;
use crate::time::Timestamp;

/// At most one is pending. From the second attempt on it is transient: its events are written only when it completes.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum WorkflowTask {
    #[default]
    None,
    Scheduled(Scheduled),
    Running(Scheduled, Running),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Scheduled {
    pub event_id: EventId,
    pub at: Timestamp,
    /// Of the first attempt in a row of failures.
    pub first_scheduled_at: Timestamp,
    /// Counts from 1; grows only with attempts that a worker had started.
    pub attempt: i32,
    pub task_queue: String,
    pub start_to_close_timeout: Duration,
    pub version: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    pub event_id: EventId,
    pub at: Timestamp,
    pub request_id: String,
    pub identity: String,
    pub history_size: i64,
    /// Empty: continue-as-new is not suggested.
    pub continue_as_new_reasons: Vec<SuggestContinueAsNewReason>,
}
