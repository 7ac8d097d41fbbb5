//! Pausing a run over gRPC.

use std::time::Duration;

use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{EventType, HistoryEventFilterType, WorkflowExecutionStatus};
use proto::temporal::api::query::v1::WorkflowQuery;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::given::{Given, NAMESPACE, a_node, refused, within};
use crate::paging::until_listed;

const ID: &str = "paused";

fn execution() -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: ID.into(), run_id: String::new() })
}

fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: "paused".into(), ..Default::default() })
}

async fn start(given: &Given) {
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "paused".into() }),
        task_queue: queue(),
        ..Default::default()
    };
    given.client().start_workflow_execution(start).await.expect("the start is granted");
}

fn pause(request_id: &str) -> public::PauseWorkflowExecutionRequest {
    public::PauseWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: ID.into(),
        identity: "operator".into(),
        reason: "deploying".into(),
        request_id: request_id.into(),
        ..Default::default()
    }
}

fn unpause() -> public::UnpauseWorkflowExecutionRequest {
    public::UnpauseWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: ID.into(),
        ..Default::default()
    }
}

async fn describe(given: &Given) -> public::DescribeWorkflowExecutionResponse {
    let request = public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution() };
    given.client().describe_workflow_execution(request).await.expect("it is there").into_inner()
}

fn status(described: &public::DescribeWorkflowExecutionResponse) -> WorkflowExecutionStatus {
    described.workflow_execution_info.clone().unwrap_or_default().status()
}

