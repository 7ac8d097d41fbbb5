//! The newer operator RPCs on activities, which address activities of workflows and standalone ones alike. The former
//! are forwarded to the older RPCs; the latter are not built, so none is found.

use cluster::errors::ServiceError;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::workflowservice::v1 as public;

use super::validate::activity_operations as check;
use super::{Frontend, activity_operations};
use crate::frontend::call::Call;

pub(super) async fn pause(
    frontend: &Frontend,
    call: Call<public::PauseActivityExecutionRequest>,
) -> Result<public::PauseActivityExecutionResponse, ServiceError> {
    let Call { request, deadline, client } = call;
    check::activity(&request.activity_id, &request.identity, &request.run_id)?;
    let request = public::PauseActivityRequest {
        execution: execution(frontend, &request.namespace, request.workflow_id, request.run_id, &request.activity_id)
            .await?,
        namespace: request.namespace,
        identity: request.identity,
        activity: Some(public::pause_activity_request::Activity::Id(request.activity_id)),
        reason: request.reason,
        request_id: request.request_id,
    };
    activity_operations::pause(frontend, Call { request, deadline, client }).await?;
    Ok(public::PauseActivityExecutionResponse::default())
}

pub(super) async fn unpause(
    frontend: &Frontend,
    call: Call<public::UnpauseActivityExecutionRequest>,
) -> Result<public::UnpauseActivityExecutionResponse, ServiceError> {
    let Call { request, deadline, client } = call;
    check::activity(&request.activity_id, &request.identity, &request.run_id)?;
    let request = public::UnpauseActivityRequest {
        execution: execution(frontend, &request.namespace, request.workflow_id, request.run_id, &request.activity_id)
            .await?,
        namespace: request.namespace,
        identity: request.identity,
        activity: Some(public::unpause_activity_request::Activity::Id(request.activity_id)),
        jitter: request.jitter,
        ..public::UnpauseActivityRequest::default()
    };
    activity_operations::unpause(frontend, Call { request, deadline, client }).await?;
    Ok(public::UnpauseActivityExecutionResponse::default())
}

pub(super) async fn reset(
    frontend: &Frontend,
    call: Call<public::ResetActivityExecutionRequest>,
) -> Result<public::ResetActivityExecutionResponse, ServiceError> {
    let Call { request, deadline, client } = call;
    check::activity(&request.activity_id, &request.identity, &request.run_id)?;
    let request = public::ResetActivityRequest {
        execution: execution(frontend, &request.namespace, request.workflow_id, request.run_id, &request.activity_id)
            .await?,
        namespace: request.namespace,
        identity: request.identity,
        activity: Some(public::reset_activity_request::Activity::Id(request.activity_id)),
        reset_heartbeat: request.reset_heartbeat,
        keep_paused: request.keep_paused,
        jitter: request.jitter,
        restore_original_options: request.restore_original_options,
    };
    activity_operations::reset(frontend, Call { request, deadline, client }).await?;
    Ok(public::ResetActivityExecutionResponse::default())
}

pub(super) async fn update_options(
    frontend: &Frontend,
    call: Call<public::UpdateActivityExecutionOptionsRequest>,
) -> Result<public::UpdateActivityExecutionOptionsResponse, ServiceError> {
    let Call { request, deadline, client } = call;
    check::activity(&request.activity_id, &request.identity, &request.run_id)?;
    check::new_options(&request)?;
    let request = public::UpdateActivityOptionsRequest {
        execution: execution(frontend, &request.namespace, request.workflow_id, request.run_id, &request.activity_id)
            .await?,
        namespace: request.namespace,
        identity: request.identity,
        activity_options: request.activity_options,
        update_mask: request.update_mask,
        activity: Some(public::update_activity_options_request::Activity::Id(request.activity_id)),
        restore_original: request.restore_original,
    };
    let updated = activity_operations::update_options(frontend, Call { request, deadline, client }).await?;
    Ok(public::UpdateActivityExecutionOptionsResponse { activity_options: updated.activity_options })
}

/// The activity's run; `NotFound` for a standalone activity.
async fn execution(
    frontend: &Frontend,
    namespace: &str,
    workflow_id: String,
    run_id: String,
    activity_id: &str,
) -> Result<Option<WorkflowExecution>, ServiceError> {
    if workflow_id.is_empty() {
        frontend.enter(namespace).await?;
        return Err(ServiceError::NotFound(format!("activity not found for ID: {activity_id}")));
    }
    Ok(Some(WorkflowExecution { workflow_id, run_id }))
}
