//! Checks of batch operations.

use cluster::errors::{ServiceError, camel_case};
use proto::temporal::api::batch::v1 as batch;
use proto::temporal::api::enums::v1::{ExecutionType, ResetType};
use proto::temporal::api::workflowservice::v1::StartBatchOperationRequest;
use proto::temporal::api::workflowservice::v1::start_batch_operation_request::Operation;

use super::{ID_BYTES_MAX, invalid, options, priority, sizes};

const NO_ACTIVITY: &str = "Either activity type must be set, or match all should be set to true";

pub(crate) fn start(request: &StartBatchOperationRequest) -> Result<(), ServiceError> {
    let built = request.operation.as_ref().map(is_built).transpose()?;
    #[expect(deprecated, reason = "older clients name runs in the older way")]
    let ways =
        [request.visibility_query.is_empty(), request.executions.is_empty(), request.target_executions.is_empty()];
    let n_ways = ways.into_iter().filter(|is_unused| !is_unused).count();
    let Some(operation) = built.filter(|_| !request.reason.is_empty() && n_ways > 0) else {
        return Err(invalid(
            "must provide required parameters: BatchType,Reason,Namespace, AND one of (Query OR Executions OR \
             TargetExecutions)",
        ));
    };
    job_id(&request.job_id)?;
    if request.job_id.len() > ID_BYTES_MAX {
        return Err(invalid("WorkflowId exceeds length limit."));
    }
    if n_ways > 1 {
        return Err(invalid("visibility query, executions, and target executions are mutually exclusive"));
    }
    for (index, target) in request.target_executions.iter().enumerate() {
        if target.r#type() != ExecutionType::Workflow {
            let found = camel_case(target.r#type().as_str_name(), "EXECUTION_TYPE_");
            let operation = go_type(operation);
            return Err(invalid(format!(
                "target_executions[{index}] has type {found}, but operation {operation} requires Workflow"
            )));
        }
    }
    check(operation)
}

/// Checks a job's id. One that is too long names no existing job.
pub(crate) fn job_id(job_id: &str) -> Result<(), ServiceError> {
    if job_id.is_empty() {
        return Err(invalid("JobId is not set on request."));
    }
    Ok(())
}

/// Refuses operations on standalone activities, which are not built.
fn is_built(operation: &Operation) -> Result<&Operation, ServiceError> {
    match operation {
        Operation::CancelActivitiesOperation(_)
        | Operation::TerminateActivitiesOperation(_)
        | Operation::DeleteActivitiesOperation(_) => {
            let kind = go_type(operation);
            Err(invalid(format!("The operation type {kind} is not supported for this namespace")))
        }
        Operation::TerminationOperation(_)
        | Operation::SignalOperation(_)
        | Operation::CancellationOperation(_)
        | Operation::DeletionOperation(_)
        | Operation::ResetOperation(_)
        | Operation::UpdateWorkflowOptionsOperation(_)
        | Operation::UnpauseActivitiesOperation(_)
        | Operation::ResetActivitiesOperation(_)
        | Operation::UpdateActivityOptionsOperation(_) => Ok(operation),
    }
}

/// The type's name in the reference's messages.
fn go_type(operation: &Operation) -> String {
    let name = match operation {
        Operation::TerminationOperation(_) => "Termination",
        Operation::SignalOperation(_) => "Signal",
        Operation::CancellationOperation(_) => "Cancellation",
        Operation::DeletionOperation(_) => "Deletion",
        Operation::ResetOperation(_) => "Reset",
        Operation::UpdateWorkflowOptionsOperation(_) => "UpdateWorkflowOptions",
        Operation::UnpauseActivitiesOperation(_) => "UnpauseActivities",
        Operation::ResetActivitiesOperation(_) => "ResetActivities",
        Operation::UpdateActivityOptionsOperation(_) => "UpdateActivityOptions",
        Operation::CancelActivitiesOperation(_) => "CancelActivities",
        Operation::TerminateActivitiesOperation(_) => "TerminateActivities",
        Operation::DeleteActivitiesOperation(_) => "DeleteActivities",
    };
    format!("*workflowservice.StartBatchOperationRequest_{name}Operation")
}

