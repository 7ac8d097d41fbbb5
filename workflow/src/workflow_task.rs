//! Workflow tasks: the record of the one that is pending; scheduled, started, then completed, failed or timed out.

use std::time::Duration;

use proto::temporal::api::common::v1::WorkerVersionStamp;
use proto::temporal::api::enums::v1::{
    SuggestContinueAsNewReason, TaskQueueKind, TimeoutType, WorkflowTaskFailedCause,
};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    HistoryEvent, WorkflowTaskCompletedEventAttributes, WorkflowTaskFailedEventAttributes,
    WorkflowTaskScheduledEventAttributes, WorkflowTaskStartedEventAttributes, WorkflowTaskTimedOutEventAttributes,
};
use proto::temporal::api::taskqueue::v1::TaskQueue;

use crate::draft::{Draft, Entry};
use crate::ids::EventId;
use crate::input::TaskRef;
use crate::outcome::Rejection;
use crate::pause;
use crate::reset;
use crate::retry;
use crate::speculative;
use crate::state::ExecutionState;
use crate::tasks::{StickyDispatch, TimerTask, TransferTask};
use crate::time::{Timestamp, span, to_proto};
use crate::worker_version;

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
    /// Schedule time of the first in a row of tasks that a worker keeps alive without a command. Not recorded.
    pub first_scheduled_at: Timestamp,
    /// Counts from 1; grows only with attempts that a worker had started.
    pub attempt: i32,
    pub task_queue: String,
    pub start_to_close_timeout: Duration,
    pub version: i64,
    /// Scheduled for an update that may be rejected: its events are written only if there is something to record.
    pub is_speculative: bool,
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

impl WorkflowTask {
    #[must_use]
    pub fn scheduled(&self) -> Option<&Scheduled> {
        match self {
            Self::None => None,
            Self::Scheduled(scheduled) | Self::Running(scheduled, _) => Some(scheduled),
        }
    }

    /// In flight: a worker has it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running(..))
    }

    #[must_use]
    pub fn is_speculative(&self) -> bool {
        self.scheduled().is_some_and(|scheduled| scheduled.is_speculative)
    }

    pub(crate) fn forget_unrecorded(&mut self) {
        if self.scheduled().is_some_and(|scheduled| !scheduled.is_recorded()) {
            *self = Self::None;
        }
        if let Self::Scheduled(scheduled) | Self::Running(scheduled, _) = self {
            scheduled.first_scheduled_at = scheduled.at;
        }
    }
}

impl Scheduled {
    /// Another attempt at a task that failed. Its events are written only when it completes.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.attempt > 1
    }

    /// History has its events.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        !self.is_transient() && !self.is_speculative
    }
}

/// Cause and author of a workflow task failure.
pub(crate) struct TaskFailure {
    pub cause: WorkflowTaskFailedCause,
    pub failure: Option<Failure>,
    pub identity: String,
    pub binary_checksum: String,
}

/// The server's own identity in events.
pub(crate) const SERVER_IDENTITY: &str = "history-service";

impl TaskFailure {
    /// The server fails the task because the run must close or too many events are buffered.
    pub(crate) fn forced() -> Self {
        Self {
            cause: WorkflowTaskFailedCause::ForceCloseCommand,
            failure: None,
            identity: SERVER_IDENTITY.to_owned(),
            binary_checksum: String::new(),
        }
    }
}

/// The running task that a task token refers to.
pub(crate) fn find_running(state: &ExecutionState, task: TaskRef) -> Result<(Scheduled, Running), Rejection> {
    let WorkflowTask::Running(scheduled, running) = &state.workflow_task else {
        return Err(Rejection::WorkflowTaskNotFound);
    };
    let is_it = scheduled.event_id == task.scheduled_event_id
        && task.attempt.is_none_or(|attempt| attempt == scheduled.attempt)
        && task.started_event_id.is_none_or(|started| started == running.event_id)
        && task.started_at.is_none_or(|started_at| started_at == running.at);
    if is_it { Ok((scheduled.clone(), running.clone())) } else { Err(Rejection::WorkflowTaskNotFound) }
}

/// Schedules and dispatches a workflow task if none is pending, unless the run is paused.
pub(crate) fn ensure(draft: &mut Draft) {
    if draft.state.workflow_task == WorkflowTask::None && !pause::is_paused(draft) {
        schedule_and_dispatch(draft, draft.now());
    }
}

pub(crate) fn schedule_and_dispatch(draft: &mut Draft, first_scheduled_at: Timestamp) {
    schedule(draft, first_scheduled_at);
    dispatch(draft);
}