/// The token of the next workflow task; empty if none comes.
async fn poll(given: &Given, patience: Duration) -> bytes::Bytes {
    let request =
        public::PollWorkflowTaskQueueRequest { namespace: NAMESPACE.into(), task_queue: queue(), ..Default::default() };
    let polled = given.client().poll_workflow_task_queue(within(patience, request)).await;
    polled.expect("the poll is answered").into_inner().task_token
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_gives_no_task_to_a_worker_until_it_is_unpaused() {
    let given = a_node().await;
    start(&given).await;
    given.client().pause_workflow_execution(pause("p-1")).await.expect("an open run is paused");
    given.client().pause_workflow_execution(pause("p-1")).await.expect("it is the same request");
    let again = given.client().pause_workflow_execution(pause("p-2")).await;
    refused(again, Code::FailedPrecondition, "workflow is already paused.");
    let paused = describe(&given).await;
    assert_eq!(status(&paused), WorkflowExecutionStatus::Paused);
    let info = paused.workflow_extended_info.and_then(|extended| extended.pause_info).expect("it says who and why");
    assert_eq!((info.identity.as_str(), info.reason.as_str()), ("operator", "deploying"));
    assert_eq!(poll(&given, Duration::from_secs(3)).await, "");
    let query = public::QueryWorkflowRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        query: Some(WorkflowQuery { query_type: "state".into(), ..Default::default() }),
        ..Default::default()
    };
    let answer = given.client().query_workflow(query).await.expect("a query is answered").into_inner();
    assert_eq!(answer.query_rejected.expect("it is rejected").status(), WorkflowExecutionStatus::Paused);

    given.client().unpause_workflow_execution(unpause()).await.expect("a paused run is unpaused");
    refused(
        given.client().unpause_workflow_execution(unpause()).await,
        Code::FailedPrecondition,
        "workflow is not paused.",
    );
    assert_eq!(status(&describe(&given).await), WorkflowExecutionStatus::Running);
    assert_ne!(poll(&given, Duration::from_secs(20)).await, "");
    let request = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        ..Default::default()
    };
    let page = given.client().get_workflow_execution_history(request).await.expect("a page").into_inner();
    let kinds: Vec<_> = page.history.unwrap_or_default().events.iter().map(|event| event.event_type()).collect();
    use EventType as E;
    let paused = [E::WorkflowTaskFailed, E::WorkflowExecutionPaused, E::WorkflowExecutionUnpaused];
    assert_eq!(kinds[2..], [paused.as_slice(), &[E::WorkflowTaskScheduled, E::WorkflowTaskStarted]].concat());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_cannot_be_is_refused() {
    let given = a_node().await;
    let unknown = "workflow not found for ID: paused";
    refused(given.client().pause_workflow_execution(pause("p")).await, Code::NotFound, unknown);
    let nameless = public::PauseWorkflowExecutionRequest { workflow_id: String::new(), ..pause("p") };
    let refusal = given.client().pause_workflow_execution(nameless).await;
    refused(refusal, Code::InvalidArgument, "WorkflowId is not set on request.");
    let long = public::PauseWorkflowExecutionRequest { reason: "x".repeat(1001), ..pause("p") };
    refused(given.client().pause_workflow_execution(long).await, Code::InvalidArgument, "reason is too long.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_is_found_by_its_pause_and_by_the_reason() {
    let given = a_node().await;
    start(&given).await;
    given.client().pause_workflow_execution(pause("p-1")).await.expect("an open run is paused");
    let queries =
        ["TemporalPauseInfo = 'Workflow:paused'", "TemporalPauseInfo IN ('Reason:deploying', 'Reason:other')"];
    for query in queries {
        let listed = until_listed(&given, query, &[ID]).await;
        assert_eq!(listed[0].status(), WorkflowExecutionStatus::Paused);
        let told = listed[0].search_attributes.clone().unwrap_or_default().indexed_fields["TemporalPauseInfo"].clone();
        assert_eq!(told.data, r#"["Workflow:paused","Reason:deploying"]"#);
        assert_eq!(told.metadata["type"], "KeywordList");
    }
    given.client().unpause_workflow_execution(unpause()).await.expect("a paused run is unpaused");
    for query in queries {
        until_listed(&given, query, &[]).await;
    }
    until_listed(&given, "TemporalPauseInfo IS NULL AND ExecutionStatus = 'Running'", &[ID]).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_answers_as_one_that_does_not_run() {
    let given = a_node().await;
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "paused".into() }),
        task_queue: queue(),
        request_id: "start".into(),
        ..Default::default()
    };
    let begin = async |request| given.client().start_workflow_execution(request).await.expect("a start").into_inner();
    let first = begin(start.clone()).await;
    assert_eq!(first.status(), WorkflowExecutionStatus::Running);
    let closing = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
        ..Default::default()
    };
    let ends = async |request| {
        let page = given.client().get_workflow_execution_history(request).await.expect("a page").into_inner();
        let events = page.history.unwrap_or_default().events;
        (events.iter().map(|event| event.event_type()).collect::<Vec<_>>(), page.next_page_token)
    };
    assert_eq!(ends(closing.clone()).await, (Vec::new(), bytes::Bytes::new()));
    given.client().pause_workflow_execution(pause("p-1")).await.expect("an open run is paused");

    let again = begin(start.clone()).await;
    assert_eq!((again.run_id.clone(), again.status()), (first.run_id, WorkflowExecutionStatus::Paused));
    let (last, token) = ends(closing.clone()).await;
    assert_eq!((last, token), (vec![EventType::WorkflowExecutionPaused], bytes::Bytes::new()));
    // A long poll for the close event goes on waiting: a pause is no close.
    let waiting = public::GetWorkflowExecutionHistoryRequest { wait_new_event: true, ..closing };
    let mut waiter = given.client();
    let waiting = waiter.get_workflow_execution_history(within(Duration::from_secs(60), waiting));
    let terminate = public::TerminateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution(),
        ..Default::default()
    };
    let mut client = given.client();
    let (page, terminated) = tokio::join!(waiting, client.terminate_workflow_execution(terminate));
    terminated.expect("a paused run is terminated");
    let events = page.expect("a page").into_inner().history.unwrap_or_default().events;
    assert_eq!(events[0].event_type(), EventType::WorkflowExecutionTerminated);
    given.stop().await;
}

#[tokio::test]
async fn a_namespace_says_that_runs_can_be_paused() {
    let given = a_node().await;
    let request = public::DescribeNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let described = given.client().describe_namespace(request).await.expect("a namespace").into_inner();
    let capabilities = described.namespace_info.and_then(|info| info.capabilities).expect("capabilities");
    assert!(capabilities.workflow_pause);
    given.stop().await;
}
