//! Input: the closed list of everything that can happen to an execution that exists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::common::v1::MeteringMetadata;
use proto::temporal::api::common::v1::{
    Callback, Header, Link, Payloads, Priority, WorkerVersionStamp, WorkflowExecution,
};
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause, SignalExternalWorkflowExecutionFailedCause, WorkflowTaskFailedCause,
};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::sdk::v1::WorkflowTaskCompletedMetadata;
use proto::temporal::api::update::v1::Request;

use uuid::Uuid;

use crate::child::{ChildClosed, ChildStartFailed, ChildStarted};
use crate::external::ExternalAnswer;
use crate::ids::{EventId, NamespaceId, RunId};
use crate::tasks::TimerTask;
use crate::time::Timestamp;
use crate::update::WaitingUpdate;

#[derive(Debug, Clone)]
pub enum Input {
    Signal(Signal),
    /// Of a signal-with-start that found the run: it begins now, even if its first workflow task was put off.
    SignalAndBegin(Signal),
    RequestCancel(RequestCancel),
    Terminate(Terminate),
    Pause(PauseRequest),
    Unpause(PauseRequest),
    /// The run was reset: this one goes on in its place.
    LeaveTo(RunId),
    /// The run is to go, all of it: once it is closed, by force if need be.
    Delete,
    AdmitUpdate(AdmitUpdate),
    StartWorkflowTask(StartWorkflowTask),
    CompleteWorkflowTask(Box<CompleteWorkflowTask>),
    FailWorkflowTask(FailWorkflowTask),
    StartActivity(StartActivity),
    Heartbeat(Heartbeat),
    CompleteActivity(CompleteActivity),
    FailActivity(FailActivity),
    CancelActivity(CancelActivity),
    PauseActivity(PauseActivity),
    UnpauseActivity(UnpauseActivity),
    ResetActivity(ResetActivity),
    UpdateActivity(Box<UpdateActivity>),
    Join(Join),
    UpdateOptions(UpdateOptions),
    ResetSticky,
    /// The parent knows that this run is there: it may begin.
    ScheduleFirstTask,
    ChildStarted(ChildStarted),
    ChildStartFailed(ChildStartFailed),
    ChildClosed(Box<ChildClosed>),
    ExternalSignaled(ExternalAnswer),
    ExternalSignalFailed(ExternalAnswer, SignalExternalWorkflowExecutionFailedCause),
    ExternalCancelRequested(ExternalAnswer),
    ExternalCancelFailed(ExternalAnswer, CancelExternalWorkflowExecutionFailedCause),
    /// A timer task's moment has come. What it finds may have changed since it was made.
    Due(TimerTask),
}

#[derive(Debug, Clone)]
pub struct Signal {
    pub name: String,
    pub input: Option<Payloads>,
    pub header: Option<Header>,
    pub identity: String,
    /// Empty: not deduplicated.
    pub request_id: String,
    pub links: Vec<Link>,
    /// `None`: a client.
    pub sender: Option<Sender>,
}

/// The workflow that asks something of another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sender {
    pub execution: WorkflowExecution,
    /// Of the event that says so in the sender's history; zero if there is none.
    pub initiated_event_id: i64,
    /// Only a child of the sender is meant.
    pub child_only: bool,
}

#[derive(Debug, Clone)]
pub struct RequestCancel {
    pub reason: String,
    pub identity: String,
    pub request_id: String,
    /// Refuses when the chain of runs began with another one.
    pub first_run_id: Option<RunId>,
    pub links: Vec<Link>,
    /// `None`: a client.
    pub sender: Option<Sender>,
}

#[derive(Debug, Clone)]
pub struct Terminate {
    pub reason: String,
    pub details: Option<Payloads>,
    pub identity: String,
    pub first_run_id: Option<RunId>,
    pub links: Vec<Link>,
    /// `None`: a client.
    pub sender: Option<Sender>,
}

/// A client's update. It stays in the server's memory until a worker answers it.
#[derive(Debug, Clone)]
pub struct AdmitUpdate {
    pub request: Arc<Request>,
    /// Refuses when the chain of runs began with another one.
    pub first_run_id: Option<RunId>,
    /// The updates that wait already.
    pub waiting: Vec<WaitingUpdate>,
}

