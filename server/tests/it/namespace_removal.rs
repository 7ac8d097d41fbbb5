//! A namespace is deleted with everything in it: the rows of the store are looked at afterwards.

use std::sync::Arc;
use std::time::Duration;

use persistence::embedded::{Embedded, Options};
use persistence::engine::{Engine, KeyRange, Partition, Row, Slice};
use persistence::stores::Stores;
use persistence::table::Value;
use persistence::tables;
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::NamespaceState;
use proto::temporal::api::nexus::v1::endpoint_target::{Variant, Worker};
use proto::temporal::api::nexus::v1::{EndpointSpec, EndpointTarget};
use proto::temporal::api::operatorservice::v1 as operator;
use proto::temporal::api::schedule::v1 as schedule;
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;
use tempfile::TempDir;
use tonic::Code;
use uuid::Uuid;
use workflow::NamespaceId;

use crate::by_hand::{ByHand, PATIENCE};
use crate::given::{Given, a_node, a_node_in, config, detail, hours, refused, register, with_deleted};

const DOOMED: &str = "doomed";
const N_RUNS: usize = 60;

async fn id_of(given: &Given, name: &str) -> Uuid {
    let request = public::DescribeNamespaceRequest { namespace: name.into(), ..Default::default() };
    let described = given.client().describe_namespace(request).await.expect("it is there").into_inner();
    described.namespace_info.expect("info").id.parse().expect("an id")
}

async fn delete(given: &Given, request: operator::DeleteNamespaceRequest) -> Result<String, tonic::Status> {
    Ok(given.operator().delete_namespace(request).await?.into_inner().deleted_namespace)
}

fn named(namespace: &str) -> operator::DeleteNamespaceRequest {
    operator::DeleteNamespaceRequest { namespace: namespace.into(), ..Default::default() }
}

