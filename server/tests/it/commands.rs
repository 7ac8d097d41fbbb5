//! What the workers of these tests command, and how they name what came of it.

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, CompleteWorkflowExecutionCommandAttributes,
    ContinueAsNewWorkflowExecutionCommandAttributes, FailWorkflowExecutionCommandAttributes,
    RequestCancelExternalWorkflowExecutionCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution};
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::taskqueue::v1::TaskQueue;

pub(crate) fn text(text: &str) -> Payloads {
    Payloads { payloads: vec![Payload { data: text.to_owned().into(), ..Default::default() }] }
}

pub(crate) fn payloads(some: &str) -> Option<Payloads> {
    Some(text(some))
}

pub(crate) fn execution(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() }
}

pub(crate) fn queue(name: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: name.into(), ..Default::default() })
}

/// An event's name, without the noise of its type's.
pub(crate) fn name(event: &HistoryEvent) -> String {
    let words = event.event_type().as_str_name().trim_start_matches("EVENT_TYPE_").split('_');
    words.map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect()
}

pub(crate) fn names(events: &[HistoryEvent]) -> Vec<String> {
    events.iter().map(name).collect()
}

pub(crate) fn command(kind: CommandType, attributes: CommandAttributes) -> Command {
    Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() }
}

pub(crate) fn finish(result: &str) -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes { result: payloads(result) };
    let attributes = CommandAttributes::CompleteWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::CompleteWorkflowExecution, attributes)
}

pub(crate) fn fail(message: &str) -> Command {
    let failure = Some(Failure { message: message.into(), ..Default::default() });
    let attributes = FailWorkflowExecutionCommandAttributes { failure };
    command(CommandType::FailWorkflowExecution, CommandAttributes::FailWorkflowExecutionCommandAttributes(attributes))
}

pub(crate) fn cancel() -> Command {
    let attributes = CancelWorkflowExecutionCommandAttributes { details: payloads("stopped") };
    let attributes = CommandAttributes::CancelWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::CancelWorkflowExecution, attributes)
}

pub(crate) fn continue_as_new() -> Command {
    let attributes = ContinueAsNewWorkflowExecutionCommandAttributes::default();
    let attributes = CommandAttributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::ContinueAsNewWorkflowExecution, attributes)
}

pub(crate) fn start_child(attributes: StartChildWorkflowExecutionCommandAttributes) -> Command {
    let attributes = CommandAttributes::StartChildWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::StartChildWorkflowExecution, attributes)
}

pub(crate) fn signal_other(attributes: SignalExternalWorkflowExecutionCommandAttributes) -> Command {
    let attributes = CommandAttributes::SignalExternalWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::SignalExternalWorkflowExecution, attributes)
}

pub(crate) fn cancel_other(attributes: RequestCancelExternalWorkflowExecutionCommandAttributes) -> Command {
    let attributes = CommandAttributes::RequestCancelExternalWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::RequestCancelExternalWorkflowExecution, attributes)
}