/// Who pauses or unpauses a run, and why.
#[derive(Debug, Clone)]
pub struct PauseRequest {
    pub identity: String,
    pub reason: String,
    pub request_id: String,
}

/// Matching found a worker for the scheduled workflow task.
#[derive(Debug, Clone)]
pub struct StartWorkflowTask {
    pub scheduled_event_id: EventId,
    /// Of the poll, so that a repeated call finds its own start.
    pub request_id: String,
    pub identity: String,
    /// The queue that was polled; the sticky one, or the run's own.
    pub task_queue: String,
    /// Updates that the worker is to answer, in the order in which they came.
    pub updates: Vec<WaitingUpdate>,
    /// Of the worker that polled, if it told one.
    pub worker_version: Option<WorkerVersionStamp>,
}

/// Which attempt at which task a worker speaks of: the part of a task token that must still be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRef {
    pub scheduled_event_id: EventId,
    /// `None` in a by-id call: whichever attempt runs.
    pub attempt: Option<i32>,
    pub started_event_id: Option<EventId>,
    /// Of a workflow task: event ids alone do not tell a speculative one from the next.
    pub started_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct CompleteWorkflowTask {
    pub task: TaskRef,
    pub commands: Vec<Command>,
    /// Answers to updates.
    pub messages: Vec<Message>,
    /// Updates that wait for an answer, in the order in which they came.
    pub updates: Vec<WaitingUpdate>,
    pub identity: String,
    pub binary_checksum: String,
    /// The namespace wants nothing of this binary any more.
    pub is_bad_binary: bool,
    pub sticky: Option<crate::state::Sticky>,
    pub force_new_task: bool,
    pub return_new_task: bool,
    /// The worker takes it well if events that it was shown with a speculative task come again.
    pub discards_events: bool,
    pub sdk_metadata: Option<WorkflowTaskCompletedMetadata>,
    pub metering_metadata: Option<MeteringMetadata>,
    /// Of the worker that answers, if it told one.
    pub worker_version: Option<WorkerVersionStamp>,
    /// For a new task that is returned at once.
    pub request_id: String,
    /// Of the first activity that is started at once; the others count on from it.
    pub eager_request_id: Uuid,
    pub namespaces: KnownNamespaces,
    /// Why commands may not set the search attributes that they carry, by the places of the commands.
    pub refused_search_attributes: BTreeMap<usize, RefusedSearchAttributes>,
}

/// Why a namespace refuses search attributes. Whoever took them in knows what is defined there, and of what type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedSearchAttributes {
    /// One has no meaning in the namespace.
    Undefined(String),
    /// They are too many, or one is not of its type, or only the server may set it.
    Wrong(String),
}

/// The namespaces that the commands of a workflow task name, and the run's own.
#[derive(Debug, Clone, Default)]
pub struct KnownNamespaces {
    /// The name of the run's own; empty if no command needs it.
    pub own: String,
    pub by_name: BTreeMap<String, NamespaceId>,
    /// Whether a command may name another than the run's own.
    pub others: OtherNamespaces,
}

/// Whether the commands of a run reach into other namespaces than its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OtherNamespaces {
    #[default]
    Refused,
    Allowed,
}

#[derive(Debug, Clone)]
pub struct FailWorkflowTask {
    pub task: TaskRef,
    pub cause: WorkflowTaskFailedCause,
    pub failure: Option<Failure>,
    pub identity: String,
    pub binary_checksum: String,
}

#[derive(Debug, Clone)]
pub struct StartActivity {
    pub scheduled_event_id: EventId,
    /// The attempt that was dispatched: a copy of an earlier one must not start the next before its time.
    pub attempt: i32,
    /// It was dispatched under: an operator may have changed something since.
    pub stamp: i32,
    pub request_id: String,
    pub identity: String,
}

#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub activity: ActivityRef,
    pub details: Option<Payloads>,
    pub identity: String,
}

#[derive(Debug, Clone)]
pub enum ActivityRef {
    Task(TaskRef),
    Id(String),
}

