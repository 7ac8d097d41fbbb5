//! The commands of a completed workflow task: one `match`, a line per command.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use prost::Message;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::common::v1::{Payload, Payloads};
use proto::temporal::api::enums::v1::{CommandType, TaskQueueKind, WorkflowTaskFailedCause};
use proto::temporal::api::taskqueue::v1::TaskQueue;

use crate::activity_command::{self, CancelRequest};
use crate::draft::{Annotation, Draft};
use crate::events::short_name;
use crate::ids::{EventId, NamespaceId};
use crate::input::{KnownNamespaces, OtherNamespaces, RefusedSearchAttributes};
use crate::names::Names;
use crate::update_message::{self, Answers};
use crate::{child_command, close, external, properties, timer};

/// The workflow task whose commands are processed.
pub(crate) struct Completion {
    /// Id of the task's completed event.
    pub event_id: EventId,
    pub identity: String,
    /// Events are buffered that the worker has not seen: it may not close the run.
    pub has_news: bool,
    /// A command canceled an activity that no worker had: the workflow needs another task.
    pub canceled_unstarted: bool,
    /// Activities to start on this worker (eager).
    pub eager_activities: Vec<EventId>,
    /// Workflow ids of the children that its commands start.
    pub initiated_children: BTreeSet<String>,
    /// Name indexes of pending activities and timers, built once many commands need them.
    pub activities: Names,
    pub timers: Names,
    /// Bytes of the memo and of the search attributes; `None` until a command changes them.
    pub memo_size: Option<usize>,
    pub search_attributes_size: Option<usize>,
    pub namespaces: KnownNamespaces,
    /// Why the current command may not set its search attributes.
    pub refused_search_attributes: Option<RefusedSearchAttributes>,
    /// The worker's answers to updates.
    pub answers: Answers,
}

impl Completion {
    /// Resolves the namespace that a command names. The caller has looked up all names.
    pub(crate) fn namespace_id(
        &self,
        draft: &Draft,
        cause: WorkflowTaskFailedCause,
        name: &str,
    ) -> Result<NamespaceId, BadCommand> {
        let own = draft.state.key.namespace_id;
        if name.is_empty() {
            return Ok(own);
        }
        let id = *self.namespaces.by_name.get(name).expect("the namespaces that commands name are known");
        if id != own && self.namespaces.others == OtherNamespaces::Refused {
            return Err(BadCommand::new(cause, "cross namespace commands are not allowed"));
        }
        Ok(id)
    }
}

/// An invalid command: none of its workflow task's commands takes effect, and the task fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadCommand {
    pub cause: WorkflowTaskFailedCause,
    reason: Option<String>,
    /// Retries cannot succeed: the run is terminated.
    pub is_fatal: bool,
}

impl BadCommand {
    pub(crate) fn new(cause: WorkflowTaskFailedCause, reason: impl Into<String>) -> Self {
        Self { cause, reason: Some(reason.into()), is_fatal: false }
    }

    pub(crate) fn fatal(cause: WorkflowTaskFailedCause, reason: &str) -> Self {
        Self { cause, reason: Some(reason.to_owned()), is_fatal: true }
    }

    /// The run cannot close: its worker has not seen all events.
    pub(crate) fn unhandled() -> Self {
        Self { cause: WorkflowTaskFailedCause::UnhandledCommand, reason: None, is_fatal: false }
    }

    pub(crate) fn message(&self) -> String {
        let cause = short_name(self.cause.as_str_name(), "WORKFLOW_TASK_FAILED_CAUSE_");
        match &self.reason {
            Some(reason) => format!("{cause}: {reason}"),
            None => cause,
        }
    }
}

/// Checks the types and the order of commands: nothing may follow a command that closes the run.
pub(crate) fn check_sequence(commands: &[Command]) -> Result<(), String> {
    for (position, command) in commands.iter().enumerate() {
        let kind = command.command_type();
        if kind == CommandType::Unspecified || command.attributes.as_ref().is_some_and(|what| kind != kind_of(what)) {
            return Err(format!("unknown command type: {}", name(kind)));
        }
        if closes(kind) && position + 1 < commands.len() {
            let all: Vec<String> = commands.iter().map(|command| name(command.command_type())).collect();
            return Err(format!(
                "invalid command sequence: [{}], command {} must be the last command.",
                all.join(", "),
                name(kind)
            ));
        }
    }
    Ok(())
}

fn name(kind: CommandType) -> String {
    short_name(kind.as_str_name(), "COMMAND_TYPE_")
}

fn closes(kind: CommandType) -> bool {
    matches!(
        kind,
        CommandType::CompleteWorkflowExecution
            | CommandType::FailWorkflowExecution
            | CommandType::CancelWorkflowExecution
            | CommandType::ContinueAsNewWorkflowExecution
    )
}