async fn until_gone(given: &Given, name: &str) {
    let gone = async {
        let request = public::DescribeNamespaceRequest { namespace: name.into(), ..Default::default() };
        while given.client().describe_namespace(request.clone()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the namespace goes");
}

/// Waits out the visibility lag, so that there are rows to remove.
async fn until_listed(given: &Given, n_runs: usize) {
    let listed = async {
        let request = public::ListWorkflowExecutionsRequest { namespace: DOOMED.into(), ..Default::default() };
        while given
            .client()
            .list_workflow_executions(request.clone())
            .await
            .expect("a list")
            .into_inner()
            .executions
            .len()
            < n_runs
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.expect("the runs are listed");
}

/// Runs of all kinds: open, closed, with tasks that nobody polls, with a timer that is far away.
async fn fill(given: &Given) -> Vec<Uuid> {
    let mut runs = Vec::new();
    for n in 0..N_RUNS {
        let by_hand = ByHand::elsewhere(given, DOOMED, &format!("run-{n}"));
        let start = public::StartWorkflowExecutionRequest {
            workflow_run_timeout: hours(1000),
            task_queue: Some(ByHand::elsewhere(given, DOOMED, "common").queue()),
            ..by_hand.start_request()
        };
        let started = by_hand.client().start_workflow_execution(start).await.expect("a start").into_inner();
        runs.push(started.run_id.parse().expect("an id"));
        if n % 3 == 0 {
            by_hand.terminate().await;
        }
    }
    runs
}

/// What the store has of a namespace and of these runs.
struct Store {
    engine: Arc<dyn Engine>,
    n_shards: i32,
}

impl Store {
    fn open(directory: &TempDir) -> Self {
        let config = config(directory);
        let engine = Embedded::open(&config.store.embedded.data, Options::default()).expect("the store opens");
        Self { engine, n_shards: config.cluster.shards }
    }

    async fn rows(&self, partition: Partition) -> Vec<Row> {
        let page = self.engine.read(Slice::new(partition, KeyRange::all(), 100_000)).await.expect("rows");
        assert!(page.next.is_none());
        page.rows
    }

    async fn segments(&self, namespace: Uuid) -> Vec<i64> {
        let stores = Stores::new(Arc::clone(&self.engine));
        let segments = stores.visibility.segments(NamespaceId(namespace)).await.expect("segments");
        segments.into_iter().map(|segment| segment.id).collect()
    }

    /// Rows in shards, histories, lists, backlogs, and of the namespace itself.
    async fn count(&self, namespace: Uuid, runs: &[Uuid], segments: &[i64]) -> [usize; 5] {
        let mut n_rows = [0; 5];
        for shard in 1..=self.n_shards {
            let rows = self.rows(Partition::new(&tables::EXECUTIONS, vec![Value::Int(shard)])).await;
            n_rows[0] += rows.iter().filter(|row| mentions(row, namespace)).count();
        }
        for run in runs {
            for table in [&tables::HISTORY_NODE, &tables::HISTORY_TREE] {
                n_rows[1] += self.rows(Partition::new(table, vec![Value::Uuid(*run)])).await.len();
            }
        }
        for segment in [0].iter().chain(segments) {
            let key = vec![Value::Uuid(namespace), Value::Bigint(*segment)];
            n_rows[2] += self.rows(Partition::new(&tables::VISIBILITY, key)).await.len();
        }
        let queue = vec![Value::Uuid(namespace), Value::from("common"), Value::Int(1)];
        n_rows[3] += self.rows(Partition::new(&tables::TASK_QUEUES, queue)).await.len();
        n_rows[3] += self.rows(Partition::new(&tables::TASK_QUEUE_NAMES, vec![Value::Uuid(namespace)])).await.len();
        let namespaces = self.rows(Partition::new(&tables::NAMESPACES, vec![Value::Int(0)])).await;
        n_rows[4] += namespaces.iter().filter(|row| mentions(row, namespace)).count();
        n_rows
    }
}

/// By its key, or within its record.
fn mentions(row: &Row, namespace: Uuid) -> bool {
    let (bytes, text) = (namespace.as_bytes().as_slice(), namespace.to_string());
    row.key.iter().chain(&row.values).any(|value| match value {
        Value::Uuid(id) => *id == namespace,
        Value::Text(found) => **found == *text,
        Value::Blob(data) => data.windows(bytes.len()).any(|window| window == bytes),
        Value::Int(_) | Value::Bigint(_) => false,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_deleted_namespace_though_the_node_stops_meanwhile() {
    let given = a_node().await;
    given.client().register_namespace(register(DOOMED)).await.expect("it is registered");
    let namespace = id_of(&given, DOOMED).await;
    let runs = fill(&given).await;
    until_listed(&given, N_RUNS).await;
    let directory = given.stop().await;
    let store = Store::open(&directory);
    let segments = store.segments(namespace).await;
    let before = store.count(namespace, &runs, &segments).await;
    assert!(before.iter().all(|n_rows| *n_rows > 0) && before[0] > 2 * N_RUNS, "{before:?}");
    drop(store);

    let given = a_node_in(directory).await;
    let deleted = delete(&given, named(DOOMED)).await.expect("it is deleted");
    assert_eq!(deleted, format!("{DOOMED}-deleted-{}", &namespace.to_string()[..5]));
    // In the middle of it, or not: either way it goes on.
    let given = a_node_in(given.stop().await).await;
    until_gone(&given, &deleted).await;
    given.client().register_namespace(register(DOOMED)).await.expect("the name is free again");
    assert_ne!(id_of(&given, DOOMED).await, namespace);

    let store = Store::open(&given.stop().await);
    assert_eq!(store.count(namespace, &runs, &segments).await, [0; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_namespace_has_another_name_and_answers_nothing_while_it_waits_to_go() {
    let given = a_node().await;
    given.client().register_namespace(register(DOOMED)).await.expect("it is registered");
    let namespace = id_of(&given, DOOMED).await.to_string();
    ByHand::elsewhere(&given, DOOMED, "run").start().await;
    let by_id = operator::DeleteNamespaceRequest {
        namespace_id: namespace.clone(),
        namespace_delete_delay: hours(1),
        ..Default::default()
    };
    let deleted = delete(&given, by_id.clone()).await.expect("it is deleted");
    let old = public::DescribeNamespaceRequest { namespace: DOOMED.into(), ..Default::default() };
    let message = format!("Namespace {DOOMED} is not found.");
    refused(given.client().describe_namespace(old).await, Code::NotFound, &message);
    let new = public::DescribeNamespaceRequest { namespace: deleted.clone(), ..Default::default() };
    let described = given.client().describe_namespace(new).await.expect("it is there").into_inner();
    assert_eq!(described.namespace_info.expect("info").state(), NamespaceState::Deleted);
    let start = ByHand::elsewhere(&given, &deleted, "run").start_request();
    let status = given.client().start_workflow_execution(start).await.expect_err("nothing starts there");
    assert_eq!(status.code(), Code::FailedPrecondition);
    let list = |filter| public::ListNamespacesRequest { namespace_filter: filter, ..Default::default() };
    let names = |page: public::ListNamespacesResponse| -> Vec<String> {
        page.namespaces.into_iter().filter_map(|one| one.namespace_info).map(|info| info.name).collect()
    };
    let all = given.client().list_namespaces(list(with_deleted())).await.expect("a list").into_inner();
    assert!(names(all).contains(&deleted));
    let shown = given.client().list_namespaces(list(None)).await.expect("a list").into_inner();
    assert!(!names(shown).contains(&deleted));

    let again = operator::DeleteNamespaceRequest { namespace_delete_delay: None, ..by_id };
    assert_eq!(delete(&given, again).await.expect("it is deleted sooner"), deleted);
    until_gone(&given, &deleted).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_needed_is_not_deleted() {
    let given = a_node().await;
    refused(delete(&given, named("")).await, Code::InvalidArgument, "Namespace not set on request.");
    let both = operator::DeleteNamespaceRequest { namespace_id: "x".into(), ..named("y") };
    let message = "Only one of namespace name or Id should be set on request.";
    refused(delete(&given, both).await, Code::InvalidArgument, message);
    let status = refused(delete(&given, named("nowhere")).await, Code::NotFound, "Namespace nowhere is not found.");
    let found: proto::temporal::api::errordetails::v1::NamespaceNotFoundFailure = detail(&status).expect("a detail");
    assert_eq!(found.namespace, "nowhere");
    refused(
        delete(&given, named("temporal-system")).await,
        Code::FailedPrecondition,
        "unable to delete system namespace",
    );

    given.client().register_namespace(register(DOOMED)).await.expect("it is registered");
    let worker = Worker { namespace: DOOMED.into(), task_queue: "queue".into() };
    let target = Some(EndpointTarget { variant: Some(Variant::Worker(worker)) });
    let spec = Some(EndpointSpec { name: "way-in".into(), target, description: None });
    given.operator().create_nexus_endpoint(operator::CreateNexusEndpointRequest { spec }).await.expect("an endpoint");
    refused(
        delete(&given, named(DOOMED)).await,
        Code::FailedPrecondition,
        "cannot delete a namespace that is a target of a Nexus endpoint way-in",
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_of_a_deleted_namespace_acts_no_more() {
    let given = a_node().await;
    given.client().register_namespace(register(DOOMED)).await.expect("it is registered");
    let namespace = id_of(&given, DOOMED).await;
    let interval = schedule::IntervalSpec { interval: hours(24), phase: None };
    let start = NewWorkflowExecutionInfo {
        workflow_id: "report".into(),
        workflow_type: Some(WorkflowType { name: "Report".into() }),
        task_queue: Some(ByHand::new(&given, "common").queue()),
        ..Default::default()
    };
    let definition = schedule::Schedule {
        spec: Some(schedule::ScheduleSpec { interval: vec![interval], ..Default::default() }),
        action: Some(schedule::ScheduleAction { action: Some(Action::StartWorkflow(start)) }),
        ..Default::default()
    };
    let request = public::CreateScheduleRequest {
        namespace: DOOMED.into(),
        schedule_id: "reports".into(),
        schedule: Some(definition),
        request_id: "once".into(),
        ..Default::default()
    };
    given.client().create_schedule(request).await.expect("a schedule");
    let deleted = delete(&given, named(DOOMED)).await.expect("it is deleted");
    until_gone(&given, &deleted).await;
    let store = Store::open(&given.stop().await);
    assert_eq!(store.count(namespace, &[], &[]).await, [0; 5]);
}
