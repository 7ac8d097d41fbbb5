//! The end of a run.

use proto::temporal::api::enums::v1::RetryState;
use proto::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;
use workflow::{
    EventId, Input, Rejection, Reply, RequestCancel, RunId, Start, Status, Terminate, TimerTask, TransferTask,
    WorkflowTask,
};

use crate::run::{
    Run, SECOND, cancel_workflow, complete_workflow, continue_as_new, fail_workflow, failure, plain_start,
    schedule_activity,
};

fn request_cancel(request_id: &str) -> Input {
    Input::RequestCancel(RequestCancel {
        reason: "never mind".to_owned(),
        identity: "client".to_owned(),
        request_id: request_id.to_owned(),
        first_run_id: None,
        links: Vec::new(),
        sender: None,
    })
}

#[test]
fn a_run_closes_by_its_own_command() {
    let cases = [
        (complete_workflow(), Status::Completed, "WorkflowExecutionCompleted"),
        (fail_workflow(failure("boom")), Status::Failed, "WorkflowExecutionFailed"),
        (cancel_workflow(), Status::Canceled, "WorkflowExecutionCanceled"),
    ];
    for (command, status, event) in cases {
        let run = Run::after(vec![command]);
        assert_eq!(run.state.status, status);
        assert_eq!(run.history_from(5), [event]);
        let closed = run.state.closed.as_ref().unwrap();
        assert_eq!((closed.event_id.0, closed.new_run_id), (5, None));
        assert!(run.new_run.is_none());
    }
}

#[test]
fn a_run_is_asked_to_cancel_once() {
    let mut run = Run::idle();
    run.input(request_cancel("c-1")).unwrap();
    assert_eq!(run.history_from(5), ["WorkflowExecutionCancelRequested", "WorkflowTaskScheduled"]);
    run.input(request_cancel("c-1")).unwrap();
    run.input(request_cancel("c-2")).unwrap();
    assert_eq!(run.history_from(7), Vec::<String>::new());
    let mut run = Run::working();
    run.input(request_cancel("c-1")).unwrap();
    run.input(request_cancel("c-2")).unwrap();
    assert_eq!(run.state.unrecorded.buffered_events.len(), 1, "also while the request waits");
    run.complete_task(Vec::new());
    run.work(vec![cancel_workflow()]);
    assert!(run.input(request_cancel("c-3")).is_ok(), "one that is over counts as canceled");
}

#[test]
fn a_run_is_terminated_whatever_it_does() {
    for (mut run, expected) in [
        (Run::idle(), vec!["WorkflowExecutionTerminated"]),
        (Run::working(), vec!["WorkflowTaskFailed", "WorkflowExecutionTerminated"]),
        (Run::after(vec![schedule_activity("a")]), vec!["ActivityTaskScheduled", "WorkflowExecutionTerminated"]),
    ] {
        let from = if run.state.workflow_task == WorkflowTask::None { 5 } else { 4 };
        run.terminate().unwrap();
        assert_eq!(run.history_from(from), expected);
        assert_eq!(run.state.status, Status::Terminated);
        assert_eq!(run.terminate().unwrap_err(), Rejection::ExecutionClosed);
    }
}

#[test]
fn a_request_for_another_chain_is_refused() {
    let mut run = Run::idle();
    let other = Some(RunId(Uuid::from_u128(99)));
    let terminate = Terminate {
        reason: String::new(),
        details: None,
        identity: String::new(),
        first_run_id: other,
        links: Vec::new(),
        sender: None,
    };
    let refused = run.input(Input::Terminate(terminate)).unwrap_err();
    assert!(matches!(refused, Rejection::OtherChain { .. }));
    assert_eq!(refused.to_string(), "workflow execution not found");
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let mut start = plain_start();
    start.run_timeout = Some(60 * SECOND);
    let mut run = Run::started_as(start);
    run.start_task();
    run.later(59 * SECOND).input(Input::Due(TimerTask::RunTimeout { version: 7 })).unwrap();
    assert!(run.state.is_running(), "not before");
    run.later(SECOND).input(Input::Due(TimerTask::RunTimeout { version: 7 })).unwrap();
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTimedOut"]);
    let Attributes::WorkflowExecutionTimedOutEventAttributes(end) = run.event(5) else { panic!("not timed out") };
    assert_eq!((end.retry_state(), end.new_execution_run_id.as_str()), (RetryState::RetryPolicyNotSet, ""));
}

