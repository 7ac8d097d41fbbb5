//! Requests that start a workflow.

#![expect(deprecated, reason = "older clients still send these fields")]

use cluster::errors::ServiceError;
use cluster::search_attributes::check::Defined;
use prost_types::Duration;
use proto::temporal::api::common::v1::{Link, WorkflowType};
use proto::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use proto::temporal::api::workflow::v1::OnConflictOptions;
use proto::temporal::api::workflowservice::v1 as public;

use super::{
    ID_BYTES_MAX, callbacks, invalid, links, priority, request_id, retry_policy, search_attributes, sizes, span,
    task_queue,
};

pub(crate) fn start(
    mut request: public::StartWorkflowExecutionRequest,
    defined: Defined<'_>,
    generate_id: impl FnOnce() -> String,
) -> Result<public::StartWorkflowExecutionRequest, ServiceError> {
    let (reuse, conflict) = id_policies(
        (request.workflow_id_reuse_policy(), request.workflow_id_conflict_policy()),
        WorkflowIdConflictPolicy::Fail,
    );
    request.set_workflow_id_reuse_policy(reuse);
    request.set_workflow_id_conflict_policy(conflict);

    workflow_id(&request.workflow_id)?;
    retry_policy::check(request.retry_policy.as_mut())?;
    start_delay(&request.cron_schedule, &mut request.workflow_start_delay)?;
    cron_schedule(&request.cron_schedule)?;
    match request.workflow_type.as_ref().map_or("", |kind| kind.name.as_str()) {
        "" => return Err(invalid("WorkflowType is not set on request.")),
        name if name.len() > ID_BYTES_MAX => return Err(invalid("WorkflowType length exceeds limit.")),
        _ => {}
    }
    task_queue::check_chosen_by_user(request.task_queue.as_mut())?;
    timeouts([
        &mut request.workflow_execution_timeout,
        &mut request.workflow_run_timeout,
        &mut request.workflow_task_timeout,
    ])?;
    request_id(&mut request.request_id, generate_id)?;
    compatible_policies(reuse, conflict)?;
    on_conflict(request.on_conflict_options.as_ref())?;
    search_attributes::admit(request.search_attributes.as_mut(), defined)?;
    priority(request.priority.as_ref())?;
    callbacks::check(&mut request.completion_callbacks)?;
    // Drops links that a callback already has.
    let linked: Vec<Link> =
        request.completion_callbacks.iter().flat_map(|callback| callback.links.iter().cloned()).collect();
    request.links.retain(|link| !linked.contains(link));
    let all: Vec<Link> = request.links.iter().cloned().chain(linked).collect();
    links::check(&all)?;
    not_built(&[("VersioningOverride", request.versioning_override.is_some())])?;
    if request.time_skipping_config.is_some() {
        return Err(time_skipping());
    }
    sizes::blob(request.input.as_ref())?;
    sizes::memo(request.memo.as_ref())?;
    Ok(request)
}

pub(crate) fn signal_with_start(
    mut request: public::SignalWithStartWorkflowExecutionRequest,
    defined: Defined<'_>,
    generate_id: impl FnOnce() -> String,
) -> Result<public::SignalWithStartWorkflowExecutionRequest, ServiceError> {
    cron_schedule(&request.cron_schedule)?;
    workflow_id(&request.workflow_id)?;
    named("signal", "signal name", &request.signal_name)?;
    let workflow_type: Option<&WorkflowType> = request.workflow_type.as_ref();
    named("workflow type", "workflow type name", workflow_type.map_or("", |kind| &kind.name))?;
    task_queue::check_chosen_by_user(request.task_queue.as_mut())?;
    if request.request_id.len() > ID_BYTES_MAX {
        return Err(too_long("Request ID", &request.request_id));
    }
    request_id(&mut request.request_id, generate_id)?;
    timeouts([
        &mut request.workflow_execution_timeout,
        &mut request.workflow_run_timeout,
        &mut request.workflow_task_timeout,
    ])?;
    retry_policy::check(request.retry_policy.as_mut())?;
    start_delay(&request.cron_schedule, &mut request.workflow_start_delay)?;
    let policies = (request.workflow_id_reuse_policy(), request.workflow_id_conflict_policy());
    compatible_policies(policies.0, policies.1)?;
    if policies.1 == WorkflowIdConflictPolicy::Fail {
        return Err(invalid(
            "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported for this operation.",
        ));
    }
    let (reuse, conflict) = id_policies(policies, WorkflowIdConflictPolicy::UseExisting);
    request.set_workflow_id_reuse_policy(reuse);
    request.set_workflow_id_conflict_policy(conflict);
    search_attributes::admit(request.search_attributes.as_mut(), defined)?;
    priority(request.priority.as_ref())?;
    links::check(&request.links)?;
    not_built(&[("VersioningOverride", request.versioning_override.is_some())])?;
    if request.time_skipping_config.is_some() {
        return Err(time_skipping());
    }
    sizes::blob(request.input.as_ref())?;
    sizes::memo(request.memo.as_ref())?;
    sizes::blob(request.signal_input.as_ref())?;
    Ok(request)
}

