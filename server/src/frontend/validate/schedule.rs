//! Requests that make or change a schedule.

use cluster::errors::ServiceError;
use cluster::search_attributes::check::Defined;
use prost::Message as _;
use proto::temporal::api::enums::v1::WorkflowIdReusePolicy;
use proto::temporal::api::schedule::v1 as schedule;
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;
use scheduler::spec;
use workflow::Timestamp;

use super::sizes::BLOB_BYTES_MAX;
use super::{ID_BYTES_MAX, invalid, priority, search_attributes, sizes, start, task_queue};

const NOTES_BYTES_MAX: usize = 1000;
/// Clients know a schedule by a workflow id with this prefix.
const ID_PREFIX_BYTES: usize = "temporal-sys-scheduler:".len();
/// Suffix of each run's workflow id.
const ID_SUFFIX_BYTES: usize = "-2009-11-10T23:00:00Z".len();

/// Checks a schedule's id. One that is too long names no schedule, and is not looked up: it would be kept in memory.
pub(crate) fn schedule_id(id: &str) -> Result<(), ServiceError> {
    is_given(id)?;
    if ID_PREFIX_BYTES + id.len() > ID_BYTES_MAX {
        return Err(ServiceError::schedule_not_found(id));
    }
    Ok(())
}

fn is_given(id: &str) -> Result<(), ServiceError> {
    if id.is_empty() {
        return Err(invalid("Can't load workflow execution.  WorkflowId not set."));
    }
    Ok(())
}

fn id_length(bytes: usize) -> Result<(), ServiceError> {
    if bytes > ID_BYTES_MAX {
        return Err(invalid(format!("WorkflowId exceeds maximum allowed length ({bytes}/{ID_BYTES_MAX})")));
    }
    Ok(())
}

pub(crate) fn create(
    mut request: public::CreateScheduleRequest,
    defined: Defined<'_>,
    now: Timestamp,
) -> Result<public::CreateScheduleRequest, ServiceError> {
    is_given(&request.schedule_id)?;
    id_length(ID_PREFIX_BYTES + request.schedule_id.len())?;
    if request.request_id.is_empty() {
        return Err(invalid("RequestId is not set on request."));
    }
    request_id(&request.request_id)?;
    let schedule = request.schedule.get_or_insert_default();
    canonical_spec(schedule)?;
    start_workflow(schedule, defined)?;
    sized(schedule)?;
    sizes::memo(request.memo.as_ref())?;
    search_attributes::admit(request.search_attributes.as_mut(), defined)?;
    if let Some(patch) = &mut request.initial_patch {
        check_patch(patch, now)?;
    }
    Ok(request)
}

pub(crate) fn update(
    mut request: public::UpdateScheduleRequest,
    defined: Defined<'_>,
) -> Result<public::UpdateScheduleRequest, ServiceError> {
    schedule_id(&request.schedule_id)?;
    request_id(&request.request_id)?;
    let schedule = request.schedule.get_or_insert_default();
    start_workflow(schedule, defined)?;
    canonical_spec(schedule)?;
    search_attributes::admit(request.search_attributes.as_mut(), defined)?;
    if schedule.action.as_ref().and_then(|action| action.action.as_ref()).is_none() {
        return Err(invalid("Only StartWorkflow action is supported for schedules"));
    }
    sized(schedule)?;
    sizes::memo(request.memo.as_ref())?;
    Ok(request)
}

pub(crate) fn patch(
    mut request: public::PatchScheduleRequest,
    now: Timestamp,
) -> Result<public::PatchScheduleRequest, ServiceError> {
    let patch = request.patch.as_mut().ok_or_else(|| invalid("Patch is not set on request."))?;
    schedule_id(&request.schedule_id)?;
    request_id(&request.request_id)?;
    check_patch(patch, now)?;
    Ok(request)
}

/// Fixes the trigger time here, so that our retries use the same one.
fn check_patch(patch: &mut schedule::SchedulePatch, now: Timestamp) -> Result<(), ServiceError> {
    if patch.pause.len() > NOTES_BYTES_MAX || patch.unpause.len() > NOTES_BYTES_MAX {
        return Err(invalid("Schedule notes exceeds limit."));
    }
    if let Some(trigger) = &mut patch.trigger_immediately {
        trigger.scheduled_time.get_or_insert(now.into());
    }
    if patch.encoded_len() > BLOB_BYTES_MAX {
        return Err(invalid("Blob data size exceeds limit."));
    }
    Ok(())
}

fn request_id(id: &str) -> Result<(), ServiceError> {
    if id.len() > ID_BYTES_MAX {
        return Err(invalid("RequestId length exceeds limit."));
    }
    Ok(())
}

fn sized(schedule: &schedule::Schedule) -> Result<(), ServiceError> {
    if schedule.encoded_len() > BLOB_BYTES_MAX {
        return Err(invalid("Blob data size exceeds limit."));
    }
    Ok(())
}

fn canonical_spec(schedule: &mut schedule::Schedule) -> Result<(), ServiceError> {
    let given = schedule.spec.take().unwrap_or_default();
    let wrong = |reason: String| invalid(format!("Invalid schedule spec: {reason}"));
    let canonical = spec::canonical(&given).map_err(wrong)?;
    spec::Spec::parse(&canonical).map_err(wrong)?;
    schedule.spec = Some(canonical);
    Ok(())
}

fn start_workflow(schedule: &mut schedule::Schedule, defined: Defined<'_>) -> Result<(), ServiceError> {
    let Some(Action::StartWorkflow(action)) = schedule.action.as_mut().and_then(|action| action.action.as_mut()) else {
        return Ok(());
    };
    id_length(action.workflow_id.len() + ID_SUFFIX_BYTES)?;
    match action.workflow_type.as_ref().map_or("", |kind| kind.name.as_str()) {
        "" => return Err(invalid("WorkflowType is not set on request.")),
        name if name.len() > ID_BYTES_MAX => return Err(invalid("WorkflowType length exceeds limit.")),
        _ => {}
    }
    task_queue::check_chosen_by_user(action.task_queue.as_mut())?;
    start::timeouts([
        &mut action.workflow_execution_timeout,
        &mut action.workflow_run_timeout,
        &mut action.workflow_task_timeout,
    ])?;
    policies(action)?;
    search_attributes::admit(action.search_attributes.as_mut(), defined)?;
    priority(action.priority.as_ref())
}

fn policies(action: &NewWorkflowExecutionInfo) -> Result<(), ServiceError> {
    if !action.cron_schedule.is_empty() {
        return Err(invalid("Scheduled workflow must not contain CronSchedule"));
    }
    let reuse = action.workflow_id_reuse_policy();
    if !matches!(reuse, WorkflowIdReusePolicy::Unspecified | WorkflowIdReusePolicy::AllowDuplicate) {
        return Err(invalid("Scheduled workflow must not contain WorkflowIDReusePolicy"));
    }
    if action.versioning_override.is_some() {
        return Err(ServiceError::Unimplemented("VersioningOverride is not built yet".into()));
    }
    Ok(())
}
