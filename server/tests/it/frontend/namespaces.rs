//! Namespaces from outside.

use std::collections::BTreeSet;

use proto::temporal::api::enums::v1::NamespaceState;
use proto::temporal::api::errordetails::v1 as details;
use proto::temporal::api::namespace::v1::{NamespaceConfig, UpdateNamespaceInfo};
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;
use tonic::transport::Channel;

use crate::given::{NAMESPACE, a_node, a_node_in, detail, hours, refused, register, with_deleted};

type Client = proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient<Channel>;

async fn describe(client: &mut Client, name: &str) -> Result<public::DescribeNamespaceResponse, tonic::Status> {
    let request = public::DescribeNamespaceRequest { namespace: name.into(), ..Default::default() };
    client.describe_namespace(request).await.map(tonic::Response::into_inner)
}

fn set_state(name: &str, state: NamespaceState) -> public::UpdateNamespaceRequest {
    public::UpdateNamespaceRequest {
        namespace: name.into(),
        update_info: Some(UpdateNamespaceInfo { state: state.into(), ..Default::default() }),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_registered_is_described_by_name_and_by_id_and_survives_a_restart() {
    let given = a_node().await;
    let mut client = given.client();
    let request = public::RegisterNamespaceRequest {
        description: "orders of all kinds".into(),
        owner_email: "orders@example.com".into(),
        data: [("team".to_owned(), "blue".to_owned())].into(),
        ..register("orders")
    };
    client.register_namespace(request).await.unwrap();
    let by_name = describe(&mut client, "orders").await.unwrap();
    let info = by_name.namespace_info.clone().unwrap();
    assert_eq!((info.name.as_str(), info.description.as_str()), ("orders", "orders of all kinds"));
    assert_eq!((info.owner_email.as_str(), info.data["team"].as_str()), ("orders@example.com", "blue"));
    assert_eq!(info.state(), NamespaceState::Registered);
    assert_eq!(info.limits.unwrap().blob_size_limit_error, 2 << 20);
    assert_eq!(by_name.config.as_ref().unwrap().workflow_execution_retention_ttl, hours(24));
    assert_eq!(by_name.replication_config.as_ref().unwrap().active_cluster_name, "active");

    let request = public::DescribeNamespaceRequest { id: info.id, ..Default::default() };
    assert_eq!(client.describe_namespace(request.clone()).await.unwrap().into_inner(), by_name);
    let given = a_node_in(given.stop().await).await;
    assert_eq!(given.client().describe_namespace(request).await.unwrap().into_inner(), by_name);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_registered_once() {
    let given = a_node().await;
    let mut client = given.client();
    client.register_namespace(register("orders")).await.unwrap();
    let status = refused(
        client.register_namespace(register("orders")).await,
        Code::AlreadyExists,
        r#"Namespace "orders" already exists"#,
    );
    assert!(detail::<details::NamespaceAlreadyExistsFailure>(&status).is_some());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_registration_is_refused() {
    let given = a_node().await;
    let mut client = given.client();
    let no_retention = public::RegisterNamespaceRequest { workflow_execution_retention_period: None, ..register("a") };
    let short = public::RegisterNamespaceRequest {
        workflow_execution_retention_period: Some(prost_types::Duration { seconds: 3599, nanos: 0 }),
        ..register("a")
    };
    let negative = public::RegisterNamespaceRequest { workflow_execution_retention_period: hours(-1), ..register("a") };
    let global = public::RegisterNamespaceRequest { is_global_namespace: true, ..register("a") };
    let elsewhere = public::RegisterNamespaceRequest { active_cluster_name: "mars".into(), ..register("a") };
    let retention = "A valid retention period is not set on request.";
    let cases = [
        (register(""), "Namespace not set on request."),
        (register(&"x".repeat(1001)), "Namespace length exceeds limit."),
        (no_retention, retention),
        (short, retention),
        (negative, retention),
        (global, "Cannot register global namespace when not enabled"),
        (elsewhere, "Invalid cluster name: mars"),
    ];
    for (request, message) in cases {
        refused(client.register_namespace(request).await, Code::InvalidArgument, message);
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_namespace_is_not_found_with_its_name_as_a_detail() {
    let given = a_node().await;
    let mut client = given.client();
    for _ in 0..2 {
        let status = refused(describe(&mut client, "nowhere").await, Code::NotFound, "Namespace nowhere is not found.");
        let failure: details::NamespaceNotFoundFailure = detail(&status).unwrap();
        assert_eq!(failure.namespace, "nowhere");
        let start = public::StartWorkflowExecutionRequest { namespace: "nowhere".into(), ..Default::default() };
        let answer = client.start_workflow_execution(start).await;
        refused(answer, Code::NotFound, "Namespace nowhere is not found.");
    }
    // Registered, it is there at once, although it was just missed.
    client.register_namespace(register("nowhere")).await.unwrap();
    let start = public::StartWorkflowExecutionRequest { namespace: "nowhere".into(), ..Default::default() };
    refused(client.start_workflow_execution(start).await, Code::InvalidArgument, "WorkflowId is not set on request.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_wants_a_name_or_an_id() {
    let given = a_node().await;
    let mut client = given.client();
    let neither = public::DescribeNamespaceRequest::default();
    refused(client.describe_namespace(neither).await, Code::InvalidArgument, "Namespace not set on request.");
    let both = public::DescribeNamespaceRequest { namespace: NAMESPACE.into(), id: "x".into(), ..Default::default() };
    refused(
        client.describe_namespace(both).await,
        Code::InvalidArgument,
        "GetNamespace operation failed.  Both ID and Name specified in request.",
    );
    let odd = public::DescribeNamespaceRequest { id: "not-a-uuid".into(), ..Default::default() };
    refused(client.describe_namespace(odd).await, Code::NotFound, "Namespace not-a-uuid is not found.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_what_it_names() {
    let given = a_node().await;
    let mut client = given.client();
    let update = public::UpdateNamespaceRequest {
        namespace: NAMESPACE.into(),
        update_info: Some(UpdateNamespaceInfo {
            description: "new".into(),
            data: [("a".to_owned(), "b".to_owned())].into(),
            ..Default::default()
        }),
        config: Some(NamespaceConfig { workflow_execution_retention_ttl: hours(48), ..Default::default() }),
        ..Default::default()
    };
    let updated = client.update_namespace(update).await.unwrap().into_inner();
    assert_eq!(updated.config.as_ref().unwrap().workflow_execution_retention_ttl, hours(48));
    let described = describe(&mut client, NAMESPACE).await.unwrap();
    assert_eq!((updated.namespace_info, updated.config), (described.namespace_info, described.config));

    let short = public::UpdateNamespaceRequest {
        namespace: NAMESPACE.into(),
        config: Some(NamespaceConfig {
            workflow_execution_retention_ttl: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let message = "A valid retention period is not set on request.";
    refused(client.update_namespace(short).await, Code::InvalidArgument, message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deprecated_namespace_starts_nothing_and_a_deleted_one_answers_nothing() {
    let given = a_node().await;
    let mut client = given.client();
    client.register_namespace(register("old")).await.unwrap();
    let request = public::DeprecateNamespaceRequest { namespace: "old".into(), ..Default::default() };
    client.deprecate_namespace(request).await.unwrap();
    let start = public::StartWorkflowExecutionRequest { namespace: "old".into(), ..Default::default() };
    let status = refused(
        client.start_workflow_execution(start.clone()).await,
        Code::FailedPrecondition,
        "Namespace has invalid state: Deprecated. Must be Registered.",
    );
    let failure: details::NamespaceInvalidStateFailure = detail(&status).unwrap();
    assert_eq!((failure.state(), failure.namespace.as_str()), (NamespaceState::Deprecated, "old"));
    let signal = public::SignalWorkflowExecutionRequest { namespace: "old".into(), ..Default::default() };
    let answer = client.signal_workflow_execution(signal.clone()).await;
    refused(answer, Code::InvalidArgument, "Execution is not set on request.");

    let back = client.update_namespace(set_state("old", NamespaceState::Registered)).await;
    refused(back, Code::InvalidArgument, "Invalid namespace state update.");
    client.update_namespace(set_state("old", NamespaceState::Deleted)).await.unwrap();
    refused(
        client.signal_workflow_execution(signal).await,
        Code::FailedPrecondition,
        "Namespace has invalid state: Deleted. Must be Registered or Deprecated.",
    );
    assert_eq!(describe(&mut client, "old").await.unwrap().namespace_info.unwrap().state(), NamespaceState::Deleted);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_in_pages_has_every_namespace_once() {
    let given = a_node().await;
    let mut client = given.client();
    for number in 0..25 {
        client.register_namespace(register(&format!("n{number}"))).await.unwrap();
    }
    client.update_namespace(set_state("n7", NamespaceState::Deleted)).await.unwrap();
    let mut seen = Vec::new();
    let mut request =
        public::ListNamespacesRequest { page_size: 4, namespace_filter: with_deleted(), ..Default::default() };
    loop {
        let page = client.list_namespaces(request.clone()).await.unwrap().into_inner();
        seen.extend(page.namespaces.into_iter().map(|namespace| namespace.namespace_info.unwrap().name));
        request.next_page_token = page.next_page_token;
        if request.next_page_token.is_empty() {
            break;
        }
    }
    let names: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!((seen.len(), names.len()), (27, 27), "no double: {seen:?}");
    assert!(names.contains("temporal-system") && names.contains(NAMESPACE) && names.contains("n7"));

    let all = client.list_namespaces(public::ListNamespacesRequest::default()).await.unwrap().into_inner();
    assert_eq!(all.namespaces.len(), 26, "deleted ones are left out");
    given.stop().await;
}
