//! What path, query and body make together.

use prost_reflect::DescriptorPool;
use serde_json::json;
use tonic::codegen::http::Method;

use super::*;

mod fuzz;
use crate::http_api::routes::RouteTable;

/// The message, as JSON again.
fn read(verb: &Method, path: &str, body: &str) -> Result<Value, Wrong> {
    let table = RouteTable::new(&DescriptorPool::decode(proto::DESCRIPTORS).unwrap());
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let Ok(found) = table.find(verb, path) else { panic!("{path} is a route") };
    let message = message(&found, query, body.as_bytes(), Payloads::Short)?;
    Ok(serde_json::to_value(message).unwrap())
}

#[test]
fn a_path_outweighs_the_body() {
    let body = r#"{"workflow_id": "other", "namespace": "other", "workflowType": {"name": "t"}}"#;
    let message = read(&Method::POST, "/namespaces/n/workflows/w", body).unwrap();
    assert_eq!(message, json!({ "namespace": "n", "workflowId": "w", "workflowType": { "name": "t" } }));
}

#[test]
fn a_path_reaches_into_messages() {
    let path = "/api/v1/namespaces/n/workflows/w/update/u";
    let body = r#"{"workflow_execution": {"run_id": "r"}, "waitPolicy": {"lifecycleStage": "Completed"}}"#;
    let message = read(&Method::POST, path, body).unwrap();
    assert_eq!(message["workflowExecution"], json!({ "workflowId": "w", "runId": "r" }));
    assert_eq!(message["request"], json!({ "input": { "name": "u" } }));
    let stage = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED";
    assert_eq!(message["waitPolicy"], json!({ "lifecycleStage": stage }));
}

#[test]
fn a_query_says_what_a_body_would() {
    let history = "/namespaces/n/workflows/w/history?maximumPageSize=7&wait_new_event=true&execution.runId=r\
                   &execution.workflow_id=other&historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT&pretty&x=1";
    let message = read(&Method::GET, history, "ignored").unwrap();
    let expected = json!({
        "namespace": "n",
        "execution": { "workflowId": "w", "runId": "r" },
        "maximumPageSize": 7,
        "waitNewEvent": true,
        "historyEventFilterType": "HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT",
    });
    assert_eq!(message, expected);
}

#[test]
fn a_query_is_unescaped() {
    let message = read(&Method::GET, "/namespaces/n/workflows?query=A+%3D+%27%C3%A9%27&nextPageToken=AQI%3D", "");
    assert_eq!(message.unwrap(), json!({ "namespace": "n", "query": "A = 'é'", "nextPageToken": "AQI=" }));
}

#[test]
fn repeated_parameters_make_a_list_and_moments_are_read() {
    let path = "/namespaces/n/worker-task-reachability?buildIds=a&buildIds=b";
    assert_eq!(read(&Method::GET, path, "").unwrap(), json!({ "namespace": "n", "buildIds": ["a", "b"] }));
    let path = "/namespaces/n/schedules/s/matching-times?startTime=2024-01-02T03:04:05.5Z";
    assert_eq!(read(&Method::GET, path, "").unwrap()["startTime"], "2024-01-02T03:04:05.500Z");
}

#[test]
fn an_empty_body_is_an_empty_message() {
    for body in ["", " \n", "{}"] {
        let message = read(&Method::POST, "/namespaces/n/workflows/w/terminate", body).unwrap();
        assert_eq!(message, json!({ "namespace": "n", "workflowExecution": { "workflowId": "w" } }));
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let deep = format!("{{\"input\": {}1{}}}", "[".repeat(500), "]".repeat(500));
    let bodies = [
        "garbage",
        "null",
        "[]",
        "{\"bogus\": 1}",
        "{\"workflowType\": 1}",
        "{\"workflowType\": {\"name\": 1}}",
        "{\"workflowRunTimeout\": \"soon\"}",
        "{\"workflowIdReusePolicy\": \"Sometimes\"}",
        "{} {}",
        "{\"requestId\": ",
        &deep,
    ];
    for body in bodies {
        assert!(read(&Method::POST, "/namespaces/n/workflows/w", body).is_err(), "{body}");
    }
    assert!(read(&Method::POST, "/namespaces/n/workflows/w/cancel", "{\"workflowExecution\": 1}").is_err());
}

#[test]
fn a_wrong_parameter_is_named() {
    let cases = [
        ("pageSize=x", "parsing field \"page_size\": strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("pageSize=1&pageSize=2", "too many values for field \"page_size\": 1, 2"),
        (
            "namespaceFilter.includeDeleted=maybe",
            "parsing field \"include_deleted\": strconv.ParseBool: parsing \"maybe\": invalid syntax",
        ),
        (
            "namespaceFilter=x",
            "parsing field \"namespace_filter\": unsupported message type: \"temporal.api.namespace.v1.NamespaceFilter\"",
        ),
        (
            "pageSize=99999999999",
            "parsing field \"page_size\": strconv.ParseInt: parsing \"99999999999\": value out of range",
        ),
        ("nextPageToken=AA!A", "parsing field \"next_page_token\": illegal base64 data at input byte 2"),
        ("pageSize=%ZZ", "invalid URL escape \"%ZZ\""),
        ("pageSize=%4", "invalid URL escape \"%4\""),
        ("pageSize.x=1", "invalid path: \"page_size\" is not a message"),
    ];
    for (query, expected) in cases {
        assert_eq!(read(&Method::GET, &format!("/cluster/namespaces?{query}"), "").unwrap_err(), expected);
    }
    assert!(read(&Method::GET, "/cluster/namespaces?pageSize=%FF", "").is_err());
}