/// Processes the commands of a workflow task, in their order.
pub(crate) fn process(
    draft: &mut Draft,
    completion: &mut Completion,
    commands: Vec<Command>,
    mut refused_search_attributes: BTreeMap<usize, RefusedSearchAttributes>,
) -> Result<(), BadCommand> {
    for (place, command) in commands.into_iter().enumerate() {
        assert!(draft.state.is_running(), "nothing follows a command that closes");
        completion.refused_search_attributes = refused_search_attributes.remove(&place);
        let kind = command.command_type();
        let annotation =
            Annotation { user_metadata: command.user_metadata, event_group_markers: command.event_group_markers };
        let what = command.attributes.ok_or_else(|| without_attributes(kind))?;
        process_one(draft, completion, what, annotation)?;
    }
    update_message::process_rest(draft, completion)
}

#[rustfmt::skip]
fn process_one(draft: &mut Draft, completion: &mut Completion, what: Attributes, annotation: Annotation) -> Result<(), BadCommand> {
    use WorkflowTaskFailedCause as Cause;
    match what {
        Attributes::ScheduleActivityTaskCommandAttributes(command) => activity_command::schedule(draft, completion, command, annotation),
        Attributes::RequestCancelActivityTaskCommandAttributes(command) => {
            let request = activity_command::request_cancel(draft, completion, &command, annotation)?;
            completion.canceled_unstarted |= request == CancelRequest::Over;
            Ok(())
        }
        Attributes::StartTimerCommandAttributes(command) => timer::start(draft, completion, command, annotation),
        Attributes::CancelTimerCommandAttributes(command) => {
            timer::cancel(draft, completion, command, annotation)?;
            // The buffered event may have been the firing of this timer.
            completion.has_news &= draft.has_waiting();
            Ok(())
        }
        Attributes::RecordMarkerCommandAttributes(command) => properties::record_marker(draft, completion, command, annotation),
        Attributes::UpsertWorkflowSearchAttributesCommandAttributes(command) => properties::upsert_search_attributes(draft, completion, command, annotation),
        Attributes::ModifyWorkflowPropertiesCommandAttributes(command) => properties::modify(draft, completion, command, annotation),
        Attributes::CompleteWorkflowExecutionCommandAttributes(command) => close::complete(draft, completion, command, annotation),
        Attributes::FailWorkflowExecutionCommandAttributes(command) => close::fail(draft, completion, command, annotation),
        Attributes::CancelWorkflowExecutionCommandAttributes(command) => close::cancel(draft, completion, command, annotation),
        Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(command) => close::continue_as_new(draft, completion, command, annotation),
        Attributes::StartChildWorkflowExecutionCommandAttributes(command) => child_command::start(draft, completion, command, annotation),
        Attributes::RequestCancelExternalWorkflowExecutionCommandAttributes(command) => external::request_cancel(draft, completion, command, annotation),
        Attributes::SignalExternalWorkflowExecutionCommandAttributes(command) => external::signal(draft, completion, command, annotation),
        Attributes::ProtocolMessageCommandAttributes(command) => update_message::process_command(draft, completion, &command),
        Attributes::ScheduleNexusOperationCommandAttributes(_) => not_supported(Cause::FeatureDisabled, "Nexus operations"),
        Attributes::RequestCancelNexusOperationCommandAttributes(_) => not_supported(Cause::FeatureDisabled, "Nexus operations"),
    }
}

fn kind_of(what: &Attributes) -> CommandType {
    match what {
        Attributes::ScheduleActivityTaskCommandAttributes(_) => CommandType::ScheduleActivityTask,
        Attributes::RequestCancelActivityTaskCommandAttributes(_) => CommandType::RequestCancelActivityTask,
        Attributes::StartTimerCommandAttributes(_) => CommandType::StartTimer,
        Attributes::CancelTimerCommandAttributes(_) => CommandType::CancelTimer,
        Attributes::RecordMarkerCommandAttributes(_) => CommandType::RecordMarker,
        Attributes::UpsertWorkflowSearchAttributesCommandAttributes(_) => CommandType::UpsertWorkflowSearchAttributes,
        Attributes::ModifyWorkflowPropertiesCommandAttributes(_) => CommandType::ModifyWorkflowProperties,
        Attributes::CompleteWorkflowExecutionCommandAttributes(_) => CommandType::CompleteWorkflowExecution,
        Attributes::FailWorkflowExecutionCommandAttributes(_) => CommandType::FailWorkflowExecution,
        Attributes::CancelWorkflowExecutionCommandAttributes(_) => CommandType::CancelWorkflowExecution,
        Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(_) => CommandType::ContinueAsNewWorkflowExecution,
        Attributes::StartChildWorkflowExecutionCommandAttributes(_) => CommandType::StartChildWorkflowExecution,
        Attributes::RequestCancelExternalWorkflowExecutionCommandAttributes(_) => {
            CommandType::RequestCancelExternalWorkflowExecution
        }
        Attributes::SignalExternalWorkflowExecutionCommandAttributes(_) => CommandType::SignalExternalWorkflowExecution,
        Attributes::ProtocolMessageCommandAttributes(_) => CommandType::ProtocolMessage,
        Attributes::ScheduleNexusOperationCommandAttributes(_) => CommandType::ScheduleNexusOperation,
        Attributes::RequestCancelNexusOperationCommandAttributes(_) => CommandType::RequestCancelNexusOperation,
    }
}

