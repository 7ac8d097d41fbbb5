//! Updates: admitted in memory, then accepted, completed or rejected by the worker's messages.

use std::sync::Arc;

use proto::temporal::api::enums::v1::{SuggestContinueAsNewReason, WorkflowTaskFailedCause};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::protocol::v1::message::SequencingId;
use proto::temporal::api::update::v1::{Acceptance, Response};
use workflow::{AdmitUpdate, CompleteWorkflowTask, Input, LimitCause, Notice, Rejection, Reply};

use crate::answers::{acceptance, message, protocol_message, rejection, response, success, update_request};
use crate::run::{Run, complete_workflow, failure};

impl Run {
    pub(crate) fn admit(&mut self, id: &str) -> Result<Reply, Rejection> {
        let (request, waiting) = (Arc::new(update_request(id)), self.waiting.clone());
        self.input(Input::AdmitUpdate(AdmitUpdate { request, first_run_id: None, waiting }))
    }

    /// An idle run with one update at a worker.
    pub(crate) fn updating(id: &str) -> Self {
        let mut run = Self::idle();
        run.admit(id).unwrap();
        run.start_task();
        run
    }

    /// Completes the task in flight with these answers, each with its command unless it is a rejection.
    pub(crate) fn answer(&mut self, messages: Vec<Message>) -> Result<Reply, Rejection> {
        let is_rejection = |message: &&Message| message.id.ends_with("/reject");
        let commands = messages.iter().filter(|one| !is_rejection(one)).map(|one| protocol_message(&one.id)).collect();
        let completion = CompleteWorkflowTask { messages, ..self.completion(commands) };
        self.input(Input::CompleteWorkflowTask(Box::new(completion)))
    }
}

fn accepted(id: &str) -> Notice {
    Notice::UpdateAccepted { update_id: id.to_owned() }
}

fn completed(id: &str) -> Notice {
    Notice::UpdateCompleted { update_id: id.to_owned(), outcome: success() }
}

#[test]
fn a_worker_gets_the_request_with_its_task() {
    let mut run = Run::idle();
    run.admit("u").unwrap();
    let task = run.start_task();
    let [request] = task.messages.as_slice() else { panic!("unexpected {:?}", task.messages) };
    assert_eq!(request.id, "u/request");
    assert_eq!(request.protocol_instance_id, "u");
    assert_eq!(request.sequencing_id, Some(SequencingId::EventId(task.started_event_id.0 - 1)));
    let body = request.body.as_ref().unwrap();
    assert_eq!(body.type_url, "type.googleapis.com/temporal.api.update.v1.Request");
    assert_eq!(body.to_msg::<proto::temporal::api::update::v1::Request>().unwrap(), update_request("u"));
}

#[test]
fn an_update_accepted_and_completed_in_one_task_is_two_events() {
    let mut run = Run::updating("u");
    run.answer(vec![acceptance("u"), response("u")]).unwrap();
    assert_eq!(
        run.history_from(5),
        [
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "WorkflowExecutionUpdateAccepted",
            "WorkflowExecutionUpdateCompleted"
        ]
    );
    let Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(event) = run.event(8) else { panic!() };
    assert_eq!(event.protocol_instance_id, "u");
    assert_eq!(event.accepted_request_message_id, "u/request");
    assert_eq!(event.accepted_request, Some(update_request("u")));
    let Attributes::WorkflowExecutionUpdateCompletedEventAttributes(event) = run.event(9) else { panic!() };
    assert_eq!(event.accepted_event_id, 8);
    assert_eq!(event.outcome, Some(success()));
    assert_eq!(run.notices, [accepted("u"), completed("u")]);
    let update = run.state.find_update("u").unwrap();
    assert_eq!(update.completed.unwrap().batch_id.0, 5);
}

#[test]
fn an_accepted_update_completes_in_a_later_task() {
    let mut run = Run::updating("u");
    run.answer(vec![acceptance("u")]).unwrap();
    assert_eq!(run.notices, [accepted("u")]);
    run.signal("s").unwrap();
    run.start_task();
    run.answer(vec![response("u")]).unwrap();
    assert_eq!(run.notices.last(), Some(&completed("u")));
}

#[test]
fn messages_without_a_command_come_after_all_commands() {
    let mut run = Run::updating("u");
    let messages = vec![acceptance("u"), response("u")];
    let completion = CompleteWorkflowTask { messages, ..run.completion(vec![crate::run::marker("m")]) };
    run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    assert_eq!(
        run.history_from(8),
        ["MarkerRecorded", "WorkflowExecutionUpdateAccepted", "WorkflowExecutionUpdateCompleted"]
    );
}

