//! The end of a node, with clients that would have it wait.

use std::pin::Pin;

use futures_util::future::poll_immediate;
use proto::temporal::api::query::v1::WorkflowQuery;
use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use tokio::net::TcpStream;
use tonic::transport::Channel;

use super::raw::{Connection, DESCRIBE_NAMESPACE, WINDOW};
use super::*;
use crate::by_hand::ByHand;
use crate::transport::process::Process;

/// What the issue asks for is a second; the machine may be busy with other tests.
const SOON: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_query_and_a_half_sent_body_and_a_silent_connection_do_not_hold_up_the_end() {
    let process = Process::start("true");
    let _silent = TcpStream::connect(process.address).await.unwrap();
    let _silent_http = TcpStream::connect(process.http_address).await.unwrap();
    let mut half_sent = Connection::open(process.address, WINDOW).await;
    let stream = half_sent.headers(DESCRIBE_NAMESPACE, &[]).await;
    assert!(half_sent.part(stream, &[0, 0, 0, 1, 0, 7]).await);
    let mut unread = Connection::open(process.address, 0).await;
    unread.call(DESCRIBE_NAMESPACE, &describe_request()).await;
    let whole = half_sent.call(DESCRIBE_NAMESPACE, &describe_request()).await;
    assert!(half_sent.answer(whole, PATIENCE).await.data > 0, "the connections are served");
    let (status, took) = process.terminate();
    assert!(status.success(), "{status}");
    assert!(took < SOON, "it took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_under_way_is_answered_with_an_error_that_is_retried() {
    let given = a_node().await;
    let run = ByHand::new(&given, "asked-at-the-end");
    run.begin().await;
    let asked = tokio::spawn({
        let run = run.clone();
        async move { run.query("state").await }
    });
    // It has the query, and does not answer.
    let task = run.poll().await;
    assert!(task.query.is_some());
    let waiting = waiting_calls(given.channel.clone(), &run).await;
    let began = Instant::now();
    given.node.shutdown().await;
    assert!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
    let status = asked.await.unwrap().unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "the node is shutting down"));
    for (what, waiting) in waiting {
        let answer = waiting.await;
        assert!(answer.is_ok() || answer == Err(Code::Unavailable), "{what}: {answer:?}");
    }
}

type Waiting = Pin<Box<dyn Future<Output = Result<(), Code>> + Send>>;

/// Calls that wait for something that does not happen; the node has accepted them.
async fn waiting_calls(channel: Channel, run: &ByHand) -> [(&'static str, Waiting); 2] {
    let mut client = WorkflowServiceClient::new(channel);
    let history = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: Some(run.execution()),
        wait_new_event: true,
        history_event_filter_type: 2,
        ..Default::default()
    };
    let (mut reader, mut poller) = (client.clone(), client.clone());
    let read: Waiting = Box::pin(async move {
        reader.get_workflow_execution_history(history).await.map(drop).map_err(|status| status.code())
    });
    let poll: Waiting = Box::pin(async move {
        poller.poll_workflow_task_queue(poll_request("nothing")).await.map(drop).map_err(|status| status.code())
    });
    let mut waiting = [("history", read), ("poll", poll)];
    for (what, call) in &mut waiting {
        // Sends the request.
        assert!(poll_immediate(call).await.is_none(), "{what} waits");
    }
    // Requests of one connection are accepted in their order.
    client.describe_namespace(describe_request()).await.expect("an answer behind them");
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_holds_up_neither_the_process_nor_its_client() {
    let process = Process::start("true");
    let channel = Channel::from_shared(format!("http://{}", process.address)).unwrap().connect().await.unwrap();
    let mut client = WorkflowServiceClient::new(channel);
    let execution =
        proto::temporal::api::common::v1::WorkflowExecution { workflow_id: "q".into(), ..Default::default() };
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "q".into(),
        workflow_type: Some(proto::temporal::api::common::v1::WorkflowType { name: "t".into() }),
        task_queue: Some(TaskQueue { name: "q".into(), ..Default::default() }),
        ..Default::default()
    };
    client.start_workflow_execution(start).await.unwrap();
    let task = client.poll_workflow_task_queue(poll_request("q")).await.unwrap().into_inner();
    let completed = public::RespondWorkflowTaskCompletedRequest { task_token: task.task_token, ..Default::default() };
    client.respond_workflow_task_completed(completed).await.unwrap();
    let query = public::QueryWorkflowRequest {
        namespace: NAMESPACE.into(),
        execution: Some(execution),
        query: Some(WorkflowQuery { query_type: "state".into(), ..Default::default() }),
        ..Default::default()
    };
    let mut asker = client.clone();
    let asked = tokio::spawn(async move { asker.query_workflow(query).await });
    // A worker has taken it, so it is under way.
    let taken = client.poll_workflow_task_queue(poll_request("q")).await.unwrap().into_inner();
    assert!(taken.query.is_some());
    let (status, took) = tokio::task::spawn_blocking(|| process.terminate()).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(took < SOON, "it took {took:?}");
    assert_eq!(asked.await.unwrap().unwrap_err().code(), Code::Unavailable);
}
