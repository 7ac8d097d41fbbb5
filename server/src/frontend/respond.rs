//! Workers' task responses, by task token.

use cluster::errors::ServiceError;
use cluster::namespaces::Namespace;
use prost::bytes::Bytes;
use proto::everrow::history as request;
use proto::temporal::api::command::v1::{Command, command::Attributes};
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, Deadline, patiently};
use super::validate::sizes::{self, CANCEL_DETAILS_TOO_LARGE, HEARTBEAT_TOO_LARGE, RESULT_TOO_LARGE};
use super::validate::worker;

pub(super) async fn workflow_task_completed(
    frontend: &Frontend,
    call: Call<public::RespondWorkflowTaskCompletedRequest>,
) -> Result<public::RespondWorkflowTaskCompletedResponse, ServiceError> {
    let namespace = frontend.enter_by_token(&call.request.namespace, &call.request.task_token).await?;
    let mut checked = worker::workflow_task_completed(call.request)?;
    decline_eager_activities_of_leaving(frontend, &namespace, &mut checked);
    let ask =
        request::RespondWorkflowTaskCompletedRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    let mut answer = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.respond_workflow_task_completed(ask.clone()).await
    })
    .await?;
    for activity in &mut answer.activity_tasks {
        activity.workflow_namespace.clone_from(&namespace.name);
    }
    Ok(answer)
}

/// A worker that shuts down completes its tasks but starts none: an eager activity in this response would wait for its
/// timeout, so it goes to another worker. Workers that left are looked up only if an eager activity is requested.
fn decline_eager_activities_of_leaving(
    frontend: &Frontend,
    namespace: &Namespace,
    completed: &mut public::RespondWorkflowTaskCompletedRequest,
) {
    let wants_eager = completed.commands.iter_mut().filter_map(eager_execution).any(|is_wanted| *is_wanted);
    if wants_eager && frontend.polls.has_left(namespace.id, &completed.worker_instance_key, frontend.env.now()) {
        for is_wanted in completed.commands.iter_mut().filter_map(eager_execution) {
            *is_wanted = false;
        }
    }
}

fn eager_execution(command: &mut Command) -> Option<&mut bool> {
    if let Some(Attributes::ScheduleActivityTaskCommandAttributes(activity)) = &mut command.attributes {
        return Some(&mut activity.request_eager_execution);
    }
    None
}

pub(super) async fn workflow_task_failed(
    frontend: &Frontend,
    call: Call<public::RespondWorkflowTaskFailedRequest>,
) -> Result<public::RespondWorkflowTaskFailedResponse, ServiceError> {
    let mut checked = call.request;
    let namespace = frontend.enter_by_token(&checked.namespace, &checked.task_token).await?;
    worker::answered_by(&checked.identity)?;
    if let Some(replacement) = sizes::replacement(checked.failure.as_ref()) {
        checked.failure = Some(replacement);
    }
    let ask =
        request::RespondWorkflowTaskFailedRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.respond_workflow_task_failed(ask.clone()).await
    })
    .await
}

pub(super) async fn heartbeat(
    frontend: &Frontend,
    call: Call<public::RecordActivityTaskHeartbeatRequest>,
) -> Result<public::RecordActivityTaskHeartbeatResponse, ServiceError> {
    let checked = call.request;
    let namespace = frontend.enter_by_token(&checked.namespace, &checked.task_token).await?;
    if sizes::is_too_large(checked.details.as_ref()) {
        let answer = Answer { token: checked.task_token, identity: checked.identity, deadline: call.deadline };
        fail_activity(frontend, &namespace, answer, HEARTBEAT_TOO_LARGE).await?;
        // The activity has failed, so the worker may stop.
        return Ok(public::RecordActivityTaskHeartbeatResponse { cancel_requested: true, ..Default::default() });
    }
    let ask =
        request::RecordActivityTaskHeartbeatRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.record_activity_task_heartbeat(ask.clone()).await
    })
    .await
}

