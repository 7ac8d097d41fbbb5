//! Events that come while a workflow task is in flight: they wait, and are recorded after it.

use std::time::Duration;

use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{Rejection, Reply};

use crate::run::{
    Run, SECOND, cancel_activity, cancel_timer, complete_workflow, marker, schedule_activity, start_timer,
};

#[test]
fn a_signal_during_a_started_task_is_recorded_after_it() {
    let mut run = Run::working();
    run.signal("a").unwrap();
    assert_eq!(run.history_from(4), Vec::<String>::new());
    run.complete_task(vec![marker("m")]);
    let expected = ["WorkflowTaskCompleted", "MarkerRecorded", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"];
    assert_eq!(run.history_from(4), expected);
    assert!(run.state.unrecorded.buffered_events.is_empty());
}

#[test]
fn an_event_that_waits_stands_behind_all_that_ever_waited() {
    let mut run = Run::working();
    let mut places = Vec::new();
    for (one, other) in [("a", "b"), ("c", "d"), ("e", "f")] {
        run.signal(one).unwrap();
        run.signal(other).unwrap();
        places.extend(run.state.unrecorded.buffered_events.iter().map(|(place, _)| place));
        run.complete_task(Vec::new());
        run.start_task();
    }
    assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
    assert_eq!(places.len(), 6);
}

#[test]
fn ends_of_activities_come_last_and_know_their_start() {
    let mut run = Run::after(vec![schedule_activity("a"), schedule_activity("b")]);
    run.signal("").unwrap();
    run.start_task();
    run.start_activity(5).unwrap();
    run.complete_activity(5).unwrap();
    let pending: Vec<_> = run.state.pending_activities().map(|activity| activity.activity_id.as_str()).collect();
    assert_eq!(pending, ["b"], "though the end of the other one is not recorded yet");
    run.start_activity(6).unwrap();
    run.complete_activity(6).unwrap();
    run.signal("").unwrap();
    run.complete_task(Vec::new());
    let expected = [
        "WorkflowTaskCompleted",
        "ActivityTaskStarted",
        "ActivityTaskStarted",
        "WorkflowExecutionSignaled",
        "ActivityTaskCompleted",
        "ActivityTaskCompleted",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(run.history_from(10), expected);
    let Attributes::ActivityTaskCompletedEventAttributes(second) = run.event(15) else { panic!("not an end") };
    assert_eq!((second.scheduled_event_id, second.started_event_id), (6, 12));
}

#[test]
fn an_activity_whose_end_waits_is_over() {
    let mut run = Run::after(vec![schedule_activity("a")]);
    run.start_activity(5).unwrap();
    run.signal("").unwrap();
    run.start_task();
    run.complete_activity(5).unwrap();
    assert_eq!(run.complete_activity(5).unwrap_err(), Rejection::ActivityNotFound);
    // Its id is free again, and a command may still cancel it, not knowing better.
    run.complete_task(vec![schedule_activity("a"), cancel_activity(5)]);
    let expected = [
        "WorkflowTaskCompleted",
        "ActivityTaskScheduled",
        "ActivityTaskCancelRequested",
        "ActivityTaskStarted",
        "ActivityTaskCompleted",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(run.history_from(9), expected);
}

#[test]
fn a_run_does_not_close_over_events_its_worker_has_not_seen() {
    let mut run = Run::working();
    run.signal("a").unwrap();
    let reply = run.try_complete_task(vec![marker("lost"), complete_workflow()]).unwrap();
    let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
    assert_eq!((cause, message.as_str()), (WorkflowTaskFailedCause::UnhandledCommand, "UnhandledCommand"));
    let expected = ["WorkflowTaskFailed", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"];
    assert_eq!(run.history_from(4), expected);
    assert_eq!(run.scheduled().attempt, 1, "the worker will see something new");
    run.start_task();
    let message = "workflow operation can not be applied because workflow is closing".to_owned();
    assert_eq!(run.signal("b").unwrap_err(), Rejection::Busy(message), "else it could never close");
    run.complete_task(vec![complete_workflow()]);
    assert!(!run.state.is_running());
}

#[test]
fn canceling_a_timer_that_fired_meanwhile_lets_the_run_close() {
    let mut run = Run::after(vec![start_timer("t", SECOND)]);
    run.signal("").unwrap();
    run.start_task();
    run.later(2 * SECOND);
    run.fire_next_timer().unwrap();
    assert_eq!(run.state.unrecorded.buffered_events.len(), 1);
    run.complete_task(vec![cancel_timer("t"), complete_workflow()]);
    assert_eq!(run.history_from(9), ["WorkflowTaskCompleted", "TimerCanceled", "WorkflowExecutionCompleted"]);
}

#[test]
fn too_many_waiting_events_end_the_task_in_flight() {
    let mut run = Run::working();
    run.facts.limits.buffered_events = 2;
    for _ in 0..3 {
        run.signal("").unwrap();
    }
    let expected = [
        "WorkflowTaskFailed",
        "WorkflowExecutionSignaled",
        "WorkflowExecutionSignaled",
        "WorkflowExecutionSignaled",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(run.history_from(4), expected);
    let Attributes::WorkflowTaskFailedEventAttributes(failed) = run.event(4) else { panic!("not a failure") };
    assert_eq!(failed.cause(), WorkflowTaskFailedCause::ForceCloseCommand);
    assert_eq!(failed.identity, "history-service");
}

#[test]
fn a_terminated_run_records_what_waited() {
    let mut run = Run::working();
    run.signal("a").unwrap();
    run.terminate().unwrap();
    let expected = ["WorkflowTaskFailed", "WorkflowExecutionSignaled", "WorkflowExecutionTerminated"];
    assert_eq!(run.history_from(4), expected);
}

#[test]
fn an_unstarted_activity_is_canceled_after_all_other_commands() {
    let mut run = Run::after(vec![schedule_activity("a")]);
    run.signal("").unwrap();
    run.start_task();
    run.complete_task(vec![cancel_activity(5), start_timer("t", Duration::ZERO)]);
    let expected = [
        "WorkflowTaskCompleted",
        "ActivityTaskCancelRequested",
        "TimerStarted",
        "ActivityTaskCanceled",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(run.history_from(9), expected);
}

#[test]
fn a_closing_run_drops_what_no_worker_will_see() {
    let mut run = Run::after(vec![schedule_activity("a")]);
    run.signal("").unwrap();
    run.work(vec![cancel_activity(5), complete_workflow()]);
    let expected = ["WorkflowTaskCompleted", "ActivityTaskCancelRequested", "WorkflowExecutionCompleted"];
    assert_eq!(run.history_from(9), expected);
}