#[derive(Debug, Clone)]
pub struct CompleteActivity {
    pub activity: ActivityRef,
    pub result: Option<Payloads>,
    pub identity: String,
}

#[derive(Debug, Clone)]
pub struct FailActivity {
    pub activity: ActivityRef,
    pub failure: Option<Failure>,
    pub last_heartbeat_details: Option<Payloads>,
    pub identity: String,
}

#[derive(Debug, Clone)]
pub struct CancelActivity {
    pub activity: ActivityRef,
    pub details: Option<Payloads>,
    pub identity: String,
}

/// A start that found the run open and is to use it: what it brings along.
#[derive(Debug, Clone)]
pub struct Join {
    /// Empty: the run is not to remember it.
    pub request_id: String,
    pub callbacks: Vec<Callback>,
    pub links: Vec<Link>,
}

/// An operator changes the named fields of a run's options, in the form `priority.priorityKey`.
#[derive(Debug, Clone)]
pub struct UpdateOptions {
    pub identity: String,
    pub priority: Option<Priority>,
    pub fields: Vec<String>,
}

/// Which pending activities an operator means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActivityTarget {
    Id(String),
    Type(String),
    All,
}

/// Attempts that begin anew are spread over this span. The seed is the caller's: the core knows no chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter {
    pub span: Duration,
    pub seed: u64,
}

#[derive(Debug, Clone)]
pub struct PauseActivity {
    pub target: ActivityTarget,
    pub identity: String,
    pub reason: String,
    pub request_id: String,
}

#[derive(Debug, Clone)]
pub struct UnpauseActivity {
    pub target: ActivityTarget,
    pub reset_attempts: bool,
    pub reset_heartbeat: bool,
    pub jitter: Jitter,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "as the public request has them")]
pub struct ResetActivity {
    pub target: ActivityTarget,
    pub reset_heartbeat: bool,
    pub keep_paused: bool,
    pub restore_original_options: bool,
    pub jitter: Jitter,
}

#[derive(Debug, Clone)]
pub struct UpdateActivity {
    pub target: ActivityTarget,
    pub change: OptionsChange,
}

#[derive(Debug, Clone)]
pub enum OptionsChange {
    /// Back to what it was scheduled with.
    Restore,
    /// The named fields, in the form `retryPolicy.maximumAttempts`; others are not looked at.
    Merge { options: Box<ActivityOptions>, fields: Vec<String> },
}

/// Everything a new run is started with; already validated, defaults filled in.
#[derive(Debug, Clone)]
pub struct Start {
    pub workflow_type: String,
    pub task_queue: String,
    pub input: Option<Payloads>,
    pub header: Option<Header>,
    pub execution_timeout: Option<Duration>,
    pub run_timeout: Option<Duration>,
    pub task_timeout: Duration,
    pub identity: String,
    pub request_id: String,
    pub retry_policy: Option<proto::temporal::api::common::v1::RetryPolicy>,
    pub cron_schedule: String,
    pub memo: Option<proto::temporal::api::common::v1::Memo>,
    pub search_attributes: Option<proto::temporal::api::common::v1::SearchAttributes>,
    pub start_delay: Option<Duration>,
    pub continued_failure: Option<Failure>,
    pub last_completion_result: Option<Payloads>,
    pub user_metadata: Option<proto::temporal::api::sdk::v1::UserMetadata>,
    pub links: Vec<Link>,
    pub priority: Option<proto::temporal::api::common::v1::Priority>,
    /// Whom to tell when the run closes.
    pub callbacks: Vec<Callback>,
    pub parent: Option<Parent>,
    /// The schedule of the same namespace that starts it, which hears of its end.
    pub schedule_id: Option<Arc<str>>,
    /// The caller has a worker and wants the first workflow task with the answer.
    pub is_eager: bool,
    /// Signal-with-start: recorded right after the start, before the first workflow task.
    pub signal: Option<Signal>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Parent {
    pub namespace: String,
    pub namespace_id: crate::ids::NamespaceId,
    pub execution: WorkflowExecution,
    pub initiated_event_id: EventId,
    pub initiated_version: i64,
    pub root: Option<WorkflowExecution>,
}
