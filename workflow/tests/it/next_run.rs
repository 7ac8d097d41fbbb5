//! The run that follows another one.

use std::time::Duration;

use proto::temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes;
use proto::temporal::api::common::v1::{RetryPolicy, WorkflowType};
use proto::temporal::api::enums::v1::{ContinueAsNewInitiator, RetryState, WorkflowTaskFailedCause};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::history::v1::WorkflowExecutionStartedEventAttributes;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{Input, Reply, Start, Status, Task, TimerTask, TransferTask};

use crate::run::{
    Run, SECOND, complete_workflow, continue_as_new, fail_workflow, failure, key, payloads, plain_start, span,
};

/// A run whose only workflow task ended with this command, `life` after its start.
fn ended(start: Start, life: Duration, command: proto::temporal::api::command::v1::Command) -> Run {
    let mut run = Run::started_as(start);
    while run.state.workflow_task == workflow::WorkflowTask::None {
        run.fire_next_timer().unwrap();
    }
    run.start_task();
    run.later(life);
    run.complete_task(vec![command]);
    run
}

/// The run that follows: born in the same commit, and sound.
fn follower(run: &mut Run) -> Run {
    let born = run.new_run.take().expect("a run follows");
    assert_eq!(born.state.key.run_id, run.facts.new_run_id);
    assert_eq!(born.state.unrecorded.start_request_id, run.facts.new_request_id.to_string());
    assert_eq!(run.state.closed.as_ref().unwrap().new_run_id, Some(run.facts.new_run_id));
    let mut facts = run.facts.clone();
    facts.new_run_id = workflow::RunId(uuid::Uuid::from_u128(3));
    Run::born(*born, facts)
}

fn first_event(run: &Run) -> &WorkflowExecutionStartedEventAttributes {
    let Attributes::WorkflowExecutionStartedEventAttributes(first) = run.event(1) else { panic!("not a start") };
    first
}

#[test]
fn a_run_continues_as_new() {
    let command = ContinueAsNewWorkflowExecutionCommandAttributes {
        input: Some(payloads("next")),
        workflow_type: Some(WorkflowType { name: "Other".to_owned() }),
        ..Default::default()
    };
    let mut run = ended(plain_start(), 5 * SECOND, continue_as_new(command));
    assert_eq!(run.state.status, Status::ContinuedAsNew);
    assert_eq!(run.history_from(4), ["WorkflowTaskCompleted", "WorkflowExecutionContinuedAsNew"]);
    let next = follower(&mut run);
    assert_eq!(next.history(), ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]);
    let first = first_event(&next);
    assert_eq!(first.continued_execution_run_id, key().run_id.to_string());
    assert_eq!(first.first_execution_run_id, key().run_id.to_string());
    assert_eq!(first.original_execution_run_id, next.state.key.run_id.to_string());
    assert_eq!((first.initiator(), first.attempt), (ContinueAsNewInitiator::Workflow, 1));
    assert_eq!(
        (first.input.clone(), first.workflow_type.as_ref().unwrap().name.as_str()),
        (Some(payloads("next")), "Other")
    );
    assert_eq!(first.task_queue.as_ref().unwrap().name, "orders", "what the command leaves out stays");
}

#[test]
fn a_run_does_not_continue_in_a_tight_loop() {
    let command = ContinueAsNewWorkflowExecutionCommandAttributes::default();
    let mut run = ended(plain_start(), Duration::from_millis(300), continue_as_new(command));
    let next = follower(&mut run);
    assert_eq!(first_event(&next).first_workflow_task_backoff, span(Duration::from_millis(700)));
    assert_eq!(next.history(), ["WorkflowExecutionStarted"]);
}

#[test]
fn a_bad_continue_as_new_fails_its_task() {
    let negative = ContinueAsNewWorkflowExecutionCommandAttributes {
        workflow_run_timeout: Some(prost_types::Duration { seconds: -1, nanos: 0 }),
        ..Default::default()
    };
    let cron = ContinueAsNewWorkflowExecutionCommandAttributes {
        retry_policy: Some(RetryPolicy { maximum_attempts: -1, ..Default::default() }),
        ..Default::default()
    };
    for command in [negative, cron] {
        let mut run = Run::working();
        let reply = run.try_complete_task(vec![continue_as_new(command)]).unwrap();
        let expected = WorkflowTaskFailedCause::BadContinueAsNewAttributes;
        assert!(matches!(reply, Reply::BadCommand { cause, .. } if cause == expected));
        assert!(run.new_run.is_none() && run.state.is_running());
    }
}

fn retried(maximum_attempts: i32) -> Start {
    let mut start = plain_start();
    start.retry_policy = Some(RetryPolicy { maximum_attempts, ..Default::default() });
    start
}

