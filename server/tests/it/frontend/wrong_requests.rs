//! Requests that are wrong: the right code, message and detail, over the wire.

use prost::Message as _;
use proto::everrow::history::TaskToken;
use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;
use uuid::Uuid;

use crate::given::{Given, NAMESPACE, a_node, refused, register};

async fn namespace_id(given: &Given, name: &str) -> String {
    let request = public::DescribeNamespaceRequest { namespace: name.into(), ..Default::default() };
    let described = given.client().describe_namespace(request).await.expect("it is there").into_inner();
    described.namespace_info.expect("it is described").id
}

fn forged(namespace_id: String) -> TaskToken {
    TaskToken {
        namespace_id,
        workflow_id: "nobody".into(),
        run_id: Uuid::nil().to_string(),
        scheduled_event_id: 5,
        attempt: 1,
        ..TaskToken::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_namespace_is_looked_at_first() {
    let given = a_node().await;
    let mut client = given.client();
    let answer = client.start_workflow_execution(public::StartWorkflowExecutionRequest::default()).await;
    refused(answer, Code::InvalidArgument, "Namespace is empty.");
    let long = public::SignalWorkflowExecutionRequest { namespace: "x".repeat(1001), ..Default::default() };
    refused(client.signal_workflow_execution(long).await, Code::InvalidArgument, "Namespace length exceeds limit.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_id_is_a_uuid() {
    let given = a_node().await;
    let request = public::DescribeWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        execution: Some(WorkflowExecution { workflow_id: "order".into(), run_id: "latest".into() }),
    };
    refused(given.client().describe_workflow_execution(request).await, Code::InvalidArgument, "Invalid RunId.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_over_two_mebibytes_is_refused_and_a_message_over_four_is_exhaustion() {
    let given = a_node().await;
    let start = |bytes: usize| public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "big".into(),
        workflow_type: Some(WorkflowType { name: "Big".into() }),
        task_queue: Some(TaskQueue { name: "queue".into(), ..Default::default() }),
        input: Some(Payloads { payloads: vec![Payload { data: vec![0; bytes].into(), ..Default::default() }] }),
        ..Default::default()
    };
    let answer = given.client().start_workflow_execution(start(2 << 20)).await;
    refused(answer, Code::InvalidArgument, "Blob data size exceeds limit.");

    let status = given.client().start_workflow_execution(start(5 << 20)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let message = status.message();
    assert!(message.starts_with("grpc: received message larger than max (52429"), "{message}");
    assert!(message.ends_with("vs. 4194304)"), "{message}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_are_refused_by_every_answer() {
    let given = a_node().await;
    given.client().register_namespace(register("other")).await.unwrap();
    let unknown = Uuid::from_u128(7).to_string();
    let not_found = format!("Namespace {unknown} is not found.");
    let cases = [
        (Vec::new(), Code::InvalidArgument, "Task token not set on request."),
        (vec![0xff; 32], Code::InvalidArgument, "Error deserializing task token."),
        (forged(String::new()).encode_to_vec(), Code::InvalidArgument, "Namespace not set on request."),
        (forged(unknown.clone()).encode_to_vec(), Code::NotFound, not_found.as_str()),
        (
            forged(namespace_id(&given, "other").await).encode_to_vec(),
            Code::InvalidArgument,
            "Operation requested with a token from a different namespace.",
        ),
    ];
    for (token, code, message) in cases {
        let (task_token, namespace) = (bytes::Bytes::from(token), NAMESPACE.to_owned());
        let mut client = given.client();
        let request = public::RespondWorkflowTaskCompletedRequest {
            task_token: task_token.clone(),
            namespace: namespace.clone(),
            ..Default::default()
        };
        refused(client.respond_workflow_task_completed(request).await, code, message);
        let request = public::RespondWorkflowTaskFailedRequest {
            task_token: task_token.clone(),
            namespace: namespace.clone(),
            ..Default::default()
        };
        refused(client.respond_workflow_task_failed(request).await, code, message);
        let request = public::RespondActivityTaskCompletedRequest {
            task_token: task_token.clone(),
            namespace: namespace.clone(),
            ..Default::default()
        };
        refused(client.respond_activity_task_completed(request).await, code, message);
        let request = public::RespondActivityTaskFailedRequest {
            task_token: task_token.clone(),
            namespace: namespace.clone(),
            ..Default::default()
        };
        refused(client.respond_activity_task_failed(request).await, code, message);
        let request = public::RespondActivityTaskCanceledRequest {
            task_token: task_token.clone(),
            namespace: namespace.clone(),
            ..Default::default()
        };
        refused(client.respond_activity_task_canceled(request).await, code, message);
        let request = public::RecordActivityTaskHeartbeatRequest { task_token, namespace, ..Default::default() };
        refused(client.record_activity_task_heartbeat(request).await, code, message);
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_a_run_that_never_was_is_not_found() {
    let given = a_node().await;
    let token = forged(namespace_id(&given, NAMESPACE).await).encode_to_vec();
    let request = public::RespondActivityTaskCompletedRequest { task_token: token.into(), ..Default::default() };
    let status = given.client().respond_activity_task_completed(request).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound, "{status:?}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_by_id_wants_all_its_ids() {
    let given = a_node().await;
    let request = public::RespondActivityTaskCompletedByIdRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "nobody".into(),
        ..Default::default()
    };
    let answer = given.client().respond_activity_task_completed_by_id(request.clone()).await;
    refused(answer, Code::InvalidArgument, "ActivityId is not set on request.");
    let request = public::RespondActivityTaskCompletedByIdRequest {
        activity_id: "pay".into(),
        workflow_id: String::new(),
        ..request
    };
    let answer = given.client().respond_activity_task_completed_by_id(request).await;
    refused(answer, Code::NotFound, "activity not found for ID: pay");
    given.stop().await;
}

/// A token of an activity as the reference lays it out: `temporal.server.api.token.v1.Task`.
#[derive(Clone, PartialEq, prost::Message)]
struct ReferenceToken {
    #[prost(string, tag = "1")]
    namespace_id: String,
    #[prost(string, tag = "2")]
    workflow_id: String,
    #[prost(string, tag = "3")]
    run_id: String,
    #[prost(int64, tag = "4")]
    scheduled_event_id: i64,
    #[prost(int32, tag = "5")]
    attempt: i32,
    #[prost(string, tag = "6")]
    activity_id: String,
    #[prost(string, tag = "7")]
    workflow_type: String,
    #[prost(string, tag = "8")]
    activity_type: String,
    #[prost(int64, tag = "11")]
    version: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_layout_of_the_reference_names_a_task_that_is_not_found() {
    let given = a_node().await;
    let run_id = Uuid::nil().to_string();
    let token = |namespace_id| ReferenceToken {
        namespace_id,
        workflow_id: "workflow".into(),
        run_id: run_id.clone(),
        scheduled_event_id: 5,
        attempt: 1,
        activity_id: "1".into(),
        workflow_type: "workflow".into(),
        activity_type: "activity".into(),
        version: 1,
    };
    let ours = token(namespace_id(&given, NAMESPACE).await).encode_to_vec();
    let completed = public::RespondActivityTaskCompletedRequest {
        namespace: NAMESPACE.into(),
        task_token: ours.clone().into(),
        ..Default::default()
    };
    let message = format!("workflow execution not found for workflow ID \"workflow\" and run ID {run_id:?}");
    refused(given.client().respond_activity_task_completed(completed).await, Code::NotFound, &message);
    let heartbeat = public::RecordActivityTaskHeartbeatRequest {
        namespace: NAMESPACE.into(),
        task_token: ours.into(),
        ..Default::default()
    };
    refused(given.client().record_activity_task_heartbeat(heartbeat).await, Code::NotFound, &message);
    let unknown = Uuid::from_u128(7).to_string();
    let failed = public::RespondActivityTaskFailedRequest {
        task_token: token(unknown.clone()).encode_to_vec().into(),
        ..Default::default()
    };
    let message = format!("Namespace {unknown} is not found.");
    refused(given.client().respond_activity_task_failed(failed).await, Code::NotFound, &message);
    given.stop().await;
}
