//! Speculative workflow tasks: without a trace if they only reject, recorded before anything else if not.

use proto::temporal::api::enums::v1::TaskQueueKind;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{CompleteWorkflowTask, Input, Rejection, Reply, Start, TimerTask};

use crate::answers::{acceptance, rejection};
use crate::run::{Run, SECOND, marker, plain_start, sticky};

#[test]
fn an_update_of_an_idle_run_schedules_a_task_that_history_does_not_tell_of() {
    let mut run = Run::idle();
    run.take_tasks();
    run.admit("u").unwrap();
    assert_eq!(run.history().len(), 4);
    assert!(run.scheduled().is_speculative);
    assert_eq!(run.scheduled().event_id.0, 5);
    assert_eq!(run.transfers().len(), 1);
    let [(fires_at, TimerTask::WorkflowTaskScheduleToStart { .. })] = run.timers()[..] else { panic!() };
    assert_eq!(fires_at, run.facts.now + 5 * SECOND);
}

#[test]
fn a_task_that_only_rejects_leaves_no_trace() {
    let mut run = Run::updating("u");
    let reply = run.answer(vec![rejection("u")]).unwrap();
    let Reply::WorkflowTaskCompleted { new_task: None, reset_to, .. } = reply else { panic!("unexpected {reply:?}") };
    assert_eq!(reset_to.unwrap().0, 3);
    assert_eq!(run.history().len(), 4);
    // The ids are given to others.
    run.signal("s").unwrap();
    assert_eq!(run.history_from(5), ["WorkflowExecutionSignaled", "WorkflowTaskScheduled"]);
}

#[test]
fn a_task_with_a_command_is_recorded_though_it_rejects() {
    let mut run = Run::updating("u");
    let messages = vec![rejection("u")];
    let completion = CompleteWorkflowTask { messages, ..run.completion(vec![marker("m")]) };
    let reply = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    assert!(matches!(reply, Reply::WorkflowTaskCompleted { reset_to: None, .. }));
    assert_eq!(
        run.history_from(5),
        ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted", "MarkerRecorded"]
    );
}

#[test]
fn events_that_came_with_the_task_are_shipped_again_only_to_a_worker_that_can_bear_it() {
    for (n_markers, discards_events, leaves_trace) in
        [(0, false, false), (1, false, true), (10, true, false), (11, true, true)]
    {
        let mut run = Run::after((0..n_markers).map(|_| marker("m")).collect());
        run.admit("u").unwrap();
        run.start_task();
        let messages = vec![rejection("u")];
        let completion = CompleteWorkflowTask { messages, discards_events, ..run.completion(Vec::new()) };
        run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        assert_eq!(run.history().len() > 4 + n_markers, leaves_trace, "{n_markers} {discards_events}");
    }
}

#[test]
fn a_signal_records_the_pending_task_first() {
    let mut run = Run::idle();
    run.admit("u").unwrap();
    run.later(SECOND).signal("s").unwrap();
    assert_eq!(run.history_from(5), ["WorkflowTaskScheduled", "WorkflowExecutionSignaled"]);
    assert!(!run.scheduled().is_speculative);
    assert_eq!(run.start_task().messages.len(), 1);
}

#[test]
fn a_signal_during_the_task_records_it_and_waits() {
    let mut run = Run::updating("u");
    run.signal("s").unwrap();
    assert_eq!(run.history_from(5), ["WorkflowTaskScheduled", "WorkflowTaskStarted"]);
    run.answer(vec![rejection("u")]).unwrap();
    assert_eq!(run.history_from(7), ["WorkflowTaskCompleted", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]);
}

#[test]
fn a_task_that_is_recorded_late_names_its_worker_only_if_the_worker_ends_it() {
    type Change = fn(&mut Run);
    let cases: [(&str, &str, Change); 5] = [
        ("completed", "worker", |run| drop(run.answer(vec![acceptance("u")]).unwrap())),
        ("failed", "worker", Run::fail_task),
        ("signaled", "", |run| drop(run.signal("s").unwrap())),
        ("terminated", "history-service", |run| drop(run.terminate().unwrap())),
        ("timed out", "", |run| {
            while run.state.workflow_task.is_speculative() {
                run.fire_next_timer().unwrap();
            }
        }),
    ];
    for (case, expected, change) in cases {
        let mut run = Run::updating("u");
        change(&mut run);
        let Attributes::WorkflowTaskStartedEventAttributes(started) = run.event(6) else { panic!("{case}") };
        assert_eq!(started.identity, expected, "{case}");
    }
}

#[test]
fn nobody_takes_it_and_a_normal_task_follows() {
    let mut run = Run::idle();
    run.take_tasks();
    run.admit("u").unwrap();
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(5), ["WorkflowTaskScheduled", "WorkflowTaskTimedOut", "WorkflowTaskScheduled"]);
    assert!(!run.scheduled().is_speculative);
    assert_eq!(run.start_task().messages.len(), 1);
}

