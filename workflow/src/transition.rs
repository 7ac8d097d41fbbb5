//! transition: the one place where an input is applied to a state. Returns data; performs no effects.

use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::common::v1::{Payloads, Priority, RetryPolicy, WorkflowExecution};
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::update::v1::Outcome as UpdateOutcome;
use thiserror::Error;
use uuid::Uuid;

use crate::activity::Activity;
use crate::child::Child;
use crate::commands::encode_string;
use crate::draft::Draft;
use crate::external::ExternalRequest;
use crate::ids::{EventId, RunId};
use crate::input::Input;
use crate::state::ExecutionState;
use crate::tasks::{Task, TimerTask};
use crate::time::Timestamp;
use crate::timer::Timer;
use crate::update::Update;
use crate::{
    activity_attempt, activity_operation, child, close, external, options, pause, reset, signal, timer, update,
    workflow_task_attempt,
};

/// Environment of a decision.
#[derive(Debug, Clone)]
pub struct Facts {
    pub now: Timestamp,
    pub failover_version: i64,
    /// Id of the next run, if this transition creates one.
    pub new_run_id: RunId,
    /// Request id of that run's start, which no client sent.
    pub new_request_id: Uuid,
    /// Retention of a run that closes now.
    pub retention: Duration,
    /// Visibility segment of a run that starts or closes now.
    pub segment: i64,
    pub limits: Limits,
}

/// Limits with the reference's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub blob_size: usize,
    pub history_size: i64,
    pub history_count: i64,
    /// Bytes of a run besides its history.
    pub mutable_state_size: usize,
    pub suggest_continue_as_new_size: i64,
    pub suggest_continue_as_new_count: i64,
    pub pending_activities: usize,
    pub pending_children: usize,
    pub pending_external_signals: usize,
    pub pending_external_cancels: usize,
    /// The reference has no such limit. Each timer is a row that is written under the run's lock, and each firing scans
    /// all timers.
    pub pending_timers: usize,
    pub signals: i64,
    /// Updates that are not completed.
    pub updates_in_flight: usize,
    /// Bytes of updates that no worker has answered.
    pub updates_in_flight_size: usize,
    /// Updates of one run in any state, except rejected ones.
    pub updates: usize,
    pub suggest_continue_as_new_updates: usize,
    /// Events that may be sent to a worker again after a discarded speculative task.
    pub discarded_events: i64,
    pub callbacks: usize,
    /// Bytes of the events of one transition.
    pub transaction_size: i64,
    pub buffered_events: usize,
    pub buffered_events_size: usize,
    pub id_length: usize,
    /// Bytes of the data of one search attribute.
    pub search_attribute_value_size: usize,
    /// Bytes of all search attributes of a run.
    pub search_attributes_size: usize,
    pub default_task_timeout: Duration,
    pub task_timeout_max: Duration,
    /// Longest time that a worker may keep a workflow task alive without a command.
    pub task_heartbeat_timeout: Duration,
    /// Maximum backoff added to the timeout of a workflow task that keeps failing.
    pub task_retry_interval_max: Duration,
    /// Minimum time between the starts of consecutive runs of a chain.
    pub start_interval_min: Duration,
    /// Bytes of a failure that is kept for the next attempt of an activity.
    pub activity_failure_size: usize,
}

/// Result of an input.
#[derive(Debug)]
pub enum Decision {
    Changed(Box<Transition>),
    /// Nothing to write: a repeated request, or a timer with nothing left to do.
    Unchanged(Reply),
}

#[derive(Debug)]
pub struct Transition {
    pub state: ExecutionState,
    /// New events. Empty if the change leaves no event.
    pub events: Vec<HistoryEvent>,
    /// Indices into `events` at which a further history node begins. Empty: all events are one node.
    pub cuts: Vec<usize>,
    pub changed: ChangedItems,
    /// Durable queue tasks.
    pub tasks: Vec<Task>,
    /// Continue-as-new, retry, cron: created in the same commit. Its own `new_run` is always `None`.
    pub new_run: Option<Box<Transition>>,
    /// Notifications to publish after the commit, in memory only.
    pub notices: Vec<Notice>,
    /// Returned to the caller after the commit.
    pub reply: Reply,
}

