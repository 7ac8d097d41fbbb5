//! Starts a child in repeatable steps: create its run, record it in the parent, schedule its first workflow task.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::{Priority, WorkflowExecution};
use proto::temporal::api::enums::v1::{
    ParentClosePolicy, StartChildWorkflowExecutionFailedCause as FailedCause, WorkflowIdConflictPolicy,
};
use proto::temporal::api::history::v1::StartChildWorkflowExecutionInitiatedEventAttributes;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::sdk::v1::UserMetadata;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{Child, ChildStartFailed, ChildStarted, EventId, Input, Rejection, RunId};

use super::closed::{apply_policy, was_reset};
use super::transfer::Origin;
use crate::history::token;
use crate::history::transact::TransactError;

pub(super) async fn execute(parent: &Origin<'_>, initiated_event_id: EventId) -> Result<(), ServiceError> {
    let mut children = parent.state.pending_children();
    let Some((child, run_id)) = children.find(|(child, _)| child.initiated_event_id == initiated_event_id) else {
        return Ok(());
    };
    let is_abandoned = child.parent_close_policy == ParentClosePolicy::Abandon;
    match run_id {
        Some(run_id) if parent.state.is_running() || is_abandoned => begin(parent, child, run_id).await,
        // The parent's close task handles this child.
        Some(_) => Ok(()),
        None if parent.state.is_running() => start(parent, child).await,
        None => settle(parent, child).await,
    }
}

async fn start(parent: &Origin<'_>, child: &Child) -> Result<(), ServiceError> {
    let (initiated, user_metadata) = initiated_event(parent, child).await?;
    let (header, initiated_event_id) = (initiated.header.clone(), child.initiated_event_id);
    let cause = match ask_to_start(parent, child, initiated.clone(), user_metadata).await {
        Ok(run_id) => {
            let started = Input::ChildStarted(ChildStarted { initiated_event_id, run_id, header });
            return match parent.record(started).await {
                Ok(()) => begin(parent, child, run_id).await,
                Err(TransactError::Rejected(Rejection::ExecutionClosed)) => settle(parent, child).await,
                Err(error) => Err(error.into()),
            };
        }
        Err(ServiceError::AlreadyStarted { .. }) => FailedCause::WorkflowAlreadyExists,
        Err(ServiceError::NamespaceNotFound { .. }) => FailedCause::NamespaceNotFound,
        // A run of the same id that is being deleted is soon gone. "Not found" would end the task for good.
        Err(ServiceError::NotFound(message)) => return Err(ServiceError::Unavailable(message)),
        Err(error) => return Err(error),
    };
    #[expect(deprecated, reason = "old workers send what they want to get back")]
    let control = initiated.control;
    Ok(parent.record(Input::ChildStartFailed(ChildStartFailed { initiated_event_id, cause, control })).await?)
}

async fn initiated_event(
    parent: &Origin<'_>,
    child: &Child,
) -> Result<(StartChildWorkflowExecutionInitiatedEventAttributes, Option<UserMetadata>), ServiceError> {
    let event = parent.shard.event(parent.state, child.initiated_batch_id, child.initiated_event_id).await?;
    match event.attributes {
        Some(Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(initiated)) => {
            Ok((initiated, event.user_metadata))
        }
        _ => {
            Err(ServiceError::DataLoss(format!("event {} of {} initiates no child", event.event_id, parent.state.key)))
        }
    }
}

