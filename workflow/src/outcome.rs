//! What a decision returns: the transition with its reply and notices, or the reason for the rejection.

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

use crate::activity::Activity;
use crate::child::Child;
use crate::external::ExternalRequest;
use crate::ids::{EventId, RunId};
use crate::state::ExecutionState;
use crate::tasks::Task;
use crate::time::Timestamp;
use crate::timer::Timer;
use crate::update::Update;

/// Result of an input, while the draft is still open.
pub(crate) enum Outcome {
    Changed(Reply),
    Unchanged(Reply),
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
