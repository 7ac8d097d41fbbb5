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
    /// Signal-with-start that found the run open: a delayed first workflow task is scheduled now.
    SignalAndBegin(Signal),
    RequestCancel(RequestCancel),
    Terminate(Terminate),
    Pause(PauseRequest),
    Unpause(PauseRequest),
    /// The run was reset: this new run replaces it.
    LeaveTo(RunId),
    /// Deletes the run completely; an open run is terminated first.
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
    /// The parent recorded this child's start: schedule its first workflow task.
    ScheduleFirstTask,
    ChildStarted(ChildStarted),
    ChildStartFailed(ChildStartFailed),
    ChildClosed(Box<ChildClosed>),
    ExternalSignaled(ExternalAnswer),
    ExternalSignalFailed(ExternalAnswer, SignalExternalWorkflowExecutionFailedCause),
    ExternalCancelRequested(ExternalAnswer),
    ExternalCancelFailed(ExternalAnswer, CancelExternalWorkflowExecutionFailedCause),
    /// A timer task is due. The state may have changed since the task was created.
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

/// The workflow that sends a request to another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sender {
    pub execution: WorkflowExecution,
    /// Initiated event in the sender's history; zero if there is none.
    pub initiated_event_id: i64,
    /// The target must be a child of the sender.
    pub child_only: bool,
}

#[derive(Debug, Clone)]
pub struct RequestCancel {
    pub reason: String,
    pub identity: String,
    pub request_id: String,
    /// Rejected unless the chain of runs began with this run.
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
    /// Rejected unless the chain of runs began with this run.
    pub first_run_id: Option<RunId>,
    /// Updates that already wait for an answer.
    pub waiting: Vec<WaitingUpdate>,
}

/// Identity and reason of a pause or unpause.
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
    /// Request id of the poll: a repeated call gets its own start.
    pub request_id: String,
    pub identity: String,
    /// The queue that was polled; the sticky one, or the run's own.
    pub task_queue: String,
    /// Updates for the worker to answer, in order of arrival.
    pub updates: Vec<WaitingUpdate>,
    /// Version stamp of the polling worker, if it sent one.
    pub worker_version: Option<WorkerVersionStamp>,
}

/// A task attempt at a worker: the part of a task token that must still match the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRef {
    pub scheduled_event_id: EventId,
    /// `None` in a by-id call: any attempt matches.
    pub attempt: Option<i32>,
    pub started_event_id: Option<EventId>,
    /// Start time of a workflow task: event ids alone do not distinguish a speculative task from the next.
    pub started_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct CompleteWorkflowTask {
    pub task: TaskRef,
    pub commands: Vec<Command>,
    /// Answers to updates.
    pub messages: Vec<Message>,
    /// Updates that wait for an answer, in order of arrival.
    pub updates: Vec<WaitingUpdate>,
    pub identity: String,
    pub binary_checksum: String,
    /// The namespace has marked this binary as bad.
    pub is_bad_binary: bool,
    pub sticky: Option<crate::state::Sticky>,
    pub force_new_task: bool,
    pub return_new_task: bool,
    /// The worker accepts that events of a discarded speculative task are sent again.
    pub discards_events: bool,
    pub sdk_metadata: Option<WorkflowTaskCompletedMetadata>,
    pub metering_metadata: Option<MeteringMetadata>,
    /// Version stamp of the answering worker, if it sent one.
    pub worker_version: Option<WorkerVersionStamp>,
    /// Request id of a new task in the response.
    pub request_id: String,
    /// Request id of the first eagerly started activity; the others count up from it.
    pub eager_request_id: Uuid,
    pub namespaces: KnownNamespaces,
    /// Refused search attributes of commands, by command index.
    pub refused_search_attributes: BTreeMap<usize, RefusedSearchAttributes>,
}

/// Why a namespace refuses search attributes. The caller checks definitions and types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedSearchAttributes {
    /// An attribute is not defined in the namespace.
    Undefined(String),
    /// Too many attributes, a value of the wrong type, or an attribute that only the server may set.
    Wrong(String),
}

/// The namespaces that the commands of a workflow task name, and the run's own.
#[derive(Debug, Clone, Default)]
pub struct KnownNamespaces {
    /// Name of the run's own namespace; empty if no command needs it.
    pub own: String,
    pub by_name: BTreeMap<String, NamespaceId>,
    /// Whether a command may name another namespace than the run's own.
    pub others: OtherNamespaces,
}

/// Whether a run's commands may name other namespaces than its own.
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
    /// The dispatched attempt: a stale copy of an earlier attempt must not start the next one early.
    pub attempt: i32,
    /// Stamp at dispatch: an operator may have changed the activity since.
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

/// A start that found the run open and attaches to it.
#[derive(Debug, Clone)]
pub struct Join {
    /// Empty: not deduplicated.
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

/// The pending activities that an operator's request targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActivityTarget {
    Id(String),
    Type(String),
    All,
}

/// Spreads restarted attempts over this span. The caller provides the seed: the core draws no random numbers.
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
    /// Restores the scheduled options.
    Restore,
    /// Replaces the named fields, in the form `retryPolicy.maximumAttempts`; others are ignored.
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
    /// Completion callbacks; stored but not called.
    pub callbacks: Vec<Callback>,
    pub parent: Option<Parent>,
    /// The schedule of the same namespace that starts the run; notified when the run closes.
    pub schedule_id: Option<Arc<str>>,
    /// Eager start: the caller has a worker and wants the first workflow task in the response.
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