/// Starts the child, or finds that this request has started it. Returns its run id.
async fn ask_to_start(
    parent: &Origin<'_>,
    child: &Child,
    initiated: StartChildWorkflowExecutionInitiatedEventAttributes,
    user_metadata: Option<UserMetadata>,
) -> Result<RunId, ServiceError> {
    let key = &parent.state.key;
    let namespace = parent.shard.namespaces.by_id(child.namespace_id).await?;
    let own_namespace = match parent.shard.namespaces.by_id(key.namespace_id).await {
        Ok(namespace) => namespace.name.clone(),
        // Only shown in the child's history.
        Err(ServiceError::NamespaceNotFound { .. }) => key.namespace_id.to_string(),
        Err(error) => return Err(error),
    };
    let root = parent.state.started.parent.as_ref().and_then(|grandparent| grandparent.root.clone());
    let ask = request::StartWorkflowExecutionRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(public::StartWorkflowExecutionRequest {
            namespace: namespace.name.clone(),
            workflow_id: initiated.workflow_id,
            workflow_type: initiated.workflow_type,
            task_queue: initiated.task_queue,
            input: initiated.input,
            header: initiated.header,
            workflow_execution_timeout: initiated.workflow_execution_timeout,
            workflow_run_timeout: initiated.workflow_run_timeout,
            workflow_task_timeout: initiated.workflow_task_timeout,
            request_id: child.create_request_id.clone(),
            workflow_id_reuse_policy: initiated.workflow_id_reuse_policy,
            workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
            retry_policy: initiated.retry_policy,
            cron_schedule: initiated.cron_schedule,
            memo: initiated.memo,
            search_attributes: initiated.search_attributes,
            user_metadata,
            priority: merged(parent.state.current_priority(), initiated.priority),
            ..Default::default()
        }),
        parent: Some(request::ParentExecution {
            namespace: own_namespace,
            namespace_id: key.namespace_id.to_string(),
            execution: Some(parent.execution()),
            initiated_event_id: child.initiated_event_id.0,
            initiated_version: child.version,
            root: Some(root.unwrap_or_else(|| parent.execution())),
        }),
        ..Default::default()
    };
    let started = parent.peers.history()?.start_workflow_execution(ask).await?;
    let run_id = token::run_id(&started.run_id)?;
    run_id.ok_or_else(|| ServiceError::Internal(format!("a child of {key} was started without a run")))
}

/// Priority fields that the child leaves unset come from the parent.
fn merged(parent: Option<&Priority>, child: Option<Priority>) -> Option<Priority> {
    let (Some(parent), Some(child)) = (parent, &child) else { return child.or_else(|| parent.cloned()) };
    let mut merged = child.clone();
    if merged.priority_key == 0 {
        merged.priority_key = parent.priority_key;
    }
    if merged.fairness_key.is_empty() {
        merged.fairness_key.clone_from(&parent.fairness_key);
    }
    if merged.fairness_weight == 0.0 {
        merged.fairness_weight = parent.fairness_weight;
    }
    Some(merged)
}

/// Schedules the child's first workflow task.
async fn begin(parent: &Origin<'_>, child: &Child, run_id: RunId) -> Result<(), ServiceError> {
    let execution = WorkflowExecution { workflow_id: child.workflow_id.clone(), run_id: run_id.to_string() };
    let namespace_id = child.namespace_id.to_string();
    let ask = request::ScheduleFirstWorkflowTaskRequest { namespace_id, execution: Some(execution) };
    parent.peers.history()?.schedule_first_workflow_task(ask).await.map(|_| ())
}

/// The parent closed before it recorded the child's start. Usually there is no run; but one that exists must not wait
/// forever for its first workflow task. Children of a reset parent continue.
async fn settle(parent: &Origin<'_>, child: &Child) -> Result<(), ServiceError> {
    if child.parent_close_policy != ParentClosePolicy::Abandon && !was_reset(parent).await? {
        return apply_policy(parent, child).await;
    }
    let execution = WorkflowExecution { workflow_id: child.workflow_id.clone(), run_id: String::new() };
    let ask = request::DescribeWorkflowExecutionRequest {
        namespace_id: child.namespace_id.to_string(),
        request: Some(public::DescribeWorkflowExecutionRequest { execution: Some(execution), ..Default::default() }),
    };
    let described = parent.peers.history()?.describe_workflow_execution(ask).await?;
    let found = described.workflow_execution_info.unwrap_or_default();
    if found.parent_execution.as_ref() != Some(&parent.execution()) {
        return Ok(());
    }
    match token::run_id(&found.execution.unwrap_or_default().run_id)? {
        Some(run_id) => begin(parent, child, run_id).await,
        None => Ok(()),
    }
}
