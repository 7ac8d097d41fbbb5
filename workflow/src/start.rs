//! Starting a run: whether it may, and what it begins as.

use std::time::Duration;

use proto::temporal::api::common::v1::{Header, Link, Memo, Payloads, Priority, RetryPolicy, SearchAttributes};
use proto::temporal::api::enums::v1::{ContinueAsNewInitiator, WorkflowIdConflictPolicy, WorkflowIdReusePolicy};

use crate::ids::{ExecutionKey, RunId};
use crate::input::{Parent, Start};
use crate::state::Status;
use crate::time::Timestamp;
use crate::transition::{Facts, Rejection, Transition};

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
    pub parent: Option<Parent>,
    pub priority: Option<Priority>,
    pub links: Vec<Link>,
    /// Kept only if a retry or a cron schedule may need it.
    pub again: Option<StartedAgain>,
}

/// What a retry or a cron run is started with once more, besides what every run keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedAgain {
    pub input: Option<Payloads>,
    pub header: Option<Header>,
    pub last_completion_result: Option<Payloads>,
    pub memo: Option<Memo>,
    pub search_attributes: Option<SearchAttributes>,
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
    /// The same request once more: it gets the answer that it got.
    SameRequest(RunId),
    /// The policy says to use what runs.
    UseExisting(RunId),
    /// Terminate the run first, in the same commit.
    TerminateAndCreate(RunId),
    AlreadyStarted {
        message: String,
        run_id: RunId,
        start_request_id: String,
    },
}

/// What a run takes over from the one before it in its chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Continued {
    pub from: RunId,
    pub first_run_id: RunId,
    pub initiator: ContinueAsNewInitiator,
    /// Of the new run; counts from 1, and grows with retries only.
    pub attempt: i32,
    pub backoff: Duration,
    pub execution_expires_at: Option<Timestamp>,
}

/// Begins a new run: its first event, a signal if it came with one, and its first workflow task.
///
/// # Errors
/// If the start asks for what cannot be.
pub fn start(
    key: ExecutionKey,
    start: Start,
    continued: Option<Continued>,
    facts: &Facts,
) -> Result<Box<Transition>, Rejection> {
    let _ = (key, start, continued, facts);
    Err(Rejection::InvalidArgument("not built yet".to_owned()))
}

/// Which run a start asks for, and what it says of others with the same workflow id.
#[derive(Debug, Clone, Copy)]
pub struct StartPolicy<'a> {
    pub workflow_id: &'a str,
    pub request_id: &'a str,
    pub reuse: WorkflowIdReusePolicy,
    pub conflict: WorkflowIdConflictPolicy,
}

/// Decides whether a start may go ahead beside the newest run of its workflow id.
#[must_use]
pub fn decide_start(current: Option<&CurrentRun>, policy: StartPolicy<'_>, facts: &Facts) -> StartDecision {
    let _ = (current, policy, facts);
    StartDecision::Create
}
