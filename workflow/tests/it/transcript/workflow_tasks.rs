//! Transcripts of workflow tasks: dispatched, started, completed, failed, timed out.

use proto::temporal::api::common::v1::MeteringMetadata;
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::sdk::v1::WorkflowTaskCompletedMetadata;
use workflow::{CompleteWorkflowTask, FailWorkflowTask, Input, StartWorkflowTask};

use crate::run::{Run, SECOND, failure, marker, plain_start, signal, start_timer, sticky};
use crate::transcript::{Transcript, full};

fn start_task(run: &Run) -> StartWorkflowTask {
    let scheduled = run.scheduled().clone();
    StartWorkflowTask {
        scheduled_event_id: scheduled.event_id,
        request_id: "poll-7".to_owned(),
        identity: "worker-7".to_owned(),
        task_queue: scheduled.task_queue,
        updates: Vec::new(),
        worker_version: full::stamp("build-1"),
    }
}

fn completion(run: &Run) -> CompleteWorkflowTask {
    CompleteWorkflowTask {
        identity: "worker-7".to_owned(),
        binary_checksum: "checksum-1".to_owned(),
        sticky: sticky(),
        sdk_metadata: Some(WorkflowTaskCompletedMetadata {
            core_used_flags: vec![1],
            lang_used_flags: vec![2],
            sdk_name: "sdk".to_owned(),
            sdk_version: "1.2".to_owned(),
        }),
        metering_metadata: Some(MeteringMetadata { nonfirst_local_activity_execution_attempts: 3 }),
        worker_version: full::stamp("build-1"),
        ..run.completion(Vec::new())
    }
}

fn complete(
    run: &mut Run,
    change: impl FnOnce(&mut CompleteWorkflowTask),
) -> Result<workflow::Reply, workflow::Rejection> {
    let mut completion = completion(run);
    change(&mut completion);
    run.input(Input::CompleteWorkflowTask(Box::new(completion)))
}

fn fail(run: &mut Run) -> Result<workflow::Reply, workflow::Rejection> {
    let task = run.task_ref();
    run.input(Input::FailWorkflowTask(FailWorkflowTask {
        task,
        cause: WorkflowTaskFailedCause::NonDeterministicError,
        failure: Some(failure("nondeterminism")),
        identity: "worker-7".to_owned(),
        binary_checksum: "checksum-1".to_owned(),
    }))
}

#[test]
fn a_workflow_task_goes_to_its_worker_and_back() {
    let mut transcript = Transcript::started("start", plain_start());
    transcript.step("started by its worker", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("started again by the same poll", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("started by another poll", |run| {
        run.input(Input::StartWorkflowTask(StartWorkflowTask { request_id: "other".to_owned(), ..start_task(run) }))
    });
    transcript.step("completed, sticky from now on, with another one returned", |run| {
        run.later(2 * SECOND);
        complete(run, |completion| {
            (completion.force_new_task, completion.return_new_task) = (true, true);
            completion.commands = vec![full::annotated(marker("m")), start_timer("t", 90 * SECOND)];
        })
    });
    transcript.step("completed", |run| complete(run, |_| ()));
    transcript.step("signaled: dispatched to the sticky queue", |run| run.signal("s"));
    transcript.step("no worker of the sticky queue takes it", |run| run.fire_next_timer());
    transcript.step("started", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("its worker takes too long", |run| run.fire_next_timer());
    transcript.check("workflow_tasks");
}

#[test]
fn a_failing_workflow_task_is_tried_again_without_events() {
    let mut transcript = Transcript::of("at a worker", Run::working());
    transcript.step("fails", fail);
    transcript.step("the second attempt is started", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("fails again", fail);
    transcript.step("the third attempt is started", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("takes too long", |run| run.fire_next_timer());
    transcript.step("the fourth attempt is started", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("a bad command is refused", |run| {
        complete(run, |completion| completion.commands = vec![start_timer("", SECOND)])
    });
    transcript.step("a signal waits", |run| run.input(Input::Signal(full::signal("s"))));
    transcript.step("completes", |run| {
        run.later(SECOND);
        complete(run, |_| ())
    });
    transcript.check("failing_workflow_tasks");
}

#[test]
fn a_bad_command_fails_the_workflow_task() {
    let mut transcript = Transcript::of("at a worker", Run::working());
    transcript.step("a timer without a name", |run| {
        complete(run, |completion| completion.commands = vec![start_timer("", SECOND)])
    });
    transcript.step("a signal comes before the next attempt is started", |run| run.input(Input::Signal(signal("s"))));
    transcript.step("started at the end of history", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("of a bad binary", |run| complete(run, |completion| completion.is_bad_binary = true));
    transcript.follow("alive for too long", Run::working());
    transcript.step("asks for more time", |run| {
        run.later(1000 * SECOND);
        complete(run, |completion| completion.force_new_task = true)
    });
    transcript.step("started", |run| run.input(Input::StartWorkflowTask(start_task(run))));
    transcript.step("asks for more time again", |run| {
        run.later(1000 * SECOND);
        complete(run, |completion| completion.force_new_task = true)
    });
    transcript.follow("too large for its worker", Run::working());
    transcript.step("fails for good", |run| {
        let task = run.task_ref();
        let (identity, binary_checksum) = ("worker-7".to_owned(), String::new());
        let cause = WorkflowTaskFailedCause::GrpcMessageTooLarge;
        run.input(Input::FailWorkflowTask(FailWorkflowTask { task, cause, failure: None, identity, binary_checksum }))
    });
    transcript.check("bad_workflow_tasks");
}

#[test]
fn too_many_waiting_events_end_the_workflow_task() {
    let mut transcript = Transcript::of("at a worker", Run::working());
    transcript.run.facts.limits.buffered_events = 2;
    for request_id in ["a", "b", "c"] {
        transcript.step("signaled", |run| run.input(Input::Signal(full::signal(request_id))));
    }
    transcript.check("buffered_events");
}
