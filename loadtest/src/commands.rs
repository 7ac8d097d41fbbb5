//! The commands that the worker answers with: one function each.

use std::time::Duration;

use bytes::Bytes;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{
    Command, CompleteWorkflowExecutionCommandAttributes, ContinueAsNewWorkflowExecutionCommandAttributes,
    ProtocolMessageCommandAttributes, ScheduleActivityTaskCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes, StartTimerCommandAttributes,
};
use proto::temporal::api::common::v1::{ActivityType, WorkflowType};
use proto::temporal::api::enums::v1::{CommandType, TaskQueueKind};
use proto::temporal::api::taskqueue::v1::TaskQueue;

use crate::payload;
use crate::script::Script;

/// Every workflow is of this type: what it does is in its input.
pub(crate) const WORKFLOW_TYPE: &str = "script";
pub(crate) const ACTIVITY_TYPE: &str = "answer";
/// Activities complete at once. One that takes longer was lost, and is retried.
const ACTIVITY_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn complete(sum: u64) -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes { result: Some(payload::json(sum)) };
    let attributes = Attributes::CompleteWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::CompleteWorkflowExecution, attributes)
}

pub(crate) fn continue_as_new(rest: &Script, task_queue: &str) -> Command {
    let attributes = ContinueAsNewWorkflowExecutionCommandAttributes {
        workflow_type: workflow_type(),
        task_queue: queue(task_queue),
        input: Some(payload::json(rest.to_string())),
        ..Default::default()
    };
    let attributes = Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::ContinueAsNewWorkflowExecution, attributes)
}

/// The activity of this number (from 1), which is also its input.
pub(crate) fn schedule_activity(activity_id: String, number: u64, task_queue: &str, padding: &Bytes) -> Command {
    let attributes = ScheduleActivityTaskCommandAttributes {
        activity_id,
        activity_type: Some(ActivityType { name: ACTIVITY_TYPE.into() }),
        task_queue: queue(task_queue),
        input: Some(payload::padded(number, padding)),
        start_to_close_timeout: span(ACTIVITY_TIMEOUT),
        ..Default::default()
    };
    command(CommandType::ScheduleActivityTask, Attributes::ScheduleActivityTaskCommandAttributes(attributes))
}

pub(crate) fn start_timer(timer_id: String, after: Duration) -> Command {
    let attributes = StartTimerCommandAttributes { timer_id, start_to_fire_timeout: span(after) };
    command(CommandType::StartTimer, Attributes::StartTimerCommandAttributes(attributes))
}

pub(crate) fn start_child(workflow_id: String, script: &Script, task_queue: &str) -> Command {
    let attributes = StartChildWorkflowExecutionCommandAttributes {
        workflow_id,
        workflow_type: workflow_type(),
        task_queue: queue(task_queue),
        input: Some(payload::json(script.to_string())),
        ..Default::default()
    };
    let attributes = Attributes::StartChildWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::StartChildWorkflowExecution, attributes)
}

/// Orders the message of this id, which is sent along, among the commands.
pub(crate) fn protocol_message(message_id: String) -> Command {
    let attributes = ProtocolMessageCommandAttributes { message_id };
    command(CommandType::ProtocolMessage, Attributes::ProtocolMessageCommandAttributes(attributes))
}

pub(crate) fn workflow_type() -> Option<WorkflowType> {
    Some(WorkflowType { name: WORKFLOW_TYPE.into() })
}

pub(crate) fn queue(name: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: name.into(), kind: TaskQueueKind::Normal.into(), ..Default::default() })
}

pub(crate) fn span(duration: Duration) -> Option<prost_types::Duration> {
    duration.try_into().ok()
}

fn command(kind: CommandType, attributes: Attributes) -> Command {
    Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() }
}