/// Schedules a workflow task: recorded, or transient if the previous one failed and no event came since.
pub(crate) fn schedule(draft: &mut Draft, first_scheduled_at: Timestamp) {
    assert_eq!(draft.state.workflow_task, WorkflowTask::None, "at most one workflow task is pending");
    if draft.has_waiting() {
        // The worker will see new events: this is not a retry of the same task.
        draft.state.workflow_task_attempt = 1;
        draft.flush();
    }
    if draft.state.last_version() != draft.version() {
        draft.state.workflow_task_attempt = 1;
    }
    let attempt = draft.state.workflow_task_attempt;
    if attempt == 1 {
        let timeout = start_to_close_timeout(draft, attempt);
        record_scheduled(draft, attempt, timeout, draft.now());
    } else {
        draft.state.workflow_task = WorkflowTask::Scheduled(unrecorded(draft, first_scheduled_at));
    }
    if let WorkflowTask::Scheduled(scheduled) = &mut draft.state.workflow_task {
        scheduled.first_scheduled_at = first_scheduled_at;
    }
    assert!(matches!(draft.state.workflow_task, WorkflowTask::Scheduled(_)), "the task is pending");
}

/// A task at the end of history that is not recorded.
pub(crate) fn unrecorded(draft: &Draft, first_scheduled_at: Timestamp) -> Scheduled {
    let attempt = draft.state.workflow_task_attempt;
    Scheduled {
        event_id: draft.state.next_event_id,
        at: draft.now(),
        first_scheduled_at,
        attempt,
        task_queue: current_queue(&draft.state).name,
        start_to_close_timeout: start_to_close_timeout(draft, attempt),
        version: draft.version(),
        is_speculative: false,
    }
}

/// Sends the scheduled task to matching: to the sticky queue first, if there is one.
pub(crate) fn dispatch(draft: &mut Draft) {
    let WorkflowTask::Scheduled(scheduled) = draft.state.workflow_task.clone() else {
        unreachable!("only a scheduled task is dispatched")
    };
    let Scheduled { event_id: scheduled_event_id, attempt, version, .. } = scheduled;
    let sticky = draft.state.unrecorded.sticky.as_ref().map(|sticky| StickyDispatch {
        normal_task_queue: draft.state.started.task_queue.clone(),
        schedule_to_start_timeout: sticky.schedule_to_start_timeout,
    });
    let patience = match &sticky {
        Some(sticky) => Some(sticky.schedule_to_start_timeout),
        None => scheduled.is_speculative.then_some(speculative::SCHEDULE_TO_START_TIMEOUT),
    };
    if let Some(patience) = patience {
        let fires_at = scheduled.at + patience;
        draft.timer(fires_at, TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version });
    }
    let task_queue = scheduled.task_queue;
    draft.transfer(TransferTask::WorkflowTask { task_queue, sticky, scheduled_event_id, attempt, version });
}

/// Request, worker and number of waiting updates of a workflow task start.
pub(crate) struct Starting {
    pub request_id: String,
    pub identity: String,
    pub n_waiting_updates: usize,
    pub worker_version: Option<WorkerVersionStamp>,
}

/// Records a start of the scheduled task without a worker.
pub(crate) fn record_start(draft: &mut Draft, starting: Starting) {
    let WorkflowTask::Scheduled(scheduled) = draft.state.workflow_task.clone() else {
        unreachable!("only a scheduled task is started")
    };
    let worker_version = starting.worker_version.clone();
    let running = running(draft, &scheduled, starting);
    record_started(draft, scheduled.event_id, running, worker_version);
}

fn running(draft: &Draft, scheduled: &Scheduled, starting: Starting) -> Running {
    Running {
        event_id: scheduled.event_id.next(),
        at: draft.now(),
        request_id: starting.request_id,
        identity: starting.identity,
        history_size: draft.state.history_size,
        continue_as_new_reasons: continue_as_new_reasons(draft, starting.n_waiting_updates),
    }
}