fn check(operation: &Operation) -> Result<(), ServiceError> {
    match operation {
        Operation::SignalOperation(signal) => check_signal(signal),
        Operation::ResetOperation(reset) => check_reset(reset),
        Operation::UpdateWorkflowOptionsOperation(update) => check_options(update),
        Operation::UnpauseActivitiesOperation(unpause) => check_unpause(unpause),
        Operation::ResetActivitiesOperation(reset) => check_activity_reset(reset),
        Operation::UpdateActivityOptionsOperation(update) => check_activity_options(update),
        Operation::TerminationOperation(_)
        | Operation::CancellationOperation(_)
        | Operation::DeletionOperation(_)
        | Operation::CancelActivitiesOperation(_)
        | Operation::TerminateActivitiesOperation(_)
        | Operation::DeleteActivitiesOperation(_) => Ok(()),
    }
}

fn check_signal(signal: &batch::BatchOperationSignal) -> Result<(), ServiceError> {
    if signal.signal.is_empty() {
        return Err(invalid("must provide signal name"));
    }
    if signal.signal.len() > ID_BYTES_MAX {
        return Err(invalid("SignalName length exceeds limit."));
    }
    sizes::blob(signal.input.as_ref())
}

fn check_reset(reset: &batch::BatchOperationReset) -> Result<(), ServiceError> {
    match &reset.options {
        Some(options) if options.target.is_none() => return Err(invalid("batch reset missing target")),
        Some(_) => {}
        None => {
            #[expect(deprecated, reason = "older clients say it so")]
            let number = reset.reset_type;
            match ResetType::try_from(number) {
                Ok(ResetType::FirstWorkflowTask | ResetType::LastWorkflowTask) => {}
                Ok(ResetType::Unspecified) => return Err(invalid("unknown batch reset type Unspecified")),
                Err(_) => return Err(invalid(format!("unknown batch reset type {number}"))),
            }
        }
    }
    reset.post_reset_operations.iter().try_for_each(options::after_reset)
}

fn check_options(update: &batch::BatchOperationUpdateWorkflowExecutionOptions) -> Result<(), ServiceError> {
    let changed = update.workflow_execution_options.as_ref().ok_or_else(|| invalid("must provide UpdateOptions"))?;
    let mask = update.update_mask.as_ref().ok_or_else(|| invalid("must provide UpdateMask"))?;
    options::masked(changed, mask)
}

fn check_unpause(unpause: &batch::BatchOperationUnpauseActivities) -> Result<(), ServiceError> {
    use batch::batch_operation_unpause_activities::Activity;
    match &unpause.activity {
        None => Err(invalid("activity filter must be set")),
        Some(Activity::Type(kind)) => chosen(!kind.is_empty()),
        Some(Activity::MatchAll(all)) => chosen(*all),
    }
}

fn check_activity_reset(reset: &batch::BatchOperationResetActivities) -> Result<(), ServiceError> {
    use batch::batch_operation_reset_activities::Activity;
    match &reset.activity {
        None => Err(invalid("must provide ActivityType or MatchAll")),
        Some(Activity::Type(kind)) => chosen(!kind.is_empty()),
        Some(Activity::MatchAll(all)) => chosen(*all),
    }
}

fn check_activity_options(update: &batch::BatchOperationUpdateActivityOptions) -> Result<(), ServiceError> {
    use batch::batch_operation_update_activity_options::Activity;
    match (&update.activity_options, update.restore_original) {
        (Some(_), true) => return Err(invalid("cannot set both activity options and restore original")),
        (None, false) => {
            let message = "Either activity type must be set, or restore original should be set to true";
            return Err(invalid(message));
        }
        (Some(options), false) => priority(options.priority.as_ref())?,
        (None, true) => {}
    }
    match &update.activity {
        None => Err(invalid("activity filter must be set")),
        Some(Activity::Type(kind)) => chosen(!kind.is_empty()),
        Some(Activity::MatchAll(all)) => chosen(*all),
    }
}

fn chosen(is_chosen: bool) -> Result<(), ServiceError> {
    if is_chosen { Ok(()) } else { Err(invalid(NO_ACTIVITY)) }
}
