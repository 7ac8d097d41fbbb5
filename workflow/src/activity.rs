//! Activities: scheduled by a command; started, retried, and ended by completion, failure, timeout or cancellation.

use std::time::Duration;

use proto::temporal::api::common::v1::{Payloads, Priority, RetryPolicy};
use proto::temporal::api::failure::v1::Failure;

use crate::ids::EventId;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub scheduled_event_id: EventId,
    pub scheduled_at: Timestamp,
    /// Node of history that holds the scheduled event, so that its input is found without reading all of history.
    pub scheduled_batch_id: EventId,
    pub version: i64,
    pub activity_id: String,
    pub activity_type: String,
    pub task_queue: String,
    /// `None` is no limit.
    pub schedule_to_start_timeout: Option<Duration>,
    pub schedule_to_close_timeout: Option<Duration>,
    pub start_to_close_timeout: Option<Duration>,
    pub heartbeat_timeout: Option<Duration>,
    pub retry_policy: Option<RetryPolicy>,
    pub cancel_requested_event_id: Option<EventId>,
    pub priority: Option<Priority>,
    /// What leaves no event until the activity ends.
    pub unrecorded: ActivityProgress,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActivityProgress {
    /// Counts from 1.
    pub attempt: i32,
    pub attempt_scheduled_at: Timestamp,
    pub started: Option<ActivityAttempt>,
    pub last_failure: Option<Failure>,
    pub last_worker_identity: String,
    pub heartbeat_details: Option<Payloads>,
    pub last_heartbeat_at: Option<Timestamp>,
    /// The earliest timer task that is known to be waiting: no second one is made for a later moment.
    pub timer_armed_for: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActivityAttempt {
    /// Set once the started event is recorded: at the end of the activity, or at once if it is never retried.
    pub event_id: Option<EventId>,
    pub at: Timestamp,
    pub request_id: String,
    pub identity: String,
}
