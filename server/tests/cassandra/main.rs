//! Whole nodes on a real Cassandra: what they cost it, counted in statements, and two that want the same shard. A binary of its
//! own, so that the simulations do not take the processor from what is counted here.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cluster::env::Env;
use persistence_cql::config::Replication;
use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use server::config::{Config, EngineKind};
use server::node::Node;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use uuid::Uuid;

#[path = "../it/given.rs"]
#[expect(dead_code, reason = "the tests on the embedded store use more of it")]
mod given;
#[path = "../it/paging.rs"]
mod paging;
#[path = "../it/query_table.rs"]
mod query_table;
mod lists;

const NAMESPACE: &str = "default";

/// How many batches a crowd takes depends on how fast it is served: those who count have the machine to themselves.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// One shard on a keyspace that no other test uses; the node makes the schema.
fn config() -> Config {
    let address = std::env::var("EVERROW_TEST_CASSANDRA")
        .expect("EVERROW_TEST_CASSANDRA names no host:port; run these tests with `cargo xtask test`");
    let mut config = Config::default();
    config.frontend.listen.set_port(0);
    config.cluster.shards = 1;
    config.cluster.namespaces = vec![NAMESPACE.into()];
    config.store.engine = EngineKind::Cassandra;
    config.store.cassandra.contact_points = vec![address];
    config.store.cassandra.keyspace = format!("test_{}", Uuid::new_v4().simple());
    config.store.cassandra.replication = Some(Replication::Copies(1));
    config
}

async fn start(config: &Config) -> (Node, WorkflowServiceClient<Channel>) {
    let node = Node::start(config.clone(), Env::system()).await.expect("the node starts");
    let address = format!("http://{}", node.address());
    let channel = Channel::from_shared(address).expect("an address").connect().await.expect("the node listens");
    let client = WorkflowServiceClient::new(channel);
    (node, client)
}

fn start_request(workflow_id: &str) -> public::StartWorkflowExecutionRequest {
    public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "counted".into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        request_id: format!("start-{workflow_id}"),
        ..Default::default()
    }
}

fn signal_request(workflow_id: &str, request_id: &str) -> public::SignalWorkflowExecutionRequest {
    public::SignalWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(execution(workflow_id)),
        signal_name: "count".into(),
        request_id: request_id.into(),
        ..Default::default()
    }
}

fn execution(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.into(), run_id: String::new() }
}

async fn history(client: &mut WorkflowServiceClient<Channel>, workflow_id: &str) -> Vec<HistoryEvent> {
    let mut events = Vec::new();
    let mut next_page_token = bytes::Bytes::new();
    loop {
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: Some(execution(workflow_id)),
            next_page_token,
            ..Default::default()
        };
        let page = client.get_workflow_execution_history(request).await.expect("history can be read").into_inner();
        events.extend(page.history.unwrap_or_default().events);
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return events;
        }
    }
}

/// Request ids of the signals, in the order of history, which must have no gap.
fn signals(events: &[HistoryEvent]) -> Vec<String> {
    for (expected_id, event) in (1..).zip(events) {
        assert_eq!(event.event_id, expected_id, "a gap in history");
    }
    let signals = events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => Some(signal.request_id.clone()),
        _ => None,
    });
    signals.collect()
}

/// Crowds that come one after the other.
const CROWDS: usize = 3;

