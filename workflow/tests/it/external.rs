//! Signals and cancel requests to other workflows.

use proto::temporal::api::command::v1::{Command, SignalExternalWorkflowExecutionCommandAttributes};
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause as CancelFailedCause,
    SignalExternalWorkflowExecutionFailedCause as SignalFailedCause, WorkflowTaskFailedCause,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;
use workflow::{EventId, Input, Rejection, Reply, Task, TransferTask};

use crate::others::{answer, cancel, cancel_attributes, signal, signal_attributes, start_child};
use crate::run::{Run, payloads};

fn bad(command: Vec<Command>) -> (WorkflowTaskFailedCause, String) {
    let mut run = Run::working();
    let reply = run.try_complete_task(command).unwrap();
    let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
    (cause, message)
}

#[test]
fn a_command_sends_a_signal_to_another_workflow() {
    let run = Run::after(vec![signal(signal_attributes("other"))]);
    let Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(initiated) = run.event(5) else {
        panic!("no signal is sent")
    };
    assert_eq!((initiated.namespace.as_str(), initiated.signal_name.as_str()), ("", "go"));
    assert_eq!(initiated.namespace_id, Uuid::from_u128(100).to_string());
    assert_eq!((initiated.input.as_ref(), initiated.workflow_task_completed_event_id), (Some(&payloads("signal")), 4));
    let pending = run.state.external_signals.get(5).unwrap();
    assert_eq!(pending.request_id, format!("{}:5:7", run.state.key.run_id), "the same on every try");
    let wanted = TransferTask::ExternalSignal { initiated_event_id: EventId(5), version: 7 };
    assert!(run.transfers().contains(&&wanted));
}

#[test]
fn a_command_sends_a_cancel_request_to_another_workflow() {
    let run = Run::after(vec![cancel(cancel_attributes("other"))]);
    let Attributes::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(initiated) = run.event(5) else {
        panic!("no cancel request is sent")
    };
    assert_eq!((initiated.reason.as_str(), initiated.child_workflow_only), ("never mind", false));
    assert!(run.state.external_cancels.get(5).is_some());
    let wanted = TransferTask::ExternalCancel { initiated_event_id: EventId(5), version: 7 };
    assert!(run.transfers().contains(&&wanted));
}

#[test]
fn a_bad_signal_fails_the_workflow_task() {
    let at = |workflow_id: &str, run_id: &str| {
        Some(WorkflowExecution { workflow_id: workflow_id.to_owned(), run_id: run_id.to_owned() })
    };
    let good = signal_attributes("other");
    let cases = [
        (
            SignalExternalWorkflowExecutionCommandAttributes { execution: None, ..good.clone() },
            "Execution is not set on SignalExternalWorkflowExecutionCommand.",
        ),
        (
            SignalExternalWorkflowExecutionCommandAttributes { execution: at("", ""), ..good.clone() },
            "WorkflowId is not set on SignalExternalWorkflowExecutionCommand. Namespace= RunId= SignalName=go",
        ),
        (
            SignalExternalWorkflowExecutionCommandAttributes { execution: at("other", "x"), ..good.clone() },
            "Invalid RunId set on SignalExternalWorkflowExecutionCommand. \
             WorkflowId=other Namespace= RunId=x SignalName=go",
        ),
        (
            SignalExternalWorkflowExecutionCommandAttributes { signal_name: String::new(), ..good },
            "SignalName is not set on SignalExternalWorkflowExecutionCommand. WorkflowId=other Namespace= RunId=",
        ),
    ];
    for (attributes, reason) in cases {
        let (cause, message) = bad(vec![signal(attributes)]);
        assert_eq!(cause, WorkflowTaskFailedCause::BadSignalWorkflowExecutionAttributes);
        assert_eq!(message, format!("BadSignalWorkflowExecutionAttributes: {reason}"));
    }
}

#[test]
fn a_bad_cancel_request_fails_the_workflow_task() {
    let mut with_run = cancel_attributes("other");
    with_run.run_id = "x".to_owned();
    let cases = [
        (
            vec![cancel(cancel_attributes(""))],
            "WorkflowId is not set on RequestCancelExternalWorkflowExecutionCommand. Namespace= RunId=",
        ),
        (
            vec![cancel(with_run)],
            "Invalid RunId set on RequestCancelExternalWorkflowExecutionCommand. WorkflowId=other RunId=x Namespace=",
        ),
        (
            vec![start_child("other"), cancel(cancel_attributes("other"))],
            "Start and RequestCancel for child workflow is not allowed in same workflow task. \
             WorkflowId=other RunId= Namespace=",
        ),
    ];
    for (commands, reason) in cases {
        let (cause, message) = bad(commands);
        assert_eq!(cause, WorkflowTaskFailedCause::BadRequestCancelExternalWorkflowExecutionAttributes);
        assert_eq!(message, format!("BadRequestCancelExternalWorkflowExecutionAttributes: {reason}"));
    }
}

