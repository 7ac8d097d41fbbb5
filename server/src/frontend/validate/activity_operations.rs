//! Requests of operators about pending activities.

use proto::temporal::api::common::v1::WorkflowExecution;

use super::{invalid, proper_run_id};
use crate::errors::ServiceError;

/// Which run is meant, and that some activity of it is.
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
