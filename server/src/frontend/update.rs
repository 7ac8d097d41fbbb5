//! Updates: sent to a run, or to one that is started with it, and awaited.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::long_calls::LongCall;
use super::validate;

pub(super) async fn update(
    frontend: &Frontend,
    call: Call<public::UpdateWorkflowExecutionRequest>,
) -> Result<public::UpdateWorkflowExecutionResponse, ServiceError> {
    let checked = validate::update::update(call.request, || frontend.new_id())?;
    let namespace = frontend.enter(&checked.namespace).await?;
    let _place = frontend.long_calls.enter(namespace.id, LongCall::UpdateWorkflowExecution)?;
    let ask =
        request::UpdateWorkflowExecutionRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    let updated = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.update_workflow_execution(ask.clone()).await
    });
    frontend.unless_closing(updated).await
}

/// Several operations in one call; so far an update and the start of its workflow.
pub(super) async fn with_start(
    frontend: &Frontend,
    call: Call<public::ExecuteMultiOperationRequest>,
) -> Result<public::ExecuteMultiOperationResponse, ServiceError> {
    let namespace = frontend.enter_to_start(&call.request.namespace).await?;
    let _place = frontend.long_calls.enter(namespace.id, LongCall::ExecuteMultiOperation)?;
    let checked = validate::update::with_start(call.request, namespace.search_attributes(), || frontend.new_id())?;
    let ask = request::ExecuteMultiOperationRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    let executed = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.execute_multi_operation(ask.clone()).await
    });
    frontend.unless_closing(executed).await
}

pub(super) async fn poll(
    frontend: &Frontend,
    call: Call<public::PollWorkflowExecutionUpdateRequest>,
) -> Result<public::PollWorkflowExecutionUpdateResponse, ServiceError> {
    let checked = validate::update::poll(call.request)?;
    let namespace = frontend.enter(&checked.namespace).await?;
    let _place = frontend.long_calls.enter(namespace.id, LongCall::PollWorkflowExecutionUpdate)?;
    let ask =
        request::PollWorkflowExecutionUpdateRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    let polled = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.poll_workflow_execution_update(ask.clone()).await
    });
    frontend.unless_closing(polled).await
}