#[test]
fn there_are_only_so_many_pending_requests() {
    let cases = [
        (
            signal(signal_attributes("other")),
            WorkflowTaskFailedCause::PendingSignalsLimitExceeded,
            "PendingSignalsLimitExceeded: the number of pending signals to external workflows, 1, \
             has reached the per-workflow limit of 1",
        ),
        (
            cancel(cancel_attributes("other")),
            WorkflowTaskFailedCause::PendingRequestCancelLimitExceeded,
            "PendingRequestCancelLimitExceeded: the number of pending requests to cancel external workflows, 1, \
             has reached the per-workflow limit of 1",
        ),
    ];
    for (command, expected_cause, expected) in cases {
        let mut run = Run::working();
        run.facts.limits.pending_external_signals = 1;
        run.facts.limits.pending_external_cancels = 1;
        let reply = run.try_complete_task(vec![command.clone(), command]).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!((cause, message.as_str()), (expected_cause, expected));
    }
}

#[test]
fn a_run_hears_what_came_of_its_signal() {
    let mut run = Run::after(vec![signal(signal_attributes("other"))]);
    run.input(Input::ExternalSignaled(answer(5))).unwrap();
    assert_eq!(run.history_from(6), ["ExternalWorkflowExecutionSignaled", "WorkflowTaskScheduled"]);
    let Attributes::ExternalWorkflowExecutionSignaledEventAttributes(signaled) = run.event(6) else { panic!("lost") };
    assert_eq!((signaled.initiated_event_id, signaled.namespace.as_str()), (5, "here"));
    #[expect(deprecated, reason = "old workers send what they want to get back")]
    let control = &signaled.control;
    assert_eq!(control, "back");
    assert!(run.state.external_signals.is_empty());
    run.input(Input::ExternalSignaled(answer(5))).unwrap();
    assert_eq!(run.history_from(8), Vec::<String>::new(), "once");
    for cause in [
        SignalFailedCause::ExternalWorkflowExecutionNotFound,
        SignalFailedCause::NamespaceNotFound,
        SignalFailedCause::SignalCountLimitExceeded,
    ] {
        let mut run = Run::after(vec![signal(signal_attributes("other"))]);
        run.input(Input::ExternalSignalFailed(answer(5), cause)).unwrap();
        let Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(failed) = run.event(6) else {
            panic!("not failed")
        };
        assert_eq!((failed.cause(), failed.initiated_event_id), (cause, 5));
        assert!(run.state.external_signals.is_empty());
    }
}

#[test]
fn a_run_hears_what_came_of_its_cancel_request() {
    let mut run = Run::after(vec![cancel(cancel_attributes("other"))]);
    run.input(Input::ExternalCancelRequested(answer(5))).unwrap();
    assert_eq!(run.history_from(6), ["ExternalWorkflowExecutionCancelRequested", "WorkflowTaskScheduled"]);
    assert!(run.state.external_cancels.is_empty());
    for cause in [CancelFailedCause::ExternalWorkflowExecutionNotFound, CancelFailedCause::NamespaceNotFound] {
        let mut run = Run::after(vec![cancel(cancel_attributes("other"))]);
        run.input(Input::ExternalCancelFailed(answer(5), cause)).unwrap();
        let Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(failed) = run.event(6) else {
            panic!("not failed")
        };
        assert_eq!((failed.cause(), failed.initiated_event_id), (cause, 5));
    }
}

#[test]
fn answers_wait_for_the_task_in_flight_and_come_once() {
    let mut run = Run::after(vec![signal(signal_attributes("other")), cancel(cancel_attributes("other"))]);
    run.signal("").unwrap();
    run.start_task();
    for _ in 0..2 {
        run.input(Input::ExternalSignaled(answer(5))).unwrap();
        run.input(Input::ExternalCancelRequested(answer(6))).unwrap();
    }
    run.complete_task(Vec::new());
    let expected = [
        "WorkflowTaskCompleted",
        "ExternalWorkflowExecutionSignaled",
        "ExternalWorkflowExecutionCancelRequested",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(run.history_from(10), expected);
    run.terminate().unwrap();
    let late = run.input(Input::ExternalSignaled(answer(5)));
    assert_eq!(late.unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn what_is_sent_to_one_workflow_goes_one_after_the_other() {
    let mut run = Run::working();
    run.take_tasks();
    run.complete_task(vec![
        signal(signal_attributes("other")),
        cancel(cancel_attributes("other")),
        signal(signal_attributes("third")),
        signal(signal_attributes("other")),
    ]);
    let sent = |run: &mut Run| -> Vec<i64> {
        let ids = run.take_tasks().into_iter().filter_map(|task| match task {
            Task::Transfer(
                TransferTask::ExternalSignal { initiated_event_id, .. }
                | TransferTask::ExternalCancel { initiated_event_id, .. },
            ) => Some(initiated_event_id.0),
            Task::Transfer(_) | Task::Timer { .. } | Task::Visibility(_) => None,
        });
        ids.collect()
    };
    assert_eq!(sent(&mut run), [5, 7], "the third is not held up by the other");
    run.input(Input::ExternalSignaled(answer(5))).unwrap();
    assert_eq!(sent(&mut run), [6]);
    run.start_task();
    run.input(Input::ExternalCancelRequested(answer(6))).unwrap();
    assert_eq!(sent(&mut run), [8], "also while the answer waits to be recorded");
    run.input(Input::ExternalSignaled(answer(8))).unwrap();
    run.complete_task(vec![signal(signal_attributes("other"))]);
    assert_eq!(sent(&mut run).len(), 1, "one whose answer waits is not pending any more");
}