fn not_supported(cause: WorkflowTaskFailedCause, what: &str) -> Result<(), BadCommand> {
    Err(BadCommand::new(cause, format!("{what} are not supported yet")))
}

fn without_attributes(kind: CommandType) -> BadCommand {
    use WorkflowTaskFailedCause as Cause;
    let cause = match kind {
        CommandType::ScheduleActivityTask => Cause::BadScheduleActivityAttributes,
        CommandType::RequestCancelActivityTask => Cause::BadRequestCancelActivityAttributes,
        CommandType::StartTimer => Cause::BadStartTimerAttributes,
        CommandType::CancelTimer => Cause::BadCancelTimerAttributes,
        CommandType::RecordMarker => Cause::BadRecordMarkerAttributes,
        CommandType::UpsertWorkflowSearchAttributes => Cause::BadSearchAttributes,
        CommandType::ModifyWorkflowProperties => Cause::BadModifyWorkflowPropertiesAttributes,
        CommandType::CompleteWorkflowExecution => Cause::BadCompleteWorkflowExecutionAttributes,
        CommandType::FailWorkflowExecution => Cause::BadFailWorkflowExecutionAttributes,
        CommandType::CancelWorkflowExecution => Cause::BadCancelWorkflowExecutionAttributes,
        CommandType::ContinueAsNewWorkflowExecution => Cause::BadContinueAsNewAttributes,
        CommandType::StartChildWorkflowExecution => Cause::BadStartChildExecutionAttributes,
        CommandType::RequestCancelExternalWorkflowExecution => {
            Cause::BadRequestCancelExternalWorkflowExecutionAttributes
        }
        CommandType::SignalExternalWorkflowExecution => Cause::BadSignalWorkflowExecutionAttributes,
        CommandType::ProtocolMessage => Cause::BadUpdateWorkflowExecutionMessage,
        CommandType::ScheduleNexusOperation => Cause::BadScheduleNexusOperationAttributes,
        CommandType::RequestCancelNexusOperation => Cause::BadRequestCancelNexusOperationAttributes,
        CommandType::Unspecified => Cause::UnhandledCommand,
    };
    let name = name(kind);
    BadCommand::new(cause, format!("{name}CommandAttributes is not set on {name}Command."))
}

/// Rejects a payload that is too large. The run is terminated, since each retry would send the payload again.
pub(crate) fn check_size(
    draft: &Draft,
    cause: WorkflowTaskFailedCause,
    payload: Option<&impl Message>,
    oversized: &str,
) -> Result<(), BadCommand> {
    if payload.map_or(0, Message::encoded_len) > draft.facts.limits.blob_size {
        return Err(BadCommand::fatal(cause, oversized));
    }
    Ok(())
}

/// Rejects a command that would exceed `limit` pending items.
pub(crate) fn check_count(
    cause: WorkflowTaskFailedCause,
    what: &str,
    n_pending: usize,
    limit: usize,
) -> Result<(), BadCommand> {
    if n_pending < limit {
        return Ok(());
    }
    let reason = format!("the number of {what}, {n_pending}, has reached the per-workflow limit of {limit}");
    Err(BadCommand::new(cause, reason))
}

/// Validates the task queue name of a command, or fills in the default.
pub(crate) fn normalize_queue(
    queue: &mut TaskQueue,
    default_name: Option<&str>,
    length_max: usize,
) -> Result<(), String> {
    if queue.kind() == TaskQueueKind::Unspecified {
        queue.set_kind(TaskQueueKind::Normal);
    }
    if queue.name.is_empty() {
        default_name.ok_or("missing task queue name")?.clone_into(&mut queue.name);
    }
    if queue.name.len() > length_max {
        return Err("taskQueue length exceeds limit".to_owned());
    }
    if queue.name.starts_with("/_sys/") {
        return Err("task queue name cannot start with reserved prefix /_sys/".to_owned());
    }
    Ok(())
}

/// A string as the SDKs' data converters write it.
pub(crate) fn encode_string(text: &str) -> Payloads {
    let is_plain = |letter: char| (letter.is_ascii_graphic() || letter == ' ') && letter != '"' && letter != '\\';
    assert!(text.chars().all(is_plain), "plain text");
    let metadata = HashMap::from([("encoding".to_owned(), Bytes::from_static(b"json/plain"))]);
    let data = Bytes::from(format!("\"{text}\""));
    Payloads { payloads: vec![Payload { metadata, data, ..Default::default() }] }
}
