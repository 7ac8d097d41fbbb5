//! Requests of operators about pending activities.

use cluster::errors::ServiceError;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::workflowservice::v1::UpdateActivityExecutionOptionsRequest;

use super::{ID_BYTES_MAX, invalid, proper_run_id, run_id};

/// Checks that a request names a run and an activity of it.
pub(crate) fn target(execution: Option<&WorkflowExecution>, has_activity: bool) -> Result<(), ServiceError> {
    let (workflow, run) = execution.map_or(("", ""), |execution| (&execution.workflow_id, &execution.run_id));
    if workflow.is_empty() {
        return Err(invalid("WorkflowId is not set on request."));
    }
    if !has_activity {
        return Err(invalid("Either Activity.Id or Activity.Type should be set on request."));
    }
    proper_run_id(run)
}

/// Checks activity id, identity and run id of requests that name an activity by its id alone.
pub(crate) fn activity(activity_id: &str, identity: &str, run: &str) -> Result<(), ServiceError> {
    if activity_id.is_empty() {
        return Err(invalid("activity ID is required"));
    }
    for (what, text) in [("activity ID", activity_id), ("identity", identity)] {
        if text.len() > ID_BYTES_MAX {
            return Err(invalid(format!("{what} exceeds length limit. Length={} Limit={ID_BYTES_MAX}", text.len())));
        }
    }
    run_id(run).map_err(|_| invalid("invalid run id: must be a valid UUID"))
}

/// Requires either options with a mask, or `restore_original`.
pub(crate) fn new_options(request: &UpdateActivityExecutionOptionsRequest) -> Result<(), ServiceError> {
    let paths = request.update_mask.as_ref().map(|mask| mask.paths.as_slice());
    match (request.restore_original, request.activity_options.is_some(), paths) {
        (true, _, Some([_, ..])) => Err(invalid("Both UpdateMask and RestoreOriginal are provided")),
        (true, _, _) | (false, true, Some([_, ..])) => Ok(()),
        (false, false, _) => Err(invalid("ActivityOptions are not provided")),
        (false, true, None) => Err(invalid("UpdateMask is not provided")),
        (false, true, Some([])) => Err(invalid("UpdateMask must specify at least one path")),
    }
}
