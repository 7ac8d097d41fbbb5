//! Eager dispatch: the first workflow task with the start, an activity with the completion that scheduled it.

use proto::temporal::api::command::v1::{Command, ScheduleActivityTaskCommandAttributes};
use proto::temporal::api::enums::v1::{RetryState, TimeoutType};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{ActivityStarted, Input, Reply, Start, StartWorkflowTask, Task, TimerTask, TransferTask, WorkflowTask};

use crate::activity::timed_out;
use crate::others;
use crate::run::{
    Run, SECOND, activity_attributes, cancel_activity, complete_workflow, facts, key, never_retried, plain_start,
    schedule, signal, span,
};

fn eager() -> Start {
    Start { is_eager: true, ..plain_start() }
}

fn is_accepted(run: &Run) -> bool {
    let Attributes::WorkflowExecutionStartedEventAttributes(first) = run.event(1) else { panic!("not a start") };
    first.eager_execution_accepted
}

fn eager_activity(activity_id: &str) -> Command {
    schedule(ScheduleActivityTaskCommandAttributes {
        activity_id: activity_id.to_owned(),
        request_eager_execution: true,
        ..activity_attributes()
    })
}

fn completed(run: &mut Run, commands: Vec<Command>) -> Vec<ActivityStarted> {
    let reply = run.try_complete_task(commands).unwrap();
    let Reply::WorkflowTaskCompleted { activities, .. } = reply else { panic!("unexpected {reply:?}") };
    activities
}

#[test]
fn an_eager_run_is_born_with_its_first_task_under_way() {
    let born = workflow::start(key(), eager(), None, &facts()).unwrap();
    let Reply::Started { task: Some(task), .. } = &born.reply else { panic!("unexpected {:?}", born.reply) };
    assert_eq!((task.scheduled_event_id.0, task.started_event_id.0, task.attempt), (2, 3, 1));
    assert!(!task.is_sticky && task.transient_events.is_empty());
    let run = Run::born(*born, facts());
    assert_eq!(run.history(), ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]);
    assert_eq!(run.batches.len(), 1, "all in one commit");
    assert!(is_accepted(&run));
    assert!(run.transfers().is_empty(), "nobody else is to have it");
    let WorkflowTask::Running(_, running) = &run.state.workflow_task else { panic!("not under way") };
    assert_eq!((running.request_id.as_str(), running.identity.as_str()), ("start-1", "client"));
    let times_out = |(_, task): &(_, &TimerTask)| matches!(task, TimerTask::WorkflowTaskStartToClose { .. });
    assert!(run.timers().iter().any(times_out), "and it is not waited for for ever");
}

#[test]
fn what_begins_later_or_elsewhere_is_not_eager() {
    let cases = [
        ("delayed", Start { start_delay: Some(3 * SECOND), ..eager() }),
        ("cron", Start { cron_schedule: "* * * * *".to_owned(), ..eager() }),
        ("a child", Start { parent: Some(others::parent()), ..eager() }),
    ];
    for (what, start) in cases {
        let born = workflow::start(key(), start, None, &facts()).unwrap();
        assert!(matches!(born.reply, Reply::Started { task: None, .. }), "{what}");
        let run = Run::born(*born, facts());
        assert!(!is_accepted(&run), "{what}");
        assert_eq!(run.history(), ["WorkflowExecutionStarted"], "{what}");
    }
}

#[test]
fn a_signal_that_comes_with_an_eager_start_is_seen_by_the_first_task() {
    let run = Run::started_as(Start { signal: Some(signal("with-start")), ..eager() });
    let events =
        ["WorkflowExecutionStarted", "WorkflowExecutionSignaled", "WorkflowTaskScheduled", "WorkflowTaskStarted"];
    assert_eq!(run.history(), events);
}

#[test]
fn an_eager_task_that_fails_goes_to_whoever_polls() {
    let mut run = Run::started_as(eager());
    run.fail_task();
    let dispatched = |task: &&TransferTask| matches!(task, TransferTask::WorkflowTask { attempt: 2, .. });
    assert!(run.transfers().iter().any(dispatched));
}

