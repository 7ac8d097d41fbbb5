//! Requests that change the options of a run.

use proto::temporal::api::workflowservice::v1 as public;

use super::{invalid, priority, run_id};
use crate::errors::ServiceError;

const PRIORITY_PATHS: [&str; 4] =
    ["priority", "priority.priority_key", "priority.fairness_key", "priority.fairness_weight"];

pub(crate) fn update(request: &public::UpdateWorkflowExecutionOptionsRequest) -> Result<(), ServiceError> {
    let execution = request.workflow_execution.clone().unwrap_or_default();
    if execution.workflow_id.is_empty() {
        return Err(invalid("WorkflowId is not set on request."));
    }
    run_id(&execution.run_id)?;
    let mask = request.update_mask.as_ref().ok_or_else(|| invalid("UpdateMask is required"))?;
    let options = request.workflow_execution_options.as_ref();
    let options = options.ok_or_else(|| invalid("WorkflowExecutionOptions is required"))?;
    mask.paths.iter().try_for_each(|path| known(path))?;
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

fn known(path: &str) -> Result<(), ServiceError> {
    let is_under = |field: &str| path == field || path.starts_with(&format!("{field}."));
    if PRIORITY_PATHS.contains(&path) || is_under("versioning_override") || is_under("time_skipping_config") {
        return Ok(());
    }
    Err(invalid(format!(
        "error parsing UpdateMask: proto: invalid path {path:?} for message \
         \"temporal.api.workflow.v1.WorkflowExecutionOptions\""
    )))
}
