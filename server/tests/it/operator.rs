//! What operators define: Nexus endpoints, and which clusters there are.

use proto::temporal::api::common::v1::Payload;
use proto::temporal::api::nexus::v1::endpoint_target::{External, Variant, Worker};
use proto::temporal::api::nexus::v1::{Endpoint, EndpointSpec, EndpointTarget};
use proto::temporal::api::operatorservice::v1 as operator;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::given::{Given, NAMESPACE, a_node, a_node_in, refused};

fn to_worker(namespace: &str, task_queue: &str) -> Option<EndpointTarget> {
    let worker = Worker { namespace: namespace.into(), task_queue: task_queue.into() };
    Some(EndpointTarget { variant: Some(Variant::Worker(worker)) })
}

fn to_url(url: &str) -> Option<EndpointTarget> {
    Some(EndpointTarget { variant: Some(Variant::External(External { url: url.into() })) })
}

fn spec(name: &str, target: Option<EndpointTarget>) -> EndpointSpec {
    EndpointSpec { name: name.into(), target, description: None }
}

async fn create(given: &Given, spec: EndpointSpec) -> Result<Endpoint, Status> {
    let request = operator::CreateNexusEndpointRequest { spec: Some(spec) };
    Ok(given.operator().create_nexus_endpoint(request).await?.into_inner().endpoint.expect("an endpoint"))
}

async fn update(given: &Given, id: &str, version: i64, spec: EndpointSpec) -> Result<Endpoint, Status> {
    let request = operator::UpdateNexusEndpointRequest { id: id.into(), version, spec: Some(spec) };
    Ok(given.operator().update_nexus_endpoint(request).await?.into_inner().endpoint.expect("an endpoint"))
}

