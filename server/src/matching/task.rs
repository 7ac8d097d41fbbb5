//! A task for a worker, as matching has it: in memory, and as a row of the backlog.

use std::time::Duration;

use bytes::Bytes;
use cluster::errors::ServiceError;
use prost::Message as _;
use proto::everrow::{matching as request, record};
use proto::temporal::api::common::v1 as common;
use proto::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType};
use uuid::Uuid;
use workflow::{NamespaceId, Timestamp};

use super::matcher::Priority;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub(super) namespace_id: NamespaceId,
    pub(super) workflow_id: String,
    pub(super) run_id: Uuid,
    pub(super) scheduled_event_id: i64,
    pub(super) attempt: i32,
    /// Of an activity: another stamp in history means another task.
    pub(super) stamp: i32,
    pub(super) version: i64,
    pub(super) created_at: Timestamp,
    /// `None`: never.
    pub(super) expires_at: Option<Timestamp>,
    pub(super) priority: common::Priority,
    /// Failed attempts to record its start, since it is in memory.
    pub(super) n_failures: u32,
}

/// Key of one task queue. Includes the kind: a sticky queue is not durable, and must never stand in for a normal one of
/// the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct QueueKey {
    pub(super) namespace_id: NamespaceId,
    pub(super) name: String,
    pub(super) task_type: TaskType,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TaskType {
    Workflow,
    Activity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Shared by workers; its backlog is in the store.
    Normal,
    /// Of one worker; its backlog is in memory only. History has a timer on each of its tasks and falls back to the
    /// normal queue, so a crash loses no task.
    Sticky,
}

impl Task {
    pub(super) fn from_request(request: request::AddTaskRequest, now: Timestamp) -> Result<Self, ServiceError> {
        let execution = request.execution.unwrap_or_default();
        let timeout = request.schedule_to_start_timeout.and_then(|timeout| Duration::try_from(timeout).ok());
        Ok(Self {
            namespace_id: namespace_id(&request.namespace_id)?,
            run_id: parse_uuid("run id", &execution.run_id)?,
            workflow_id: execution.workflow_id,
            scheduled_event_id: request.scheduled_event_id,
            attempt: request.attempt,
            stamp: request.stamp,
            version: request.version,
            created_at: now,
            expires_at: timeout.filter(|timeout| !timeout.is_zero()).map(|timeout| now + timeout),
            priority: request.priority.unwrap_or_default(),
            n_failures: 0,
        })
    }

    /// Decodes a row of the backlog. `None` if it is malformed.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let record = record::BacklogTask::decode(data).ok()?;
        Some(Self {
            namespace_id: NamespaceId(Uuid::from_slice(&record.namespace_id).ok()?),
            run_id: Uuid::from_slice(&record.run_id).ok()?,
            workflow_id: record.workflow_id,
            scheduled_event_id: record.scheduled_event_id,
            attempt: record.attempt,
            stamp: record.stamp,
            version: record.version,
            created_at: Timestamp(record.created_at),
            expires_at: record.expires_at.map(Timestamp),
            priority: record.priority.unwrap_or_default(),
            n_failures: 0,
        })
    }

    pub(super) fn encode(&self) -> Bytes {
        let record = record::BacklogTask {
            namespace_id: Bytes::copy_from_slice(self.namespace_id.0.as_bytes()),
            workflow_id: self.workflow_id.clone(),
            run_id: Bytes::copy_from_slice(self.run_id.as_bytes()),
            scheduled_event_id: self.scheduled_event_id,
            attempt: self.attempt,
            stamp: self.stamp,
            version: self.version,
            created_at: self.created_at.0,
            expires_at: self.expires_at.map(|at| at.0),
            priority: Some(self.priority.clone()),
        };
        record.encode_to_vec().into()
    }

    /// For a normal queue: history's timer on the sticky queue continues by itself.
    pub(super) fn without_expiry(self) -> Self {
        Self { expires_at: None, n_failures: 0, ..self }
    }

    pub(super) fn level(&self) -> Priority {
        Priority::from_key(self.priority.priority_key)
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    pub(super) fn execution(&self) -> common::WorkflowExecution {
        common::WorkflowExecution { workflow_id: self.workflow_id.clone(), run_id: self.run_id.to_string() }
    }
}

impl TaskType {
    pub(super) fn from_proto(task_type: TaskQueueType) -> Result<Self, ServiceError> {
        match task_type {
            // `DescribeTaskQueue` without a type means workflow tasks.
            TaskQueueType::Workflow | TaskQueueType::Unspecified => Ok(Self::Workflow),
            TaskQueueType::Activity => Ok(Self::Activity),
            TaskQueueType::Nexus => Err(ServiceError::Unimplemented("Nexus task queues are not built yet".into())),
        }
    }

    pub(super) fn number(self) -> i32 {
        TaskQueueType::from(self).into()
    }
}

impl From<TaskType> for TaskQueueType {
    fn from(task_type: TaskType) -> Self {
        match task_type {
            TaskType::Workflow => Self::Workflow,
            TaskType::Activity => Self::Activity,
        }
    }
}

impl Kind {
    pub(super) fn from_proto(kind: TaskQueueKind) -> Self {
        match kind {
            TaskQueueKind::Sticky => Self::Sticky,
            TaskQueueKind::Normal | TaskQueueKind::Unspecified | TaskQueueKind::WorkerCommands => Self::Normal,
        }
    }
}

pub(super) fn namespace_id(text: &str) -> Result<NamespaceId, ServiceError> {
    parse_uuid("namespace id", text).map(NamespaceId)
}

fn parse_uuid(what: &str, text: &str) -> Result<Uuid, ServiceError> {
    Uuid::parse_str(text).map_err(|_| ServiceError::InvalidArgument(format!("{what} {text:?} is not a UUID")))
}
