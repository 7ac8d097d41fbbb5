//! A workflow, a client that updates it and a worker that answers, for tests of updates.

use std::time::Duration;

use prost::Name;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{Command, ProtocolMessageCommandAttributes};
use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{CommandType, TaskQueueKind, UpdateWorkflowExecutionLifecycleStage as Stage};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::update::v1::outcome::Value;
use proto::temporal::api::update::v1::{
    Acceptance, Input, Meta, Outcome, Rejection, Request, Response, UpdateRef, WaitPolicy,
};
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinHandle;
use tonic::Status;

use crate::given::{Given, NAMESPACE, within};

/// Longer than any of these tests takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) type Updated = Result<public::UpdateWorkflowExecutionResponse, Status>;

/// One workflow, on a queue of its own.
pub(super) struct Scene<'a> {
    pub(super) given: &'a Given,
    pub(super) workflow_id: &'static str,
}

impl<'a> Scene<'a> {
    pub(super) fn new(given: &'a Given, workflow_id: &'static str) -> Self {
        Self { given, workflow_id }
    }

    /// A workflow whose first task is done: it waits for whatever comes.
    pub(super) async fn idle(given: &'a Given, workflow_id: &'static str) -> Self {
        let scene = Self::new(given, workflow_id);
        scene.start().await;
        let task = scene.poll().await;
        scene.complete(&task, Vec::new(), Vec::new()).await.expect("the first task completes");
        scene
    }

    pub(super) fn start_request(&self) -> public::StartWorkflowExecutionRequest {
        public::StartWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_id: self.workflow_id.into(),
            workflow_type: Some(WorkflowType { name: "updated".into() }),
            task_queue: Some(self.queue()),
            ..Default::default()
        }
    }

    pub(super) async fn start(&self) -> String {
        let started = self.given.client().start_workflow_execution(self.start_request()).await;
        started.expect("the start is granted").into_inner().run_id
    }

    fn queue(&self) -> TaskQueue {
        TaskQueue { name: self.workflow_id.into(), kind: TaskQueueKind::Normal.into(), ..Default::default() }
    }

    pub(super) fn execution(&self) -> WorkflowExecution {
        WorkflowExecution { workflow_id: self.workflow_id.into(), run_id: String::new() }
    }

    pub(super) async fn poll(&self) -> public::PollWorkflowTaskQueueResponse {
        let poll = public::PollWorkflowTaskQueueRequest {
            namespace: NAMESPACE.into(),
            task_queue: Some(self.queue()),
            identity: "worker".into(),
            ..Default::default()
        };
        let task = self.given.client().poll_workflow_task_queue(within(PATIENCE, poll)).await.expect("a task");
        let task = task.into_inner();
        assert!(!task.task_token.is_empty(), "there is a task");
        task
    }

    pub(super) fn completion(
        task: &public::PollWorkflowTaskQueueResponse,
        messages: Vec<Message>,
        commands: Vec<Command>,
    ) -> public::RespondWorkflowTaskCompletedRequest {
        let placed = messages.iter().filter(|message| !message.id.ends_with("/reject"));
        let commands = placed.map(|message| protocol_message(&message.id)).chain(commands).collect();
        public::RespondWorkflowTaskCompletedRequest {
            task_token: task.task_token.clone(),
            identity: "worker".into(),
            namespace: NAMESPACE.into(),
            commands,
            messages,
            ..Default::default()
        }
    }

    /// Answers the task; the messages stand before the other commands.
    pub(super) async fn complete(
        &self,
        task: &public::PollWorkflowTaskQueueResponse,
        messages: Vec<Message>,
        commands: Vec<Command>,
    ) -> Result<public::RespondWorkflowTaskCompletedResponse, Status> {
        let completion = Self::completion(task, messages, commands);
        let completed = self.given.client().respond_workflow_task_completed(completion).await;
        completed.map(tonic::Response::into_inner)
    }

    pub(super) fn update_request(&self, id: &str, stage: Stage) -> public::UpdateWorkflowExecutionRequest {
        public::UpdateWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: Some(self.execution()),
            wait_policy: Some(WaitPolicy { lifecycle_stage: stage.into() }),
            request: Some(request_of(id)),
            ..Default::default()
        }
    }

    /// Sends an update and waits for it elsewhere.
    pub(super) fn update(&self, id: &str, stage: Stage) -> JoinHandle<Updated> {
        let (mut client, request) = (self.given.client(), self.update_request(id, stage));
        tokio::spawn(async move {
            let updated = client.update_workflow_execution(within(PATIENCE, request)).await;
            updated.map(tonic::Response::into_inner)
        })
    }

    pub(super) async fn poll_update(
        &self,
        id: &str,
        stage: Stage,
    ) -> Result<public::PollWorkflowExecutionUpdateResponse, Status> {
        let poll = public::PollWorkflowExecutionUpdateRequest {
            namespace: NAMESPACE.into(),
            update_ref: Some(UpdateRef { workflow_execution: Some(self.execution()), update_id: id.into() }),
            identity: "client".into(),
            wait_policy: Some(WaitPolicy { lifecycle_stage: stage.into() }),
        };
        let polled = self.given.client().poll_workflow_execution_update(within(PATIENCE, poll)).await;
        polled.map(tonic::Response::into_inner)
    }

    pub(super) async fn signal(&self) {
        let signal = public::SignalWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: Some(self.execution()),
            signal_name: "go".into(),
            ..Default::default()
        };
        self.given.client().signal_workflow_execution(signal).await.expect("the signal is granted");
    }

    pub(super) async fn terminate(&self) {
        let terminate = public::TerminateWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: Some(self.execution()),
            ..Default::default()
        };
        self.given.client().terminate_workflow_execution(terminate).await.expect("the run is terminated");
    }

    /// The names of the newest run's events.
    pub(super) async fn history(&self) -> Vec<String> {
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: Some(self.execution()),
            ..Default::default()
        };
        let page = self.given.client().get_workflow_execution_history(request).await.expect("a page").into_inner();
        let events = page.history.unwrap_or_default().events;
        events
            .iter()
            .map(|event| event.event_type().as_str_name().trim_start_matches("EVENT_TYPE_").to_owned())
            .collect()
    }
}

