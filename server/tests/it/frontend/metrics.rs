//! What the server counts, read as Prometheus reads it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use cluster::env::Env;
use proto::temporal::api::common::v1::{Memo, Payload};
use proto::temporal::api::enums::v1::ScheduleOverlapPolicy;
use proto::temporal::api::workflowservice::v1 as public;
use server::node::Node;
use tonic::Code;

use crate::by_hand::ByHand;
use crate::given::{self, Given, config, refused};
use crate::schedules::{NEVER, create, definition, patch, trigger};

/// One reading of `/metrics`.
async fn read(address: SocketAddr) -> String {
    let reading = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        std::io::Result::Ok(response)
    });
    let response = reading.await.expect("the reading ends").expect("the metrics are served");
    let (head, body) = response.split_once("\r\n\r\n").expect("a whole response");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    body.to_owned()
}

/// A series' value; the process counts for all tests together, so only its growth says something.
fn value(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or(" 0");
    line.trim().parse().expect("a whole number")
}

async fn a_counting_node() -> (Given, SocketAddr) {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut config = config(&directory);
    config.metrics.address = Some("127.0.0.1:0".parse().expect("an address"));
    let node = Node::start(config, Env::system()).await.expect("the node starts");
    let channel = given::connect(&node).await;
    let address = node.metrics_address().expect("metrics are served");
    (Given { node, channel, directory }, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_their_errors_are_counted_by_what_they_are() {
    let (given, address) = a_counting_node().await;
    let before = read(address).await;
    let mut missing = ByHand::new(&given, "missing").query_request("state");
    missing.query = None;
    refused(
        given.client().query_workflow(missing).await,
        Code::InvalidArgument,
        "WorkflowQuery is not set on request.",
    );
    let after = read(address).await;
    for series in [
        "service_requests{operation=\"QueryWorkflow\",service_name=\"frontend\"}",
        "service_latency_count{operation=\"QueryWorkflow\",service_name=\"frontend\"}",
        "service_error_with_type{error_type=\"serviceerror_InvalidArgument\",operation=\"QueryWorkflow\",\
         service_name=\"frontend\"}",
    ] {
        assert!(value(&after, series) > value(&before, series), "{series} in {after}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_comes_near_to_a_limit_is_counted() {
    let (given, address) = a_counting_node().await;
    let series = "limit_warnings{limit=\"memo_size\",service_name=\"history\"}";
    let before = value(&read(address).await, series);
    let run = ByHand::new(&given, "remembering");
    let large = Payload { data: vec![0; 3000].into(), ..Default::default() };
    let memo = Some(Memo { fields: [("k".to_owned(), large)].into() });
    let start = public::StartWorkflowExecutionRequest { memo, ..run.start_request() };
    given.client().start_workflow_execution(start).await.expect("a start");
    let counted = value(&read(address).await, series);
    assert!(counted > before, "{counted} after {before}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_schedule_does_and_leaves_out_is_counted() {
    let (given, address) = a_counting_node().await;
    let before = read(address).await;
    let policy = ScheduleOverlapPolicy::Skip;
    create(&given, definition(NEVER, policy), "c").await.expect("it is made");
    for request_id in ["first", "in its way"] {
        patch(&given, trigger(policy), request_id).await;
    }
    let series = ["schedule_action_success", "schedule_overlap_skipped"];
    let series = series.map(|name| format!("{name}{{service_name=\"history\"}}"));
    let counted = async {
        loop {
            let now = read(address).await;
            if series.iter().all(|series| value(&now, series) > value(&before, series)) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), counted).await.expect("both are counted");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_address_there_is_nothing_to_read() {
    let given = given::a_node().await;
    assert_eq!(given.node.metrics_address(), None);
    given.stop().await;
}
