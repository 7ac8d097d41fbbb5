//! Queue tasks, as the shard's queues store them.

use proto::everrow::record::{self, TimerTaskKind};
use proto::temporal::api::common::v1::SearchAttributes;
use workflow::{EventId, ExecutionKey, NamespaceId, RunId, StickyDispatch, TimerTask, TransferTask, VisibilityTask};

use super::{Decoded, Malformed, required, required_span, span, uuid, uuid_bytes};
use crate::stores::executions::QueuedTask;

pub(crate) fn encode_key(key: &ExecutionKey) -> record::ExecutionKey {
    let ExecutionKey { namespace_id, workflow_id, run_id } = key;
    record::ExecutionKey {
        namespace_id: uuid_bytes(namespace_id.0),
        workflow_id: workflow_id.to_string(),
        run_id: uuid_bytes(run_id.0),
    }
}

pub(crate) fn decode_key(key: Option<record::ExecutionKey>) -> Decoded<ExecutionKey> {
    let key = required(key, "key")?;
    Ok(ExecutionKey {
        namespace_id: NamespaceId(uuid(&key.namespace_id, "namespace_id")?),
        workflow_id: key.workflow_id.into(),
        run_id: RunId(uuid(&key.run_id, "run_id")?),
    })
}

pub(crate) fn encode_transfer(queued: &QueuedTask<TransferTask>) -> record::TransferTask {
    let QueuedTask { task_id, key, task } = queued;
    let task = match task {
        TransferTask::WorkflowTask { task_queue, sticky, scheduled_event_id, attempt, version } => {
            record::transfer_task::Task::WorkflowTask(record::TransferWorkflowTask {
                task_queue: task_queue.clone(),
                sticky: sticky.as_ref().map(encode_sticky),
                scheduled_event_id: scheduled_event_id.0,
                attempt: *attempt,
                version: *version,
            })
        }
        TransferTask::Activity { task_queue, scheduled_event_id, attempt, stamp, version } => {
            record::transfer_task::Task::Activity(record::TransferActivity {
                task_queue: task_queue.clone(),
                scheduled_event_id: scheduled_event_id.0,
                attempt: *attempt,
                version: *version,
                stamp: *stamp,
            })
        }
        TransferTask::StartChild { initiated_event_id, version } => {
            let (initiated_event_id, version) = (initiated_event_id.0, *version);
            record::transfer_task::Task::StartChild(record::TransferStartChild { initiated_event_id, version })
        }
        TransferTask::ExternalSignal { initiated_event_id, version } => {
            let (initiated_event_id, version) = (initiated_event_id.0, *version);
            record::transfer_task::Task::SignalExternal(record::TransferExternalSignal { initiated_event_id, version })
        }
        TransferTask::ExternalCancel { initiated_event_id, version } => {
            let (initiated_event_id, version) = (initiated_event_id.0, *version);
            record::transfer_task::Task::CancelExternal(record::TransferExternalCancel { initiated_event_id, version })
        }
        TransferTask::Close { version } => {
            record::transfer_task::Task::Close(record::TransferClose { version: *version })
        }
        TransferTask::Delete { version } => {
            record::transfer_task::Task::Delete(record::TransferDelete { version: *version })
        }
    };
    record::TransferTask { task_id: *task_id, key: Some(encode_key(key)), task: Some(task) }
}

pub(crate) fn decode_transfer(queued: record::TransferTask) -> Decoded<QueuedTask<TransferTask>> {
    let task = match required(queued.task, "task")? {
        record::transfer_task::Task::WorkflowTask(task) => TransferTask::WorkflowTask {
            task_queue: task.task_queue,
            sticky: task.sticky.map(decode_sticky).transpose()?,
            scheduled_event_id: EventId(task.scheduled_event_id),
            attempt: task.attempt,
            version: task.version,
        },
        record::transfer_task::Task::Activity(task) => TransferTask::Activity {
            task_queue: task.task_queue,
            scheduled_event_id: EventId(task.scheduled_event_id),
            attempt: task.attempt,
            stamp: task.stamp,
            version: task.version,
        },
        record::transfer_task::Task::StartChild(task) => {
            TransferTask::StartChild { initiated_event_id: EventId(task.initiated_event_id), version: task.version }
        }
        record::transfer_task::Task::SignalExternal(task) => {
            TransferTask::ExternalSignal { initiated_event_id: EventId(task.initiated_event_id), version: task.version }
        }
        record::transfer_task::Task::CancelExternal(task) => {
            TransferTask::ExternalCancel { initiated_event_id: EventId(task.initiated_event_id), version: task.version }
        }
        record::transfer_task::Task::Close(task) => TransferTask::Close { version: task.version },
        record::transfer_task::Task::Delete(task) => TransferTask::Delete { version: task.version },
    };
    Ok(QueuedTask { task_id: queued.task_id, key: decode_key(queued.key)?, task })
}

