//! User timers.

use std::time::Duration;

use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use workflow::{EventId, Input, Reply, TimerTask};

use crate::run::{Run, SECOND, cancel_timer, start_timer};

#[test]
fn a_timer_fires_at_its_moment_and_not_before() {
    let mut run = Run::after(vec![start_timer("t", 30 * SECOND)]);
    let started_at = run.facts.now;
    let task = TimerTask::UserTimer { started_event_id: EventId(5), version: 7 };
    assert!(run.timers().contains(&(started_at + 30 * SECOND, &task)));
    run.take_tasks();
    run.later(29 * SECOND).input(Input::Due(task.clone())).unwrap();
    assert_eq!(run.history_from(5), ["TimerStarted"]);
    assert_eq!(run.timers(), [(started_at + 30 * SECOND, &task)], "it is armed again");
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(5), ["TimerStarted", "TimerFired", "WorkflowTaskScheduled"]);
    assert!(run.state.timers.is_empty());
    run.input(Input::Due(task)).unwrap();
    assert_eq!(run.history_from(8), Vec::<String>::new(), "it fires once");
}

#[test]
fn the_time_of_a_run_never_runs_backwards() {
    let mut run = Run::after(vec![]);
    let changed_at = run.facts.now;
    run.facts.now = workflow::Timestamp(changed_at.0 - 7_200_000_000_000);
    run.signal("").unwrap();
    run.work(vec![start_timer("t", 3 * SECOND)]);
    assert!(run.timers().iter().any(|(fires_at, _)| *fires_at == changed_at + 3 * SECOND), "{:?}", run.timers());
    assert_eq!(run.state.unrecorded.last_updated_at, Some(changed_at));
}

#[test]
fn timers_that_are_due_fire_together_the_earliest_first() {
    let mut run = Run::after(vec![
        start_timer("late", 20 * SECOND),
        start_timer("early", 10 * SECOND),
        start_timer("never", 60 * SECOND),
    ]);
    run.later(30 * SECOND);
    run.input(Input::Due(TimerTask::UserTimer { started_event_id: EventId(5), version: 7 })).unwrap();
    assert_eq!(run.history_from(8), ["TimerFired", "TimerFired", "WorkflowTaskScheduled"]);
    let fired: Vec<i64> = run.state.timers.iter().map(|(id, _)| id).collect();
    assert_eq!(fired, [7]);
    let proto::temporal::api::history::v1::history_event::Attributes::TimerFiredEventAttributes(first) = run.event(8)
    else {
        panic!("a timer fired")
    };
    assert_eq!((first.timer_id.as_str(), first.started_event_id), ("early", 6));
}

#[test]
fn a_canceled_timer_does_not_fire() {
    let mut run = Run::after(vec![start_timer("t", 30 * SECOND)]);
    run.signal("").unwrap();
    run.work(vec![cancel_timer("t"), start_timer("t", SECOND)]);
    assert_eq!(run.history_from(10), ["TimerCanceled", "TimerStarted"], "its id is free again");
}

#[test]
fn a_bad_timer_command_fails_its_task() {
    use WorkflowTaskFailedCause as Cause;
    let too_long = "x".repeat(1001);
    let cases = [
        (
            vec![start_timer("", SECOND)],
            Cause::BadStartTimerAttributes,
            "BadStartTimerAttributes: TimerId is not set on StartTimerCommand.",
        ),
        (
            vec![start_timer("t", SECOND), start_timer("t", SECOND)],
            Cause::StartTimerDuplicateId,
            "StartTimerDuplicateId: invalid history builder state for action: add-timer-started-event, TimerID: t",
        ),
        (
            vec![cancel_timer("t")],
            Cause::BadCancelTimerAttributes,
            "BadCancelTimerAttributes: invalid history builder state for action: add-timer-canceled-event, TimerID: t",
        ),
        (
            vec![start_timer(&too_long, Duration::ZERO)],
            Cause::BadStartTimerAttributes,
            "BadStartTimerAttributes: TimerId on StartTimerCommand exceeds length limit.",
        ),
    ];
    for (commands, expected_cause, expected_message) in cases {
        let mut run = Run::working();
        let reply = run.try_complete_task(commands).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!(cause, expected_cause);
        assert!(message.starts_with(expected_message), "{message}");
        assert_eq!(run.history_from(4), ["WorkflowTaskFailed"], "nothing of the task's commands is kept");
        assert!(run.state.timers.is_empty());
    }
}