fn conditional_writes(node: &Node) -> u64 {
    node.counts().conditional_writes.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_concurrent_starts_on_one_shard_take_at_most_sixteen_conditional_batches() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (node, client) = start(&config()).await;
    let mut took = Vec::new();
    // How many find one another depends on how they get at the processors: the best of a few crowds counts.
    for crowd in 0..CROWDS {
        let before = conditional_writes(&node);
        let mut starts = JoinSet::new();
        for n in 0..64 {
            let (mut client, request) = (client.clone(), start_request(&format!("counted-{crowd}-{n}")));
            starts.spawn(async move { client.start_workflow_execution(request).await });
        }
        for started in starts.join_all().await {
            started.expect("every start is granted");
        }
        took.push(conditional_writes(&node) - before);
    }
    eprintln!("64 starts took {took:?} conditional batches");
    assert!(took.iter().any(|n_batches| *n_batches <= 16), "64 starts took {took:?} conditional batches");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_signals_at_once_take_at_most_a_hundred_conditional_batches_and_none_is_lost() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (node, mut client) = start(&config()).await;
    let mut took = Vec::new();
    for crowd in 0..CROWDS {
        let workflow_id = format!("signaled-{crowd}");
        client.start_workflow_execution(start_request(&workflow_id)).await.expect("the start is granted");
        let before = conditional_writes(&node);
        let mut senders = JoinSet::new();
        for n in 0..1000 {
            let (mut client, request) = (client.clone(), signal_request(&workflow_id, &format!("{n:04}")));
            senders.spawn(async move { client.signal_workflow_execution(request).await });
        }
        for sent in senders.join_all().await {
            sent.expect("every signal is granted");
        }
        took.push(conditional_writes(&node) - before);
        let mut received = signals(&history(&mut client, &workflow_id).await);
        received.sort_unstable();
        let sent: Vec<String> = (0..1000).map(|n| format!("{n:04}")).collect();
        assert_eq!(received, sent);
    }
    eprintln!("1000 signals took {took:?} conditional batches");
    assert!(took.iter().any(|n_batches| *n_batches <= 100), "1000 signals took {took:?} conditional batches");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_of_one_sender_arrive_in_its_order_among_those_of_others() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (node, mut client) = start(&config()).await;
    client.start_workflow_execution(start_request("ordered")).await.expect("the start is granted");
    let mut senders = JoinSet::new();
    for sender in 0..20 {
        let mut client = client.clone();
        senders.spawn(async move {
            for n in 0..10 {
                let request = signal_request("ordered", &format!("{sender:02}/{n}"));
                client.signal_workflow_execution(request).await.expect("every signal is granted");
            }
        });
    }
    senders.join_all().await;
    let mut by_sender: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for signal in signals(&history(&mut client, "ordered").await) {
        let (sender, n) = signal.split_once('/').expect("the ids are ours");
        by_sender.entry(sender.into()).or_default().push(n.into());
    }
    assert_eq!(by_sender.len(), 20);
    for (sender, order) in by_sender {
        assert!(order.is_sorted() && order.len() == 10, "sender {sender} was heard as {order:?}");
    }
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_sends_nothing_but_its_heartbeat() {
    let (node, mut client) = start(&config()).await;
    for n in 0..5 {
        client.start_workflow_execution(start_request(&format!("idle-{n}"))).await.expect("the start is granted");
    }
    // The last checkpoints are written a while after the last change; idle begins when no commit came for longer.
    let counts = node.counts();
    let mut quiet_since = tokio::time::Instant::now();
    let mut seen = conditional_writes(&node);
    while quiet_since.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = conditional_writes(&node);
        if now != seen {
            (seen, quiet_since) = (now, tokio::time::Instant::now());
        }
    }
    let reads = counts.reads.load(Ordering::Relaxed);
    let plain_writes = counts.plain_writes.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(conditional_writes(&node), seen, "an idle server commits nothing");
    assert_eq!(counts.reads.load(Ordering::Relaxed), reads, "an idle server reads nothing");
    let heartbeats = counts.plain_writes.load(Ordering::Relaxed) - plain_writes;
    // One each 7.5 to 15 s.
    assert!((1..=5).contains(&heartbeats), "{heartbeats} plain writes in 30 s");
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_nodes_fighting_for_a_shard_the_deposed_one_writes_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let config = config();
    let (one, mut client) = start(&config).await;
    let (other, other_client) = start(&config).await;
    client.start_workflow_execution(start_request("disputed")).await.expect("the start is granted");
    let mut senders = JoinSet::new();
    for sender in 0..8 {
        let clients = [client.clone(), other_client.clone()];
        senders.spawn(async move {
            for n in 0..5 {
                let request_id = format!("{sender}/{n}");
                let mut turn = sender + n;
                loop {
                    let mut client = clients[turn % 2].clone();
                    match client.signal_workflow_execution(signal_request("disputed", &request_id)).await {
                        Ok(_) => break,
                        Err(status) => assert!(is_worth_another_try(&status), "refused: {status:?}"),
                    }
                    turn += 1;
                }
            }
        });
    }
    senders.join_all().await;
    other.shutdown().await;
    let received = signals(&history(&mut client, "disputed").await);
    let mut unique = received.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), received.len(), "a signal came twice: {received:?}");
    assert_eq!(received.len(), 40, "a signal that was acknowledged is missing: {received:?}");
    one.shutdown().await;
}

fn is_worth_another_try(status: &tonic::Status) -> bool {
    matches!(status.code(), tonic::Code::Unavailable | tonic::Code::DeadlineExceeded | tonic::Code::ResourceExhausted)
}