/// Starts the scheduled task on a worker.
pub(crate) fn start_scheduled(draft: &mut Draft, starting: Starting) {
    let WorkflowTask::Scheduled(mut scheduled) = draft.state.workflow_task.clone() else {
        unreachable!("only a scheduled task is started")
    };
    let worker_version = starting.worker_version.clone();
    let running = running(draft, &scheduled, starting);
    let is_overtaken = scheduled.event_id != draft.state.next_event_id || scheduled.version != draft.version();
    if !scheduled.is_recorded() && is_overtaken {
        // Events came since it was scheduled: it is recorded as a first attempt, at the end of history.
        let (timeout, first_scheduled_at) = (scheduled.start_to_close_timeout, scheduled.first_scheduled_at);
        draft.state.workflow_task = WorkflowTask::None;
        record_scheduled(draft, 1, timeout, draft.now());
        if let WorkflowTask::Scheduled(recorded) = &mut draft.state.workflow_task {
            recorded.first_scheduled_at = first_scheduled_at;
            scheduled = recorded.clone();
        }
    }
    let (scheduled_event_id, attempt, version) = (scheduled.event_id, scheduled.attempt, scheduled.version);
    let fires_at = running.at + scheduled.start_to_close_timeout;
    if scheduled.is_recorded() {
        record_started(draft, scheduled_event_id, running, worker_version);
    } else {
        draft.state.workflow_task = WorkflowTask::Running(scheduled, running);
    }
    assert!(draft.state.workflow_task.is_running(), "the task is in flight");
    draft.timer(fires_at, TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version });
}

/// Records the completion of the running task; for a transient task also its schedule and start.
#[expect(deprecated, reason = "old workers send a version")]
pub(crate) fn record_completed(draft: &mut Draft, completed: WorkflowTaskCompletedEventAttributes) {
    let WorkflowTask::Running(scheduled, running) = draft.state.workflow_task.clone() else {
        unreachable!("only a task in flight completes")
    };
    let mut started_event_id = running.event_id;
    let mut scheduled_event_id = scheduled.event_id;
    if scheduled.is_transient() {
        draft.state.workflow_task = WorkflowTask::None;
        record_scheduled(draft, scheduled.attempt, scheduled.start_to_close_timeout, scheduled.at);
        scheduled_event_id = draft.state.last_event_id();
        let running = Running { identity: completed.identity.clone(), ..running };
        record_started(draft, scheduled_event_id, running, completed.worker_version.clone());
        started_event_id = draft.state.last_event_id();
    }
    draft.record(Attributes::WorkflowTaskCompletedEventAttributes(WorkflowTaskCompletedEventAttributes {
        scheduled_event_id: scheduled_event_id.0,
        started_event_id: started_event_id.0,
        ..completed
    }));
}

/// Ends the running task as failed. A transient one leaves no event.
#[expect(deprecated, reason = "old workers send a checksum")]
pub(crate) fn fail_running(draft: &mut Draft, failed: TaskFailure) {
    let WorkflowTask::Running(scheduled, running) = &draft.state.workflow_task else {
        unreachable!("only a task in flight fails")
    };
    let cause = failed.cause;
    if scheduled.is_transient() {
        end_transient(&mut draft.state);
    } else {
        let event = WorkflowTaskFailedEventAttributes {
            scheduled_event_id: scheduled.event_id.0,
            started_event_id: running.event_id.0,
            cause: cause.into(),
            failure: failed.failure,
            identity: failed.identity,
            binary_checksum: failed.binary_checksum,
            ..Default::default()
        };
        draft.record(Attributes::WorkflowTaskFailedEventAttributes(event));
    }
    assert_eq!(draft.state.workflow_task, WorkflowTask::None, "a failed task is over");
    draft.state.unrecorded.is_closing = cause == WorkflowTaskFailedCause::UnhandledCommand;
    leave_sticky_queue(&mut draft.state);
}

/// Ends the running task as timed out. A transient one leaves no event.
pub(crate) fn time_out_running(draft: &mut Draft) {
    let WorkflowTask::Running(scheduled, running) = &draft.state.workflow_task else {
        unreachable!("only a task in flight times out")
    };
    if scheduled.is_transient() {
        end_transient(&mut draft.state);
    } else {
        let event = WorkflowTaskTimedOutEventAttributes {
            scheduled_event_id: scheduled.event_id.0,
            started_event_id: running.event_id.0,
            timeout_type: TimeoutType::StartToClose.into(),
        };
        draft.record(Attributes::WorkflowTaskTimedOutEventAttributes(event));
    }
    leave_sticky_queue(&mut draft.state);
}

/// Ends a scheduled task that no worker of its queue took in time.
pub(crate) fn time_out_scheduled(draft: &mut Draft) {
    let WorkflowTask::Scheduled(scheduled) = &draft.state.workflow_task else {
        unreachable!("only a scheduled task waits for a worker")
    };
    assert!(!scheduled.is_transient(), "a transient task is never on a sticky queue");
    let event = WorkflowTaskTimedOutEventAttributes {
        scheduled_event_id: scheduled.event_id.0,
        started_event_id: 0,
        timeout_type: TimeoutType::ScheduleToStart.into(),
    };
    draft.record(Attributes::WorkflowTaskTimedOutEventAttributes(event));
    leave_sticky_queue(&mut draft.state);
}

