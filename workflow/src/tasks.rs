//! Queue tasks: what must be done after a commit. Each is asked for where it is decided on; here is only what they are.

use std::collections::BTreeMap;

use proto::temporal::api::common::v1::Payload;

use crate::ids::EventId;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    Transfer(TransferTask),
    Timer { fires_at: Timestamp, task: TimerTask },
    Visibility(VisibilityTask),
}

/// What lists tell of the run has changed. The run itself says what they are to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct VisibilityTask {
    /// The run begins: lists do not know it yet.
    pub is_first: bool,
    /// Search attributes that are other ones now, as they were: lists still find the run by them. One that was not set
    /// is empty.
    pub replaced: BTreeMap<String, Payload>,
    pub version: i64,
    /// It is no run that has changed, but a schedule: the task's key has its id for a workflow id.
    pub is_schedule: bool,
}

/// To be done at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferTask {
    /// Give the scheduled workflow task to matching.
    WorkflowTask {
        task_queue: String,
        sticky: Option<StickyDispatch>,
        scheduled_event_id: EventId,
        attempt: i32,
        version: i64,
    },
    Activity {
        task_queue: String,
        scheduled_event_id: EventId,
        attempt: i32,
        stamp: i32,
        version: i64,
    },
    /// Start a child, or let it begin if it was started.
    StartChild {
        initiated_event_id: EventId,
        version: i64,
    },
    /// Send a signal to another workflow.
    ExternalSignal {
        initiated_event_id: EventId,
        version: i64,
    },
    /// Send a cancel request to another workflow.
    ExternalCancel {
        initiated_event_id: EventId,
        version: i64,
    },
    /// The run is over: its parent and its schedule hear of it, its children are dealt with as their policies say.
    Close {
        version: i64,
    },
    /// Delete the run, all of it; it is closed.
    Delete {
        version: i64,
    },
}

/// The task goes to the sticky queue first; after this long without a worker it falls back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickyDispatch {
    pub normal_task_queue: String,
    pub schedule_to_start_timeout: std::time::Duration,
}

/// To be looked at when its moment has come. Each names what it was made for, and is dropped if that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerTask {
    UserTimer {
        started_event_id: EventId,
        version: i64,
    },
    /// The earliest deadline of an activity's current attempt, or the moment of its next one.
    ActivityTimeout {
        scheduled_event_id: EventId,
        attempt: i32,
        version: i64,
    },
    ActivityRetry {
        scheduled_event_id: EventId,
        attempt: i32,
        stamp: i32,
        version: i64,
    },
    WorkflowTaskScheduleToStart {
        scheduled_event_id: EventId,
        attempt: i32,
        version: i64,
    },
    WorkflowTaskStartToClose {
        scheduled_event_id: EventId,
        attempt: i32,
        version: i64,
    },
    /// The first workflow task was put off: start delay, cron, retry.
    FirstWorkflowTask {
        version: i64,
    },
    RunTimeout {
        version: i64,
    },
    ExecutionTimeout {
        version: i64,
    },
    /// The run was closed for as long as its namespace keeps runs: it is deleted.
    Retention {
        version: i64,
    },
    /// A schedule, not a run, has something to do: the task's key has its id for a workflow id.
    Schedule,
}
