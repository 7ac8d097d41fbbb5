//! Pausing and unpausing runs.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate::{self, ID_BYTES_MAX, invalid};

pub(super) async fn pause(
    frontend: &Frontend,
    call: Call<public::PauseWorkflowExecutionRequest>,
) -> Result<public::PauseWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let asked = &call.request;
    check((&asked.workflow_id, &asked.run_id), (&asked.reason, &asked.request_id, &asked.identity))?;
    let namespace_id = namespace.id.to_string();
    let ask = request::PauseWorkflowExecutionRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.pause_workflow_execution(ask.clone()).await
    })
    .await
}

pub(super) async fn unpause(
    frontend: &Frontend,
    call: Call<public::UnpauseWorkflowExecutionRequest>,
) -> Result<public::UnpauseWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let asked = &call.request;
    check((&asked.workflow_id, &asked.run_id), (&asked.reason, &asked.request_id, &asked.identity))?;
    let namespace_id = namespace.id.to_string();
    let ask = request::UnpauseWorkflowExecutionRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.unpause_workflow_execution(ask.clone()).await
    })
    .await
}

fn check(
    (workflow_id, run_id): (&str, &str),
    (reason, request_id, identity): (&str, &str, &str),
) -> Result<(), ServiceError> {
    let execution = WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() };
    validate::execution(Some(&execution))?;
    validate::proper_run_id(run_id)?;
    for (text, name) in [(reason, "reason"), (request_id, "request id"), (identity, "identity")] {
        if text.len() > ID_BYTES_MAX {
            return Err(invalid(format!("{name} is too long.")));
        }
    }
    Ok(())
}
