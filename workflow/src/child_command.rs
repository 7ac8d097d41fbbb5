//! Child workflow commands: start.

use std::time::Duration;

use proto::temporal::api::command::v1::StartChildWorkflowExecutionCommandAttributes;
use proto::temporal::api::common::v1::{Memo, SearchAttributes};
use proto::temporal::api::enums::v1::{ParentClosePolicy, WorkflowIdReusePolicy, WorkflowTaskFailedCause};
use proto::temporal::api::history::v1::StartChildWorkflowExecutionInitiatedEventAttributes;
use proto::temporal::api::history::v1::history_event::Attributes;

use crate::commands::{BadCommand, Completion, check_count, check_size, normalize_queue};
use crate::cron;
use crate::draft::{Annotation, Draft, Entry};
use crate::retry;
use crate::search_attributes;
use crate::start::{capped_run_timeout, capped_task_timeout, without_nulls};
use crate::tasks::TransferTask;
use crate::time::{nonzero, parse_span, to_proto};
use crate::workflow_task::normal_queue;

const FAIRNESS_KEY_LENGTH_MAX: usize = 64;

/// Decides on a `StartChildWorkflowExecution` command.
#[expect(deprecated, reason = "workers still name a namespace, and old ones a build id")]
pub(crate) fn start(
    draft: &mut Draft,
    completion: &mut Completion,
    mut command: StartChildWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadStartChildExecutionAttributes;
    search_attributes::check_defined(completion)?;
    let namespace_id = completion.namespace_id(draft, cause, &command.namespace)?;
    if command.namespace.is_empty() {
        command.namespace.clone_from(&completion.namespaces.own);
    }
    let command = normalize(draft, command).map_err(|reason| BadCommand::new(cause, reason))?;
    search_attributes::check_admitted(completion, |reason| {
        let kind = command.workflow_type.as_ref().map_or("", |kind| kind.name.as_str());
        let child = format!("WorkflowId={} WorkflowType={kind} Namespace={}", command.workflow_id, command.namespace);
        format!("invalid SearchAttributes on StartChildWorkflowCommand: {reason}. {child}")
    })?;
    let oversized = "StartChildWorkflowExecutionCommandAttributes. Input exceeds size limit.";
    check_size(draft, cause, command.input.as_ref(), oversized)?;
    let oversized = "StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit.";
    check_size(draft, cause, command.memo.as_ref(), oversized)?;
    search_attributes::check_size(draft, cause, command.search_attributes.as_ref())?;
    let (n_pending, limit) = (draft.state.children.len(), draft.facts.limits.pending_children);
    let too_many = WorkflowTaskFailedCause::PendingChildWorkflowsLimitExceeded;
    check_count(too_many, "pending child workflow executions", n_pending, limit)?;
    completion.initiated_children.insert(command.workflow_id.clone());
    let what = StartChildWorkflowExecutionInitiatedEventAttributes {
        namespace: command.namespace,
        namespace_id: namespace_id.to_string(),
        workflow_id: command.workflow_id,
        workflow_type: command.workflow_type,
        task_queue: command.task_queue,
        input: command.input,
        workflow_execution_timeout: command.workflow_execution_timeout,
        workflow_run_timeout: command.workflow_run_timeout,
        workflow_task_timeout: command.workflow_task_timeout,
        parent_close_policy: command.parent_close_policy,
        control: command.control,
        workflow_task_completed_event_id: completion.event_id.0,
        workflow_id_reuse_policy: command.workflow_id_reuse_policy,
        retry_policy: command.retry_policy,
        cron_schedule: command.cron_schedule,
        header: command.header,
        memo: command.memo.and_then(|memo| without_nulls(memo.fields)).map(|fields| Memo { fields }),
        search_attributes: command
            .search_attributes
            .and_then(|attributes| without_nulls(attributes.indexed_fields))
            .map(|indexed_fields| SearchAttributes { indexed_fields }),
        inherit_build_id: command.inherit_build_id,
        priority: command.priority,
        ..Default::default()
    };
    let what = Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(what);
    draft.record(Entry { annotation, ..what.into() });
    let (initiated_event_id, version) = (draft.state.last_event_id(), draft.version());
    draft.transfer(TransferTask::StartChild { initiated_event_id, version });
    Ok(())
}