/// Item rows to write (`Some`) or delete (`None`), by item id.
#[derive(Debug, Default)]
pub struct ChangedItems {
    pub activities: Vec<(i64, Option<Arc<Activity>>)>,
    pub timers: Vec<(i64, Option<Arc<Timer>>)>,
    pub children: Vec<(i64, Option<Arc<Child>>)>,
    pub external_signals: Vec<(i64, Option<Arc<ExternalRequest>>)>,
    pub external_cancels: Vec<(i64, Option<Arc<ExternalRequest>>)>,
    pub signal_request_ids: Vec<(i64, Option<Arc<String>>)>,
    pub updates: Vec<(i64, Option<Arc<Update>>)>,
    /// The memo or the search attributes.
    pub properties: bool,
    pub buffered_events: Vec<(i64, Option<Arc<HistoryEvent>>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// History grew or the run closed: long polls on it may answer.
    HistoryGrew,
    UpdateAccepted {
        update_id: String,
    },
    UpdateCompleted {
        update_id: String,
        outcome: UpdateOutcome,
    },
    /// By the worker's validator, or because the worker does not support updates. Leaves no event.
    UpdateRejected {
        update_id: String,
        failure: Failure,
    },
    /// Sent with a workflow task that the server had to fail: it is not sent again.
    UpdateAborted {
        update_id: String,
    },
}

#[derive(Debug)]
pub enum Reply {
    Done,
    WorkflowTaskStarted(Box<WorkflowTaskStarted>),
    WorkflowTaskCompleted {
        new_task: Option<Box<WorkflowTaskStarted>>,
        /// The task left no event: the worker rolls back to this one.
        reset_to: Option<EventId>,
        /// Started at once, for the worker that requested them.
        activities: Vec<ActivityStarted>,
    },
    /// A speculative task was withdrawn: its update is no longer in memory.
    WorkflowTaskWithdrawn,
    /// A command was invalid: the task's failure is recorded, and the worker gets the reason.
    BadCommand {
        cause: WorkflowTaskFailedCause,
        message: String,
    },
    /// The worker kept the task alive for too long: it is timed out, and the worker gets "not found".
    WorkflowTaskHeartbeatTimedOut,
    /// The run had exceeded a limit and is terminated instead; the caller gets an invalid argument.
    Terminated {
        message: String,
    },
    ActivityStarted(Box<ActivityStarted>),
    Heartbeat(HeartbeatFlags),
    /// Current options of the last targeted activity.
    ActivityOptions(Box<ActivityOptions>),
    Started {
        run_id: RunId,
        /// The first workflow task, started at once for the caller.
        task: Option<Box<WorkflowTaskStarted>>,
    },
    /// The run's current priority.
    Priority(Option<Priority>),
}

/// Heartbeat response to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "as the public response has them")]
pub struct HeartbeatFlags {
    pub cancel_requested: bool,
    pub paused: bool,
    pub reset: bool,
}

/// A started workflow task as its worker gets it, besides history.
#[derive(Debug, Clone)]
pub struct WorkflowTaskStarted {
    pub scheduled_event_id: EventId,
    pub started_event_id: EventId,
    /// Zero if no workflow task completed yet.
    pub previous_started_event_id: i64,
    pub attempt: i32,
    pub scheduled_at: Timestamp,
    pub started_at: Timestamp,
    pub workflow_type: String,
    /// The run's own queue, whichever queue was polled.
    pub task_queue: String,
    /// The worker has the history up to its last task: a sticky poll, or the task follows a completion.
    pub is_sticky: bool,
    /// First event id that is not part of the history to be read from the store for this task.
    pub next_event_id: EventId,
    /// Scheduled and started events of a transient or speculative task: shown to the worker, not written.
    pub transient_events: Vec<HistoryEvent>,
    /// Updates to answer.
    pub messages: Vec<Message>,
}

#[derive(Debug, Clone)]
pub struct ActivityStarted {
    pub scheduled_event_id: EventId,
    pub attempt: i32,
    pub started_at: Timestamp,
    pub scheduled_at: Timestamp,
    pub current_attempt_scheduled_at: Timestamp,
    pub activity_id: String,
    pub activity_type: String,
    /// History node that holds the scheduled event, which has the input and the header.
    pub scheduled_batch_id: EventId,
    pub heartbeat_details: Option<Payloads>,
    pub schedule_to_close_timeout: Duration,
    pub start_to_close_timeout: Duration,
    pub heartbeat_timeout: Duration,
    pub retry_policy: Option<RetryPolicy>,
    pub workflow_type: String,
    pub execution: WorkflowExecution,
    pub priority: Option<Priority>,
}

/// The input is rejected and nothing changed. The messages are part of the public behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    #[error("workflow execution already completed")]
    ExecutionClosed,
    /// The token's task is over, or never existed.
    #[error("Workflow task not found.")]
    WorkflowTaskNotFound,
    #[error("invalid activityID or activity already timed out or invoking workflow is completed")]
    ActivityNotFound,
    /// Another poller has it: matching drops its copy.
    #[error("{0} task already started.")]
    AlreadyStarted(&'static str),
    /// No pending activity has this id.
    #[error("cannot find pending activity with ActivityID {0}, check workflow execution history for more details")]
    ActivityIdNotFound(String),
    #[error("Pending child execution not found.")]
    ChildNotFound,
    /// The sender is not the parent of this run.
    #[error("workflow parent does not match")]
    OtherParent,
    #[error("workflow execution not found")]
    OtherChain { workflow_id: String, run_id: String },
    /// Resource exhausted, busy workflow: the caller should try again a little later.
    #[error("{0}")]
    Busy(String),
    /// No pending activity matches an operator's target.
    #[error("Can't find pending activity with such ID. Invalid activityID or activity already completed")]
    NoSuchActivity,
    #[error("{0}")]
    FailedPrecondition(String),
    #[error("{0}")]
    InvalidArgument(String),
    /// The run's workflow tasks keep failing: what needs one is rejected.
    #[error("{0}")]
    WorkflowNotReady(String),
    /// A limit of the run is reached.
    #[error("{message}")]
    LimitExceeded { cause: LimitCause, message: String },
}

impl Transition {
    /// The events of each history node, in order.
    pub fn nodes(&self) -> impl Iterator<Item = &[HistoryEvent]> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain([self.events.len()]);
        starts.zip(ends).map(|(start, end)| &self.events[start..end]).filter(|node| !node.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCause {
    Signals,
    BlobSize,
    /// Temporary: completed updates make room.
    UpdatesInFlight,
    Updates,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_size: 2 * 1024 * 1024,
            history_size: 50 * 1024 * 1024,
            history_count: 50 * 1024,
            mutable_state_size: 8 * 1024 * 1024,
            suggest_continue_as_new_size: 4 * 1024 * 1024,
            suggest_continue_as_new_count: 4 * 1024,
            pending_activities: 2000,
            pending_children: 2000,
            pending_external_signals: 2000,
            pending_external_cancels: 2000,
            pending_timers: 10_000,
            signals: 10_000,
            updates_in_flight: 10,
            updates_in_flight_size: 20 * 1024 * 1024,
            updates: 2000,
            suggest_continue_as_new_updates: 1800,
            discarded_events: 10,
            callbacks: 32,
            transaction_size: 4 * 1024 * 1024,
            buffered_events: 100,
            buffered_events_size: 2 * 1024 * 1024,
            id_length: 1000,
            search_attribute_value_size: 2 * 1024,
            search_attributes_size: 40 * 1024,
            default_task_timeout: Duration::from_secs(10),
            task_timeout_max: Duration::from_secs(120),
            task_heartbeat_timeout: Duration::from_secs(30 * 60),
            task_retry_interval_max: Duration::from_secs(10 * 60),
            start_interval_min: Duration::from_secs(1),
            activity_failure_size: 4 * 1024,
        }
    }
}

/// Result of an input, while the draft is still open.
pub(crate) enum Outcome {
    Changed(Reply),
    Unchanged(Reply),
}

/// Decides how an input changes a run.
///
/// # Errors
/// If the input is not valid for this run; nothing changes then.
pub fn transition(state: &ExecutionState, input: Input, facts: &Facts) -> Result<Decision, Rejection> {
    let decision = decide(state, input, facts)?;
    Ok(match decision {
        Decision::Changed(changed) => Decision::Changed(within_limits(state, changed, facts)),
        Decision::Unchanged(reply) => Decision::Unchanged(reply),
    })
}

fn decide(state: &ExecutionState, input: Input, facts: &Facts) -> Result<Decision, Rejection> {
    check_open(state, &input)?;
    let mut draft = Draft::new(state, facts);
    let outcome = match input {
        Input::Signal(signal) => signal::receive(&mut draft, signal)?,
        Input::SignalAndBegin(signal) => signal::receive_and_begin(&mut draft, signal)?,
        Input::RequestCancel(request) => close::request_cancel(&mut draft, request)?,
        Input::Due(task) => due(&mut draft, task),
        Input::Terminate(request) => close::terminate(&mut draft, request)?,
        Input::Pause(request) => pause::pause(&mut draft, request)?,
        Input::Unpause(request) => pause::unpause(&mut draft, request)?,
        Input::LeaveTo(run_id) => reset::leave_to(&mut draft, run_id),
        Input::Delete => close::delete(&mut draft),
        Input::AdmitUpdate(input) => update::admit(&mut draft, &input)?,
        Input::StartWorkflowTask(input) => workflow_task_attempt::start(&mut draft, input)?,
        Input::CompleteWorkflowTask(input) => {
            return workflow_task_attempt::complete(state, *input, facts).map(Decision::Changed);
        }
        Input::FailWorkflowTask(input) => workflow_task_attempt::fail(&mut draft, input)?,
        Input::StartActivity(input) => activity_attempt::start(&mut draft, input)?,
        Input::Heartbeat(input) => activity_attempt::heartbeat(&mut draft, input)?,
        Input::CompleteActivity(input) => activity_attempt::complete(&mut draft, input)?,
        Input::FailActivity(input) => activity_attempt::fail(&mut draft, input)?,
        Input::CancelActivity(input) => activity_attempt::cancel(&mut draft, input)?,
        Input::PauseActivity(input) => activity_operation::pause(&mut draft, input)?,
        Input::UnpauseActivity(input) => activity_operation::unpause(&mut draft, &input)?,
        Input::ResetActivity(input) => activity_operation::reset(&mut draft, &input)?,
        Input::UpdateActivity(input) => activity_operation::update_options(&mut draft, &input)?,
        Input::Join(input) => options::join(&mut draft, input)?,
        Input::UpdateOptions(input) => options::update(&mut draft, input),
        Input::ResetSticky => reset_sticky(&mut draft),
        Input::ScheduleFirstTask => workflow_task_attempt::begin(&mut draft),
        Input::ChildStarted(input) => child::start(&mut draft, input)?,
        Input::ChildStartFailed(input) => child::fail_start(&mut draft, input)?,
        Input::ChildClosed(input) => child::close(&mut draft, *input)?,
        Input::ExternalSignaled(answer) => external::signaled(&mut draft, answer),
        Input::ExternalSignalFailed(answer, cause) => external::signal_failed(&mut draft, answer, cause),
        Input::ExternalCancelRequested(answer) => external::cancel_requested(&mut draft, answer),
        Input::ExternalCancelFailed(answer, cause) => external::cancel_failed(&mut draft, answer, cause),
    };
    Ok(match outcome {
        Outcome::Changed(reply) => Decision::Changed(draft.finish(reply)),
        Outcome::Unchanged(reply) => Decision::Unchanged(reply),
    })
}

/// Rejects inputs that only an open run accepts.
fn check_open(state: &ExecutionState, input: &Input) -> Result<(), Rejection> {
    if state.is_running() {
        return Ok(());
    }
    match input {
        // A repeated signal, a cancel request and a late timer find that there is nothing to do.
        Input::Signal(_) | Input::SignalAndBegin(_) | Input::RequestCancel(_) | Input::Due(_) => Ok(()),
        Input::LeaveTo(_) | Input::Delete => Ok(()),
        // The update's outcome may be recorded.
        Input::AdmitUpdate(_) => Ok(()),
        Input::CompleteWorkflowTask(_) => Err(Rejection::WorkflowTaskNotFound),
        Input::Terminate(_)
        | Input::Pause(_)
        | Input::Unpause(_)
        | Input::StartWorkflowTask(_)
        | Input::FailWorkflowTask(_)
        | Input::StartActivity(_)
        | Input::Heartbeat(_)
        | Input::CompleteActivity(_)
        | Input::FailActivity(_)
        | Input::CancelActivity(_)
        | Input::PauseActivity(_)
        | Input::UnpauseActivity(_)
        | Input::ResetActivity(_)
        | Input::UpdateActivity(_)
        | Input::Join(_)
        | Input::UpdateOptions(_)
        | Input::ResetSticky
        | Input::ScheduleFirstTask
        | Input::ChildStarted(_)
        | Input::ChildStartFailed(_)
        | Input::ChildClosed(_)
        | Input::ExternalSignaled(_)
        | Input::ExternalSignalFailed(..)
        | Input::ExternalCancelRequested(_)
        | Input::ExternalCancelFailed(..) => Err(Rejection::ExecutionClosed),
    }
}

/// A timer task is due. Its purpose may be obsolete.
#[rustfmt::skip]
fn due(draft: &mut Draft, task: TimerTask) -> Outcome {
    if !draft.state.is_running() {
        return Outcome::Unchanged(Reply::Done);
    }
    match task {
        TimerTask::UserTimer { started_event_id, version } => timer::fire(draft, started_event_id, version),
        TimerTask::ActivityTimeout { scheduled_event_id, version, .. } => activity_attempt::time_out(draft, scheduled_event_id, version),
        TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp, version } => activity_attempt::attempt_again(draft, scheduled_event_id, (attempt, stamp), version),
        TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version } => workflow_task_attempt::time_out_sticky(draft, scheduled_event_id, attempt, version),
        TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version } => workflow_task_attempt::time_out_started(draft, scheduled_event_id, attempt, version),
        TimerTask::FirstWorkflowTask { .. } => workflow_task_attempt::begin(draft),
        TimerTask::RunTimeout { .. } => close::time_out_run(draft),
        TimerTask::ExecutionTimeout { .. } => close::time_out_execution(draft),
        // Retention deletes a closed run, which is no transition.
        TimerTask::Retention { .. } | TimerTask::Schedule => Outcome::Unchanged(Reply::Done),
    }
}