/// Fails the task in flight because too many events are buffered: they are recorded, and another task is scheduled.
pub(crate) fn force_close(draft: &mut Draft) {
    fail_running(draft, TaskFailure::forced());
    ensure(draft);
    draft.flush();
    assert!(!draft.has_waiting(), "what waited is recorded");
}

fn end_transient(state: &mut ExecutionState) {
    assert!(state.workflow_task.is_running(), "only a task in flight can fail");
    state.workflow_task = WorkflowTask::None;
    state.workflow_task_attempt = state.workflow_task_attempt.saturating_add(1);
    state.unrecorded.is_closing = false;
}

/// After a failure any worker may take the next task. A failure on the sticky queue does not count as an attempt: the
/// run's own queue is tried first.
fn leave_sticky_queue(state: &mut ExecutionState) {
    if state.unrecorded.sticky.take().is_some() {
        state.workflow_task_attempt = 1;
    }
}

/// The queue that the next workflow task goes to.
pub(crate) fn current_queue(state: &ExecutionState) -> TaskQueue {
    match &state.unrecorded.sticky {
        Some(sticky) => sticky_queue(sticky.task_queue.clone(), state.started.task_queue.clone()),
        None => normal_queue(state.started.task_queue.clone()),
    }
}

fn sticky_queue(name: String, normal_name: String) -> TaskQueue {
    TaskQueue { name, kind: TaskQueueKind::Sticky.into(), normal_name }
}

pub(crate) fn normal_queue(name: String) -> TaskQueue {
    TaskQueue { name, kind: TaskQueueKind::Normal.into(), normal_name: String::new() }
}

fn start_to_close_timeout(draft: &Draft, attempt: i32) -> Duration {
    let extra = retry::workflow_task_delay(attempt, draft.facts.limits.task_retry_interval_max, draft.state.key.run_id);
    draft.state.started.task_timeout + extra
}

fn continue_as_new_reasons(draft: &Draft, n_waiting_updates: usize) -> Vec<SuggestContinueAsNewReason> {
    let limits = &draft.facts.limits;
    let mut reasons = Vec::new();
    if draft.state.history_size >= limits.suggest_continue_as_new_size {
        reasons.push(SuggestContinueAsNewReason::HistorySizeTooLarge);
    }
    if draft.state.next_event_id.0 >= limits.suggest_continue_as_new_count {
        reasons.push(SuggestContinueAsNewReason::TooManyHistoryEvents);
    }
    if draft.state.updates.len() + n_waiting_updates >= limits.suggest_continue_as_new_updates {
        reasons.push(SuggestContinueAsNewReason::TooManyUpdates);
    }
    reasons
}

fn record_scheduled(draft: &mut Draft, attempt: i32, timeout: Duration, at: Timestamp) {
    let what = scheduled_attributes(current_queue(&draft.state), attempt, timeout);
    draft.record(Entry { at: Some(at), ..what.into() });
}

/// Records the schedule of a task that is already scheduled, with its original time and queue.
pub(crate) fn record_as_scheduled(draft: &mut Draft, scheduled: &Scheduled) {
    let own_queue = draft.state.started.task_queue.clone();
    let queue = if scheduled.task_queue == own_queue {
        normal_queue(own_queue)
    } else {
        sticky_queue(scheduled.task_queue.clone(), own_queue)
    };
    let what = scheduled_attributes(queue, scheduled.attempt, scheduled.start_to_close_timeout);
    draft.record(Entry { at: Some(scheduled.at), ..what.into() });
    if let WorkflowTask::Scheduled(recorded) = &mut draft.state.workflow_task {
        recorded.first_scheduled_at = scheduled.first_scheduled_at;
    }
}

/// Records a start, with the version stamp of the worker if it sent one.
#[expect(deprecated, reason = "old workers send a version")]
pub(crate) fn record_started(
    draft: &mut Draft,
    scheduled_event_id: EventId,
    running: Running,
    worker_version: Option<WorkerVersionStamp>,
) {
    let at = Some(running.at);
    let mut what = started_attributes(scheduled_event_id, running);
    if let Attributes::WorkflowTaskStartedEventAttributes(started) = &mut what {
        started.worker_version = worker_version;
    }
    draft.record(Entry { at, ..what.into() });
}