/// Validates a command's attributes and fills in defaults.
#[expect(deprecated, reason = "workers still name a namespace")]
fn normalize(
    draft: &Draft,
    mut command: StartChildWorkflowExecutionCommandAttributes,
) -> Result<StartChildWorkflowExecutionCommandAttributes, String> {
    let limits = &draft.facts.limits;
    check_names(&command, limits.id_length)?;
    let kind = command.workflow_type.as_ref().map_or("", |kind| kind.name.as_str());
    let child = format!("WorkflowId={} WorkflowType={kind} Namespace={}", command.workflow_id, command.namespace);
    let on_command =
        |what: &str, reason: &str| format!("{what} on StartChildWorkflowExecutionCommand: {reason}. {child}");
    let parse = |name: &str, span: Option<&prost_types::Duration>| {
        parse_span(span).map(nonzero).map_err(|reason| on_command(&format!("Invalid {name}"), reason))
    };
    let execution_timeout = parse("WorkflowExecutionTimeout", command.workflow_execution_timeout.as_ref())?;
    let run_timeout = parse("WorkflowRunTimeout", command.workflow_run_timeout.as_ref())?;
    let task_timeout = parse("WorkflowTaskTimeout", command.workflow_task_timeout.as_ref())?;
    if let Some(policy) = command.retry_policy.take().map(retry::with_defaults) {
        retry::check_policy(&policy).map_err(|reason| on_command("invalid WorkflowRetryPolicy", &reason))?;
        command.retry_policy = Some(policy);
    }
    cron::check_cron_schedule(&command.cron_schedule).map_err(|reason| on_command("invalid CronSchedule", reason))?;
    check_priority(&command)?;
    if command.versioning_override.is_some() {
        return Err("VersioningOverride is not supported yet".to_owned());
    }
    let parent_queue = &draft.state.started.task_queue;
    let queue = command.task_queue.get_or_insert_with(|| normal_queue(parent_queue.clone()));
    normalize_queue(queue, Some(parent_queue), limits.id_length)
        .map_err(|reason| format!("{} TaskQueue=name:{:?}", on_command("invalid TaskQueue", &reason), queue.name))?;
    let run_timeout = capped_run_timeout(run_timeout, execution_timeout);
    let task_timeout = capped_task_timeout(task_timeout.unwrap_or_default(), run_timeout, limits);
    command.workflow_execution_timeout = execution_timeout.map(to_proto).or(command.workflow_execution_timeout);
    command.workflow_run_timeout = Some(to_proto(run_timeout.unwrap_or(Duration::ZERO)));
    command.workflow_task_timeout = Some(to_proto(task_timeout));
    if command.parent_close_policy() == ParentClosePolicy::Unspecified {
        command.set_parent_close_policy(ParentClosePolicy::Terminate);
    }
    if command.workflow_id_reuse_policy() == WorkflowIdReusePolicy::Unspecified {
        command.set_workflow_id_reuse_policy(WorkflowIdReusePolicy::AllowDuplicate);
    }
    Ok(command)
}

#[expect(deprecated, reason = "workers still name a namespace")]
fn check_names(command: &StartChildWorkflowExecutionCommandAttributes, length_max: usize) -> Result<(), String> {
    let (id, namespace) = (&command.workflow_id, &command.namespace);
    let kind = command.workflow_type.as_ref().map_or("", |kind| kind.name.as_str());
    if id.is_empty() {
        return Err(format!(
            "Required field WorkflowId is not set on StartChildWorkflowExecutionCommand. \
             WorkflowType={kind} Namespace={namespace}"
        ));
    }
    if kind.is_empty() {
        return Err(format!(
            "Required field WorkflowType is not set on StartChildWorkflowExecutionCommand. \
             WorkflowId={id} Namespace={namespace}"
        ));
    }
    if id.len() > length_max {
        return Err(format!(
            "WorkflowId on StartChildWorkflowExecutionCommand exceeds length limit. WorkflowId={id} Length={} \
             Limit={length_max} WorkflowType={kind} Namespace={namespace}",
            id.len()
        ));
    }
    if kind.len() > length_max {
        return Err(format!(
            "WorkflowType on StartChildWorkflowExecutionCommand exceeds length limit. WorkflowId={id} \
             WorkflowType={kind} Length={} Limit={length_max} Namespace={namespace}",
            kind.len()
        ));
    }
    Ok(())
}

fn check_priority(command: &StartChildWorkflowExecutionCommandAttributes) -> Result<(), String> {
    let Some(priority) = &command.priority else { return Ok(()) };
    if priority.priority_key < 0 {
        return Err("priority key can't be negative".to_owned());
    }
    if priority.fairness_key.len() > FAIRNESS_KEY_LENGTH_MAX {
        return Err("fairness key length exceeds limit".to_owned());
    }
    if priority.fairness_weight < 0.0 {
        return Err("fairness weight must be greater than zero".to_owned());
    }
    Ok(())
}
