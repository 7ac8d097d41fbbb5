//! Describing a run: its state as public API messages. Pure.

use std::collections::HashMap;
use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::common::v1::{ActivityType, RetryPolicy, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{
    CallbackState, EventType, PendingActivityState, PendingWorkflowTaskState, TaskQueueKind, WorkflowExecutionStatus,
};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflow::v1::pending_activity_info::PauseInfo;
use proto::temporal::api::workflow::v1::pending_activity_info::pause_info::{Manual, PausedBy};
use proto::temporal::api::workflow::v1::{
    CallbackInfo, PendingActivityInfo, PendingChildExecutionInfo, PendingWorkflowTaskInfo, RequestIdInfo, ResetPoints,
    WorkflowExecutionConfig, WorkflowExecutionExtendedInfo, WorkflowExecutionInfo, WorkflowExecutionPauseInfo,
    callback_info,
};
use proto::temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;
use workflow::{
    Activity, Child, CompletionCallback, EventId, ExecutionState, Pause, RunId, Status, Timestamp, WorkflowTask,
    shown_search_attributes,
};

/// Expiration time of a run without a timeout, as the reference reports it: 0001-01-01T00:00:00Z.
const NEVER: prost_types::Timestamp = prost_types::Timestamp { seconds: -62_135_596_800, nanos: 0 };

/// `first` is the run's first event.
pub(crate) fn describe(
    state: &ExecutionState,
    first: HistoryEvent,
    now: Timestamp,
) -> DescribeWorkflowExecutionResponse {
    let started = &state.started;
    // For no timeout, commands set zero and clients omit the field; only the event preserves which.
    let run_timeout = match &first.attributes {
        Some(Attributes::WorkflowExecutionStartedEventAttributes(start)) => start.workflow_run_timeout,
        _ => None,
    };
    DescribeWorkflowExecutionResponse {
        execution_config: Some(WorkflowExecutionConfig {
            task_queue: Some(normal_queue(&started.task_queue)),
            workflow_execution_timeout: started.execution_timeout.map(proto_duration),
            workflow_run_timeout: run_timeout,
            default_workflow_task_timeout: Some(proto_duration(started.task_timeout)),
            user_metadata: first.user_metadata,
        }),
        workflow_execution_info: Some(execution_info(state)),
        pending_activities: state.pending_activities().map(|activity| pending_activity(activity, now)).collect(),
        pending_children: state.pending_children().map(|(child, run_id)| pending_child(child, run_id)).collect(),
        pending_workflow_task: pending_workflow_task(&state.workflow_task),
        workflow_extended_info: Some(WorkflowExecutionExtendedInfo {
            execution_expiration_time: started.execution_expires_at.map(Into::into),
            run_expiration_time: Some(started.run_expires_at.map_or(NEVER, Into::into)),
            original_start_time: Some(started.started_at.into()),
            // Recorded (after a reset, only the event is left), or buffered until the workflow task ends.
            cancel_requested: state.cancel_requested.is_some() || state.unrecorded.cancel_request_id.is_some(),
            request_id_infos: request_ids(state),
            pause_info: state.paused().map(pause_info),
            last_reset_time: started.reset_at.map(Into::into),
            reset_run_id: state.unrecorded.reset_run_id.map(|run_id| run_id.to_string()).unwrap_or_default(),
            ..Default::default()
        }),
        callbacks: state.callbacks.iter().map(callback).collect(),
        ..Default::default()
    }
}

fn pause_info(pause: Pause) -> WorkflowExecutionPauseInfo {
    WorkflowExecutionPauseInfo { paused_time: Some(pause.at.into()), identity: pause.identity, reason: pause.reason }
}

/// Request ids of the run's start and of starts that joined it.
fn request_ids(state: &ExecutionState) -> HashMap<String, RequestIdInfo> {
    let start = RequestIdInfo {
        event_type: EventType::WorkflowExecutionStarted.into(),
        event_id: EventId::FIRST.0,
        buffered: false,
    };
    let recorded = state.known_requests.iter().map(|known| {
        let (event_type, event_id) = (known.event_type.into(), known.event_id.0);
        (known.request_id.clone(), RequestIdInfo { event_type, event_id, buffered: false })
    });
    let waiting = state.unrecorded.buffered_events.iter().filter_map(|(_, event)| match &event.attributes {
        Some(Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(update)) => {
            let info = RequestIdInfo { event_type: event.event_type, event_id: 0, buffered: true };
            Some((update.attached_request_id.clone(), info)).filter(|(id, _)| !id.is_empty())
        }
        _ => None,
    });
    let own = (state.unrecorded.start_request_id.clone(), start);
    std::iter::once(own).chain(recorded).chain(waiting).collect()
}

fn callback(kept: &CompletionCallback) -> CallbackInfo {
    let when_closed = callback_info::trigger::Variant::WorkflowClosed(callback_info::WorkflowClosed {});
    CallbackInfo {
        callback: Some(kept.callback.clone()),
        trigger: Some(callback_info::Trigger { variant: Some(when_closed) }),
        registration_time: Some(kept.registered_at.into()),
        state: CallbackState::Standby.into(),
        request_id: kept.request_id.clone(),
        ..Default::default()
    }
}

fn execution_info(state: &ExecutionState) -> WorkflowExecutionInfo {
    let (key, started) = (&state.key, &state.started);
    let execution = WorkflowExecution { workflow_id: key.workflow_id.to_string(), run_id: key.run_id.to_string() };
    let executes_at = started.began_at() + started.first_task_backoff;
    let parent = started.parent.as_ref();
    let root = parent.and_then(|parent| parent.root.clone()).unwrap_or_else(|| execution.clone());
    WorkflowExecutionInfo {
        r#type: Some(WorkflowType { name: started.workflow_type.clone() }),
        start_time: Some(started.began_at().into()),
        close_time: state.closed.as_ref().map(|closed| closed.at.into()),
        execution_duration: state.closed.as_ref().map(|closed| proto_duration(closed.at.since(executes_at))),
        status: shown_status(state).into(),
        history_length: state.next_event_id.0 - EventId::FIRST.0,
        parent_namespace_id: parent.map(|parent| parent.namespace_id.to_string()).unwrap_or_default(),
        parent_execution: parent.map(|parent| parent.execution.clone()),
        execution_time: Some(executes_at.into()),
        memo: Some(state.memo.as_ref().clone()),
        search_attributes: Some(shown_search_attributes(state)),
        task_queue: started.task_queue.clone(),
        state_transition_count: state.unrecorded.db_record_version,
        history_size_bytes: state.history_size,
        root_execution: Some(root),
        first_run_id: started.first_run_id.to_string(),
        priority: state.current_priority().cloned(),
        auto_reset_points: Some(ResetPoints { points: state.reset_points.iter().map(Into::into).collect() }),
        execution: Some(execution),
        ..Default::default()
    }
}

fn pending_activity(activity: &Activity, now: Timestamp) -> PendingActivityInfo {
    let progress = &activity.unrecorded;
    let state = activity_state(activity);
    let started = progress.started.as_ref();
    let policy = activity.retry_policy.as_ref();
    // In backoff, as opposed to waiting for a worker.
    let waits_until =
        (state == PendingActivityState::Scheduled && policy.is_some() && now < progress.attempt_scheduled_at)
            .then_some(progress.attempt_scheduled_at);
    let expires_at = activity.schedule_to_close_timeout.map(|timeout| activity.scheduled_at + timeout);
    let worker = started.map(|attempt| &attempt.identity).filter(|identity| !identity.is_empty());
    PendingActivityInfo {
        activity_id: activity.activity_id.clone(),
        activity_type: Some(ActivityType { name: activity.activity_type.clone() }),
        state: state.into(),
        heartbeat_details: progress.heartbeat_details.clone(),
        last_heartbeat_time: progress.last_heartbeat_at.map(Into::into),
        last_started_time: started.map(|attempt| attempt.at.into()),
        attempt: progress.attempt,
        maximum_attempts: policy.map_or(0, |policy| policy.maximum_attempts),
        scheduled_time: Some(progress.attempt_scheduled_at.into()),
        expiration_time: expires_at.filter(|at| *at < Timestamp(i64::MAX)).map(Into::into),
        last_failure: progress.last_failure.clone(),
        last_worker_identity: worker.unwrap_or(&progress.last_worker_identity).clone(),
        current_retry_interval: waits_until
            .zip(progress.last_attempt_ended_at)
            .map(|(at, ended)| proto_duration(at.since(ended))),
        last_attempt_complete_time: progress.last_attempt_ended_at.map(Into::into),
        next_attempt_schedule_time: waits_until.map(Into::into),
        paused: progress.pause.is_some(),
        priority: activity.priority.clone(),
        pause_info: progress.pause.as_ref().map(|pause| PauseInfo {
            pause_time: Some(pause.at.into()),
            paused_by: Some(PausedBy::Manual(Manual {
                identity: pause.identity.clone(),
                reason: pause.reason.clone(),
            })),
        }),
        activity_options: Some(activity_options(activity)),
        ..Default::default()
    }
}

fn activity_state(activity: &Activity) -> PendingActivityState {
    let progress = &activity.unrecorded;
    match (&progress.started, &progress.pause) {
        _ if activity.cancel_requested_event_id.is_some() => PendingActivityState::CancelRequested,
        (Some(_), Some(_)) => PendingActivityState::PauseRequested,
        (Some(_), None) => PendingActivityState::Started,
        (None, Some(_)) => PendingActivityState::Paused,
        (None, None) => PendingActivityState::Scheduled,
    }
}

fn activity_options(activity: &Activity) -> ActivityOptions {
    let span = |timeout: Option<Duration>| Some(proto_duration(timeout.unwrap_or_default()));
    let queue = activity.task_queue.clone();
    ActivityOptions {
        task_queue: Some(TaskQueue { name: queue.clone(), normal_name: queue, ..Default::default() }),
        schedule_to_close_timeout: span(activity.schedule_to_close_timeout),
        schedule_to_start_timeout: span(activity.schedule_to_start_timeout),
        start_to_close_timeout: span(activity.start_to_close_timeout),
        heartbeat_timeout: span(activity.heartbeat_timeout),
        // Non-retryable error types are internal to the workflow.
        retry_policy: Some(RetryPolicy {
            non_retryable_error_types: Vec::new(),
            ..activity.retry_policy.clone().unwrap_or_default()
        }),
        priority: activity.priority.clone(),
        ..Default::default()
    }
}

fn pending_child(child: &Child, run_id: Option<RunId>) -> PendingChildExecutionInfo {
    PendingChildExecutionInfo {
        workflow_id: child.workflow_id.clone(),
        run_id: run_id.map(|run_id| run_id.to_string()).unwrap_or_default(),
        workflow_type_name: child.workflow_type.clone(),
        initiated_id: child.initiated_event_id.0,
        parent_close_policy: child.parent_close_policy.into(),
    }
}

fn pending_workflow_task(task: &WorkflowTask) -> Option<PendingWorkflowTaskInfo> {
    let (scheduled, running) = match task {
        WorkflowTask::None => return None,
        WorkflowTask::Scheduled(scheduled) => (scheduled, None),
        WorkflowTask::Running(scheduled, running) => (scheduled, Some(running)),
    };
    let state = running.map_or(PendingWorkflowTaskState::Scheduled, |_| PendingWorkflowTaskState::Started);
    Some(PendingWorkflowTaskInfo {
        state: state.into(),
        scheduled_time: Some(scheduled.at.into()),
        original_scheduled_time: Some(scheduled.first_scheduled_at.into()),
        started_time: running.map(|running| running.at.into()),
        attempt: scheduled.attempt,
    })
}

/// An open run that is paused has the status `Paused`.
pub(crate) fn shown_status(state: &ExecutionState) -> WorkflowExecutionStatus {
    match state.paused() {
        Some(_) if state.is_running() => WorkflowExecutionStatus::Paused,
        Some(_) | None => public_status(state.status),
    }
}

pub(super) fn public_status(status: Status) -> WorkflowExecutionStatus {
    match status {
        Status::Running => WorkflowExecutionStatus::Running,
        Status::Completed => WorkflowExecutionStatus::Completed,
        Status::Failed => WorkflowExecutionStatus::Failed,
        Status::Canceled => WorkflowExecutionStatus::Canceled,
        Status::Terminated => WorkflowExecutionStatus::Terminated,
        Status::ContinuedAsNew => WorkflowExecutionStatus::ContinuedAsNew,
        Status::TimedOut => WorkflowExecutionStatus::TimedOut,
    }
}

pub(crate) fn normal_queue(name: &str) -> TaskQueue {
    TaskQueue { name: name.to_owned(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() }
}

/// Saturates at the API's longest duration.
pub(crate) fn proto_duration(span: Duration) -> prost_types::Duration {
    span.try_into().unwrap_or(prost_types::Duration { seconds: i64::MAX, nanos: 0 })
}