fn request_of(id: &str) -> Request {
    let meta = Meta { update_id: id.to_owned(), identity: "client".to_owned() };
    let input = Input { name: "add".to_owned(), args: Some(payloads("1")), header: None };
    Request { meta: Some(meta), input: Some(input), ..Default::default() }
}

fn payloads(text: &'static str) -> Payloads {
    Payloads { payloads: vec![Payload { data: text.into(), ..Default::default() }] }
}

pub(super) fn success() -> Option<Outcome> {
    Some(Outcome { value: Some(Value::Success(payloads("2"))) })
}

/// The failure that an update ended with.
pub(super) fn failure_of(outcome: Option<Outcome>) -> Failure {
    match outcome.and_then(|outcome| outcome.value) {
        Some(Value::Failure(failure)) => failure,
        Some(Value::Success(_)) | None => panic!("the update failed"),
    }
}

fn message<M: prost::Message + Name>(id: &str, kind: &str, body: &M) -> Message {
    let body = prost_types::Any { type_url: M::type_url(), value: body.encode_to_vec() };
    Message { id: format!("{id}/{kind}"), protocol_instance_id: id.to_owned(), body: Some(body), ..Default::default() }
}

pub(super) fn acceptance(id: &str) -> Message {
    let body = Acceptance {
        accepted_request_message_id: format!("{id}/request"),
        accepted_request_sequencing_event_id: 1,
        accepted_request: Some(request_of(id)),
    };
    message(id, "accept", &body)
}

pub(super) fn rejection(id: &str) -> Message {
    let failure = Failure { message: "not now".to_owned(), ..Default::default() };
    let body = Rejection { rejected_request: Some(request_of(id)), failure: Some(failure), ..Default::default() };
    message(id, "reject", &body)
}

pub(super) fn response(id: &str) -> Message {
    let meta = Meta { update_id: id.to_owned(), identity: "client".to_owned() };
    message(id, "complete", &Response { meta: Some(meta), outcome: success() })
}

fn protocol_message(message_id: &str) -> Command {
    let attributes = ProtocolMessageCommandAttributes { message_id: message_id.to_owned() };
    Command {
        command_type: CommandType::ProtocolMessage.into(),
        attributes: Some(Attributes::ProtocolMessageCommandAttributes(attributes)),
        ..Default::default()
    }
}

pub(super) fn command(kind: CommandType, attributes: Attributes) -> Command {
    Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() }
}

/// The ids of the updates that a task brings.
pub(super) fn updates_of(task: &public::PollWorkflowTaskQueueResponse) -> Vec<&str> {
    task.messages.iter().map(|message| message.protocol_instance_id.as_str()).collect()
}
