//! Checks of updates.

use cluster::errors::ServiceError;
use cluster::search_attributes::check::Defined;
use proto::temporal::api::enums::v1::UpdateWorkflowExecutionLifecycleStage as Stage;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_request::operation::Operation;

use super::{ID_BYTES_MAX, execution, invalid, links, proper_run_id, run_id, start};

pub(crate) fn update(
    mut request: public::UpdateWorkflowExecutionRequest,
    generate_id: impl FnOnce() -> String,
) -> Result<public::UpdateWorkflowExecutionRequest, ServiceError> {
    execution(request.workflow_execution.as_ref())?;
    run_id(&request.first_execution_run_id)?;
    let mut update = request.request.take().unwrap_or_default();
    let meta = update.meta.as_mut().ok_or_else(|| invalid("Update meta is not set on request."))?;
    if meta.update_id.len() > ID_BYTES_MAX {
        return Err(invalid("UpdateId length exceeds limit."));
    }
    if meta.update_id.is_empty() {
        meta.update_id = generate_id();
    }
    let input = update.input.as_ref().ok_or_else(|| invalid("Update input is not set on request."))?;
    if input.name.is_empty() {
        return Err(invalid("Update name is not set on request."));
    }
    let mut wait_policy = request.wait_policy.take().unwrap_or_default();
    match wait_policy.lifecycle_stage() {
        Stage::Unspecified => wait_policy.set_lifecycle_stage(Stage::Completed),
        Stage::Admitted => return Err(not_durable()),
        Stage::Accepted | Stage::Completed => {}
    }
    if !update.completion_callbacks.is_empty() {
        return Err(ServiceError::Unimplemented("CompletionCallbacks is not built yet".into()));
    }
    links::check(&update.links)?;
    (request.request, request.wait_policy) = (Some(update), Some(wait_policy));
    Ok(request)
}

/// An update is durable when it is accepted, and not before.
fn not_durable() -> ServiceError {
    let message =
        "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not supported.".into();
    ServiceError::PermissionDenied { message, reason: String::new() }
}

pub(crate) fn poll(
    request: public::PollWorkflowExecutionUpdateRequest,
) -> Result<public::PollWorkflowExecutionUpdateRequest, ServiceError> {
    let named = request.update_ref.as_ref().ok_or_else(|| invalid("UpdateRef is not set on request."))?;
    let execution = named.workflow_execution.as_ref();
    if execution.is_none_or(|execution| execution.workflow_id.is_empty()) {
        return Err(invalid("Can't load workflow execution.  WorkflowId not set."));
    }
    proper_run_id(execution.map_or("", |execution| &execution.run_id))?;
    Ok(request)
}

/// Checks a start and an update of one workflow, each as if it came alone. An error of either is reported for both.
pub(crate) fn with_start(
    mut request: public::ExecuteMultiOperationRequest,
    defined: Defined<'_>,
    generate_id: impl Fn() -> String,
) -> Result<public::ExecuteMultiOperationRequest, ServiceError> {
    let not_both = || invalid("Operations have to be exactly [Start, Update].");
    let [first, second] = request.operations.as_mut_slice() else { return Err(not_both()) };
    let (Some(Operation::StartWorkflow(start)), Some(Operation::UpdateWorkflow(update))) =
        (&mut first.operation, &mut second.operation)
    else {
        return Err(not_both());
    };
    let started = start_of(defined, start, &generate_id);
    let updated = update_of(&request.namespace, update, &generate_id);
    match (started, updated) {
        (Ok(started), Ok(updated)) if started == updated => Ok(request),
        (Ok(_), Ok(_)) => {
            Err(one_is_wrong(Ok(()), Err(invalid("WorkflowId is not consistent with previous operation(s)."))))
        }
        (started, updated) => Err(one_is_wrong(started.map(|_| ()), updated.map(|_| ()))),
    }
}

/// Checks the start; returns its workflow id.
fn start_of(
    defined: Defined<'_>,
    request: &mut public::StartWorkflowExecutionRequest,
    generate_id: impl FnOnce() -> String,
) -> Result<String, ServiceError> {
    is_same_namespace(defined.namespace, &mut request.namespace)?;
    if !request.cron_schedule.is_empty() {
        return Err(invalid("CronSchedule is not allowed."));
    }
    if request.request_eager_execution {
        return Err(invalid("RequestEagerExecution is not supported."));
    }
    if request.workflow_start_delay.is_some_and(|delay| delay.seconds > 0 || delay.nanos > 0) {
        return Err(invalid("WorkflowStartDelay is not supported."));
    }
    *request = start::start(std::mem::take(request), defined, generate_id)?;
    Ok(request.workflow_id.clone())
}

fn update_of(
    namespace: &str,
    request: &mut public::UpdateWorkflowExecutionRequest,
    generate_id: impl FnOnce() -> String,
) -> Result<String, ServiceError> {
    is_same_namespace(namespace, &mut request.namespace)?;
    *request = update(std::mem::take(request), generate_id)?;
    if !request.first_execution_run_id.is_empty() {
        return Err(invalid("FirstExecutionRunId is not allowed."));
    }
    let execution = request.workflow_execution.clone().unwrap_or_default();
    if !execution.run_id.is_empty() {
        return Err(invalid("RunId is not allowed."));
    }
    Ok(execution.workflow_id)
}

/// Checks an operation's namespace; empty means the whole request's.
fn is_same_namespace(whole: &str, one: &mut String) -> Result<(), ServiceError> {
    if one.is_empty() {
        whole.clone_into(one);
    }
    if one == whole { Ok(()) } else { Err(invalid("Operation namespace did not match request's namespace.")) }
}

fn one_is_wrong(started: Result<(), ServiceError>, updated: Result<(), ServiceError>) -> ServiceError {
    let met = |one: Result<(), ServiceError>| Some(one.err().unwrap_or(ServiceError::OperationAborted));
    ServiceError::operations([met(started), met(updated)])
}
