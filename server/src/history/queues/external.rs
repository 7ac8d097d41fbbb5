//! Signals and cancel requests from a run to other workflows: delivers them and records the results in the run.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause as CancelFailedCause,
    SignalExternalWorkflowExecutionFailedCause as SignalFailedCause,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    HistoryEvent, RequestCancelExternalWorkflowExecutionInitiatedEventAttributes,
    SignalExternalWorkflowExecutionInitiatedEventAttributes,
};
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{EventId, ExternalAnswer, ExternalRequest, Input, NamespaceId};

use super::transfer::Origin;

/// The server's identity in requests to other workflows.
const SERVER_IDENTITY: &str = "history-service";

pub(super) async fn signal(sender: &Origin<'_>, initiated_event_id: EventId) -> Result<(), ServiceError> {
    let Some(pending) = sender.state.external_signals.get(initiated_event_id.0) else { return Ok(()) };
    if !sender.state.is_running() {
        return Ok(());
    }
    let event = sender.shard.event(sender.state, pending.initiated_batch_id, initiated_event_id).await?;
    let Some(Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(initiated)) = event.attributes else {
        return Err(misplaced(sender, &event));
    };
    let execution = initiated.workflow_execution.clone().unwrap_or_default();
    #[expect(deprecated, reason = "old workers send what they want to get back")]
    let control = initiated.control.clone();
    let (namespace, delivered) = match find_namespace(sender, pending, &initiated.namespace).await? {
        Found::Named(name) if is_self(sender, pending.namespace_id, &execution) => {
            (name, Err(SignalFailedCause::ExternalWorkflowExecutionNotFound))
        }
        Found::Named(name) => {
            let delivered = match send_signal(sender, pending, &name, initiated).await {
                Ok(()) => Ok(()),
                Err(ServiceError::NotFound(_)) => Err(SignalFailedCause::ExternalWorkflowExecutionNotFound),
                Err(ServiceError::NamespaceNotFound { .. }) => Err(SignalFailedCause::NamespaceNotFound),
                // The signal was validated before: only the signal count limit can reject it.
                Err(ServiceError::InvalidArgument(_)) => Err(SignalFailedCause::SignalCountLimitExceeded),
                Err(error) => return Err(error),
            };
            (name, delivered)
        }
        Found::Gone(name) => (name, Err(SignalFailedCause::NamespaceNotFound)),
    };
    let answer = ExternalAnswer { initiated_event_id, namespace, execution, control };
    let answer = match delivered {
        Ok(()) => Input::ExternalSignaled(answer),
        Err(cause) => Input::ExternalSignalFailed(answer, cause),
    };
    Ok(sender.record(answer).await?)
}

pub(super) async fn cancel(sender: &Origin<'_>, initiated_event_id: EventId) -> Result<(), ServiceError> {
    let Some(pending) = sender.state.external_cancels.get(initiated_event_id.0) else { return Ok(()) };
    if !sender.state.is_running() {
        return Ok(());
    }
    let event = sender.shard.event(sender.state, pending.initiated_batch_id, initiated_event_id).await?;
    let Some(Attributes::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(initiated)) = event.attributes
    else {
        return Err(misplaced(sender, &event));
    };
    let execution = initiated.workflow_execution.clone().unwrap_or_default();
    let (namespace, delivered) = match find_namespace(sender, pending, &initiated.namespace).await? {
        Found::Named(name) if is_self(sender, pending.namespace_id, &execution) => {
            (name, Err(CancelFailedCause::ExternalWorkflowExecutionNotFound))
        }
        Found::Named(name) => {
            let delivered = match send_cancel(sender, pending, &name, initiated).await {
                Ok(()) => Ok(()),
                Err(ServiceError::NotFound(_)) => Err(CancelFailedCause::ExternalWorkflowExecutionNotFound),
                Err(ServiceError::NamespaceNotFound { .. }) => Err(CancelFailedCause::NamespaceNotFound),
                Err(error) => return Err(error),
            };
            (name, delivered)
        }
        Found::Gone(name) => (name, Err(CancelFailedCause::NamespaceNotFound)),
    };
    let answer = ExternalAnswer { initiated_event_id, namespace, execution, control: String::new() };
    let answer = match delivered {
        Ok(()) => Input::ExternalCancelRequested(answer),
        Err(cause) => Input::ExternalCancelFailed(answer, cause),
    };
    Ok(sender.record(answer).await?)
}

fn misplaced(sender: &Origin<'_>, event: &HistoryEvent) -> ServiceError {
    ServiceError::DataLoss(format!("event {} of {} asks nothing of another workflow", event.event_id, sender.state.key))
}

/// The target namespace's name, and whether it exists.
enum Found {
    Named(String),
    Gone(String),
}

async fn find_namespace(
    sender: &Origin<'_>,
    pending: &ExternalRequest,
    initiated_name: &str,
) -> Result<Found, ServiceError> {
    match sender.shard.namespaces.by_id(pending.namespace_id).await {
        Ok(namespace) => Ok(Found::Named(namespace.name.clone())),
        Err(ServiceError::NamespaceNotFound { .. }) => Ok(Found::Gone(initiated_name.to_owned())),
        Err(error) => Err(error),
    }
}

/// A workflow cannot target itself, whichever of its runs it names.
fn is_self(sender: &Origin<'_>, namespace_id: NamespaceId, target: &WorkflowExecution) -> bool {
    let key = &sender.state.key;
    key.namespace_id == namespace_id && *key.workflow_id == *target.workflow_id
}

async fn send_signal(
    sender: &Origin<'_>,
    pending: &ExternalRequest,
    namespace: &str,
    initiated: SignalExternalWorkflowExecutionInitiatedEventAttributes,
) -> Result<(), ServiceError> {
    let ask = request::SignalWorkflowExecutionRequest {
        namespace_id: pending.namespace_id.to_string(),
        request: Some(public::SignalWorkflowExecutionRequest {
            namespace: namespace.to_owned(),
            workflow_execution: initiated.workflow_execution,
            signal_name: initiated.signal_name,
            input: initiated.input,
            identity: SERVER_IDENTITY.to_owned(),
            request_id: pending.request_id.clone(),
            header: initiated.header,
            ..Default::default()
        }),
        external_execution: Some(sender.execution()),
        external_initiated_event_id: pending.initiated_event_id.0,
        child_workflow_only: initiated.child_workflow_only,
        ..Default::default()
    };
    sender.peers.history()?.signal_workflow_execution(ask).await.map(|_| ())
}

async fn send_cancel(
    sender: &Origin<'_>,
    pending: &ExternalRequest,
    namespace: &str,
    initiated: RequestCancelExternalWorkflowExecutionInitiatedEventAttributes,
) -> Result<(), ServiceError> {
    let ask = request::RequestCancelWorkflowExecutionRequest {
        namespace_id: pending.namespace_id.to_string(),
        request: Some(public::RequestCancelWorkflowExecutionRequest {
            namespace: namespace.to_owned(),
            workflow_execution: initiated.workflow_execution,
            identity: SERVER_IDENTITY.to_owned(),
            request_id: pending.request_id.clone(),
            reason: initiated.reason,
            ..Default::default()
        }),
        external_execution: Some(sender.execution()),
        external_initiated_event_id: pending.initiated_event_id.0,
        child_workflow_only: initiated.child_workflow_only,
        ..Default::default()
    };
    sender.peers.history()?.request_cancel_workflow_execution(ask).await.map(|_| ())
}
