//! Resetting a run over gRPC: a worker that the test plays, and what clients see of the two runs.

use std::time::Duration;

use bytes::Bytes;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    Command, CompleteWorkflowExecutionCommandAttributes, ContinueAsNewWorkflowExecutionCommandAttributes,
    StartTimerCommandAttributes,
};
use proto::temporal::api::common::v1::{Priority, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{CommandType, EventType, ResetReapplyExcludeType, WorkflowExecutionStatus};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflow::v1::post_reset_operation::{SignalWorkflow, UpdateWorkflowOptions, Variant};
use proto::temporal::api::workflow::v1::{PostResetOperation, WorkflowExecutionOptions};
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::given::{Given, NAMESPACE, a_node, a_node_in, refused, within};

const ID: &str = "redone";

fn execution(run_id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: ID.into(), run_id: run_id.into() })
}

fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: "redone".into(), ..Default::default() })
}

fn start_request() -> public::StartWorkflowExecutionRequest {
    public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "redone".into() }),
        task_queue: queue(),
        ..Default::default()
    }
}

async fn start(given: &Given) -> String {
    given.client().start_workflow_execution(start_request()).await.expect("the start is granted").into_inner().run_id
}

/// Takes the next workflow task.
async fn poll(given: &Given) -> public::PollWorkflowTaskQueueResponse {
    let request = public::PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: queue(),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = given.client().poll_workflow_task_queue(within(Duration::from_secs(20), request)).await;
    let task = task.expect("the poll is answered").into_inner();
    assert!(!task.task_token.is_empty(), "there is a task");
    task
}

async fn complete(given: &Given, task_token: Bytes, commands: Vec<Command>) {
    let request = public::RespondWorkflowTaskCompletedRequest { task_token, commands, ..Default::default() };
    given.client().respond_workflow_task_completed(request).await.expect("the task is completed");
}

async fn work(given: &Given, commands: Vec<Command>) {
    let task = poll(given).await;
    complete(given, task.task_token, commands).await;
}

fn timer() -> Command {
    let attributes = StartTimerCommandAttributes {
        timer_id: "t".into(),
        start_to_fire_timeout: Some(prost_types::Duration { seconds: 3600, nanos: 0 }),
    };
    Command {
        command_type: CommandType::StartTimer.into(),
        attributes: Some(CommandAttributes::StartTimerCommandAttributes(attributes)),
        ..Default::default()
    }
}

fn finish() -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes::default();
    Command {
        command_type: CommandType::CompleteWorkflowExecution.into(),
        attributes: Some(CommandAttributes::CompleteWorkflowExecutionCommandAttributes(attributes)),
        ..Default::default()
    }
}

fn continue_as_new() -> Command {
    let attributes = ContinueAsNewWorkflowExecutionCommandAttributes::default();
    Command {
        command_type: CommandType::ContinueAsNewWorkflowExecution.into(),
        attributes: Some(CommandAttributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes)),
        ..Default::default()
    }
}

async fn signal(given: &Given, name: &str) {
    let request = public::SignalWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(""),
        signal_name: name.into(),
        ..Default::default()
    };
    given.client().signal_workflow_execution(request).await.expect("the signal is granted");
}

fn reset_to(run_id: &str, event_id: i64, request_id: &str) -> public::ResetWorkflowExecutionRequest {
    public::ResetWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(run_id),
        workflow_task_finish_event_id: event_id,
        reason: "bad deploy".into(),
        request_id: request_id.into(),
        ..Default::default()
    }
}

async fn reset(given: &Given, request: public::ResetWorkflowExecutionRequest) -> Result<String, Status> {
    given.client().reset_workflow_execution(request).await.map(|response| response.into_inner().run_id)
}

async fn history(given: &Given, run_id: &str) -> Vec<HistoryEvent> {
    let request = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: execution(run_id),
        ..Default::default()
    };
    let page = given.client().get_workflow_execution_history(request).await.expect("a page").into_inner();
    page.history.unwrap_or_default().events
}