/// Both timers are due, and nothing says which of them is looked at first.
#[test]
fn a_workflow_task_does_not_time_out_once_its_run_has() {
    let mut start = plain_start();
    start.run_timeout = Some(3 * SECOND);
    let mut run = Run::started_as(start);
    run.later(SECOND).start_task();
    let timeout = TimerTask::WorkflowTaskStartToClose { scheduled_event_id: EventId(2), attempt: 1, version: 7 };
    run.later(10 * SECOND).input(Input::Due(timeout)).unwrap();
    assert_eq!(run.history_from(4), Vec::<String>::new());
    run.input(Input::Due(TimerTask::RunTimeout { version: 7 })).unwrap();
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTimedOut"]);
}

#[test]
fn a_closed_run_hears_nothing_any_more() {
    let mut run = Run::after(vec![schedule_activity("a"), complete_workflow()]);
    let answer = run.start_activity(5).unwrap_err();
    assert_eq!(answer, Rejection::ExecutionClosed);
    assert_eq!(run.input(Input::ResetSticky).unwrap_err(), Rejection::ExecutionClosed);
    for (_, task) in run.timers().into_iter().map(|(at, task)| (at, task.clone())).collect::<Vec<_>>() {
        assert!(matches!(run.input(Input::Due(task)), Ok(Reply::Done)));
    }
    let completion = workflow::CompleteWorkflowTask {
        task: workflow::TaskRef {
            scheduled_event_id: workflow::EventId(2),
            attempt: None,
            started_event_id: None,
            started_at: None,
        },
        ..Run::working().completion(Vec::new())
    };
    let answer = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap_err();
    assert_eq!(answer, Rejection::WorkflowTaskNotFound);
    assert_eq!(run.history_from(7), Vec::<String>::new());
}

/// The moment from which on a run is kept no more.
fn kept_until(run: &Run) -> Option<workflow::Timestamp> {
    let mut timers = run.timers().into_iter();
    timers.find(|(_, task)| matches!(task, TimerTask::Retention { .. })).map(|(at, _)| at)
}

#[test]
fn a_run_is_kept_for_a_while_once_it_is_closed_however_that_came() {
    let mut timed_out = Run::started_as(Start { run_timeout: Some(60 * SECOND), ..plain_start() });
    timed_out.later(60 * SECOND).input(Input::Due(TimerTask::RunTimeout { version: 7 })).unwrap();
    let mut terminated = Run::working();
    terminated.terminate().unwrap();
    let continued = Run::after(vec![continue_as_new(Default::default())]);
    for run in [Run::after(vec![complete_workflow()]), timed_out, terminated, continued] {
        let closed_at = run.state.closed.as_ref().unwrap().at;
        let until = kept_until(&run).unwrap();
        assert!(until >= closed_at + run.facts.retention, "never early");
        assert!(until < closed_at + run.facts.retention + 30 * 60 * SECOND, "nor much later");
    }
    assert_eq!(kept_until(&Run::idle()), None, "an open run is kept");
}

#[test]
fn a_run_that_is_to_go_is_closed_and_deleted() {
    let mut open = Run::working();
    open.input(Input::Delete).unwrap();
    assert_eq!(open.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTerminated"]);
    let Attributes::WorkflowExecutionTerminatedEventAttributes(end) = open.event(5) else { panic!("not terminated") };
    assert_eq!((end.reason.as_str(), end.identity.as_str()), ("Delete workflow execution", "history-service"));
    assert_eq!(kept_until(&open), None, "it goes at once");
    let mut closed = Run::after(vec![complete_workflow()]);
    closed.input(Input::Delete).unwrap();
    assert_eq!(closed.history_from(6), Vec::<String>::new());
    let mut followed = Run::after(vec![continue_as_new(Default::default())]);
    followed.input(Input::Delete).unwrap();
    for run in [open, closed, followed] {
        assert_eq!(run.transfers().last(), Some(&&TransferTask::Delete { version: 7 }));
    }
}
