//! History over gRPC: forwards, backwards, in pages that a message can carry.

use bytes::Bytes;
use prost::Message;
use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::given::{Given, NAMESPACE, a_node};

/// Between the bound of a page and that of a message.
const PAGE_BYTES_MAX: usize = 2 << 20;

/// A run with signals that weigh 3 MiB together.
async fn a_heavy_run(given: &Given, workflow_id: &str) {
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "heavy".into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        ..Default::default()
    };
    given.client().start_workflow_execution(start).await.expect("the start is granted");
    for n in 0..30 {
        let payload = Payload { data: vec![n; 100 << 10].into(), ..Default::default() };
        let signal = public::SignalWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: Some(execution(workflow_id)),
            signal_name: "heavy".into(),
            input: Some(Payloads { payloads: vec![payload] }),
            ..Default::default()
        };
        given.client().signal_workflow_execution(signal).await.expect("the signal is granted");
    }
}

fn execution(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() }
}

fn forwards(workflow_id: &str, size: i32, next_page_token: Bytes) -> public::GetWorkflowExecutionHistoryRequest {
    public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: Some(execution(workflow_id)),
        maximum_page_size: size,
        next_page_token,
        ..Default::default()
    }
}

async fn read_forwards(given: &Given, size: i32) -> Vec<HistoryEvent> {
    let mut events = Vec::new();
    let mut token = Bytes::new();
    loop {
        let page = given.client().get_workflow_execution_history(forwards("heavy", size, token)).await.expect("a page");
        let page = page.into_inner();
        assert!(page.encoded_len() < PAGE_BYTES_MAX, "a page of {} bytes", page.encoded_len());
        events.extend(page.history.unwrap_or_default().events);
        token = page.next_page_token;
        if token.is_empty() {
            return events;
        }
    }
}

async fn read_backwards(given: &Given, size: i32) -> Vec<HistoryEvent> {
    let mut events = Vec::new();
    let mut next_page_token = Bytes::new();
    loop {
        let request = public::GetWorkflowExecutionHistoryReverseRequest {
            namespace: NAMESPACE.into(),
            execution: Some(execution("heavy")),
            maximum_page_size: size,
            next_page_token,
        };
        let page = given.client().get_workflow_execution_history_reverse(request).await.expect("a page").into_inner();
        assert!(page.encoded_len() < PAGE_BYTES_MAX, "a page of {} bytes", page.encoded_len());
        events.extend(page.history.unwrap_or_default().events);
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return events;
        }
    }
}

#[tokio::test]
async fn backwards_is_forwards_reversed_whatever_the_page_size() {
    let given = a_node().await;
    a_heavy_run(&given, "heavy").await;
    let whole = read_forwards(&given, 0).await;
    assert_eq!(whole.iter().map(|event| event.event_id).collect::<Vec<_>>(), (1..=32).collect::<Vec<_>>());
    for size in [1, 7, 1000] {
        assert_eq!(read_forwards(&given, size).await, whole, "forwards by {size}");
        let mut backwards = read_backwards(&given, size).await;
        backwards.reverse();
        assert_eq!(backwards, whole, "backwards by {size}");
    }
    given.stop().await;
}

#[tokio::test]
async fn a_page_token_is_good_for_its_own_run_only() {
    let given = a_node().await;
    a_heavy_run(&given, "heavy").await;
    a_heavy_run(&given, "other").await;
    let page = given.client().get_workflow_execution_history(forwards("heavy", 1, Bytes::new())).await.expect("a page");
    let stolen = page.into_inner().next_page_token;
    for token in [stolen, Bytes::from_static(b"forged")] {
        let refused = given.client().get_workflow_execution_history(forwards("other", 1, token)).await;
        assert_eq!(refused.expect_err("a foreign token").code(), Code::InvalidArgument);
    }
    given.stop().await;
}
