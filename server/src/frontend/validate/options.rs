//! Requests that change the options of a run.

use cluster::errors::ServiceError;
use prost_types::FieldMask;
use proto::temporal::api::workflow::v1::post_reset_operation::Variant;
use proto::temporal::api::workflow::v1::{PostResetOperation, WorkflowExecutionOptions};
use proto::temporal::api::workflowservice::v1 as public;

use super::{invalid, priority, proper_run_id};

const PRIORITY_PATHS: [&str; 4] =
    ["priority", "priority.priority_key", "priority.fairness_key", "priority.fairness_weight"];

pub(crate) fn update(request: &public::UpdateWorkflowExecutionOptionsRequest) -> Result<(), ServiceError> {
    let execution = request.workflow_execution.clone().unwrap_or_default();
    if execution.workflow_id.is_empty() {
        return Err(invalid("WorkflowId is not set on request."));
    }
    proper_run_id(&execution.run_id)?;
    let mask = request.update_mask.as_ref().ok_or_else(|| invalid("UpdateMask is required"))?;
    let options = request.workflow_execution_options.as_ref();
    let options = options.ok_or_else(|| invalid("WorkflowExecutionOptions is required"))?;
    masked(options, mask)
}

/// Checks options with their mask.
pub(crate) fn masked(options: &WorkflowExecutionOptions, mask: &FieldMask) -> Result<(), ServiceError> {
    let known = |path| known(path).map_err(|reason| invalid(format!("error parsing UpdateMask: {reason}")));
    mask.paths.iter().try_for_each(|path| known(path))?;
    built(options, mask)
}

/// Checks an operation on the new run of a reset.
pub(crate) fn after_reset(operation: &PostResetOperation) -> Result<(), ServiceError> {
    let unsupported = |kind: &str| invalid(format!("unsupported post reset operation: {kind}"));
    let update = match &operation.variant {
        Some(Variant::UpdateWorkflowOptions(update)) => update,
        Some(Variant::SignalWorkflow(_)) => {
            return Err(unsupported("*workflow.PostResetOperation_SignalWorkflow_"));
        }
        None => return Err(unsupported("<nil>")),
    };
    let mask = update.update_mask.clone().unwrap_or_default();
    let known = |path| known(path).map_err(|reason| invalid(format!("error applying update_options: {reason}")));
    mask.paths.iter().try_for_each(|path| known(path))?;
    built(&update.workflow_execution_options.clone().unwrap_or_default(), &mask)
}

fn built(options: &WorkflowExecutionOptions, mask: &FieldMask) -> Result<(), ServiceError> {
    priority(options.priority.as_ref())?;
    let names_override = mask.paths.iter().any(|path| path.starts_with("versioning_override"));
    if names_override && options.versioning_override.is_some() {
        return Err(ServiceError::Unimplemented("VersioningOverride is not built yet".into()));
    }
    if mask.paths.iter().any(|path| path.starts_with("time_skipping_config")) {
        return Err(ServiceError::Unimplemented("The Time-Skipping feature is not enabled for namespace.".into()));
    }
    Ok(())
}

/// Whether a mask may contain this path.
fn known(path: &str) -> Result<(), String> {
    let is_under = |field: &str| path == field || path.starts_with(&format!("{field}."));
    if PRIORITY_PATHS.contains(&path) || is_under("versioning_override") || is_under("time_skipping_config") {
        return Ok(());
    }
    Err(format!("proto: invalid path {path:?} for message \"temporal.api.workflow.v1.WorkflowExecutionOptions\""))
}
