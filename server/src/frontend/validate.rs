//! Checks of public requests. Pure: returns the request with its defaults filled in, or the error for the client.
//! Codes, messages and the order of the checks are public behaviour, taken from the reference.

use cluster::errors::ServiceError;
use prost_types::Duration;
use proto::temporal::api::common::v1::{Priority, WorkflowExecution};
use proto::temporal::api::enums::v1::ResetReapplyType;
use proto::temporal::api::workflowservice::v1 as public;
use uuid::Uuid;

pub(crate) mod task_queue;
pub(crate) mod retry_policy;
pub(crate) mod links;
pub(crate) mod search_attributes;
pub(crate) mod start;
pub(crate) mod sizes;
pub(crate) mod token;
pub(crate) mod update;
pub(crate) mod worker;
pub(crate) mod activity_operations;
pub(crate) mod callbacks;
pub(crate) mod options;
pub(crate) mod schedule;
pub(crate) mod nexus;
pub(crate) mod batch;

#[cfg(test)]
mod tests;

/// Bytes of an id or a name that a client may choose: it becomes part of a key.
pub(crate) const ID_BYTES_MAX: usize = 1000;

const FAIRNESS_KEY_BYTES_MAX: usize = 64;

/// Events of one page of history.
const HISTORY_PAGE_MAX: i32 = 256;

/// A hundred years: far from the end of any clock or column.
const SPAN_MAX_SECONDS: i64 = 100 * 365 * 24 * 60 * 60;

pub(crate) fn invalid(message: impl Into<String>) -> ServiceError {
    ServiceError::InvalidArgument(message.into())
}

/// Checks a namespace's name in a request; the registry checks that it exists.
pub(crate) fn namespace_name(name: &str) -> Result<(), ServiceError> {
    if name.len() > ID_BYTES_MAX {
        return Err(invalid("Namespace length exceeds limit."));
    }
    if name.is_empty() {
        return Err(invalid("Namespace is empty."));
    }
    Ok(())
}

pub(crate) fn execution(execution: Option<&WorkflowExecution>) -> Result<(), ServiceError> {
    let execution = execution.ok_or_else(|| invalid("Execution is not set on request."))?;
    if execution.workflow_id.is_empty() {
        return Err(invalid("WorkflowId is not set on request."));
    }
    run_id(&execution.run_id)
}

/// Empty means the newest run.
fn run_id(run_id: &str) -> Result<(), ServiceError> {
    if run_id.is_empty() || Uuid::try_parse(run_id).is_ok() {
        return Ok(());
    }
    Err(invalid("Invalid RunId."))
}

/// Like `run_id`, in the words of newer calls.
pub(super) fn proper_run_id(id: &str) -> Result<(), ServiceError> {
    run_id(id).map_err(|_| invalid("RunId is not valid UUID."))
}

fn identity(identity: &str) -> Result<(), ServiceError> {
    if identity.len() > ID_BYTES_MAX {
        return Err(invalid("Identity length exceeds limit."));
    }
    Ok(())
}

/// Generates a missing id (of a client without retries), so that our retries differ from a second call.
fn request_id(request_id: &mut String, generate: impl FnOnce() -> String) -> Result<(), ServiceError> {
    if request_id.is_empty() {
        *request_id = generate();
    }
    if request_id.len() > ID_BYTES_MAX {
        return Err(invalid("RequestId length exceeds limit."));
    }
    Ok(())
}

/// Refuses a negative duration, and caps a very long one at a hundred years. Unset is valid.
pub(crate) fn span(span: &mut Option<Duration>) -> Result<(), &'static str> {
    let Some(span) = span else { return Ok(()) };
    if (span.seconds > 0 && span.nanos < 0) || (span.seconds < 0 && span.nanos > 0) {
        return Err("duration has seconds and nanos with different signs");
    }
    if span.seconds < 0 || span.nanos < 0 {
        return Err("negative duration");
    }
    span.normalize();
    if span.seconds >= SPAN_MAX_SECONDS {
        *span = Duration { seconds: SPAN_MAX_SECONDS, nanos: 0 };
    }
    Ok(())
}

pub(crate) fn signal(
    mut request: public::SignalWorkflowExecutionRequest,
    generate_id: impl FnOnce() -> String,
) -> Result<public::SignalWorkflowExecutionRequest, ServiceError> {
    execution(request.workflow_execution.as_ref())?;
    if request.signal_name.is_empty() {
        return Err(invalid("SignalName is not set on request."));
    }
    if request.signal_name.len() > ID_BYTES_MAX {
        return Err(invalid("SignalName length exceeds limit."));
    }
    request_id(&mut request.request_id, generate_id)?;
    links::check(&request.links)?;
    sizes::blob(request.input.as_ref())?;
    Ok(request)
}

pub(crate) fn request_cancel(
    mut request: public::RequestCancelWorkflowExecutionRequest,
    generate_id: impl FnOnce() -> String,
) -> Result<public::RequestCancelWorkflowExecutionRequest, ServiceError> {
    execution(request.workflow_execution.as_ref())?;
    links::check(&request.links)?;
    run_id(&request.first_execution_run_id)?;
    request_id(&mut request.request_id, generate_id)?;
    Ok(request)
}

pub(crate) fn terminate(
    mut request: public::TerminateWorkflowExecutionRequest,
) -> Result<public::TerminateWorkflowExecutionRequest, ServiceError> {
    execution(request.workflow_execution.as_ref())?;
    links::check(&request.links)?;
    run_id(&request.first_execution_run_id)?;
    // So that history distinguishes a user's termination from one of ours.
    if request.reason.is_empty() {
        request.reason = "terminated by user via frontend".into();
    }
    if request.identity.is_empty() {
        request.identity = "frontend-service".into();
    }
    Ok(request)
}

pub(crate) fn priority(priority: Option<&Priority>) -> Result<(), ServiceError> {
    let Some(priority) = priority else { return Ok(()) };
    if priority.priority_key < 0 {
        return Err(invalid("priority key can't be negative"));
    }
    if priority.fairness_key.len() > FAIRNESS_KEY_BYTES_MAX {
        return Err(invalid("fairness key length exceeds limit"));
    }
    if priority.fairness_weight < 0.0 {
        return Err(invalid("must be greater than zero"));
    }
    Ok(())
}

#[expect(deprecated, reason = "old clients say what to take, newer ones what to leave out")]
pub(crate) fn reset(request: &public::ResetWorkflowExecutionRequest) -> Result<(), ServiceError> {
    if request.request_id.is_empty() {
        return Err(invalid("RequestId is not set on request."));
    }
    if request.request_id.len() > ID_BYTES_MAX {
        return Err(invalid("RequestId length exceeds limit."));
    }
    execution(request.workflow_execution.as_ref())?;
    if ResetReapplyType::try_from(request.reset_reapply_type).is_err() {
        let unknown = request.reset_reapply_type;
        return Err(invalid(format!("unknown reset reapply type: {unknown}")));
    }
    request.post_reset_operations.iter().try_for_each(options::after_reset)
}

pub(crate) fn history_page(page: &mut i32) {
    if *page <= 0 || *page > HISTORY_PAGE_MAX {
        *page = HISTORY_PAGE_MAX;
    }
}
