//! Starting: what a run begins as, and whether it may.

use std::time::Duration;

use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::{ContinueAsNewInitiator, WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use proto::temporal::api::history::v1::WorkflowExecutionStartedEventAttributes;
use proto::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;
use workflow::{
    CurrentRun, EventId, Input, NamespaceId, Parent, Rejection, RequestCancel, RunId, StartDecision, StartPolicy,
    Status, TimerTask, Timestamp, TransferTask, decide_start,
};

use crate::run::{Run, SECOND, facts, key, plain_start, signal, span};

fn first_event(run: &Run) -> &WorkflowExecutionStartedEventAttributes {
    let Attributes::WorkflowExecutionStartedEventAttributes(first) = run.event(1) else { panic!("not a start") };
    first
}

#[test]
fn a_run_begins_with_its_start_and_a_workflow_task() {
    let run = Run::started();
    assert_eq!(run.history(), ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]);
    assert_eq!(run.batches.len(), 1, "both are written at once");
    let first = first_event(&run);
    assert_eq!(first.attempt, 1);
    assert_eq!(first.first_execution_run_id, key().run_id.to_string());
    assert_eq!(first.original_execution_run_id, key().run_id.to_string());
    assert_eq!(first.workflow_id, "order-1");
    assert_eq!(first.workflow_task_timeout, span(10 * SECOND));
    assert_eq!(first.workflow_run_timeout, None, "what nobody set is left out");
    assert_eq!(first.first_workflow_task_backoff, span(Duration::ZERO));
    assert_eq!(first.initiator(), ContinueAsNewInitiator::Unspecified);
    let expected = TransferTask::WorkflowTask {
        task_queue: "orders".to_owned(),
        sticky: None,
        scheduled_event_id: EventId(2),
        attempt: 1,
        version: 7,
    };
    assert_eq!(run.transfers(), [&expected]);
    assert_eq!(run.state.unrecorded.start_request_id, "start-1");
}

#[test]
fn a_signal_with_start_stands_before_the_first_workflow_task() {
    let mut start = plain_start();
    start.signal = Some(signal("s-1"));
    let mut run = Run::started_as(start);
    assert_eq!(run.history(), ["WorkflowExecutionStarted", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]);
    run.signal("s-1").unwrap();
    assert_eq!(run.state.n_signals, 1, "the same request is not a second signal");
}

#[test]
fn timeouts_are_capped_and_filled_in() {
    // (execution, run, task) given → (run, task) recorded, in seconds; zero is none.
    let cases = [
        ((0, 0, 0), (0, 10)),
        ((60, 0, 0), (60, 10)),
        ((60, 90, 0), (60, 10)),
        ((60, 5, 0), (5, 5)),
        ((0, 5, 8), (5, 5)),
        ((0, 0, 500), (0, 120)),
    ];
    for ((execution, of_run, task), (expected_run, expected_task)) in cases {
        let given = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        let mut start = plain_start();
        start.execution_timeout = given(execution);
        start.run_timeout = given(of_run);
        start.task_timeout = Duration::from_secs(task);
        let run = Run::started_as(start);
        let first = first_event(&run);
        assert_eq!(first.workflow_run_timeout, given(expected_run).and_then(span));
        assert_eq!(first.workflow_task_timeout, span(Duration::from_secs(expected_task)));
        let expires_at = given(expected_run).map(|timeout| run.facts.now + timeout);
        assert_eq!(run.state.started.run_expires_at, expires_at);
        let timer = run.timers().into_iter().map(|(at, _)| at).next();
        assert_eq!(timer, expires_at, "a run that can time out has a timer");
    }
}

#[test]
fn a_delayed_run_begins_when_its_time_has_come() {
    let mut start = plain_start();
    start.start_delay = Some(30 * SECOND);
    let mut run = Run::started_as(start);
    assert_eq!(run.history(), ["WorkflowExecutionStarted"]);
    run.signal("").unwrap();
    assert_eq!(run.history_from(2), ["WorkflowExecutionSignaled"], "a signal does not begin it");
    let early = run.timers()[0].1.clone();
    run.input(Input::Due(early)).unwrap();
    assert_eq!(run.history_from(2), ["WorkflowExecutionSignaled"], "a timer that comes early does not either");
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(3), ["WorkflowTaskScheduled"]);
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(4), Vec::<String>::new(), "it begins once");
}

#[test]
fn a_cancel_request_begins_a_delayed_run() {
    let mut start = plain_start();
    start.start_delay = Some(30 * SECOND);
    let mut run = Run::started_as(start);
    let request = RequestCancel {
        reason: String::new(),
        identity: String::new(),
        request_id: "c".to_owned(),
        first_run_id: None,
        links: Vec::new(),
        sender: None,
    };
    run.input(Input::RequestCancel(request)).unwrap();
    assert_eq!(run.history_from(2), ["WorkflowExecutionCancelRequested", "WorkflowTaskScheduled"]);
}

#[test]
fn a_cron_run_waits_for_its_first_time() {
    let mut start = plain_start();
    start.cron_schedule = "@every 90s".to_owned();
    let run = Run::started_as(start);
    assert_eq!(run.history(), ["WorkflowExecutionStarted"]);
    assert_eq!(first_event(&run).initiator(), ContinueAsNewInitiator::CronSchedule);
    assert_eq!(run.timers(), [(run.facts.now + 90 * SECOND, &TimerTask::FirstWorkflowTask { version: 7 })]);
    let mut start = plain_start();
    start.cron_schedule = "now and then".to_owned();
    let refused = workflow::start(key(), start, None, &facts()).unwrap_err();
    assert_eq!(refused, Rejection::InvalidArgument("invalid CronSchedule.".to_owned()));
}

