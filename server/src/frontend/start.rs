//! Starting workflows, and changing their options.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate;

pub(super) async fn start(
    frontend: &Frontend,
    call: Call<public::StartWorkflowExecutionRequest>,
) -> Result<public::StartWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter_to_start(&call.request.namespace).await?;
    let checked = validate::start::start(call.request, namespace.search_attributes(), || frontend.new_id())?;
    let ask = request::StartWorkflowExecutionRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
        ..Default::default()
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.start_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn signal_with_start(
    frontend: &Frontend,
    call: Call<public::SignalWithStartWorkflowExecutionRequest>,
) -> Result<public::SignalWithStartWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter_to_start(&call.request.namespace).await?;
    let checked =
        validate::start::signal_with_start(call.request, namespace.search_attributes(), || frontend.new_id())?;
    let ask = request::SignalWithStartWorkflowExecutionRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.signal_with_start_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn update_options(
    frontend: &Frontend,
    call: Call<public::UpdateWorkflowExecutionOptionsRequest>,
) -> Result<public::UpdateWorkflowExecutionOptionsResponse, ServiceError> {
    validate::options::update(&call.request)?;
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    let ask = request::UpdateWorkflowExecutionOptionsRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.update_workflow_execution_options(ask.clone()).await
    })
    .await
}
