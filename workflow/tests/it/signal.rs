//! Signals.

use workflow::{Input, LimitCause, Rejection, Start};

use crate::run::{Run, SECOND, complete_workflow, plain_start, signal};

#[test]
fn a_signal_schedules_a_workflow_task_unless_one_is_pending() {
    let mut run = Run::idle();
    run.signal("a").unwrap();
    run.signal("b").unwrap();
    let expected = ["WorkflowExecutionSignaled", "WorkflowTaskScheduled", "WorkflowExecutionSignaled"];
    assert_eq!(run.history_from(5), expected);
}

#[test]
fn a_signal_with_start_does_not_wait_for_the_first_workflow_task_but_a_plain_one_does() {
    let delayed = || Run::started_as(Start { start_delay: Some(30 * SECOND), ..plain_start() });
    let mut run = delayed();
    run.signal("a").unwrap();
    assert_eq!(run.history_from(2), ["WorkflowExecutionSignaled"]);
    run.input(Input::SignalAndBegin(signal("a"))).unwrap();
    assert_eq!(run.history_from(3), [""; 0], "the same request is no second signal");
    run.input(Input::SignalAndBegin(signal("b"))).unwrap();
    assert_eq!(run.history_from(3), ["WorkflowExecutionSignaled", "WorkflowTaskScheduled"]);
    run.fire_next_timer().unwrap();
    assert_eq!(run.history().len(), 4, "the first task's time comes, and it is there");
}

#[test]
fn a_repeated_request_is_not_a_second_signal() {
    let mut run = Run::working();
    run.signal("a").unwrap();
    run.signal("a").unwrap();
    assert_eq!(run.state.unrecorded.buffered_events.len(), 1, "nor while the first waits");
    run.complete_task(Vec::new());
    run.signal("a").unwrap();
    assert_eq!(run.state.n_signals, 1);
    run.signal("").unwrap();
    run.signal("").unwrap();
    assert_eq!(run.state.n_signals, 3, "without a request id every one counts");
}

#[test]
fn a_closed_run_takes_no_signal_but_knows_those_it_had() {
    let mut run = Run::started();
    run.signal("a").unwrap();
    run.work(vec![complete_workflow()]);
    assert!(run.signal("a").is_ok());
    assert_eq!(run.signal("b").unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn signals_are_limited_in_number_and_size() {
    let mut run = Run::working();
    run.facts.limits.signals = 2;
    run.signal("").unwrap();
    run.signal("").unwrap();
    let refused = run.signal("").unwrap_err();
    let message = "exceeded workflow execution limit for signal events".to_owned();
    assert_eq!(refused, Rejection::LimitExceeded { cause: LimitCause::Signals, message });
    run.facts.limits = workflow::Limits { blob_size: 3, ..workflow::Limits::default() };
    let refused = run.input(workflow::Input::Signal(signal("")));
    assert!(matches!(refused, Err(Rejection::LimitExceeded { cause: LimitCause::BlobSize, .. })));
}
