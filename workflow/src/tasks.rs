//! Queue tasks: work to do after a commit. Types only: each task is created where it is decided on.

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

/// Visibility of the run has changed. The new record is taken from the run itself.
#[derive(Debug, Clone, PartialEq)]
pub struct VisibilityTask {
    /// The run is new to visibility.
    pub is_first: bool,
    /// Old values of changed search attributes: visibility still indexes the run by them. One that was not set is
    /// empty.
    pub replaced: BTreeMap<String, Payload>,
    pub version: i64,
    /// A schedule has changed, not a run: the workflow id of the task's key is the schedule id.
    pub is_schedule: bool,
}

/// Work to do at once.
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
    /// Start a child, or schedule its first workflow task.
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
    /// The run closed: notify its parent and its schedule, and apply the parent close policies to its children.
    Close {
        version: i64,
    },
    /// Delete the closed run completely.
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

/// Work with a due time. Each names what it was created for, and is dropped if that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerTask {
    UserTimer {
        started_event_id: EventId,
        version: i64,
    },
    /// Due at the activity's next deadline or earlier; re-armed if the deadline has moved.
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
    /// Schedules a delayed first workflow task: start delay, cron, retry.
    FirstWorkflowTask {
        version: i64,
    },
    RunTimeout {
        version: i64,
    },
    ExecutionTimeout {
        version: i64,
    },
    /// The retention of the closed run is over: delete it.
    Retention {
        version: i64,
    },
    /// A schedule is due, not a run: the workflow id of the task's key is the schedule id.
    Schedule,
}
