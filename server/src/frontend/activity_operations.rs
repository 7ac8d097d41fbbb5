//! Operator RPCs on pending activities.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate::{self, activity_operations as check};

pub(super) async fn pause(
    frontend: &Frontend,
    call: Call<public::PauseActivityRequest>,
) -> Result<public::PauseActivityResponse, ServiceError> {
    check::target(call.request.execution.as_ref(), call.request.activity.is_some())?;
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    let ask = request::PauseActivityRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.pause_activity(ask.clone()).await })
        .await
}

pub(super) async fn unpause(
    frontend: &Frontend,
    call: Call<public::UnpauseActivityRequest>,
) -> Result<public::UnpauseActivityResponse, ServiceError> {
    check::target(call.request.execution.as_ref(), call.request.activity.is_some())?;
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    let ask = request::UnpauseActivityRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.unpause_activity(ask.clone()).await })
        .await
}

pub(super) async fn reset(
    frontend: &Frontend,
    call: Call<public::ResetActivityRequest>,
) -> Result<public::ResetActivityResponse, ServiceError> {
    check::target(call.request.execution.as_ref(), call.request.activity.is_some())?;
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    let ask = request::ResetActivityRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.reset_activity(ask.clone()).await })
        .await
}

pub(super) async fn update_options(
    frontend: &Frontend,
    call: Call<public::UpdateActivityOptionsRequest>,
) -> Result<public::UpdateActivityOptionsResponse, ServiceError> {
    check::target(call.request.execution.as_ref(), call.request.activity.is_some())?;
    validate::priority(call.request.activity_options.as_ref().and_then(|options| options.priority.as_ref()))?;
    let namespace_id = frontend.enter(&call.request.namespace).await?.id.to_string();
    let ask = request::UpdateActivityOptionsRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.update_activity_options(ask.clone()).await
    })
    .await
}