pub(crate) fn encode_visibility(queued: &QueuedTask<VisibilityTask>) -> record::VisibilityTask {
    let QueuedTask { task_id, key, task: VisibilityTask { is_first, replaced, version, is_schedule } } = queued;
    let indexed_fields = replaced.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    record::VisibilityTask {
        task_id: *task_id,
        key: Some(encode_key(key)),
        is_first: *is_first,
        replaced: (!replaced.is_empty()).then_some(SearchAttributes { indexed_fields }),
        version: *version,
        is_schedule: *is_schedule,
    }
}

pub(crate) fn decode_visibility(queued: record::VisibilityTask) -> Decoded<QueuedTask<VisibilityTask>> {
    let replaced = queued.replaced.unwrap_or_default().indexed_fields.into_iter().collect();
    let (is_first, version, is_schedule) = (queued.is_first, queued.version, queued.is_schedule);
    let task = VisibilityTask { is_first, replaced, version, is_schedule };
    Ok(QueuedTask { task_id: queued.task_id, key: decode_key(queued.key)?, task })
}

fn encode_sticky(sticky: &StickyDispatch) -> record::StickyDispatch {
    let StickyDispatch { normal_task_queue, schedule_to_start_timeout } = sticky;
    record::StickyDispatch {
        normal_task_queue: normal_task_queue.clone(),
        schedule_to_start_timeout: Some(span(*schedule_to_start_timeout)),
    }
}

fn decode_sticky(sticky: record::StickyDispatch) -> Decoded<StickyDispatch> {
    Ok(StickyDispatch {
        normal_task_queue: sticky.normal_task_queue,
        schedule_to_start_timeout: required_span(sticky.schedule_to_start_timeout, "schedule_to_start_timeout")?,
    })
}

pub(crate) fn encode_timer_task(key: &ExecutionKey, task: &TimerTask) -> record::TimerTask {
    const RUN: EventId = EventId(0);
    let mut stamp_of_activity = 0;
    let (kind, event_id, attempt, version) = match *task {
        TimerTask::UserTimer { started_event_id, version } => (TimerTaskKind::UserTimer, started_event_id, 0, version),
        TimerTask::ActivityTimeout { scheduled_event_id, attempt, version } => {
            (TimerTaskKind::ActivityTimeout, scheduled_event_id, attempt, version)
        }
        TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp, version } => {
            stamp_of_activity = stamp;
            (TimerTaskKind::ActivityRetry, scheduled_event_id, attempt, version)
        }
        TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version } => {
            (TimerTaskKind::WorkflowTaskScheduleToStart, scheduled_event_id, attempt, version)
        }
        TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version } => {
            (TimerTaskKind::WorkflowTaskStartToClose, scheduled_event_id, attempt, version)
        }
        TimerTask::FirstWorkflowTask { version } => (TimerTaskKind::FirstWorkflowTask, RUN, 0, version),
        TimerTask::RunTimeout { version } => (TimerTaskKind::RunTimeout, RUN, 0, version),
        TimerTask::ExecutionTimeout { version } => (TimerTaskKind::ExecutionTimeout, RUN, 0, version),
        TimerTask::Retention { version } => (TimerTaskKind::Retention, RUN, 0, version),
        TimerTask::Schedule => (TimerTaskKind::Schedule, RUN, 0, 0),
    };
    record::TimerTask {
        key: Some(encode_key(key)),
        kind: kind.into(),
        event_id: event_id.0,
        attempt,
        version,
        stamp: stamp_of_activity,
        task_id: 0,
        together: Vec::new(),
    }
}

pub(crate) fn decode_timer_task(task: record::TimerTask) -> Decoded<(ExecutionKey, TimerTask)> {
    let (kind, event_id, attempt, version) = (task.kind(), EventId(task.event_id), task.attempt, task.version);
    let scheduled_event_id = event_id;
    let decoded = match kind {
        TimerTaskKind::Unspecified => {
            return Err(Malformed::new(format!("timer task of unknown kind {}", task.kind)));
        }
        TimerTaskKind::UserTimer => TimerTask::UserTimer { started_event_id: event_id, version },
        TimerTaskKind::ActivityTimeout => TimerTask::ActivityTimeout { scheduled_event_id, attempt, version },
        TimerTaskKind::ActivityRetry => {
            TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp: task.stamp, version }
        }
        TimerTaskKind::WorkflowTaskScheduleToStart => {
            TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version }
        }
        TimerTaskKind::WorkflowTaskStartToClose => {
            TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version }
        }
        TimerTaskKind::FirstWorkflowTask => TimerTask::FirstWorkflowTask { version },
        TimerTaskKind::RunTimeout => TimerTask::RunTimeout { version },
        TimerTaskKind::ExecutionTimeout => TimerTask::ExecutionTimeout { version },
        TimerTaskKind::Retention => TimerTask::Retention { version },
        TimerTaskKind::Schedule => TimerTask::Schedule,
    };
    Ok((decode_key(task.key)?, decoded))
}
