//! Child workflows, from the command to the end; and a run that is one.

use std::time::Duration;

use proto::temporal::api::command::v1::StartChildWorkflowExecutionCommandAttributes;
use proto::temporal::api::common::v1::{Header, RetryPolicy, WorkflowExecution};
use proto::temporal::api::enums::v1::{
    ParentClosePolicy, RetryState, StartChildWorkflowExecutionFailedCause, WorkflowIdReusePolicy,
    WorkflowTaskFailedCause,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;
use workflow::{ChildStarted, EventId, Input, Rejection, Reply, RunId, Sender, Task, TimerTask, TransferTask};

use crate::others::{
    CHILD_RUN, child_attributes, closed, completed, ends, parent, start, start_child, start_failed, started,
};
use crate::run::{Run, SECOND, complete_workflow, payloads, plain_start, signal, span};

/// A parent whose child was started, with nothing else to do.
fn with_child() -> Run {
    let mut run = Run::after(vec![start_child("parcel")]);
    run.input(started(5)).unwrap();
    run.work(Vec::new());
    run.take_tasks();
    run
}

#[test]
fn a_command_initiates_a_child_with_defaults() {
    let run = Run::after(vec![start_child("parcel")]);
    let Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(initiated) = run.event(5) else {
        panic!("no child is initiated")
    };
    assert_eq!((initiated.namespace.as_str(), initiated.workflow_id.as_str()), ("here", "parcel"));
    assert_eq!(initiated.namespace_id, Uuid::from_u128(100).to_string());
    assert_eq!(initiated.task_queue.as_ref().unwrap().name, "orders", "the parent's");
    assert_eq!(initiated.parent_close_policy(), ParentClosePolicy::Terminate);
    assert_eq!(initiated.workflow_id_reuse_policy(), WorkflowIdReusePolicy::AllowDuplicate);
    assert_eq!(initiated.workflow_execution_timeout, None);
    assert_eq!(initiated.workflow_run_timeout, span(Duration::ZERO));
    assert_eq!(initiated.workflow_task_timeout, span(10 * SECOND));
    assert_eq!(initiated.workflow_task_completed_event_id, 4);
    let child = run.state.children.get(5).unwrap();
    assert_eq!(child.create_request_id, format!("{}:5:7", run.state.key.run_id), "the same on every try");
    let wanted = TransferTask::StartChild { initiated_event_id: EventId(5), version: 7 };
    assert!(run.transfers().contains(&&wanted));
}

#[test]
fn a_child_in_another_namespace_is_found_by_its_name() {
    #[expect(deprecated, reason = "workers still name a namespace")]
    let attributes = StartChildWorkflowExecutionCommandAttributes {
        namespace: "elsewhere".to_owned(),
        ..child_attributes("parcel")
    };
    let run = Run::after(vec![start(attributes)]);
    let child = run.state.children.get(5).unwrap();
    assert_eq!((child.namespace.as_str(), child.namespace_id.0), ("elsewhere", Uuid::from_u128(200)));
}

#[test]
fn a_bad_child_fails_the_workflow_task() {
    let change = |change: fn(&mut StartChildWorkflowExecutionCommandAttributes)| {
        let mut attributes = child_attributes("parcel");
        change(&mut attributes);
        start(attributes)
    };
    let cases = [
        (
            change(|child| child.workflow_id.clear()),
            "Required field WorkflowId is not set on StartChildWorkflowExecutionCommand. WorkflowType=Parcel Namespace=here",
        ),
        (
            change(|child| child.workflow_type = None),
            "Required field WorkflowType is not set on StartChildWorkflowExecutionCommand. WorkflowId=parcel Namespace=here",
        ),
        (
            change(|child| child.workflow_run_timeout = Some(prost_types::Duration { seconds: -1, nanos: 0 })),
            "Invalid WorkflowRunTimeout on StartChildWorkflowExecutionCommand: negative duration. \
             WorkflowId=parcel WorkflowType=Parcel Namespace=here",
        ),
        (
            change(|child| child.cron_schedule = "often".to_owned()),
            "invalid CronSchedule on StartChildWorkflowExecutionCommand: invalid CronSchedule.. \
             WorkflowId=parcel WorkflowType=Parcel Namespace=here",
        ),
        (
            change(|child| {
                child.retry_policy = Some(RetryPolicy { maximum_attempts: -1, ..Default::default() });
            }),
            "invalid WorkflowRetryPolicy on StartChildWorkflowExecutionCommand: MaximumAttempts cannot be negative \
             on retry policy.. WorkflowId=parcel WorkflowType=Parcel Namespace=here",
        ),
    ];
    for (command, reason) in cases {
        let mut run = Run::working();
        let Reply::BadCommand { cause, message } = run.try_complete_task(vec![command]).unwrap() else {
            panic!("accepted where it should say {reason}")
        };
        assert_eq!(cause, WorkflowTaskFailedCause::BadStartChildExecutionAttributes);
        assert_eq!(message, format!("BadStartChildExecutionAttributes: {reason}"));
    }
}

#[test]
fn there_are_only_so_many_pending_children() {
    let mut run = Run::working();
    run.facts.limits.pending_children = 1;
    let reply = run.try_complete_task(vec![start_child("a"), start_child("b")]).unwrap();
    let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
    assert_eq!(cause, WorkflowTaskFailedCause::PendingChildWorkflowsLimitExceeded);
    let expected = "PendingChildWorkflowsLimitExceeded: the number of pending child workflow executions, 1, \
                    has reached the per-workflow limit of 1";
    assert_eq!(message, expected);
}

#[test]
fn a_parent_records_that_its_child_started() {
    let mut run = Run::after(vec![start_child("parcel")]);
    let header = Some(Header::default());
    let start = ChildStarted { initiated_event_id: EventId(5), run_id: CHILD_RUN, header: header.clone() };
    run.input(Input::ChildStarted(start)).unwrap();
    assert_eq!(run.history_from(6), ["ChildWorkflowExecutionStarted", "WorkflowTaskScheduled"]);
    let Attributes::ChildWorkflowExecutionStartedEventAttributes(event) = run.event(6) else { panic!("not started") };
    let execution = WorkflowExecution { workflow_id: "parcel".to_owned(), run_id: CHILD_RUN.to_string() };
    assert_eq!((event.initiated_event_id, event.workflow_execution.as_ref()), (5, Some(&execution)));
    assert_eq!((event.header.as_ref(), event.namespace.as_str()), (header.as_ref(), "here"));
    run.input(started(5)).unwrap();
    assert_eq!(run.history_from(8), Vec::<String>::new(), "the same news twice is no news");
    let other = ChildStarted { initiated_event_id: EventId(5), run_id: RunId(Uuid::from_u128(51)), header: None };
    assert_eq!(run.input(Input::ChildStarted(other)).unwrap_err(), Rejection::ChildNotFound);
}

#[test]
fn a_child_that_cannot_start_is_over() {
    let mut run = Run::after(vec![start_child("parcel")]);
    run.input(start_failed(5)).unwrap();
    assert_eq!(run.history_from(6), ["StartChildWorkflowExecutionFailed", "WorkflowTaskScheduled"]);
    let Attributes::StartChildWorkflowExecutionFailedEventAttributes(failed) = run.event(6) else { panic!("started") };
    assert_eq!(failed.cause(), StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists);
    assert_eq!((failed.initiated_event_id, failed.workflow_id.as_str()), (5, "parcel"));
    assert!(run.state.children.is_empty());
    assert_eq!(run.input(start_failed(5)).unwrap_err(), Rejection::ChildNotFound);
}

#[test]
fn a_parent_records_how_its_child_ended() {
    for (end, event) in ends() {
        let mut run = with_child();
        run.input(Input::ChildClosed(Box::new(closed("parcel", 5, end.clone())))).unwrap();
        assert_eq!(run.history_from(10), [event, "WorkflowTaskScheduled"]);
        assert!(run.state.children.is_empty());
        let again = run.input(Input::ChildClosed(Box::new(closed("parcel", 5, end))));
        assert_eq!(again.unwrap_err(), Rejection::ChildNotFound, "it ends once");
    }
}

#[test]
fn the_end_of_a_child_tells_what_came_of_it() {
    let mut run = with_child();
    run.input(Input::ChildClosed(Box::new(closed("parcel", 5, completed())))).unwrap();
    let Attributes::ChildWorkflowExecutionCompletedEventAttributes(end) = run.event(10) else { panic!("no end") };
    assert_eq!((end.initiated_event_id, end.started_event_id), (5, 6));
    assert_eq!(end.result, Some(payloads("delivered")));
    assert_eq!(end.workflow_execution.as_ref().unwrap().run_id, CHILD_RUN.to_string());
    assert_eq!(end.workflow_type.as_ref().unwrap().name, "Parcel");
    let mut run = with_child();
    run.input(Input::ChildClosed(Box::new(closed("parcel", 5, ends()[1].0.clone())))).unwrap();
    let Attributes::ChildWorkflowExecutionFailedEventAttributes(end) = run.event(10) else { panic!("no failure") };
    assert_eq!(end.retry_state(), RetryState::MaximumAttemptsReached);
    assert_eq!(end.failure.as_ref().unwrap().message, "lost");
}

#[test]
fn the_end_of_another_child_is_not_this_one_s() {
    let good = closed("parcel", 5, completed());
    let cases = [
        workflow::ChildClosed { initiated_version: 6, ..good.clone() },
        workflow::ChildClosed { first_run_id: RunId(Uuid::from_u128(51)), ..good.clone() },
        workflow::ChildClosed { initiated_event_id: EventId(4), ..good.clone() },
        closed("letter", 5, completed()),
    ];
    for case in cases {
        let mut run = with_child();
        assert_eq!(run.input(Input::ChildClosed(Box::new(case))).unwrap_err(), Rejection::ChildNotFound);
    }
}

#[test]
fn a_child_that_ended_before_its_start_was_recorded_has_both_recorded() {
    let mut run = Run::after(vec![start_child("parcel")]);
    run.input(Input::ChildClosed(Box::new(closed("parcel", 5, completed())))).unwrap();
    let expected = ["ChildWorkflowExecutionStarted", "ChildWorkflowExecutionCompleted", "WorkflowTaskScheduled"];
    assert_eq!(run.history_from(6), expected);
    let Attributes::ChildWorkflowExecutionCompletedEventAttributes(end) = run.event(7) else { panic!("no end") };
    assert_eq!(end.started_event_id, 6);
}

#[test]
fn news_of_a_child_wait_for_the_task_in_flight() {
    let mut run = Run::after(vec![start_child("parcel")]);
    run.signal("").unwrap();
    run.start_task();
    run.input(started(5)).unwrap();
    let (_, run_id) = run.state.pending_children().next().unwrap();
    assert_eq!(run_id, Some(CHILD_RUN), "it is known already");
    assert_eq!(run.input(start_failed(5)).unwrap_err(), Rejection::ChildNotFound);
    run.input(Input::ChildClosed(Box::new(closed("parcel", 5, completed())))).unwrap();
    assert!(run.state.pending_children().next().is_none());
    assert_eq!(run.input(started(5)).unwrap_err(), Rejection::ChildNotFound);
    run.signal("").unwrap();
    run.complete_task(Vec::new());
    let expected = [
        "WorkflowTaskCompleted",
        "ChildWorkflowExecutionStarted",
        "WorkflowExecutionSignaled",
        "ChildWorkflowExecutionCompleted",
        "WorkflowTaskScheduled",
    ];
    assert_eq!(run.history_from(9), expected);
    let Attributes::ChildWorkflowExecutionCompletedEventAttributes(end) = run.event(12) else { panic!("no end") };
    assert_eq!(end.started_event_id, 10, "wired when it was recorded");
}

fn close_task() -> Task {
    Task::Transfer(TransferTask::Close { version: 7 })
}

#[test]
fn a_run_with_children_asks_for_their_policies_when_it_closes() {
    let mut run = with_child();
    run.terminate().unwrap();
    assert!(run.take_tasks().contains(&close_task()));
    assert_eq!(run.state.children.len(), 1, "what is to be done to them must be known");
    let mut run = with_child();
    run.signal("").unwrap();
    run.work(vec![crate::run::continue_as_new(Default::default())]);
    assert!(run.take_tasks().contains(&close_task()), "also if another run follows: the children are not its");
    let mut run = with_child();
    run.input(Input::ChildClosed(Box::new(closed("parcel", 5, completed())))).unwrap();
    run.work(vec![complete_workflow()]);
    assert!(!run.take_tasks().contains(&close_task()), "nobody needs to hear of it");
}

/// A run that is a child, and has begun.
fn child() -> Run {
    let mut run = Run::started_as(workflow::Start { parent: Some(parent()), ..plain_start() });
    run.input(Input::ScheduleFirstTask).unwrap();
    run
}

#[test]
fn a_child_begins_when_its_parent_knows_of_it() {
    let mut run = Run::started_as(workflow::Start { parent: Some(parent()), ..plain_start() });
    assert_eq!(run.history(), ["WorkflowExecutionStarted"]);
    let Attributes::WorkflowExecutionStartedEventAttributes(first) = run.event(1) else { panic!("not started") };
    assert_eq!(first.parent_workflow_execution, Some(parent().execution));
    assert_eq!(first.root_workflow_execution, parent().root);
    assert_eq!((first.parent_workflow_namespace.as_str(), first.parent_initiated_event_id), ("here", 5));
    run.input(Input::ScheduleFirstTask).unwrap();
    run.input(Input::ScheduleFirstTask).unwrap();
    assert_eq!(run.history_from(2), ["WorkflowTaskScheduled"], "once");
    run.terminate().unwrap();
    assert_eq!(run.input(Input::ScheduleFirstTask).unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn a_child_with_a_schedule_waits_for_its_parent_and_its_moment() {
    let start = workflow::Start { parent: Some(parent()), cron_schedule: "@every 60s".to_owned(), ..plain_start() };
    let mut run = Run::started_as(start);
    let puts_off = |run: &Run| run.timers().iter().any(|(_, task)| matches!(task, TimerTask::FirstWorkflowTask { .. }));
    assert!(!puts_off(&run));
    run.input(Input::ScheduleFirstTask).unwrap();
    assert!(puts_off(&run));
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(2), ["WorkflowTaskScheduled"]);
}

#[test]
fn a_child_that_closes_reports_to_its_parent_unless_another_run_follows() {
    let mut run = child();
    run.work(vec![complete_workflow()]);
    assert!(run.take_tasks().contains(&close_task()));
    let mut run = child();
    run.work(vec![crate::run::continue_as_new(Default::default())]);
    assert!(!run.take_tasks().contains(&close_task()));
    let mut next = Run::born(*run.new_run.take().unwrap(), run.facts);
    assert_eq!(next.state.started.parent, Some(parent()));
    assert_eq!(next.history(), ["WorkflowExecutionStarted"], "put off for a moment, not for its parent");
    next.terminate().unwrap();
    assert!(next.take_tasks().contains(&close_task()));
}

#[test]
fn who_means_only_its_own_child_is_refused_by_others() {
    let sender = |execution| Some(Sender { execution, initiated_event_id: 3, child_only: true });
    let stranger = WorkflowExecution { workflow_id: "stranger".to_owned(), run_id: Uuid::from_u128(9).to_string() };
    let ask = |sender: Option<Sender>| {
        let cancel = workflow::RequestCancel {
            reason: String::new(),
            identity: String::new(),
            request_id: String::new(),
            first_run_id: None,
            links: Vec::new(),
            sender: sender.clone(),
        };
        let terminate = workflow::Terminate {
            reason: String::new(),
            details: None,
            identity: String::new(),
            first_run_id: None,
            links: Vec::new(),
            sender: sender.clone(),
        };
        let signal = workflow::Signal { sender, ..signal("s") };
        [Input::Signal(signal), Input::RequestCancel(cancel), Input::Terminate(terminate)]
    };
    let mut run = child();
    for input in ask(sender(stranger)) {
        assert_eq!(run.input(input).unwrap_err(), Rejection::OtherParent);
    }
    for input in ask(sender(parent().execution)) {
        run.input(input).unwrap();
    }
    let Attributes::WorkflowExecutionSignaledEventAttributes(signaled) = run.event(3) else { panic!("no signal") };
    assert_eq!(signaled.external_workflow_execution, Some(parent().execution));
    let Attributes::WorkflowExecutionCancelRequestedEventAttributes(cancel) = run.event(4) else { panic!("no cancel") };
    assert_eq!(cancel.external_workflow_execution, Some(parent().execution));
    assert_eq!(cancel.external_initiated_event_id, 3);
}
