//! Batch operations: one operation on each of many runs.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate::{batch as check, invalid};

pub(super) async fn start(
    frontend: &Frontend,
    call: Call<public::StartBatchOperationRequest>,
) -> Result<public::StartBatchOperationResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    check::start(&call.request)?;
    let query = &call.request.visibility_query;
    if !query.is_empty() {
        frontend.peers.visibility()?.check_syntax(query, &namespace.custom_attributes)?;
    }
    let namespace_id = namespace.id.to_string();
    let ask = request::StartBatchOperationRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.start_batch_operation(ask.clone()).await
    })
    .await
}

pub(super) async fn stop(
    frontend: &Frontend,
    call: Call<public::StopBatchOperationRequest>,
) -> Result<public::StopBatchOperationResponse, ServiceError> {
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    check::job_id(&call.request.job_id)?;
    if call.request.reason.is_empty() {
        return Err(invalid("Reason is not set on request."));
    }
    let ask = request::StopBatchOperationRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.stop_batch_operation(ask.clone()).await
    })
    .await
}

pub(super) async fn describe(
    frontend: &Frontend,
    call: Call<public::DescribeBatchOperationRequest>,
) -> Result<public::DescribeBatchOperationResponse, ServiceError> {
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    check::job_id(&call.request.job_id)?;
    let ask = request::DescribeBatchOperationRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.describe_batch_operation(ask.clone()).await
    })
    .await
}

pub(super) async fn list(
    frontend: &Frontend,
    call: Call<public::ListBatchOperationsRequest>,
) -> Result<public::ListBatchOperationsResponse, ServiceError> {
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    let ask = request::ListBatchOperationsRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.list_batch_operations(ask.clone()).await
    })
    .await
}