#[test]
fn of_two_messages_with_one_id_only_the_first_can_be_named() {
    let mut run = Run::updating("u");
    let reply = run.answer(vec![acceptance("u"), acceptance("u")]).unwrap();
    let Reply::BadCommand { message, .. } = reply else { panic!("unexpected {reply:?}") };
    assert!(message.ends_with("ProtocolMessageCommand referenced absent message ID u/accept"), "{message}");
}

#[test]
fn an_update_is_rejected_once() {
    let mut run = Run::updating("u");
    let again = Message { id: "u/again/reject".to_owned(), ..rejection("u") };
    let reply = run.answer(vec![rejection("u"), again]).unwrap();
    let Reply::BadCommand { message, .. } = reply else { panic!("unexpected {reply:?}") };
    let told = "received *update.Rejection message while in state ProvisionallyCompleted";
    assert!(message.ends_with(told), "{message}");
    let is_rejected = |notice: &Notice| matches!(notice, Notice::UpdateRejected { .. });
    assert!(!run.notices.iter().any(is_rejected), "nobody hears of what a refused task says");
}

#[test]
fn two_updates_share_a_task() {
    let mut run = Run::idle();
    run.admit("a").unwrap();
    run.admit("b").unwrap();
    assert_eq!(run.start_task().messages.len(), 2);
    run.answer(vec![acceptance("a"), rejection("b"), response("a")]).unwrap();
    let rejected = Notice::UpdateRejected { update_id: "b".to_owned(), failure: failure("no") };
    assert_eq!(run.notices, [accepted("a"), completed("a"), rejected]);
    assert!(run.state.find_update("b").is_none());
}