#[test]
fn a_repeated_eager_start_finds_its_own_task() {
    let mut run = Run::started_as(eager());
    let again = StartWorkflowTask {
        scheduled_event_id: run.task_ref().scheduled_event_id,
        request_id: "start-1".to_owned(),
        identity: "client".to_owned(),
        task_queue: "orders".to_owned(),
        updates: Vec::new(),
        worker_version: None,
    };
    let reply = run.input(Input::StartWorkflowTask(again)).unwrap();
    assert!(matches!(reply, Reply::WorkflowTaskStarted(_)), "{reply:?}");
}

#[test]
fn an_eager_activity_is_given_to_the_worker_that_scheduled_it() {
    let mut run = Run::working();
    run.take_tasks();
    let commands = vec![eager_activity("now"), schedule(activity_attributes()), eager_activity("too")];
    let started = completed(&mut run, commands);
    assert_eq!(started.iter().map(|one| one.activity_id.as_str()).collect::<Vec<_>>(), ["now", "too"]);
    assert_eq!(started[0].started_at, run.facts.now);
    let attempt = run.activity(5).unrecorded.started.as_ref().unwrap();
    assert_eq!(attempt.identity, "worker");
    let other = run.activity(7).unrecorded.started.as_ref().unwrap();
    assert_ne!(attempt.request_id, other.request_id, "a request starts one activity");
    let transfers = run.transfers();
    let [TransferTask::Activity { scheduled_event_id, .. }] = transfers.as_slice() else { panic!("{transfers:?}") };
    assert_eq!(scheduled_event_id.0, 6, "only the other one looks for a worker");
    assert!(run.start_activity(5).is_err(), "nobody else gets it");
    run.complete_activity(5).unwrap();
    let events = ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"];
    assert_eq!(run.history_from(8), events);
}

#[test]
fn an_eager_activity_times_out_at_its_worker_and_is_retried_anywhere() {
    let mut run = Run::working();
    run.take_tasks();
    completed(&mut run, vec![eager_activity("now")]);
    let armed = |task: &Task| matches!(task, Task::Timer { task: TimerTask::ActivityTimeout { .. }, .. });
    assert_eq!(run.tasks.iter().filter(|task| armed(task)).count(), 1);
    run.later(10 * SECOND);
    run.fire_next_timer().unwrap();
    assert_eq!(run.activity(5).unrecorded.attempt, 2);
    run.later(SECOND);
    run.fire_next_timer().unwrap();
    let again = |task: &&TransferTask| matches!(task, TransferTask::Activity { attempt: 2, .. });
    assert!(run.transfers().iter().any(again));
}

#[test]
fn of_deadlines_at_one_moment_the_one_that_began_first_is_told() {
    type Change = fn(&mut ScheduleActivityTaskCommandAttributes);
    let cases: [(Change, TimeoutType, RetryState); 3] = [
        (|command| command.start_to_close_timeout = None, TimeoutType::ScheduleToClose, RetryState::Timeout),
        (
            |command| command.heartbeat_timeout = command.schedule_to_close_timeout,
            TimeoutType::ScheduleToClose,
            RetryState::Timeout,
        ),
        (
            |command| {
                command.schedule_to_close_timeout = None;
                command.heartbeat_timeout = command.start_to_close_timeout;
            },
            TimeoutType::StartToClose,
            RetryState::MaximumAttemptsReached,
        ),
    ];
    for (change, expected_type, expected_state) in cases {
        let mut run = Run::working();
        run.take_tasks();
        let mut command = ScheduleActivityTaskCommandAttributes {
            request_eager_execution: true,
            schedule_to_close_timeout: span(10 * SECOND),
            start_to_close_timeout: span(10 * SECOND),
            retry_policy: never_retried(),
            ..activity_attributes()
        };
        change(&mut command);
        completed(&mut run, vec![schedule(command)]);
        run.fire_next_timer().unwrap();
        let end = timed_out(&run);
        let failure = end.failure.as_ref().unwrap();
        let Some(FailureInfo::TimeoutFailureInfo(told)) = &failure.failure_info else { panic!("not a timeout") };
        assert_eq!((told.timeout_type(), end.retry_state()), (expected_type, expected_state));
    }
}

#[test]
fn an_eager_activity_that_is_over_at_once_is_given_to_nobody() {
    let mut run = Run::working();
    assert!(completed(&mut run, vec![eager_activity("now"), cancel_activity(5)]).is_empty());
    assert!(run.state.activities.get(5).is_none());
    let mut run = Run::working();
    assert!(completed(&mut run, vec![eager_activity("now"), complete_workflow()]).is_empty());
}
