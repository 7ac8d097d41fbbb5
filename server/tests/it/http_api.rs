//! The HTTP/JSON API, from outside: plain requests over a socket. What is expected was seen at the reference.

use std::time::Duration;

use cluster::env::Env;
use serde_json::{Value, json};
use server::node::Node;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::by_hand::{ByHand, PATIENCE};
use crate::commands::{finish, text};
use crate::given::{Given, config, connect};

mod access;
mod client;
mod errors;

use client::{Answer, Http};

async fn given() -> (Given, Http) {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut config = config(&directory);
    config.http.address = Some("127.0.0.1:0".parse().expect("an address"));
    let node = Node::start(config, Env::system()).await.expect("the node starts");
    let http = Http { address: node.http_address().expect("it serves HTTP") };
    let channel = connect(&node).await;
    (Given { node, channel, directory }, http)
}

const WORKFLOW: &str = "/api/v1/namespaces/default/workflows/w";

async fn start(http: &Http) -> String {
    let body = json!({
        "workflowType": { "name": "t" },
        "taskQueue": { "name": "w" },
        "input": [{ "a": [1, { "b": 2.5 }] }, "x", null, 3],
        "memo": { "fields": { "m": "v" } },
        "workflowIdReusePolicy": "AllowDuplicate",
    });
    let answer = http.post(WORKFLOW, &body).await.ok();
    assert_eq!(answer["started"], true);
    assert_eq!(answer["status"], "WORKFLOW_EXECUTION_STATUS_RUNNING");
    answer["runId"].as_str().expect("a run").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_described_and_read() {
    let (given, http) = given().await;
    let run_id = start(&http).await;
    let described = http.get(WORKFLOW).await.ok();
    assert_eq!(described["workflowExecutionInfo"]["execution"], json!({ "workflowId": "w", "runId": run_id }));
    assert_eq!(described["workflowExecutionInfo"]["memo"], json!({ "fields": { "m": "v" } }));
    assert_eq!(described["executionConfig"]["defaultWorkflowTaskTimeout"], "10s");

    let history = http.get(&format!("{WORKFLOW}/history?execution.runId={run_id}")).await.ok();
    let first = &history["history"]["events"][0];
    assert_eq!(first["eventId"], "1");
    assert_eq!(first["eventType"], "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED");
    let nothing = json!({ "metadata": { "encoding": "YmluYXJ5L251bGw=" } });
    let input = json!([{ "a": [1, { "b": 2.5 }] }, "x", nothing, 3]);
    assert_eq!(first["workflowExecutionStartedEventAttributes"]["input"], input);
    let keys: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys[..3], ["eventId", "eventTime", "eventType"], "in the order of the API");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_read_in_full_if_asked_for() {
    let (given, http) = given().await;
    start(&http).await;
    let in_full = json!({ "metadata": { "encoding": "anNvbi9wbGFpbg==" }, "data": "Ingi" });
    let accept = "Accept: application/json+no-payload-shorthand\r\n";
    let history = format!("{WORKFLOW}/history");
    for answer in
        [http.get(&format!("{history}?noPayloadShorthand")).await, http.send("GET", &history, accept, "").await]
    {
        assert_eq!(answer.content_type, "application/json+no-payload-shorthand");
        let input = &answer.ok()["history"]["events"][0]["workflowExecutionStartedEventAttributes"]["input"];
        assert_eq!(input["payloads"][1], in_full);
    }
    let pretty = http.get(&format!("{history}?pretty")).await;
    assert_eq!(pretty.content_type, "application/json+pretty");
    assert!(pretty.body.starts_with("{\n  \"history\": {\n    \"events\": [\n"), "{}", pretty.body);
    assert_eq!(http.get(&history).await.content_type, "application/json");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_signalled_queried_and_terminated() {
    let (given, http) = given().await;
    start(&http).await;
    let worker = ByHand::new(&given, "w");
    worker.work(Vec::new()).await;
    let signalled = http.post(&format!("{WORKFLOW}/signal/s"), &json!({ "input": ["hello"] })).await.ok();
    assert_eq!(signalled["link"]["workflowEvent"]["workflowId"], "w");
    worker.work(Vec::new()).await;

    let asked = tokio::spawn(async move { http.post(&format!("{WORKFLOW}/query/q"), &json!({})).await });
    let task = worker.poll().await;
    worker.answer(task.task_token, text("\"answer\"")).await.unwrap();
    // Not said to be JSON, so not shown as such.
    let data = &asked.await.unwrap().ok()["queryResult"]["payloads"][0]["data"];
    assert_eq!(data, "ImFuc3dlciI=");

    assert_eq!(http.post(&format!("{WORKFLOW}/terminate"), &json!({ "reason": "r" })).await.ok(), json!({}));
    let closed = http.get(WORKFLOW).await.ok();
    assert_eq!(closed["workflowExecutionInfo"]["status"], "WORKFLOW_EXECUTION_STATUS_TERMINATED");
    let query = "query=WorkflowId%3D%27w%27+AND+ExecutionStatus%3D%27Terminated%27";
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let listed = http.get(&format!("/api/v1/namespaces/default/workflows?{query}&pageSize=10")).await.ok();
        let counted = http.get(&format!("/api/v1/namespaces/default/workflow-count?{query}")).await.ok();
        if counted["count"] == "1" && listed["executions"][0]["execution"]["workflowId"] == "w" {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{listed} {counted}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_describes_itself() {
    let (given, http) = given().await;
    let answer = http.get("/openapi.yaml").await;
    assert_eq!(answer.content_type, "application/vnd.oai.openapi;version=3.0");
    let document = answer.ok();
    assert_eq!(document["openapi"], "3.0.3");
    assert!(document["paths"]["/api/v1/namespaces/{namespace}/workflows"]["get"].is_object());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_awaited_history_answers_when_the_run_ends() {
    let (given, http) = given().await;
    start(&http).await;
    let worker = ByHand::new(&given, "w");
    let path = format!("{WORKFLOW}/history?waitNewEvent=1&historyEventFilterType=2");
    let waiting = tokio::spawn(async move { http.get(&path).await });
    worker.work(vec![finish("done")]).await;
    let history = waiting.await.unwrap().ok();
    assert_eq!(history["history"]["events"][0]["eventType"], "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_registered_described_and_updated() {
    let (given, http) = given().await;
    let register = json!({ "namespace": "n", "workflowExecutionRetentionPeriod": "86400s" });
    assert_eq!(http.post("/cluster/namespaces", &register).await.ok(), json!({}));
    let update = json!({ "updateInfo": { "description": "d" } });
    let updated = http.post("/api/v1/namespaces/n/update", &update).await.ok();
    assert_eq!(updated["namespaceInfo"]["description"], "d");
    let described = http.get("/cluster/namespaces/n").await.ok();
    assert_eq!(described["namespaceInfo"]["state"], "NAMESPACE_STATE_REGISTERED");
    assert_eq!(described["config"]["workflowExecutionRetentionTtl"], "86400s");
    let listed = http.get("/api/v1/namespaces?pageSize=1").await.ok();
    assert_eq!(listed["namespaces"].as_array().unwrap().len(), 1);
    assert!(listed["nextPageToken"].is_string(), "{listed}");
    let attributes = http.get("/api/v1/namespaces/n/search-attributes").await.ok();
    assert_eq!(attributes["systemAttributes"]["WorkflowId"], "INDEXED_VALUE_TYPE_KEYWORD");
    for path in ["/cluster", "/api/v1/cluster-info", "/system-info"] {
        assert!(http.get(path).await.ok()["serverVersion"].is_string(), "{path}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_with_a_slash_is_found_again() {
    let (given, http) = given().await;
    let path = "/api/v1/namespaces/default/workflows/one%2Ftwo%20%C3%A9";
    http.post(path, &json!({ "workflowType": { "name": "t" }, "taskQueue": { "name": "q" } })).await.ok();
    let described = http.get(path).await.ok();
    assert_eq!(described["workflowExecutionInfo"]["execution"]["workflowId"], "one/two é");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_takes_many_requests_and_ends_with_the_node() {
    let (given, http) = given().await;
    let mut stream = TcpStream::connect(http.address).await.unwrap();
    for _ in 0..3 {
        stream.write_all(b"GET /system-info HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(bytes[..read].starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
    given.stop().await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection is closed");
}
