//! Transcripts of updates and of the speculative workflow tasks that are made for them.

use workflow::{CompleteWorkflowTask, Input};

use crate::answers::{acceptance, rejection, response};
use crate::run::{Run, SECOND, complete_workflow, sticky};
use crate::transcript::{Transcript, full};

#[test]
fn an_update_is_accepted_and_completes() {
    let mut transcript = Transcript::of("an idle run", Run::idle());
    transcript.step("admitted", |run| run.later(SECOND).admit("u"));
    transcript.step("admitted again", |run| run.admit("u"));
    transcript.step("its workflow task is started", |run| {
        run.try_start_task("poll").map(|task| workflow::Reply::WorkflowTaskStarted(Box::new(task)))
    });
    transcript.step("accepted", |run| run.later(SECOND).answer(vec![acceptance("u")]));
    transcript.step("another one is admitted", |run| run.later(SECOND).admit("v"));
    transcript.step("both complete", |run| {
        run.start_task();
        run.answer(vec![acceptance("v"), response("v"), response("u")])
    });
    transcript.step("admitted though it is over", |run| run.admit("u"));
    transcript.check("updates");
}

#[test]
fn a_rejected_update_leaves_no_trace() {
    let mut transcript = Transcript::of("an idle run", Run::idle());
    transcript.step("admitted", |run| run.admit("u"));
    transcript.step("rejected", |run| {
        run.start_task();
        run.answer(vec![rejection("u")])
    });
    transcript.step("admitted again", |run| run.later(SECOND).admit("u"));
    transcript.step("a signal makes its workflow task a normal one", |run| run.input(Input::Signal(full::signal("s"))));
    transcript.step("its worker says nothing of it", |run| {
        run.start_task();
        run.try_complete_task(Vec::new())
    });
    transcript.step("another one is admitted", |run| run.admit("v"));
    transcript.step("its worker's memory is lost", |run| {
        run.waiting.clear();
        let scheduled = run.scheduled().clone();
        run.input(Input::StartWorkflowTask(workflow::StartWorkflowTask {
            scheduled_event_id: scheduled.event_id,
            request_id: "poll".to_owned(),
            identity: "worker".to_owned(),
            task_queue: scheduled.task_queue,
            updates: Vec::new(),
            worker_version: None,
        }))
    });
    transcript.check("rejected_updates");
}

#[test]
fn a_speculative_workflow_task_becomes_a_normal_one() {
    let mut transcript = Transcript::of("a sticky run", {
        let mut run = Run::working();
        let completion = CompleteWorkflowTask { sticky: sticky(), ..run.completion(Vec::new()) };
        run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        run
    });
    transcript.step("admitted", |run| run.admit("u"));
    transcript.step("no worker takes it", |run| run.later(SECOND).fire_next_timer());
    transcript.step("started", |run| {
        run.try_start_task("poll").map(|task| workflow::Reply::WorkflowTaskStarted(Box::new(task)))
    });
    transcript.step("accepted, and another workflow task is returned", |run| {
        let commands = vec![crate::answers::protocol_message("u/accept")];
        let completion = CompleteWorkflowTask {
            messages: vec![acceptance("u")],
            return_new_task: true,
            force_new_task: true,
            worker_version: full::stamp("build-2"),
            ..run.completion(commands)
        };
        run.input(Input::CompleteWorkflowTask(Box::new(completion)))
    });
    transcript.step("the run closes with it", |run| {
        let mut completion = run.completion(vec![complete_workflow()]);
        completion.messages = Vec::new();
        run.input(Input::CompleteWorkflowTask(Box::new(completion)))
    });
    transcript.step("admitted to a closed run", |run| run.admit("w"));
    transcript.follow("an update at a worker", Run::updating("x"));
    transcript.step("signaled", |run| run.input(Input::Signal(full::signal("s"))));
    transcript.step("its worker takes too long", |run| run.fire_next_timer());
    transcript.check("speculative_workflow_tasks");
}