fn workflow_id(id: &str) -> Result<(), ServiceError> {
    if id.is_empty() {
        return Err(invalid("WorkflowId is not set on request."));
    }
    if id.len() > ID_BYTES_MAX {
        return Err(too_long("WorkflowId", id));
    }
    Ok(())
}

fn named(what: &str, field: &str, name: &str) -> Result<(), ServiceError> {
    if name.is_empty() {
        return Err(invalid(format!("{what} not set")));
    }
    if name.len() > ID_BYTES_MAX {
        return Err(too_long(field, name));
    }
    Ok(())
}

fn too_long(field: &str, value: &str) -> ServiceError {
    invalid(format!("{field} exceeds maximum allowed length ({}/{ID_BYTES_MAX})", value.len()))
}

/// Execution, run and workflow task timeout, in this order.
pub(super) fn timeouts(timeouts: [&mut Option<Duration>; 3]) -> Result<(), ServiceError> {
    for (name, timeout) in ["WorkflowExecution", "WorkflowRun", "WorkflowTask"].into_iter().zip(timeouts) {
        span(timeout)
            .map_err(|cause| invalid(format!("An invalid {name}TimeoutSeconds is set on request. cause: {cause}")))?;
    }
    Ok(())
}

fn start_delay(cron_schedule: &str, delay: &mut Option<Duration>) -> Result<(), ServiceError> {
    if !cron_schedule.is_empty() && delay.is_some() {
        return Err(invalid("CronSchedule and WorkflowStartDelay may not be used together."));
    }
    span(delay)
        .map_err(|cause| invalid(format!("An invalid WorkflowStartDelaySeconds is set on request. cause: {cause}")))
}

fn cron_schedule(schedule: &str) -> Result<(), ServiceError> {
    workflow::check_cron_schedule(schedule).map_err(invalid)
}

fn not_built(fields: &[(&str, bool)]) -> Result<(), ServiceError> {
    match fields.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(ServiceError::Unimplemented(format!("{name} is not built yet"))),
        None => Ok(()),
    }
}

fn time_skipping() -> ServiceError {
    ServiceError::Unimplemented("The Time-Skipping feature is not enabled for namespace.".into())
}

type IdPolicies = (WorkflowIdReusePolicy, WorkflowIdConflictPolicy);

/// Fills in defaults, and converts `TerminateIfRunning`, which is a conflict policy, to one.
fn id_policies((reuse, conflict): IdPolicies, default: WorkflowIdConflictPolicy) -> IdPolicies {
    let (reuse, conflict) = match (reuse, conflict) {
        (WorkflowIdReusePolicy::TerminateIfRunning, WorkflowIdConflictPolicy::Unspecified) => {
            (WorkflowIdReusePolicy::AllowDuplicate, WorkflowIdConflictPolicy::TerminateExisting)
        }
        (reuse, WorkflowIdConflictPolicy::Unspecified) => (reuse, default),
        given => given,
    };
    match reuse {
        WorkflowIdReusePolicy::Unspecified => (WorkflowIdReusePolicy::AllowDuplicate, conflict),
        WorkflowIdReusePolicy::AllowDuplicate
        | WorkflowIdReusePolicy::AllowDuplicateFailedOnly
        | WorkflowIdReusePolicy::RejectDuplicate
        | WorkflowIdReusePolicy::TerminateIfRunning => (reuse, conflict),
    }
}

fn compatible_policies(reuse: WorkflowIdReusePolicy, conflict: WorkflowIdConflictPolicy) -> Result<(), ServiceError> {
    if conflict != WorkflowIdConflictPolicy::Unspecified && reuse == WorkflowIdReusePolicy::TerminateIfRunning {
        return Err(invalid(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together \
             with a WorkflowIDConflictPolicy",
        ));
    }
    if conflict == WorkflowIdConflictPolicy::TerminateExisting && reuse == WorkflowIdReusePolicy::RejectDuplicate {
        return Err(invalid(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together with \
             WorkflowIdConflictPolicy WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
        ));
    }
    Ok(())
}

fn on_conflict(options: Option<&OnConflictOptions>) -> Result<(), ServiceError> {
    if options.is_some_and(|options| options.attach_completion_callbacks && !options.attach_request_id) {
        return Err(invalid("attaching request ID is required for attaching completion callbacks"));
    }
    Ok(())
}
