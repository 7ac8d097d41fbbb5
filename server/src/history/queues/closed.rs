//! Close task of a run: reports the result to its parent and its schedule, and applies its children's policies.

use cluster::errors::ServiceError;
use futures_util::future::join_all;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::ParentClosePolicy;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{Child, Parent};

use super::transfer::Origin;

/// Children handled concurrently: enough that a thousand take little time, few enough to leave capacity in the
/// committers of other shards.
const CHILDREN_AT_ONCE: usize = 16;

/// The server's identity in requests to children.
const SERVER_IDENTITY: &str = "history-service";
/// Identity in the termination event of a reset: the run's parent and children are not notified.
const RESETTER_IDENTITY: &str = "history-resetter";
const POLICY_REASON: &str = "by parent close policy";

pub(super) async fn execute(run: &Origin<'_>) -> Result<(), ServiceError> {
    let Some(closed) = &run.state.closed else { return Ok(()) };
    let end = run.shard.closing_event(run.state, closed).await?;
    if is_reset(&end) {
        return Ok(());
    }
    if let (Some(parent), None) = (&run.state.started.parent, closed.new_run_id) {
        unless_gone(report(run, parent, end.clone()).await)?;
    }
    if let (Some(schedule_id), None) = (&run.state.unrecorded.schedule_id, closed.new_run_id) {
        unless_gone(Box::pin(report_to_schedule(run, schedule_id, end)).await)?;
    }
    let children: Vec<&Child> = run.state.children.iter().map(|(_, child)| child).collect();
    for children in children.chunks(CHILDREN_AT_ONCE) {
        let outcomes = join_all(children.iter().map(|child| apply_policy(run, child))).await;
        outcomes.into_iter().try_for_each(unless_gone)?;
    }
    Ok(())
}

/// Whether a reset closed the run, possibly since it was read.
pub(super) async fn was_reset(run: &Origin<'_>) -> Result<bool, ServiceError> {
    let state = run.shard.read(&run.state.key).await?;
    let Some(closed) = &state.closed else { return Ok(false) };
    Ok(is_reset(&run.shard.closing_event(&state, closed).await?))
}

fn is_reset(end: &HistoryEvent) -> bool {
    matches!(
        &end.attributes,
        Some(Attributes::WorkflowExecutionTerminatedEventAttributes(end)) if end.identity == RESETTER_IDENTITY
    )
}

/// Ignores a recipient that no longer exists.
fn unless_gone(outcome: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match outcome {
        Err(ServiceError::NotFound(_) | ServiceError::NamespaceNotFound { .. }) => Ok(()),
        other => other,
    }
}

async fn report(run: &Origin<'_>, parent: &Parent, end: HistoryEvent) -> Result<(), ServiceError> {
    let ask = request::RecordChildExecutionCompletedRequest {
        namespace_id: parent.namespace_id.to_string(),
        parent: Some(parent.execution.clone()),
        initiated_event_id: parent.initiated_event_id.0,
        initiated_version: parent.initiated_version,
        child: Some(run.execution()),
        completion_event: Some(end),
        child_first_run_id: run.state.started.first_run_id.to_string(),
    };
    run.peers.history()?.record_child_execution_completed(ask).await.map(|_| ())
}

async fn report_to_schedule(run: &Origin<'_>, schedule_id: &str, end: HistoryEvent) -> Result<(), ServiceError> {
    let ask = request::RecordScheduledRunClosedRequest {
        namespace_id: run.state.key.namespace_id.to_string(),
        schedule_id: schedule_id.to_owned(),
        workflow_id: run.state.key.workflow_id.to_string(),
        first_run_id: run.state.started.first_run_id.to_string(),
        completion_event: Some(end),
    };
    run.peers.history()?.record_scheduled_run_closed(ask).await.map(|_| ())
}

/// Applies a child's parent close policy to its newest run.
pub(super) async fn apply_policy(parent: &Origin<'_>, child: &Child) -> Result<(), ServiceError> {
    let (namespace_id, external_execution) = (child.namespace_id.to_string(), Some(parent.execution()));
    let first_execution_run_id = child.started.as_ref().map(|started| started.run_id.to_string()).unwrap_or_default();
    let workflow_execution = Some(WorkflowExecution { workflow_id: child.workflow_id.clone(), run_id: String::new() });
    let (namespace, identity) = (child.namespace.clone(), SERVER_IDENTITY.to_owned());
    match child.parent_close_policy {
        ParentClosePolicy::Abandon => Ok(()),
        ParentClosePolicy::RequestCancel => {
            let ask = request::RequestCancelWorkflowExecutionRequest {
                namespace_id,
                request: Some(public::RequestCancelWorkflowExecutionRequest {
                    namespace,
                    workflow_execution,
                    identity,
                    first_execution_run_id,
                    ..Default::default()
                }),
                external_execution,
                child_workflow_only: true,
                ..Default::default()
            };
            parent.peers.history()?.request_cancel_workflow_execution(ask).await.map(|_| ())
        }
        ParentClosePolicy::Terminate | ParentClosePolicy::Unspecified => {
            let ask = request::TerminateWorkflowExecutionRequest {
                namespace_id,
                request: Some(public::TerminateWorkflowExecutionRequest {
                    namespace,
                    workflow_execution,
                    reason: POLICY_REASON.to_owned(),
                    identity,
                    first_execution_run_id,
                    ..Default::default()
                }),
                external_execution,
                child_workflow_only: true,
                ..Default::default()
            };
            parent.peers.history()?.terminate_workflow_execution(ask).await.map(|_| ())
        }
    }
}