#[test]
fn a_failed_run_is_retried() {
    let mut run = ended(retried(2), 5 * SECOND, fail_workflow(failure("boom")));
    let Attributes::WorkflowExecutionFailedEventAttributes(end) = run.event(5) else { panic!("not failed") };
    assert_eq!(end.retry_state(), RetryState::InProgress);
    assert_eq!(end.new_execution_run_id, run.facts.new_run_id.to_string());
    let mut next = follower(&mut run);
    let first = first_event(&next);
    assert_eq!((first.attempt, first.initiator()), (2, ContinueAsNewInitiator::Retry));
    assert_eq!((first.input.clone(), first.continued_failure.clone()), (Some(payloads("in")), Some(failure("boom"))));
    assert_eq!(first.first_workflow_task_backoff, span(SECOND));
    assert_eq!(next.history(), ["WorkflowExecutionStarted"]);
    next.fire_next_timer().unwrap();
    next.start_task();
    next.later(5 * SECOND).complete_task(vec![fail_workflow(failure("again"))]);
    let Attributes::WorkflowExecutionFailedEventAttributes(end) = next.event(5) else { panic!("not failed") };
    assert_eq!(end.retry_state(), RetryState::MaximumAttemptsReached);
    assert!(next.new_run.is_none());
}

#[test]
fn a_failure_that_must_not_be_retried_is_not() {
    let info = ApplicationFailureInfo { non_retryable: true, ..Default::default() };
    let fatal = Failure { failure_info: Some(FailureInfo::ApplicationFailureInfo(info)), ..Default::default() };
    let run = ended(retried(0), 5 * SECOND, fail_workflow(fatal));
    let Attributes::WorkflowExecutionFailedEventAttributes(end) = run.event(5) else { panic!("not failed") };
    assert_eq!(end.retry_state(), RetryState::NonRetryableFailure);
    assert!(run.new_run.is_none());
}

#[test]
fn a_run_that_timed_out_is_retried_until_its_chain_is_over() {
    let mut start = retried(0);
    start.run_timeout = Some(60 * SECOND);
    start.execution_timeout = Some(100 * SECOND);
    let mut run = Run::started_as(start);
    run.later(60 * SECOND).input(Input::Due(TimerTask::RunTimeout { version: 7 })).unwrap();
    let mut next = follower(&mut run);
    let expires_at = next.state.started.run_expires_at.unwrap();
    assert_eq!(Some(expires_at), next.state.started.execution_expires_at, "the chain ends first");
    next.facts.now = expires_at;
    next.input(Input::Due(TimerTask::RunTimeout { version: 7 })).unwrap();
    let end = next.last_event().attributes.as_ref().unwrap();
    let Attributes::WorkflowExecutionTimedOutEventAttributes(end) = end else { panic!("not timed out") };
    assert_eq!(end.retry_state(), RetryState::Timeout);
    assert!(next.new_run.is_none());
}

#[test]
fn a_cron_run_comes_again_with_the_last_result() {
    let mut start = plain_start();
    start.cron_schedule = "@every 60s".to_owned();
    let mut run = ended(start, 10 * SECOND, complete_workflow());
    let next = follower(&mut run);
    let first = first_event(&next);
    assert_eq!((first.initiator(), first.attempt), (ContinueAsNewInitiator::CronSchedule, 1));
    assert_eq!((first.last_completion_result.clone(), first.continued_failure.clone()), (Some(payloads("done")), None));
    assert_eq!(first.first_workflow_task_backoff, span(50 * SECOND), "counted from when it should have begun");
    let mut next = next;
    next.fire_next_timer().unwrap();
    next.work(vec![fail_workflow(failure("boom"))]);
    let third = follower(&mut next);
    let first = first_event(&third);
    assert_eq!(first.last_completion_result, Some(payloads("done")), "a failure does not lose it");
    assert_eq!(first.continued_failure, Some(failure("boom")));
}

#[test]
fn the_schedule_that_started_a_chain_hears_of_its_end_only() {
    let close = Task::Transfer(TransferTask::Close { version: 7 });
    let scheduled = || Start { schedule_id: Some("nightly".into()), ..plain_start() };
    let mut run = ended(scheduled(), SECOND, continue_as_new(Default::default()));
    assert!(!run.take_tasks().contains(&close));
    let mut next = follower(&mut run);
    assert_eq!(next.state.unrecorded.schedule_id.as_deref(), Some("nightly"));
    next.terminate().unwrap();
    assert!(next.take_tasks().contains(&close));
    let mut others = ended(plain_start(), SECOND, complete_workflow());
    assert!(!others.take_tasks().contains(&close));
    let mut done = ended(scheduled(), SECOND, complete_workflow());
    let reset = done.reset(4).unwrap();
    assert_eq!(reset.state.unrecorded.schedule_id.as_deref(), Some("nightly"));
    assert!(done.take_tasks().contains(&close));
}