fn kinds(events: &[HistoryEvent]) -> Vec<EventType> {
    events.iter().map(HistoryEvent::event_type).collect()
}

fn signals(events: &[HistoryEvent]) -> Vec<&str> {
    let names = events.iter().filter_map(|event| {
        let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) = &event.attributes else { return None };
        Some(signal.signal_name.as_str())
    });
    names.collect()
}

async fn describe(given: &Given, run_id: &str) -> public::DescribeWorkflowExecutionResponse {
    let request =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution(run_id) };
    given.client().describe_workflow_execution(request).await.expect("the run is there").into_inner()
}

/// A run whose first workflow task started a timer, and whose second one completed as event 8.
async fn a_base(given: &Given) -> String {
    let base = start(given).await;
    work(given, vec![timer()]).await;
    signal(given, "before").await;
    work(given, Vec::new()).await;
    base
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_run_is_reset_and_goes_on_as_another() {
    let given = a_node().await;
    let base = a_base(&given).await;
    let held = poll_after_signal(&given, "after").await;
    // It waits for the workflow task that the worker has.
    signal(&given, "late").await;
    let new = reset(&given, reset_to("", 9, "r-1")).await.expect("the reset is granted");
    assert_eq!(reset(&given, reset_to(&base, 9, "r-1")).await.expect("it is the same request"), new);

    let (old_events, new_events) = (history(&given, &base).await, history(&given, &new).await);
    assert_eq!(old_events[..8], new_events[..8]);
    use EventType as E;
    assert_eq!(
        kinds(&new_events[8..]),
        [E::WorkflowTaskFailed, E::WorkflowExecutionSignaled, E::WorkflowExecutionSignaled, E::WorkflowTaskScheduled]
    );
    assert_eq!(signals(&new_events), ["before", "after", "late"]);
    let Some(Attributes::WorkflowExecutionTerminatedEventAttributes(end)) =
        old_events.last().and_then(|event| event.attributes.clone())
    else {
        panic!("the base is not terminated: {:?}", kinds(&old_events))
    };
    assert_eq!((end.reason.as_str(), end.identity.as_str()), ("bad deploy", "history-resetter"));

    let (old, now) = (describe(&given, &base).await, describe(&given, "").await);
    let extended = now.workflow_extended_info.expect("more is known of it");
    assert_eq!(old.workflow_extended_info.expect("more is known of it").reset_run_id, new);
    assert_eq!(extended.original_start_time, old_events[0].event_time);
    let info = now.workflow_execution_info.expect("it is described");
    assert_eq!((info.execution.clone(), info.first_run_id.as_str()), (execution(&new), base.as_str()));
    assert_eq!((info.status(), info.start_time), (WorkflowExecutionStatus::Running, extended.last_reset_time));
    assert_eq!(info.auto_reset_points.expect("a task completed").points[0].first_workflow_task_completed_id, 4);

    let late = public::RespondWorkflowTaskCompletedRequest { task_token: held.task_token, ..Default::default() };
    assert_eq!(
        given.client().respond_workflow_task_completed(late).await.expect_err("too late").code(),
        Code::NotFound
    );
    work(&given, vec![finish()]).await;
    assert_eq!(history(&given, &new).await.last().map(HistoryEvent::event_type), Some(E::WorkflowExecutionCompleted));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_repeated_after_a_reset_finds_the_run_of_the_reset() {
    let given = a_node().await;
    let again = public::StartWorkflowExecutionRequest { request_id: "s-1".into(), ..start_request() };
    let start = async |request| given.client().start_workflow_execution(request).await;
    let base = start(again.clone()).await.expect("a start").into_inner().run_id;
    work(&given, vec![finish()]).await;
    let new = reset(&given, reset_to(&base, 4, "r-1")).await.expect("the reset is granted");
    for _ in ["open", "closed"] {
        let found = start(again.clone()).await.expect("it is the same request").into_inner();
        assert_eq!((found.run_id.as_str(), found.first_execution_run_id.as_str()), (new.as_str(), base.as_str()));
        if describe(&given, "").await.workflow_execution_info.expect("a run").status()
            == WorkflowExecutionStatus::Running
        {
            let other = public::StartWorkflowExecutionRequest { request_id: "r-1".into(), ..start_request() };
            let status = start(other).await.expect_err("the reset's request is no start's");
            assert_eq!(status.code(), Code::AlreadyExists);
            work(&given, vec![finish()]).await;
        }
    }
    given.stop().await;
}

async fn poll_after_signal(given: &Given, name: &str) -> public::PollWorkflowTaskQueueResponse {
    signal(given, name).await;
    poll(given).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_run_is_reset_with_what_the_runs_after_it_heard() {
    let given = a_node().await;
    let base = a_base(&given).await;
    signal(&given, "one").await;
    work(&given, vec![continue_as_new()]).await;
    signal(&given, "two").await;
    let second = describe(&given, "").await.workflow_execution_info.and_then(|info| info.execution).expect("a run");
    assert_ne!(second.run_id, base);
    let without = public::ResetWorkflowExecutionRequest {
        reset_reapply_exclude_types: vec![ResetReapplyExcludeType::Signal.into()],
        ..reset_to(&base, 9, "r-1")
    };
    let third = reset(&given, without).await.expect("the reset is granted");
    assert_eq!(signals(&history(&given, &third).await), ["before"]);
    let ended = describe(&given, &second.run_id).await.workflow_execution_info.expect("it is described");
    assert_eq!(ended.status(), WorkflowExecutionStatus::Terminated, "one run of an id is open");
    let fourth = reset(&given, reset_to(&base, 9, "r-2")).await.expect("the reset is granted");
    assert_eq!(signals(&history(&given, &fourth).await), ["before", "one", "two"]);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_run_keeps_its_history_when_its_base_is_deleted() {
    let given = a_node().await;
    let base = a_base(&given).await;
    let first = reset(&given, reset_to("", 9, "r-1")).await.expect("the reset is granted");
    let second = reset(&given, reset_to(&first, 9, "r-2")).await.expect("a reset run can be reset");
    let expected = history(&given, &second).await;
    for gone in [&base, &first] {
        let delete =
            public::DeleteWorkflowExecutionRequest { namespace: NAMESPACE.into(), workflow_execution: execution(gone) };
        given.client().delete_workflow_execution(delete).await.expect("a closed run is deleted");
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: execution(gone),
            ..Default::default()
        };
        let is_there = || async { given.client().get_workflow_execution_history(request.clone()).await.is_ok() };
        let going = async { while is_there().await {} };
        tokio::time::timeout(Duration::from_secs(20), going).await.expect("it goes");
    }
    // What is in memory does not count.
    let given = a_node_in(given.stop().await).await;
    assert_eq!(history(&given, &second).await, expected);
    work(&given, vec![finish()]).await;
    assert_eq!(
        history(&given, "").await.last().map(HistoryEvent::event_type),
        Some(EventType::WorkflowExecutionCompleted)
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_that_cannot_be_is_refused_and_changes_nothing() {
    let given = a_node().await;
    let base = a_base(&given).await;
    let range = "Workflow task finish ID must be > 1 && <= workflow last event ID.";
    let boundary = |event_id: i64| {
        format!(
            "StateRebuilder unable to Rebuild mutable state to event ID: {event_id}, version: 0, \
             this event must be at the boundary"
        )
    };
    let no_task = |event_id: i64| {
        format!(
            "Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: {event_id}"
        )
    };
    for (event_id, message) in [
        (0, range.to_owned()),
        (1, range.to_owned()),
        (10, range.to_owned()),
        (2, boundary(1)),
        (5, boundary(4)),
        (6, no_task(6)),
    ] {
        refused(reset(&given, reset_to("", event_id, "r")).await, Code::InvalidArgument, &message);
    }
    refused(reset(&given, reset_to("", 9, "")).await, Code::InvalidArgument, "RequestId is not set on request.");
    refused(reset(&given, reset_to("no run", 9, "r")).await, Code::InvalidArgument, "Invalid RunId.");
    let unknown = "00000000-0000-4000-8000-000000000000";
    let message = format!("workflow execution not found for workflow ID \"{ID}\" and run ID \"{unknown}\"");
    refused(reset(&given, reset_to(unknown, 9, "r")).await, Code::NotFound, &message);
    let described = describe(&given, "").await.workflow_execution_info.expect("it is described");
    assert_eq!((described.execution.clone(), described.status()), (execution(&base), WorkflowExecutionStatus::Running));
    given.stop().await;
}

#[tokio::test]
async fn a_reset_gives_the_new_run_other_options_that_outlive_the_node() {
    let given = a_node().await;
    let base = start(&given).await;
    work(&given, vec![timer()]).await;
    let priority = Some(Priority { priority_key: 2, ..Default::default() });
    let change = |path: &str| PostResetOperation {
        variant: Some(Variant::UpdateWorkflowOptions(UpdateWorkflowOptions {
            workflow_execution_options: Some(WorkflowExecutionOptions {
                priority: priority.clone(),
                ..Default::default()
            }),
            update_mask: Some(prost_types::FieldMask { paths: vec![path.into()] }),
        })),
    };
    let with = |operation| public::ResetWorkflowExecutionRequest {
        post_reset_operations: vec![operation],
        ..reset_to(&base, 4, "r")
    };
    let signal = PostResetOperation { variant: Some(Variant::SignalWorkflow(SignalWorkflow::default())) };
    for (operation, message) in [
        (signal, "unsupported post reset operation: *workflow.PostResetOperation_SignalWorkflow_"),
        (PostResetOperation::default(), "unsupported post reset operation: <nil>"),
    ] {
        refused(
            given.client().reset_workflow_execution(with(operation)).await.map(|_| ()),
            Code::InvalidArgument,
            message,
        );
    }
    let made = given.client().reset_workflow_execution(with(change("priority"))).await.expect("a reset");
    let new = made.into_inner().run_id;
    let directory = given.stop().await;
    let given = a_node_in(directory).await;
    use EventType as E;
    assert_eq!(
        kinds(&history(&given, &new).await[3..]),
        [E::WorkflowTaskFailed, E::WorkflowExecutionOptionsUpdated, E::WorkflowTaskScheduled]
    );
    let info = describe(&given, &new).await.workflow_execution_info.expect("it is described");
    assert_eq!(info.priority, priority);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_to_a_workflow_task_that_failed_is_made() {
    let given = a_node().await;
    let base = start(&given).await;
    let task = poll(&given).await;
    let cancel = public::RequestCancelWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(""),
        ..Default::default()
    };
    let failed = public::RespondWorkflowTaskFailedRequest { task_token: task.task_token, ..Default::default() };
    given.client().respond_workflow_task_failed(failed).await.expect("a failure");
    given.client().request_cancel_workflow_execution(cancel).await.expect("a cancel request");
    signal(&given, "later").await;
    use EventType as E;
    assert_eq!(
        kinds(&history(&given, &base).await)[3..5],
        [E::WorkflowTaskFailed, E::WorkflowExecutionCancelRequested]
    );
    for (point, is_canceled) in [(6, true), (5, false)] {
        let new = reset(&given, reset_to(&base, point, &format!("r-{point}"))).await.expect("the reset is granted");
        let events = kinds(&history(&given, &new).await);
        let at = usize::try_from(point).expect("small") - 1;
        assert_eq!(events[at..at + 3], [E::WorkflowTaskScheduled, E::WorkflowTaskStarted, E::WorkflowTaskFailed]);
        let extended = describe(&given, &new).await.workflow_extended_info.expect("more is known of it");
        assert_eq!(extended.cancel_requested, is_canceled, "{point}");
    }
    work(&given, vec![finish()]).await;
    given.stop().await;
}
