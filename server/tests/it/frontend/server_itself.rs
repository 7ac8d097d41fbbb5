//! What the server says of itself, and how it starts and stops.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cluster::env::Env;
use proto::temporal::api::enums::v1::IndexedValueType;
use proto::temporal::api::operatorservice::v1::ListSearchAttributesRequest;
use proto::temporal::api::workflowservice::v1 as public;
use server::node::{Node, StartError};
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

use crate::given::{self, NAMESPACE, a_node, a_node_in, config, refused};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_answers_within_a_second_of_its_start() {
    const STARTS: usize = 5;
    let mut took = Vec::new();
    // Other tests have the processors too: the quickest of a few starts counts.
    let (given, info) = loop {
        let began = Instant::now();
        let given = a_node().await;
        let info = given.client().get_system_info(public::GetSystemInfoRequest {}).await.unwrap().into_inner();
        took.push(began.elapsed());
        if took.iter().any(|took| *took < Duration::from_secs(1)) {
            break (given, info);
        }
        assert!(took.len() < STARTS, "{took:?}");
        given.stop().await;
    };
    assert_eq!(info.server_version, "1.32.0");
    let capabilities = info.capabilities.unwrap();
    assert!(capabilities.internal_error_differentiation && capabilities.sdk_metadata);
    assert!(capabilities.signal_and_query_header && capabilities.eager_workflow_start);
    assert!(capabilities.supports_schedules && !capabilities.nexus, "only what is built");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_keeps_its_id_and_shards_over_restarts() {
    let given = a_node().await;
    let before = given.client().get_cluster_info(public::GetClusterInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((before.history_shard_count, before.persistence_store.as_str()), (2, "embedded"));
    let given = a_node_in(given.stop().await).await;
    let after = given.client().get_cluster_info(public::GetClusterInfoRequest {}).await.unwrap().into_inner();
    assert_eq!(before, after);
    let directory = given.stop().await;

    let mut other = config(&directory);
    other.cluster.shards = 3;
    let error = Node::start(other, Env::system()).await.err().unwrap();
    assert!(matches!(&error, StartError::OtherCluster(_)), "{error}");
    assert!(error.to_string().contains("made with 2 shards and the configuration says 3"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named() {
    let given = a_node().await;
    let directory = tempfile::tempdir().unwrap();
    let mut second = config(&directory);
    second.frontend.listen = given.node.address();
    let error = Node::start(second, Env::system()).await.err().unwrap().to_string();
    assert!(error.contains(&given.node.address().to_string()), "{error}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_use_is_named() {
    let given = a_node().await;
    let error = Node::start(config(&given.directory), Env::system()).await.err().unwrap();
    assert!(matches!(error, StartError::Store { .. }), "{error}");
    assert!(error.to_string().contains("data"), "{error}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_serving_under_the_names_that_are_asked_for() {
    let given = a_node().await;
    let mut health = HealthClient::new(given.channel.clone());
    for service in ["", "temporal.api.workflowservice.v1.WorkflowService"] {
        let answer = health.check(HealthCheckRequest { service: service.into() }).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
    let mut compressing = HealthClient::new(given.channel.clone()).send_compressed(CompressionEncoding::Gzip);
    compressing.check(HealthCheckRequest::default()).await.unwrap();
    let unknown = health.check(HealthCheckRequest { service: "nobody".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_the_services_in_both_versions() {
    let given = a_node().await;
    let expect = "temporal.api.workflowservice.v1.WorkflowService";

    let list = v1::ServerReflectionRequest {
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(given.channel.clone());
    let mut answers = client.server_reflection_info(futures_util::stream::iter([list])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    assert!(format!("{answer:?}").contains(expect));

    let list = v1alpha::ServerReflectionRequest {
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(given.channel.clone());
    let mut answers = client.server_reflection_info(futures_util::stream::iter([list])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    assert!(format!("{answer:?}").contains(expect));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn system_search_attributes_are_known() {
    let given = a_node().await;
    let keys = given.client().get_search_attributes(public::GetSearchAttributesRequest {}).await.unwrap().into_inner();
    assert_eq!(keys.keys.get("StartTime"), Some(&IndexedValueType::Datetime.into()));
    let listed = given
        .operator()
        .list_search_attributes(ListSearchAttributesRequest { namespace: NAMESPACE.into() })
        .await
        .unwrap();
    let (places, of_server): (HashMap<String, i32>, HashMap<String, i32>) =
        keys.keys.into_iter().partition(|(name, _)| name.ends_with(|c: char| c.is_ascii_digit()));
    assert_eq!(listed.into_inner().system_attributes, of_server);
    assert_eq!(places.len(), 28);
    assert_eq!(places.get("Keyword10"), Some(&IndexedValueType::Keyword.into()));
    assert_eq!(places.get("KeywordList03"), Some(&IndexedValueType::KeywordList.into()));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_built_says_so_by_name() {
    let given = a_node().await;
    let answer = given.client().create_workflow_rule(public::CreateWorkflowRuleRequest::default()).await;
    refused(answer, Code::Unimplemented, "CreateWorkflowRule is not built yet");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_of_workers_are_taken() {
    let given = a_node().await;
    let request = public::RecordWorkerHeartbeatRequest { namespace: NAMESPACE.into(), ..Default::default() };
    given.client().record_worker_heartbeat(request).await.unwrap();
    let answer = given.client().record_worker_heartbeat(public::RecordWorkerHeartbeatRequest::default()).await;
    refused(answer, Code::InvalidArgument, "Namespace is empty.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_listens_no_more() {
    let given = a_node().await;
    let address = given.node.address();
    given.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_in_memory_serves_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(&directory);
    config.store.engine = server::config::EngineKind::Memory;
    let node = Node::start(config, Env::system()).await.unwrap();
    let channel = given::connect(&node).await;
    let given = given::Given { node, channel, directory };
    let request = public::DescribeNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() };
    given.client().describe_namespace(request).await.unwrap();
    given.stop().await;
}