#[test]
fn a_child_waits_for_its_parent() {
    let mut start = plain_start();
    let root = WorkflowExecution { workflow_id: "root".to_owned(), run_id: Uuid::from_u128(8).to_string() };
    start.parent = Some(Parent {
        namespace: "default".to_owned(),
        namespace_id: NamespaceId(Uuid::from_u128(100)),
        execution: WorkflowExecution { workflow_id: "parent".to_owned(), run_id: Uuid::from_u128(9).to_string() },
        initiated_event_id: EventId(5),
        initiated_version: 7,
        root: Some(root.clone()),
    });
    let run = Run::started_as(start);
    assert_eq!(run.history(), ["WorkflowExecutionStarted"]);
    assert_eq!(first_event(&run).root_workflow_execution, Some(root));
}

#[test]
fn policies_decide_whether_a_run_may_start_beside_another() {
    use StartDecision::{AlreadyStarted, Create, JoinedBefore, SameRequest, TerminateAndCreate, UseExisting};
    use WorkflowIdConflictPolicy as Conflict;
    use WorkflowIdReusePolicy as Reuse;
    let run_id = RunId(Uuid::from_u128(5));
    let long_ago = workflow::Timestamp(0);
    let refused =
        |message: &str| AlreadyStarted { message: message.to_owned(), run_id, start_request_id: "first".to_owned() };
    let running = format!("Workflow execution is already running. WorkflowId: w, RunId: {run_id}.");
    let finished = format!(
        "Workflow execution already finished. WorkflowId: w, RunId: {run_id}. Workflow Id reuse policy: reject duplicate workflow Id."
    );
    let succeeded = format!(
        "Workflow execution already finished successfully. WorkflowId: w, RunId: {run_id}. Workflow Id reuse policy: allow duplicate workflow Id if last run failed."
    );
    #[expect(deprecated, reason = "old clients send the old policy")]
    let terminate_if_running = Reuse::TerminateIfRunning;
    let cases = [
        (Status::Running, Reuse::AllowDuplicate, Conflict::Unspecified, refused(&running)),
        (Status::Running, Reuse::RejectDuplicate, Conflict::Fail, refused(&running)),
        (Status::Running, Reuse::AllowDuplicate, Conflict::UseExisting, UseExisting(run_id)),
        (Status::Running, Reuse::AllowDuplicate, Conflict::TerminateExisting, TerminateAndCreate(run_id)),
        (Status::Running, terminate_if_running, Conflict::Unspecified, TerminateAndCreate(run_id)),
        (Status::Completed, terminate_if_running, Conflict::Unspecified, Create),
        (Status::Completed, Reuse::Unspecified, Conflict::Unspecified, Create),
        (Status::Completed, Reuse::AllowDuplicate, Conflict::Fail, Create),
        (Status::Completed, Reuse::RejectDuplicate, Conflict::Fail, refused(&finished)),
        (Status::Completed, Reuse::AllowDuplicateFailedOnly, Conflict::Fail, refused(&succeeded)),
        (Status::ContinuedAsNew, Reuse::AllowDuplicateFailedOnly, Conflict::Fail, refused(&succeeded)),
        (Status::Failed, Reuse::AllowDuplicateFailedOnly, Conflict::Fail, Create),
        (Status::Canceled, Reuse::AllowDuplicateFailedOnly, Conflict::Fail, Create),
        (Status::Terminated, Reuse::AllowDuplicateFailedOnly, Conflict::Fail, Create),
        (Status::TimedOut, Reuse::AllowDuplicateFailedOnly, Conflict::Fail, Create),
        (Status::TimedOut, Reuse::RejectDuplicate, Conflict::Fail, refused(&finished)),
    ];
    for (status, reuse, conflict, expected) in cases {
        let (request_id, joined_request_ids) = ("first".to_owned(), vec!["joined".to_owned()]);
        let current = CurrentRun { run_id, status, started_at: long_ago, request_id, joined_request_ids, version: 7 };
        let policy = StartPolicy { workflow_id: "w", request_id: "second", reuse, conflict };
        assert_eq!(decide_start(Some(&current), policy), expected, "{status:?} {reuse:?} {conflict:?}");
        let same = StartPolicy { request_id: "first", ..policy };
        assert_eq!(decide_start(Some(&current), same), SameRequest(run_id));
        let joined = StartPolicy { request_id: "joined", ..policy };
        assert_eq!(decide_start(Some(&current), joined), JoinedBefore(run_id), "{status:?} {reuse:?} {conflict:?}");
        assert_eq!(decide_start(None, policy), Create);
    }
}

#[test]
fn the_id_of_a_run_tells_the_millisecond_of_its_start_and_an_older_id_tells_nothing() {
    let run_id = RunId::new(Timestamp(1_700_000_000_123_456_789), &[0xff; 10]);
    assert_eq!(run_id.0.get_version_num(), 7);
    let (first, last) = (Timestamp(1_700_000_000_123_000_000), Timestamp(1_700_000_000_123_999_999));
    assert_eq!(run_id.started_within(), Some(first..=last));
    assert_eq!(RunId::new(first, &[0; 10]).started_within(), RunId::new(last, &[1; 10]).started_within());
    assert_ne!(RunId::new(first, &[0; 10]), RunId::new(first, &[1; 10]));
    assert_eq!(RunId(uuid::Builder::from_random_bytes([7; 16]).into_uuid()).started_within(), None);
}