async fn list(given: &Given, name: &str) -> Vec<Endpoint> {
    let mut request = operator::ListNexusEndpointsRequest { page_size: 2, name: name.into(), ..Default::default() };
    let mut endpoints = Vec::new();
    loop {
        let page = given.operator().list_nexus_endpoints(request.clone()).await.expect("a page").into_inner();
        endpoints.extend(page.endpoints);
        if page.next_page_token.is_empty() {
            return endpoints;
        }
        request.next_page_token = page.next_page_token;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_what_it_was_last_defined_as() {
    let given = a_node().await;
    let described = EndpointSpec {
        description: Some(Payload { data: "orders".into(), ..Default::default() }),
        ..spec("orders", to_worker(NAMESPACE, "orders"))
    };
    let created = create(&given, described.clone()).await.expect("it is created");
    assert_eq!((created.version, created.spec.as_ref()), (1, Some(&described)));
    assert!(created.created_time.is_some() && created.last_modified_time.is_none());
    assert_eq!(created.url_prefix, format!("/nexus/endpoints/{}/services", created.id));
    refused(
        create(&given, described.clone()).await,
        Code::AlreadyExists,
        "error creating Nexus endpoint. Endpoint with name orders already registered",
    );

    let moved = spec("orders", to_url("https://example.com/orders"));
    let updated = update(&given, &created.id, 1, moved.clone()).await.expect("it is updated");
    assert_eq!((updated.version, updated.spec.as_ref()), (2, Some(&moved)));
    assert!(updated.last_modified_time.is_some() && updated.created_time == created.created_time);
    refused(
        update(&given, &created.id, 1, moved.clone()).await,
        Code::FailedPrecondition,
        "nexus endpoint version mismatch. received: 1 expected 2",
    );

    let given = a_node_in(given.stop().await).await;
    let request = operator::GetNexusEndpointRequest { id: created.id.clone() };
    let read = given.operator().get_nexus_endpoint(request.clone()).await.expect("it is there").into_inner();
    assert_eq!(read.endpoint, Some(updated));
    let delete = operator::DeleteNexusEndpointRequest { id: created.id.clone(), version: 2 };
    given.operator().delete_nexus_endpoint(delete.clone()).await.expect("it is deleted");
    let message = format!("Nexus endpoint with ID `{}` not found", created.id);
    refused(given.operator().get_nexus_endpoint(request).await, Code::NotFound, &message);
    let message = format!("error deleting nexus endpoint with ID: {}", created.id);
    refused(given.operator().delete_nexus_endpoint(delete).await, Code::NotFound, &message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_are_listed_in_pages_and_by_name() {
    let given = a_node().await;
    for n in 0..5 {
        create(&given, spec(&format!("endpoint-{n}"), to_worker(NAMESPACE, "queue"))).await.expect("it is created");
    }
    let mut names: Vec<_> = list(&given, "").await.into_iter().map(|one| one.spec.expect("a spec").name).collect();
    names.sort();
    assert_eq!(names, ["endpoint-0", "endpoint-1", "endpoint-2", "endpoint-3", "endpoint-4"]);
    let found = list(&given, "endpoint-3").await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].spec.as_ref().map(|spec| spec.name.as_str()), Some("endpoint-3"));
    assert_eq!(list(&given, "endpoint-9").await, []);
    for (page_size, message) in [(-1, "page_size is negative"), (1001, "page_size exceeds limit of 1000")] {
        let request = operator::ListNexusEndpointsRequest { page_size, ..Default::default() };
        refused(given.operator().list_nexus_endpoints(request).await, Code::InvalidArgument, message);
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_endpoint_is_refused_with_all_that_is_wrong() {
    let given = a_node().await;
    let pattern = r#"endpoint name must match the regex: "^[a-zA-Z][a-zA-Z0-9\\-]*[a-zA-Z0-9]$""#;
    let long = "a".repeat(201);
    let cases = [
        (EndpointSpec::default(), "endpoint name not set, empty target variant".to_owned()),
        (spec("a_b", to_worker(NAMESPACE, "q")), pattern.to_owned()),
        (spec("a", to_worker(NAMESPACE, "q")), pattern.to_owned()),
        (spec(&long, to_worker(NAMESPACE, "q")), "endpoint name exceeds length limit of 200".to_owned()),
        (
            spec("a_b", to_worker("", "")),
            format!("{pattern}, target namespace not set, invalid target task queue: \"taskQueue is not set\""),
        ),
        (
            spec("ab", to_worker(NAMESPACE, "/_sys/x/1")),
            "invalid target task queue: \"task queue name cannot start with reserved prefix /_sys/\"".to_owned(),
        ),
        (spec("ab", to_url("")), "empty target URL".to_owned()),
        (spec("ab", to_url("ftp://x")), "invalid target URL scheme: \"ftp\", expected http or https".to_owned()),
    ];
    for (wrong, message) in cases {
        refused(create(&given, wrong).await, Code::InvalidArgument, &message);
    }
    refused(
        create(&given, spec("ab", to_worker("nowhere", "q"))).await,
        Code::FailedPrecondition,
        "could not verify namespace referenced by target exists: Namespace nowhere is not found.",
    );
    let request = operator::DeleteNexusEndpointRequest { id: "abc".into(), version: 0 };
    refused(
        given.operator().delete_nexus_endpoint(request).await,
        Code::InvalidArgument,
        "malformed endpoint ID: \"invalid UUID length: 3\", endpoint version is non-positive",
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_knows_itself_and_no_other() {
    let given = a_node().await;
    let listed = given.operator().list_clusters(operator::ListClustersRequest::default()).await;
    let clusters = listed.expect("a list").into_inner().clusters;
    let info = given.client().get_cluster_info(public::GetClusterInfoRequest {}).await.expect("info").into_inner();
    assert_eq!(clusters.len(), 1);
    assert_eq!((clusters[0].cluster_name.as_str(), &clusters[0].cluster_id), ("active", &info.cluster_id));
    assert_eq!(clusters[0].address, given.node.address().to_string());
    assert_eq!(clusters[0].history_shard_count, info.history_shard_count);
    let request = operator::RemoveRemoteClusterRequest { cluster_name: "elsewhere".into() };
    refused(
        given.operator().remove_remote_cluster(request).await,
        Code::NotFound,
        "The cluster to be deleted cannot be found in clusters cache.",
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_are_created_at_once_are_all_created() {
    const N: usize = 40;
    let given = a_node().await;
    let creations = (0..N).map(|n| create(&given, spec(&format!("endpoint-{n}"), to_worker(NAMESPACE, "orders"))));
    for created in futures_util::future::join_all(creations).await {
        created.expect("it is created");
    }
    let listed = list(&given, "").await;
    assert_eq!(listed.len(), N);
}