#[test]
fn a_timer_of_one_that_left_no_trace_spares_the_next() {
    let mut run = Run::idle();
    run.take_tasks();
    run.admit("u").unwrap();
    run.start_task();
    run.answer(vec![rejection("u")]).unwrap();
    run.later(4 * SECOND).admit("v").unwrap();
    // The timer of the first comes after one second more.
    run.fire_next_timer().unwrap();
    assert!(run.scheduled().is_speculative);
    assert_eq!(run.history().len(), 4);
}

#[test]
fn a_worker_that_takes_too_long_is_recorded() {
    let mut run = Run::idle();
    run.take_tasks();
    run.admit("u").unwrap();
    run.start_task();
    while run.state.workflow_task.is_speculative() {
        run.fire_next_timer().unwrap();
    }
    assert_eq!(run.history_from(5), ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskTimedOut"]);
    // The update comes again with the next attempt.
    assert_eq!(run.start_task().messages.len(), 1);
}

#[test]
fn a_worker_that_fails_is_recorded() {
    let mut run = Run::updating("u");
    run.fail_task();
    assert_eq!(run.history_from(5), ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskFailed"]);
    assert_eq!(run.start_task().messages.len(), 1);
}

#[test]
fn the_end_of_the_run_takes_it_back_or_records_it() {
    let mut run = Run::idle();
    run.admit("u").unwrap();
    run.terminate().unwrap();
    assert_eq!(run.history_from(5), ["WorkflowExecutionTerminated"]);
    let mut run = Run::updating("u");
    run.terminate().unwrap();
    assert_eq!(
        run.history_from(5),
        ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskFailed", "WorkflowExecutionTerminated"]
    );
}

#[test]
fn one_whose_update_was_forgotten_is_withdrawn() {
    let mut run = Run::idle();
    run.admit("u").unwrap();
    run.waiting.clear();
    let scheduled = run.scheduled().clone();
    let reply = run.input(Input::StartWorkflowTask(workflow::StartWorkflowTask {
        scheduled_event_id: scheduled.event_id,
        request_id: "poll".to_owned(),
        identity: "worker".to_owned(),
        task_queue: scheduled.task_queue,
        updates: Vec::new(),
        worker_version: None,
    }));
    assert!(matches!(reply, Ok(Reply::WorkflowTaskWithdrawn)));
    assert!(run.state.workflow_task.scheduled().is_none());
    run.admit("u").unwrap();
    assert!(run.scheduled().is_speculative);
}

#[test]
fn a_late_answer_is_not_taken_for_that_of_the_next_task() {
    let mut run = Run::updating("u");
    let late = CompleteWorkflowTask { messages: vec![rejection("u")], ..run.completion(Vec::new()) };
    run.input(Input::CompleteWorkflowTask(Box::new(late.clone()))).unwrap();
    run.later(SECOND).admit("v").unwrap();
    run.start_task();
    let refused = run.input(Input::CompleteWorkflowTask(Box::new(late))).unwrap_err();
    assert_eq!(refused, Rejection::WorkflowTaskNotFound);
}

#[test]
fn a_sticky_worker_has_its_own_patience_and_queue() {
    let mut run = Run::working();
    let completion = CompleteWorkflowTask { sticky: sticky(), ..run.completion(Vec::new()) };
    run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    run.admit("u").unwrap();
    assert_eq!(run.scheduled().task_queue, "sticky-1");
    run.signal("s").unwrap();
    let Attributes::WorkflowTaskScheduledEventAttributes(event) = run.event(5) else { panic!() };
    let queue = event.task_queue.as_ref().unwrap();
    assert_eq!((queue.name.as_str(), queue.kind()), ("sticky-1", TaskQueueKind::Sticky));
    assert_eq!(run.scheduled().task_queue, "sticky-1");
}

#[test]
fn the_first_task_of_a_run_that_was_put_off_is_not_lost() {
    let mut run = Run::started_as(Start { start_delay: Some(10 * SECOND), ..plain_start() });
    run.admit("u").unwrap();
    run.start_task();
    run.answer(vec![rejection("u")]).unwrap();
    assert_eq!(run.history(), ["WorkflowExecutionStarted"]);
    while run.history().len() == 1 {
        run.fire_next_timer().unwrap();
    }
    assert_eq!(run.history_from(2), ["WorkflowTaskScheduled"]);
    let mut run = Run::started_as(Start { start_delay: Some(SECOND), ..plain_start() });
    run.admit("u").unwrap();
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(2), ["WorkflowTaskScheduled"]);
    run.start_task();
    run.answer(vec![acceptance("u")]).unwrap();
    assert_eq!(run.history_from(5), ["WorkflowExecutionUpdateAccepted"]);
}
