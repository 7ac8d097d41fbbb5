//! The same responses by workflow and activity id, for callers without a token: each gets a token of the activity.

use cluster::errors::ServiceError;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::Call;
use super::respond;
use super::validate::token::{ActivityById, by_id};

/// A macro: the requests share fields but no type.
macro_rules! token_of {
    ($frontend:expr, $request:expr) => {
        by_id(ActivityById {
            namespace_id: $frontend.enter(&$request.namespace).await?.id,
            workflow_id: &$request.workflow_id,
            run_id: &$request.run_id,
            activity_id: &$request.activity_id,
            identity: &$request.identity,
        })?
    };
}

pub(super) async fn heartbeat(
    frontend: &Frontend,
    Call { request, deadline, client }: Call<public::RecordActivityTaskHeartbeatByIdRequest>,
) -> Result<public::RecordActivityTaskHeartbeatByIdResponse, ServiceError> {
    let task_token = token_of!(frontend, request);
    let request = public::RecordActivityTaskHeartbeatRequest {
        task_token,
        details: request.details,
        identity: request.identity,
        namespace: request.namespace,
        ..public::RecordActivityTaskHeartbeatRequest::default()
    };
    let answer = respond::heartbeat(frontend, Call { request, deadline, client }).await?;
    Ok(public::RecordActivityTaskHeartbeatByIdResponse {
        cancel_requested: answer.cancel_requested,
        activity_paused: answer.activity_paused,
        activity_reset: answer.activity_reset,
    })
}

pub(super) async fn activity_completed(
    frontend: &Frontend,
    Call { request, deadline, client }: Call<public::RespondActivityTaskCompletedByIdRequest>,
) -> Result<public::RespondActivityTaskCompletedByIdResponse, ServiceError> {
    let task_token = token_of!(frontend, request);
    let request = public::RespondActivityTaskCompletedRequest {
        task_token,
        result: request.result,
        identity: request.identity,
        namespace: request.namespace,
        ..public::RespondActivityTaskCompletedRequest::default()
    };
    respond::activity_completed(frontend, Call { request, deadline, client }).await?;
    Ok(public::RespondActivityTaskCompletedByIdResponse::default())
}

pub(super) async fn activity_failed(
    frontend: &Frontend,
    Call { request, deadline, client }: Call<public::RespondActivityTaskFailedByIdRequest>,
) -> Result<public::RespondActivityTaskFailedByIdResponse, ServiceError> {
    let task_token = token_of!(frontend, request);
    let request = public::RespondActivityTaskFailedRequest {
        task_token,
        failure: request.failure,
        identity: request.identity,
        namespace: request.namespace,
        last_heartbeat_details: request.last_heartbeat_details,
        cause: request.cause,
        ..public::RespondActivityTaskFailedRequest::default()
    };
    let answer = respond::activity_failed(frontend, Call { request, deadline, client }).await?;
    Ok(public::RespondActivityTaskFailedByIdResponse { failures: answer.failures })
}

pub(super) async fn activity_canceled(
    frontend: &Frontend,
    Call { request, deadline, client }: Call<public::RespondActivityTaskCanceledByIdRequest>,
) -> Result<public::RespondActivityTaskCanceledByIdResponse, ServiceError> {
    let task_token = token_of!(frontend, request);
    let request = public::RespondActivityTaskCanceledRequest {
        task_token,
        details: request.details,
        identity: request.identity,
        namespace: request.namespace,
        ..public::RespondActivityTaskCanceledRequest::default()
    };
    respond::activity_canceled(frontend, Call { request, deadline, client }).await?;
    Ok(public::RespondActivityTaskCanceledByIdResponse::default())
}