pub(super) async fn activity_completed(
    frontend: &Frontend,
    call: Call<public::RespondActivityTaskCompletedRequest>,
) -> Result<public::RespondActivityTaskCompletedResponse, ServiceError> {
    let checked = call.request;
    let namespace = frontend.enter_by_token(&checked.namespace, &checked.task_token).await?;
    worker::answered_by(&checked.identity)?;
    if sizes::is_too_large(checked.result.as_ref()) {
        let answer = Answer { token: checked.task_token, identity: checked.identity, deadline: call.deadline };
        fail_activity(frontend, &namespace, answer, RESULT_TOO_LARGE).await?;
        return Ok(public::RespondActivityTaskCompletedResponse::default());
    }
    let ask =
        request::RespondActivityTaskCompletedRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.respond_activity_task_completed(ask.clone()).await
    })
    .await
}

pub(super) async fn activity_failed(
    frontend: &Frontend,
    call: Call<public::RespondActivityTaskFailedRequest>,
) -> Result<public::RespondActivityTaskFailedResponse, ServiceError> {
    let mut checked = call.request;
    let namespace = frontend.enter_by_token(&checked.namespace, &checked.task_token).await?;
    worker::activity_failure(checked.failure.as_ref())?;
    worker::answered_by(&checked.identity)?;
    // Reports oversized parts to the worker, whose log has the originals.
    let mut failures = Vec::new();
    if sizes::is_too_large(checked.last_heartbeat_details.as_ref()) {
        failures.push(sizes::server_failure(HEARTBEAT_TOO_LARGE));
        checked.last_heartbeat_details = None;
    }
    if let Some(replacement) = sizes::replacement(checked.failure.as_ref()) {
        failures.push(replacement.clone());
        checked.failure = Some(replacement);
    }
    let ask =
        request::RespondActivityTaskFailedRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.respond_activity_task_failed(ask.clone()).await
    })
    .await?;
    Ok(public::RespondActivityTaskFailedResponse { failures })
}

pub(super) async fn activity_canceled(
    frontend: &Frontend,
    call: Call<public::RespondActivityTaskCanceledRequest>,
) -> Result<public::RespondActivityTaskCanceledResponse, ServiceError> {
    let checked = call.request;
    let namespace = frontend.enter_by_token(&checked.namespace, &checked.task_token).await?;
    worker::answered_by(&checked.identity)?;
    if sizes::is_too_large(checked.details.as_ref()) {
        let answer = Answer { token: checked.task_token, identity: checked.identity, deadline: call.deadline };
        fail_activity(frontend, &namespace, answer, CANCEL_DETAILS_TOO_LARGE).await?;
        return Ok(public::RespondActivityTaskCanceledResponse::default());
    }
    let ask =
        request::RespondActivityTaskCanceledRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.respond_activity_task_canceled(ask.clone()).await
    })
    .await
}

/// The needed parts of a refused response.
struct Answer {
    token: Bytes,
    identity: String,
    deadline: Deadline,
}

/// Fails the activity without retry, because the response would be too large again; history records the reason.
async fn fail_activity(
    frontend: &Frontend,
    namespace: &Namespace,
    answer: Answer,
    reason: &str,
) -> Result<(), ServiceError> {
    let failed = public::RespondActivityTaskFailedRequest {
        task_token: answer.token,
        failure: Some(sizes::server_failure(reason)),
        identity: answer.identity,
        namespace: namespace.name.clone(),
        ..public::RespondActivityTaskFailedRequest::default()
    };
    let ask =
        request::RespondActivityTaskFailedRequest { namespace_id: namespace.id.to_string(), request: Some(failed) };
    patiently(&frontend.env, answer.deadline, || async {
        frontend.peers.history()?.respond_activity_task_failed(ask.clone()).await
    })
    .await
    .map(|_| ())
}