#[test]
fn a_repeated_update_is_not_a_second_one() {
    let mut run = Run::idle();
    run.admit("u").unwrap();
    let before = run.state.clone();
    run.admit("u").unwrap();
    assert_eq!(run.state, before);
    run.start_task();
    run.answer(vec![acceptance("u"), response("u")]).unwrap();
    let before = run.state.clone();
    run.admit("u").unwrap();
    assert_eq!(run.state, before);
    run.terminate().unwrap();
    run.admit("u").unwrap();
    assert_eq!(run.admit("v").unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn updates_that_the_worker_passes_over_are_rejected() {
    let mut run = Run::updating("u");
    run.answer(Vec::new()).unwrap();
    let [Notice::UpdateRejected { update_id, failure }] = run.notices.as_slice() else { panic!("{:?}", run.notices) };
    assert_eq!(update_id, "u");
    assert!(failure.message.starts_with("Workflow Update is rejected because it wasn't processed by worker."));
    assert!(run.waiting.is_empty());
}

#[test]
fn a_worker_that_asks_for_time_keeps_its_updates() {
    let mut run = Run::updating("u");
    let heartbeat = CompleteWorkflowTask { force_new_task: true, return_new_task: true, ..run.completion(Vec::new()) };
    let reply = run.input(Input::CompleteWorkflowTask(Box::new(heartbeat))).unwrap();
    let Reply::WorkflowTaskCompleted { new_task: Some(task), .. } = reply else { panic!("unexpected {reply:?}") };
    assert!(task.messages.is_empty(), "it has them already");
    run.answer(vec![acceptance("u")]).unwrap();
    assert_eq!(run.notices, [accepted("u")]);
}

#[test]
fn an_update_that_came_during_a_task_gets_the_next_one_at_once() {
    let mut run = Run::working();
    run.admit("u").unwrap();
    assert!(run.state.workflow_task.is_running());
    let completion = CompleteWorkflowTask { return_new_task: true, ..run.completion(Vec::new()) };
    let reply = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    let Reply::WorkflowTaskCompleted { new_task: Some(task), .. } = reply else { panic!("unexpected {reply:?}") };
    assert_eq!(task.messages.len(), 1);
    assert!(run.state.workflow_task.is_speculative());
    assert_eq!(task.transient_events.len(), 2);
}

#[test]
fn an_update_of_a_lost_memory_comes_back_with_the_answer() {
    let mut run = Run::updating("u");
    run.waiting.clear();
    run.answer(vec![acceptance("u"), response("u")]).unwrap();
    assert_eq!(run.notices, [accepted("u"), completed("u")]);
    let Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(event) = run.event(8) else { panic!() };
    assert_eq!(event.accepted_request, Some(update_request("u")));
}

#[test]
fn bad_messages_fail_the_task() {
    let without_sequence = message("u", "accept", &Acceptance::default());
    let without_meta = message("u", "complete", &Response::default());
    let foreign = message("u", "accept", &prost_types::Duration::default());
    let lost = "wasn't found on the server. This is most likely a transient error which will be resolved automatically \
                by retries";
    for (messages, reason) in [
        (vec![response("v")], format!("update v {lost}")),
        (vec![response("u")], transition_of("u", "Response", "Sent")),
        (vec![acceptance("u"), acceptance("u")], transition_of("u", "Acceptance", "ProvisionallyAccepted")),
        (vec![acceptance("u"), response("u"), response("u")], transition_of("u", "Response", "ProvisionallyCompleted")),
        (
            vec![without_sequence],
            "invalid *update.Acceptance: accepted_request_sequencing_event_id is not set".to_owned(),
        ),
        (vec![acceptance("u"), without_meta], "invalid *update.Response: meta is not set".to_owned()),
        (vec![foreign], "unsupported protocol type google.protobuf".to_owned()),
    ] {
        let mut run = Run::updating("u");
        let completion = CompleteWorkflowTask { messages, ..run.completion(Vec::new()) };
        let reply = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!(cause, WorkflowTaskFailedCause::BadUpdateWorkflowExecutionMessage);
        assert_eq!(message, format!("BadUpdateWorkflowExecutionMessage: {reason}"));
        assert_eq!(run.notices, [Notice::UpdateAborted { update_id: "u".to_owned() }]);
        assert_eq!(run.history_from(5), ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskFailed"]);
    }
}

fn transition_of(id: &str, kind: &str, standing: &str) -> String {
    format!(
        "invalid state transition attempted for Update {id}: received *update.{kind} message while in state {standing}"
    )
}

#[test]
fn a_command_must_name_a_message() {
    for (message_id, reason) in [
        ("", "MessageID is not set on ProtocolMessageCommand."),
        ("x", "ProtocolMessageCommand referenced absent message ID x"),
    ] {
        let mut run = Run::updating("u");
        let reply = run.try_complete_task(vec![protocol_message(message_id)]).unwrap();
        let Reply::BadCommand { message, .. } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!(message, format!("BadUpdateWorkflowExecutionMessage: {reason}"));
    }
}

#[test]
fn a_message_without_a_body_is_refused_whole() {
    let mut run = Run::updating("u");
    let messages = vec![Message { id: "x".to_owned(), ..Default::default() }];
    let completion = CompleteWorkflowTask { messages, ..run.completion(Vec::new()) };
    let refused = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap_err();
    assert_eq!(refused, Rejection::InvalidArgument("nil message body".to_owned()));
    assert!(run.state.workflow_task.is_running());
}

#[test]
fn answers_after_the_end_of_the_run_are_void() {
    let mut run = Run::updating("u");
    let messages = vec![acceptance("u"), response("u")];
    let completion = CompleteWorkflowTask { messages, ..run.completion(vec![complete_workflow()]) };
    run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    assert_eq!(run.history_from(8), ["WorkflowExecutionCompleted"]);
    assert!(run.notices.is_empty());
}

#[test]
fn limits_hold() {
    let mut run = Run::idle();
    run.facts.limits.updates_in_flight = 2;
    run.admit("a").unwrap();
    run.admit("b").unwrap();
    let Err(Rejection::LimitExceeded { cause, message }) = run.admit("c") else { panic!() };
    assert_eq!(cause, LimitCause::UpdatesInFlight);
    assert_eq!(message, "limit on number of concurrent in-flight updates has been reached (2)");
    run.admit("a").unwrap();
    run.start_task();
    // Accepted ones count until they are completed.
    run.answer(vec![acceptance("a"), acceptance("b")]).unwrap();
    assert!(run.admit("c").is_err());
    run.facts.limits.updates_in_flight = 10;
    run.facts.limits.updates = 2;
    let Err(Rejection::LimitExceeded { cause, .. }) = run.admit("c") else { panic!() };
    assert_eq!(cause, LimitCause::Updates);
    run.facts.limits.updates = 3;
    run.facts.limits.updates_in_flight_size = 10;
    let Err(Rejection::LimitExceeded { message, .. }) = run.admit("c") else { panic!() };
    assert_eq!(message, "limit on total payload size of in-flight updates has been reached (10 bytes)");
}

#[test]
fn many_updates_are_a_reason_to_continue_as_new() {
    let mut run = Run::idle();
    run.facts.limits.suggest_continue_as_new_updates = 1;
    run.admit("u").unwrap();
    let task = run.start_task();
    let Some(Attributes::WorkflowTaskStartedEventAttributes(started)) = &task.transient_events[1].attributes else {
        panic!()
    };
    assert!(started.suggest_continue_as_new);
    let reasons: Vec<_> = started.suggest_continue_as_new_reasons().collect();
    assert_eq!(reasons, [SuggestContinueAsNewReason::TooManyUpdates]);
}

#[test]
fn a_run_whose_tasks_fail_takes_no_updates() {
    let mut run = Run::working();
    run.fail_task();
    run.start_task();
    run.fail_task();
    let Err(Rejection::WorkflowNotReady(message)) = run.admit("u") else { panic!() };
    assert_eq!(message, "Unable to perform workflow execution update due to Workflow Task in failed state.");
}
