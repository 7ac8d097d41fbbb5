//! Executes a transfer task: one match arm per kind.

use cluster::errors::ServiceError;
use proto::everrow::matching::AddTaskRequest;
use proto::temporal::api::common::v1::{Priority, WorkflowExecution};
use proto::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType};
use workflow::{EventId, ExecutionState, Input, TransferTask, WorkflowTask};

use super::{Transfer, closed, external, start_child};
use crate::history::shard::Shard;
use crate::history::transact::TransactError;
use crate::history::worker_tasks::execution_of;
use crate::peers::Peers;

pub(super) async fn execute(shard: &Shard, peers: &Peers, transfer: &Transfer) -> Result<(), ServiceError> {
    let state = match shard.read(&transfer.key).await {
        // A deletion may have been interrupted: deletes the remaining rows.
        Err(ServiceError::NotFound(_)) if matches!(transfer.task, TransferTask::Delete { .. }) => {
            return shard.delete(&transfer.key).await;
        }
        state => state?,
    };
    let origin = Origin { shard, peers, state: &state };
    match &transfer.task {
        TransferTask::WorkflowTask { scheduled_event_id, attempt, .. } => {
            if !is_waiting(&state, *scheduled_event_id, *attempt) {
                return Ok(());
            }
            dispatch(peers, transfer, &state).await
        }
        TransferTask::Activity { scheduled_event_id, attempt, stamp, .. } => {
            let activity = state.activities.get(scheduled_event_id.0);
            let waits = |activity: &workflow::Activity| {
                let progress = &activity.unrecorded;
                let is_current = progress.attempt == *attempt && progress.stamp == *stamp;
                is_current && progress.started.is_none() && progress.pause.is_none()
            };
            if !activity.is_some_and(waits) {
                return Ok(());
            }
            dispatch(peers, transfer, &state).await
        }
        // Boxed: the future of a start is by far the largest, and would be the size of every transfer task.
        TransferTask::StartChild { initiated_event_id, .. } => {
            Box::pin(start_child::execute(&origin, *initiated_event_id)).await
        }
        TransferTask::ExternalSignal { initiated_event_id, .. } => external::signal(&origin, *initiated_event_id).await,
        TransferTask::ExternalCancel { initiated_event_id, .. } => external::cancel(&origin, *initiated_event_id).await,
        TransferTask::Close { .. } => closed::execute(&origin).await,
        TransferTask::Delete { .. } => {
            // The close task may not have run yet, and would find nothing.
            closed::execute(&origin).await?;
            shard.delete(&transfer.key).await
        }
    }
}

/// The run of a queue task, as it was read, and the peers that the task may call. No lock is held during calls: two
/// runs may call each other at the same time.
pub(super) struct Origin<'a> {
    pub(super) shard: &'a Shard,
    pub(super) peers: &'a Peers,
    pub(super) state: &'a ExecutionState,
}

impl Origin<'_> {
    pub(super) fn execution(&self) -> WorkflowExecution {
        execution_of(&self.state.key)
    }

    /// Records the task's result in the run.
    pub(super) async fn record(&self, input: Input) -> Result<(), TransactError> {
        self.shard.transact(&self.state.key, input).await.map(|_| ())
    }
}

/// Sends the task to matching. If the sticky worker is gone, the run's normal queue gets it at once.
async fn dispatch(peers: &Peers, transfer: &Transfer, state: &ExecutionState) -> Result<(), ServiceError> {
    let Some(request) = request_of(transfer, state) else { return Ok(()) };
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

/// The request to matching; `None` for a task that does not go there.
fn request_of(transfer: &Transfer, state: &ExecutionState) -> Option<AddTaskRequest> {
    let base = AddTaskRequest {
        namespace_id: transfer.key.namespace_id.to_string(),
        execution: Some(execution_of(&transfer.key)),
        task_queue_kind: TaskQueueKind::Normal.into(),
        ..Default::default()
    };
    if let TransferTask::WorkflowTask { task_queue, sticky, scheduled_event_id, attempt, version } = &transfer.task {
        return Some(AddTaskRequest {
            task_queue_type: TaskQueueType::Workflow.into(),
            task_queue: task_queue.clone(),
            task_queue_kind: sticky.as_ref().map_or(base.task_queue_kind, |_| TaskQueueKind::Sticky.into()),
            scheduled_event_id: scheduled_event_id.0,
            attempt: *attempt,
            version: *version,
            schedule_to_start_timeout: sticky
                .as_ref()
                .and_then(|sticky| sticky.schedule_to_start_timeout.try_into().ok()),
            priority: state.current_priority().cloned(),
            ..base
        });
    }
    if let TransferTask::Activity { task_queue, scheduled_event_id, attempt, stamp, version } = &transfer.task {
        let activity = state.activities.get(scheduled_event_id.0);
        let timeout = activity.and_then(|activity| activity.schedule_to_start_timeout);
        return Some(AddTaskRequest {
            task_queue_type: TaskQueueType::Activity.into(),
            task_queue: task_queue.clone(),
            scheduled_event_id: scheduled_event_id.0,
            attempt: *attempt,
            stamp: *stamp,
            version: *version,
            schedule_to_start_timeout: timeout.and_then(|timeout| timeout.try_into().ok()),
            priority: activity.and_then(|activity| activity.priority.clone()).or_else(|| priority_of(state)),
            ..base
        });
    }
    None
}

fn priority_of(state: &ExecutionState) -> Option<Priority> {
    state.current_priority().cloned()
}

fn is_waiting(state: &ExecutionState, scheduled_event_id: EventId, attempt: i32) -> bool {
    match &state.workflow_task {
        WorkflowTask::Scheduled(task) => task.event_id == scheduled_event_id && task.attempt == attempt,
        WorkflowTask::None | WorkflowTask::Running(..) => false,
    }
}
