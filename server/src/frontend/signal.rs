//! Requests to a run from outside: signals, cancellation, termination, reset, deletion.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate;

pub(super) async fn signal(
    frontend: &Frontend,
    call: Call<public::SignalWorkflowExecutionRequest>,
) -> Result<public::SignalWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let checked = validate::signal(call.request, || frontend.new_id())?;
    let ask = request::SignalWorkflowExecutionRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
        ..Default::default()
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.signal_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn request_cancel(
    frontend: &Frontend,
    call: Call<public::RequestCancelWorkflowExecutionRequest>,
) -> Result<public::RequestCancelWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let checked = validate::request_cancel(call.request, || frontend.new_id())?;
    let ask = request::RequestCancelWorkflowExecutionRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
        ..Default::default()
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.request_cancel_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn terminate(
    frontend: &Frontend,
    call: Call<public::TerminateWorkflowExecutionRequest>,
) -> Result<public::TerminateWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let checked = validate::terminate(call.request)?;
    let ask = request::TerminateWorkflowExecutionRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
        ..Default::default()
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.terminate_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn delete(
    frontend: &Frontend,
    call: Call<public::DeleteWorkflowExecutionRequest>,
) -> Result<public::DeleteWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::execution(call.request.workflow_execution.as_ref())?;
    let namespace_id = namespace.id.to_string();
    let ask = request::DeleteWorkflowExecutionRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.delete_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn reset(
    frontend: &Frontend,
    call: Call<public::ResetWorkflowExecutionRequest>,
) -> Result<public::ResetWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::reset(&call.request)?;
    let namespace_id = namespace.id.to_string();
    let ask = request::ResetWorkflowExecutionRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.reset_workflow_execution(ask.clone()).await
    })
    .await
}