fn reset_sticky(draft: &mut Draft) -> Outcome {
    match draft.state.unrecorded.sticky.take() {
        Some(_) => Outcome::Changed(Reply::Done),
        None => Outcome::Unchanged(Reply::Done),
    }
}

/// Terminates a run that exceeds its limits, in place of the decided transition.
fn within_limits(state: &ExecutionState, changed: Box<Transition>, facts: &Facts) -> Box<Transition> {
    let limits = &facts.limits;
    if !changed.state.is_running() {
        return changed;
    }
    let size = changed.state.history_size - state.history_size;
    let (reason, details) = if state.history_size > limits.history_size {
        ("Workflow history size exceeds limit.", None)
    } else if changed.state.last_event_id().0 > limits.history_count {
        ("Workflow history count exceeds limit.", None)
    } else if changed.state.mutable_state_size() > limits.mutable_state_size {
        ("Workflow mutable state size exceeds limit.", None)
    } else if size > limits.transaction_size {
        let details = format!("transaction size of {size} bytes exceeds limit of {} bytes", limits.transaction_size);
        ("Transaction size exceeds limit.", Some(details))
    } else {
        return changed;
    };
    let mut draft = Draft::new(state, facts);
    let encoded = details.as_deref().map(encode_string);
    close::terminate_by_server(&mut draft, reason.to_owned(), encoded);
    draft.finish(Reply::Terminated { message: details.unwrap_or_else(|| reason.to_owned()) })
}
