//! What a transfer task does: one line per kind.

use proto::everrow::matching::AddTaskRequest;
use proto::temporal::api::common::v1::{Priority, WorkflowExecution};
use proto::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType};
use workflow::{EventId, ExecutionState, TransferTask, WorkflowTask};

use super::Transfer;
use crate::cluster::peers::Peers;
use crate::errors::ServiceError;
use crate::history::shard::Shard;

pub(super) async fn execute(shard: &Shard, peers: &Peers, transfer: &Transfer) -> Result<(), ServiceError> {
    let state = shard.read(&transfer.key).await?;
    match &transfer.task {
        TransferTask::WorkflowTask { scheduled_event_id, attempt, .. } => {
            if !is_waiting(&state, *scheduled_event_id, *attempt) {
                return Ok(());
            }
        }
        TransferTask::Activity { scheduled_event_id, attempt, .. } => {
            let activity = state.activities.get(scheduled_event_id.0);
            let waits = |activity: &workflow::Activity| {
                activity.unrecorded.attempt == *attempt && activity.unrecorded.started.is_none()
            };
            if !activity.is_some_and(waits) {
                return Ok(());
            }
        }
    }
    dispatch(peers, transfer, &state).await
}

/// Gives the task to matching. A sticky worker that is gone is not waited for: the run's own queue gets the task.
async fn dispatch(peers: &Peers, transfer: &Transfer, state: &ExecutionState) -> Result<(), ServiceError> {
    let request = request_of(transfer, state);
    match peers.matching()?.add_task(request.clone()).await {
        Err(ServiceError::StickyWorkerUnavailable) => {
            let task_queue = state.started.task_queue.clone();
            let normal = AddTaskRequest {
                task_queue,
                task_queue_kind: TaskQueueKind::Normal.into(),
                schedule_to_start_timeout: None,
                ..request
            };
            peers.matching()?.add_task(normal).await.map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

fn request_of(transfer: &Transfer, state: &ExecutionState) -> AddTaskRequest {
    let key = &transfer.key;
    let execution = WorkflowExecution { workflow_id: key.workflow_id.to_string(), run_id: key.run_id.to_string() };
    let base = AddTaskRequest {
        namespace_id: key.namespace_id.to_string(),
        execution: Some(execution),
        task_queue_kind: TaskQueueKind::Normal.into(),
        ..Default::default()
    };
    match &transfer.task {
        TransferTask::WorkflowTask { task_queue, sticky, scheduled_event_id, attempt, version } => AddTaskRequest {
            task_queue_type: TaskQueueType::Workflow.into(),
            task_queue: task_queue.clone(),
            task_queue_kind: sticky.as_ref().map_or(base.task_queue_kind, |_| TaskQueueKind::Sticky.into()),
            scheduled_event_id: scheduled_event_id.0,
            attempt: *attempt,
            version: *version,
            schedule_to_start_timeout: sticky
                .as_ref()
                .and_then(|sticky| sticky.schedule_to_start_timeout.try_into().ok()),
            priority: state.started.priority.clone(),
            ..base
        },
        TransferTask::Activity { task_queue, scheduled_event_id, attempt, version } => {
            let activity = state.activities.get(scheduled_event_id.0);
            let timeout = activity.and_then(|activity| activity.schedule_to_start_timeout);
            AddTaskRequest {
                task_queue_type: TaskQueueType::Activity.into(),
                task_queue: task_queue.clone(),
                scheduled_event_id: scheduled_event_id.0,
                attempt: *attempt,
                version: *version,
                schedule_to_start_timeout: timeout.and_then(|timeout| timeout.try_into().ok()),
                priority: activity.and_then(|activity| activity.priority.clone()).or_else(|| priority_of(state)),
                ..base
            }
        }
    }
}

fn priority_of(state: &ExecutionState) -> Option<Priority> {
    state.started.priority.clone()
}

fn is_waiting(state: &ExecutionState, scheduled_event_id: EventId, attempt: i32) -> bool {
    match &state.workflow_task {
        WorkflowTask::Scheduled(task) => task.event_id == scheduled_event_id && task.attempt == attempt,
        WorkflowTask::None | WorkflowTask::Running(..) => false,
    }
}
