//! A worker that a test moves by hand: it polls one queue, and answers each workflow task with the commands it is given.

use std::time::Duration;

use bytes::Bytes;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, CompleteWorkflowExecutionCommandAttributes,
    ContinueAsNewWorkflowExecutionCommandAttributes, FailWorkflowExecutionCommandAttributes,
    RequestCancelExternalWorkflowExecutionCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Status;

use crate::given::{Given, NAMESPACE, within};

/// Longer than anything here takes, short enough that a test which waits for nothing fails soon.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn execution(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() }
}

pub(crate) fn payloads(text: &str) -> Option<Payloads> {
    Some(Payloads { payloads: vec![Payload { data: text.to_owned().into(), ..Default::default() }] })
}

pub(crate) fn queue(name: &str) -> Option<TaskQueue> {
    Some(TaskQueue { name: name.into(), ..Default::default() })
}

/// Starts a workflow whose queue has its name. The run.
pub(crate) async fn start(given: &Given, namespace: &str, workflow_id: &str) -> String {
    let start = public::StartWorkflowExecutionRequest {
        namespace: namespace.into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "given".into() }),
        task_queue: queue(workflow_id),
        ..Default::default()
    };
    given.client().start_workflow_execution(start).await.expect("the start is granted").into_inner().run_id
}

/// The next workflow task of a queue.
pub(crate) async fn poll(given: &Given, namespace: &str, name: &str) -> public::PollWorkflowTaskQueueResponse {
    let poll = public::PollWorkflowTaskQueueRequest {
        namespace: namespace.into(),
        task_queue: queue(name),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = given.client().poll_workflow_task_queue(within(PATIENCE, poll)).await.expect("the poll is granted");
    let task = task.into_inner();
    assert!(!task.task_token.is_empty(), "no task on {name}");
    task
}

pub(crate) async fn complete(given: &Given, token: Bytes, commands: Vec<Command>) -> Result<(), Status> {
    let request = public::RespondWorkflowTaskCompletedRequest {
        task_token: token,
        commands,
        identity: "worker".into(),
        ..Default::default()
    };
    given.client().respond_workflow_task_completed(request).await.map(|_| ())
}

/// Polls a queue of the namespace that every test finds, and answers its task.
pub(crate) async fn work(given: &Given, name: &str, commands: Vec<Command>) {
    let task = poll(given, NAMESPACE, name).await;
    complete(given, task.task_token, commands).await.expect("the commands are taken");
}

pub(crate) async fn history(given: &Given, namespace: &str, execution: WorkflowExecution) -> Vec<HistoryEvent> {
    let request = public::GetWorkflowExecutionHistoryRequest {
        namespace: namespace.into(),
        execution: Some(execution),
        ..Default::default()
    };
    let answer = given.client().get_workflow_execution_history(request).await.expect("the history is there");
    answer.into_inner().history.unwrap_or_default().events
}

/// Waits until a run's history has an event of this name.
pub(crate) async fn event(given: &Given, namespace: &str, workflow_id: &str, name: &str) -> HistoryEvent {
    let found = tokio::time::timeout(PATIENCE, async {
        let mut next_page_token = Bytes::new();
        loop {
            let request = public::GetWorkflowExecutionHistoryRequest {
                namespace: namespace.into(),
                execution: Some(execution(workflow_id)),
                wait_new_event: true,
                next_page_token,
                ..Default::default()
            };
            let page = given.client().get_workflow_execution_history(request).await.expect("history").into_inner();
            let events = page.history.unwrap_or_default().events;
            if let Some(event) = events.into_iter().find(|event| self::name(event) == name) {
                return event;
            }
            next_page_token = page.next_page_token;
            assert!(!next_page_token.is_empty(), "{workflow_id} is over without {name}");
        }
    });
    found.await.unwrap_or_else(|_| panic!("{workflow_id} has no {name}"))
}

/// An event's name, without the noise of its type's.
pub(crate) fn name(event: &HistoryEvent) -> String {
    let words = event.event_type().as_str_name().trim_start_matches("EVENT_TYPE_").split('_');
    words.map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect()
}

pub(crate) fn names(events: &[HistoryEvent]) -> Vec<String> {
    events.iter().map(name).collect()
}

pub(crate) async fn describe(
    given: &Given,
    namespace: &str,
    workflow_id: &str,
) -> public::DescribeWorkflowExecutionResponse {
    let request = public::DescribeWorkflowExecutionRequest {
        namespace: namespace.into(),
        execution: Some(execution(workflow_id)),
    };
    given.client().describe_workflow_execution(request).await.expect("the run is there").into_inner()
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
