//! Starting a run: whether it may, and what it begins as.

use std::time::Duration;

use proto::temporal::api::common::v1::{Memo, Priority, RetryPolicy, SearchAttributes};
use proto::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};

use crate::ids::RunId;
use crate::input::{Parent, Start};
use crate::state::Status;
use crate::time::Timestamp;
use crate::transition::{Facts, Transition};

/// What a run was started as. Recorded in its first event.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    pub workflow_type: String,
    pub task_queue: String,
    pub started_at: Timestamp,
    pub execution_timeout: Option<Duration>,
    pub run_timeout: Option<Duration>,
    pub task_timeout: Duration,
    /// Of the whole chain of runs.
    pub execution_expires_at: Option<Timestamp>,
    pub run_expires_at: Option<Timestamp>,
    pub first_task_backoff: Duration,
    pub retry_policy: Option<RetryPolicy>,
    /// Counts from 1.
    pub attempt: i32,
    pub cron_schedule: String,
    pub first_run_id: RunId,
    pub original_run_id: RunId,
    pub continued_from: Option<RunId>,
    pub request_id: String,
    pub memo: Option<Memo>,
    pub search_attributes: Option<SearchAttributes>,
    pub parent: Option<Parent>,
    pub priority: Option<Priority>,
}

/// The newest run of a workflow id, as its row tells.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentRun {
    pub run_id: RunId,
    pub status: Status,
    pub started_at: Timestamp,
    /// Of the start that made it: the same request gets the same run.
    pub request_id: String,
    pub version: i64,
}

/// Whether a start may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDecision {
    Create,
    /// The same request once more, or the policy says to use what runs.
    UseExisting(RunId),
    /// Terminate the run first, in the same commit.
    TerminateAndCreate(RunId),
    AlreadyStarted { message: String, run_id: RunId, start_request_id: String },
}