pub(crate) fn scheduled_attributes(task_queue: TaskQueue, attempt: i32, timeout: Duration) -> Attributes {
    Attributes::WorkflowTaskScheduledEventAttributes(WorkflowTaskScheduledEventAttributes {
        task_queue: Some(task_queue),
        start_to_close_timeout: Some(to_proto(timeout)),
        attempt,
    })
}

pub(crate) fn started_attributes(scheduled_event_id: EventId, running: Running) -> Attributes {
    Attributes::WorkflowTaskStartedEventAttributes(WorkflowTaskStartedEventAttributes {
        scheduled_event_id: scheduled_event_id.0,
        identity: running.identity,
        request_id: running.request_id,
        suggest_continue_as_new: !running.continue_as_new_reasons.is_empty(),
        suggest_continue_as_new_reasons: running.continue_as_new_reasons.into_iter().map(Into::into).collect(),
        history_size_bytes: running.history_size,
        ..Default::default()
    })
}

pub(crate) fn apply_scheduled(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    task: &WorkflowTaskScheduledEventAttributes,
) {
    assert_eq!(state.workflow_task, WorkflowTask::None, "at most one workflow task is pending");
    let at = event.event_time.map_or(state.started.started_at, Timestamp::from);
    state.workflow_task_attempt = task.attempt;
    state.workflow_task = WorkflowTask::Scheduled(Scheduled {
        event_id: EventId(event.event_id),
        at,
        first_scheduled_at: at,
        attempt: task.attempt,
        task_queue: task.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default(),
        start_to_close_timeout: span(task.start_to_close_timeout.as_ref()),
        version: event.version,
        is_speculative: false,
    });
}

pub(crate) fn apply_started(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    task: &WorkflowTaskStartedEventAttributes,
) {
    let WorkflowTask::Scheduled(scheduled) = std::mem::take(&mut state.workflow_task) else {
        unreachable!("only a scheduled task is started")
    };
    assert_eq!(scheduled.event_id.0, task.scheduled_event_id, "the scheduled task is started");
    let running = Running {
        event_id: EventId(event.event_id),
        at: event.event_time.map_or(scheduled.at, Timestamp::from),
        request_id: task.request_id.clone(),
        identity: task.identity.clone(),
        history_size: task.history_size_bytes,
        continue_as_new_reasons: task.suggest_continue_as_new_reasons().collect(),
    };
    state.workflow_task = WorkflowTask::Running(scheduled, running);
}

pub(crate) fn apply_completed(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    task: &WorkflowTaskCompletedEventAttributes,
) {
    assert!(state.workflow_task.is_running(), "only a task in flight completes");
    state.workflow_task = WorkflowTask::None;
    state.workflow_task_attempt = 1;
    state.last_completed_started_event_id = Some(EventId(task.started_event_id));
    state.unrecorded.is_closing = false;
    reset::apply_point(state, event, task);
    worker_version::apply_completed(state, task);
}

pub(crate) fn apply_failed(state: &mut ExecutionState, event: &HistoryEvent, task: &WorkflowTaskFailedEventAttributes) {
    let was_started = state.workflow_task.is_running();
    assert_eq!(was_started, task.started_event_id != 0, "a task fails at a worker, or is taken back from a queue");
    assert_ne!(state.workflow_task, WorkflowTask::None, "only a pending task fails");
    state.workflow_task = WorkflowTask::None;
    let starts_over = matches!(
        task.cause(),
        WorkflowTaskFailedCause::ResetWorkflow
            | WorkflowTaskFailedCause::FailoverCloseCommand
            | WorkflowTaskFailedCause::WorkflowPauseRequestedBeforeTaskStarted
    );
    state.workflow_task_attempt = if starts_over { 1 } else { state.workflow_task_attempt.saturating_add(1) };
    state.unrecorded.is_closing = false;
    if !task.new_run_id.is_empty() {
        reset::apply_reset(state, event);
    }
}

pub(crate) fn apply_timed_out(state: &mut ExecutionState, task: &WorkflowTaskTimedOutEventAttributes) {
    let was_started = state.workflow_task.is_running();
    assert_eq!(was_started, task.started_event_id != 0, "a task times out in a queue or at a worker");
    assert_ne!(state.workflow_task, WorkflowTask::None, "only a pending task times out");
    state.workflow_task = WorkflowTask::None;
    // A task that never reached a worker is not a failure.
    state.workflow_task_attempt = if was_started { state.workflow_task_attempt.saturating_add(1) } else { 1 };
    state.unrecorded.is_closing = false;
}
