//! Transcripts of runs that follow one another: continued as new, retried, by a cron schedule, after a timeout.

use proto::temporal::api::command::v1::{Command, ContinueAsNewWorkflowExecutionCommandAttributes};
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::ContinueAsNewInitiator;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use uuid::Uuid;
use workflow::{CompleteWorkflowTask, Input, RunId, Start, WorkflowTask};

use crate::others::parent;
use crate::run::{
    Run, SECOND, complete_workflow, continue_as_new, fail_workflow, failure, payloads, plain_start, span,
};
use crate::transcript::{Transcript, full};

#[expect(deprecated, reason = "old workers send the failure and the build id")]
fn full_command() -> ContinueAsNewWorkflowExecutionCommandAttributes {
    ContinueAsNewWorkflowExecutionCommandAttributes {
        workflow_type: Some(WorkflowType { name: "Other".to_owned() }),
        task_queue: Some(TaskQueue { name: "others".to_owned(), ..Default::default() }),
        input: Some(payloads("next")),
        workflow_run_timeout: span(200 * SECOND),
        workflow_task_timeout: span(4 * SECOND),
        backoff_start_interval: span(6 * SECOND),
        retry_policy: full::policy(5),
        initiator: ContinueAsNewInitiator::Retry.into(),
        failure: Some(failure("old")),
        last_completion_result: Some(payloads("last")),
        cron_schedule: String::new(),
        header: full::header("of the command"),
        memo: full::memo("of the command"),
        search_attributes: full::search_attributes("\"of the command\""),
        inherit_build_id: true,
        ..Default::default()
    }
}

/// Ends the run with this command, and goes on with the run that follows.
fn end_with(transcript: &mut Transcript, title: &str, command: Command) {
    while transcript.run.state.workflow_task == WorkflowTask::None {
        transcript.run.fire_next_timer().unwrap();
    }
    transcript.step(title, |run| {
        run.start_task();
        let completion = CompleteWorkflowTask {
            binary_checksum: "checksum-1".to_owned(),
            worker_version: full::stamp("build-1"),
            ..run.completion(vec![command])
        };
        run.later(SECOND / 2).input(Input::CompleteWorkflowTask(Box::new(completion)))
    });
    go_on(transcript);
}

fn go_on(transcript: &mut Transcript) {
    let Some(born) = transcript.run.new_run.take() else { return };
    let mut facts = transcript.run.facts.clone();
    facts.new_run_id = RunId(Uuid::from_u128(facts.new_run_id.0.as_u128() + 1));
    transcript.follow("the run that follows", Run::born(*born, facts));
}

fn full_start() -> Start {
    Start { start_delay: None, parent: Some(parent()), signal: None, ..full::start() }
}

fn begun(start: Start) -> Transcript {
    let mut transcript = Transcript::started("start", start);
    if transcript.run.state.started.parent.is_some() {
        transcript.step("begins", |run| run.input(Input::ScheduleFirstTask));
    }
    transcript
}

#[test]
fn a_run_continues_as_new_with_all_that_it_was_told() {
    let mut transcript = begun(full_start());
    let command = full::annotated(continue_as_new(full_command()));
    end_with(&mut transcript, "continues as new", command);
    end_with(&mut transcript, "continues as it was", continue_as_new(Default::default()));
    transcript.check("continued_runs");
}

#[test]
fn a_run_is_retried() {
    let mut transcript = begun(full_start());
    end_with(&mut transcript, "fails", fail_workflow(failure("first")));
    end_with(&mut transcript, "fails again", fail_workflow(failure("second")));
    end_with(&mut transcript, "fails for the last time", fail_workflow(failure("third")));
    transcript.check("retried_runs");
}

#[test]
fn a_run_comes_again_by_its_cron_schedule() {
    let start = Start { cron_schedule: "@every 30s".to_owned(), retry_policy: full::policy(1), ..full_start() };
    let mut transcript = begun(Start { parent: None, ..start });
    end_with(&mut transcript, "completes", complete_workflow());
    end_with(&mut transcript, "fails", fail_workflow(failure("boom")));
    transcript.step("its time is over", |run| {
        run.later(600 * SECOND);
        run.input(Input::Due(workflow::TimerTask::RunTimeout { version: 7 }))
    });
    go_on(&mut transcript);
    transcript.check("cron_runs");
}

#[test]
fn a_run_times_out() {
    let mut transcript =
        begun(Start { run_timeout: Some(20 * SECOND), retry_policy: full::policy(2), ..plain_start() });
    transcript
        .step("its timer comes early", |run| run.input(Input::Due(workflow::TimerTask::RunTimeout { version: 7 })));
    transcript.step("its time is over while it is at a worker", |run| {
        run.start_task();
        run.later(20 * SECOND).input(Input::Due(workflow::TimerTask::RunTimeout { version: 7 }))
    });
    go_on(&mut transcript);
    let start = Start { execution_timeout: Some(20 * SECOND), retry_policy: full::policy(2), ..plain_start() };
    transcript.follow("a chain with a timeout", Run::started_as(start));
    let due = || Input::Due(workflow::TimerTask::ExecutionTimeout { version: 7 });
    transcript.step("its timer comes early", |run| run.input(due()));
    transcript.step("its time is over", |run| run.later(20 * SECOND).input(due()));
    transcript.check("timed_out_runs");
}
