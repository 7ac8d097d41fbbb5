//! A run with a damaged row: everything that is asked of it is refused without a word of the store's, save to end. Others
//! go on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use persistence::embedded::{Embedded, Options};
use persistence::engine::{Batch, Engine, KeyRange, Partition, Row, RowChange, Slice, Versioned};
use persistence::stores::Stores;
use persistence::stores::executions::{ItemKind, RowKind};
use persistence::stores::queues::QueueKey;
use persistence::stores::shards::{Claim, ShardId};
use persistence::table::Value;
use persistence::tables::{EXECUTIONS, VISIBILITY};
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{ScheduleActivityTaskCommandAttributes, StartTimerCommandAttributes};
use proto::temporal::api::common::v1::{ActivityType, WorkflowExecution};
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::workflowservice::v1 as public;
use tempfile::TempDir;
use tonic::Code;
use uuid::Uuid;

use crate::by_hand::ByHand;
use crate::commands::{command, names, queue};
use crate::given::{Given, NAMESPACE, a_node, a_node_in, refused};

/// What no record decodes from: a field that is longer than the row.
const GARBAGE: &[u8] = &[0x0a, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3];

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_run_can_be_terminated_and_deleted_whichever_row_is_damaged() {
    let given = a_node().await;
    // A run with its state, start, properties and an event that waits.
    let template = ByHand::new(&given, "template");
    prepare(&template).await;
    let directory = given.stop().await;
    let n_rows = rows_of(&directory, "template").await.len();
    assert!(n_rows >= 3, "{n_rows} rows");

    let given = a_node_in(directory).await;
    for row in 0..n_rows {
        prepare(&ByHand::new(&given, &format!("run-{row}"))).await;
    }
    let directory = given.stop().await;
    for row in 0..n_rows {
        damage(&directory, &format!("run-{row}"), row).await;
    }
    let given = a_node_in(directory).await;
    for row in 0..n_rows {
        ends(&given, &format!("run-{row}")).await;
    }
    // Others are as before.
    ByHand::new(&given, "template").describe().await;
    lists_agree(&given, 1 + n_rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_damaged_item_is_terminated_and_keeps_its_history() {
    let given = a_node().await;
    let template = ByHand::new(&given, "template");
    prepare_items(&template).await;
    let directory = given.stop().await;
    let items: Vec<usize> = items_of(&rows_of(&directory, "template").await);
    assert!(items.len() >= 3, "an activity, a timer and a buffered event: {items:?}");

    let given = a_node_in(directory).await;
    for item in &items {
        prepare_items(&ByHand::new(&given, &format!("run-{item}"))).await;
    }
    let directory = given.stop().await;
    for item in &items {
        damage(&directory, &format!("run-{item}"), *item).await;
    }
    let given = a_node_in(directory).await;
    for item in items {
        let workflow = ByHand::new(&given, &format!("run-{item}"));
        workflow.terminate().await;
        let events = names(&workflow.events().await);
        assert_eq!(events.first().map(String::as_str), Some("WorkflowExecutionStarted"), "row {item}: {events:?}");
        assert_eq!(events.last().map(String::as_str), Some("WorkflowExecutionTerminated"), "row {item}: {events:?}");
    }
}

/// A run with a pending activity, a timer, and a signal that is buffered behind a started workflow task.
async fn prepare_items(workflow: &ByHand) {
    let hour = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let timer = StartTimerCommandAttributes { timer_id: "t".into(), start_to_fire_timeout: hour };
    let activity = ScheduleActivityTaskCommandAttributes {
        activity_id: "a".into(),
        activity_type: Some(ActivityType { name: "a".into() }),
        task_queue: queue("nobody polls"),
        start_to_close_timeout: hour,
        ..Default::default()
    };
    workflow.start().await;
    let commands = vec![
        command(CommandType::StartTimer, Attributes::StartTimerCommandAttributes(timer)),
        command(CommandType::ScheduleActivityTask, Attributes::ScheduleActivityTaskCommandAttributes(activity)),
    ];
    workflow.work(commands).await;
    workflow.signal("first").await;
    assert!(!workflow.poll().await.task_token.is_empty());
    workflow.signal("buffered").await;
}

/// The places of the rows that are items of a run: neither its state, its start nor its properties.
fn items_of(rows: &[(Partition, Row)]) -> Vec<usize> {
    let is_item = |row: &Row| {
        let others = [ItemKind::State, ItemKind::Started, ItemKind::Properties].map(|kind| Value::Bigint(kind as i64));
        !others.contains(&row.key[4])
    };
    rows.iter().enumerate().filter(|(_, (_, row))| is_item(row)).map(|(place, _)| place).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_whose_current_row_is_damaged_is_described_terminated_and_deleted_without_a_run_id() {
    let given = a_node().await;
    let workflow = ByHand::new(&given, "renamed");
    let first = workflow.start().await;
    workflow.terminate().await;
    let second = workflow.start().await;
    assert_ne!(first, second);
    let directory = given.stop().await;
    damage_current(&directory, "renamed").await;

    let given = a_node_in(directory).await;
    let workflow = ByHand::new(&given, "renamed");
    let described = workflow.describe().await.workflow_execution_info.and_then(|info| info.execution);
    assert_eq!(described.expect("a run").run_id, second);
    workflow.signal("hello").await;
    workflow.terminate().await;
    let directory = given.stop().await;
    damage_current(&directory, "renamed").await;

    let given = a_node_in(directory).await;
    let workflow = ByHand::new(&given, "renamed");
    let request = public::DeleteWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(workflow.execution()),
    };
    given.client().delete_workflow_execution(request).await.expect("the newest run is deleted");
    workflow.start().await;
}

/// The row that names the newest run of a workflow.
async fn damage_current(directory: &TempDir, id: &str) {
    let engine = open(directory);
    let mut n_damaged = 0;
    for shard in 1..=2 {
        let partition = Partition::new(&EXECUTIONS, vec![Value::Int(shard)]);
        let current = KeyRange::prefix(vec![Value::Int(RowKind::Current as i32)]);
        let page = engine.read(Slice::new(partition.clone(), current, 10_000)).await.expect("rows are read");
        for mut row in page.rows.into_iter().filter(|row| row.key[2] == Value::Text(id.into())) {
            row.values[1] = Value::Blob(Bytes::from_static(GARBAGE));
            engine.write(Batch { puts: vec![row], ..Batch::new(partition.clone()) }).await.expect("a row is written");
            n_damaged += 1;
        }
    }
    assert_eq!(n_damaged, 1);
}

/// Rows of all queues of both shards, above what is acknowledged.
async fn damage_queues(directory: &TempDir) {
    let engine = open(directory);
    let stores = Stores::new(Arc::clone(&engine) as Arc<dyn Engine>);
    for shard in 1..=2 {
        let claim = Claim { owner: "test".into(), nonce: Uuid::from_u128(7) };
        let acked = stores.shards.acquire(ShardId(shard), claim).await.expect("the shard is taken").shard;
        let timer = (acked.timer_acked.fires_at.0 + 1, 1);
        for (kind, (sort_key, id)) in [
            (RowKind::TransferQueue, (0, acked.transfer_acked + 1)),
            (RowKind::VisibilityQueue, (0, acked.visibility_acked + 1)),
            (RowKind::TimerQueue, timer),
        ] {
            let nobody = [Value::Uuid(Uuid::nil()), Value::from(""), Value::Uuid(Uuid::nil())];
            let mut key = vec![Value::Int(kind as i32)];
            key.extend(nobody);
            key.extend([Value::Bigint(sort_key), Value::Bigint(id)]);
            let row = Row { key, values: vec![Value::Bigint(0), Value::Blob(Bytes::from_static(GARBAGE))] };
            let partition = Partition::new(&EXECUTIONS, vec![Value::Int(shard)]);
            engine.write(Batch { puts: vec![row], ..Batch::new(partition) }).await.expect("a row is written");
        }
    }
}

/// How many dead letters hold the garbage as it was.
async fn n_quarantined(directory: &TempDir) -> usize {
    let stores = Stores::new(open(directory) as Arc<dyn Engine>);
    let mut n_found = 0;
    for shard in 1..=2 {
        let queue = QueueKey { queue_type: 1, name: format!("shard-{shard}").into() };
        let page = stores.queues.read(&queue, 0, 100).await.expect("dead letters are read");
        let has_garbage = |payload: &[u8]| payload.windows(GARBAGE.len()).any(|part| part == GARBAGE);
        n_found += page.messages.iter().filter(|stored| has_garbage(&stored.message.payload)).count();
    }
    n_found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_of_a_queue_is_dead_lettered_once_and_the_queue_goes_on() {
    let directory = a_node().await.stop().await;
    damage_queues(&directory).await;
    let given = a_node_in(directory).await;
    for n in 0..8 {
        let workflow = ByHand::new(&given, &format!("run-{n}"));
        let run_timeout = Some(prost_types::Duration { seconds: 1, nanos: 0 });
        let request =
            public::StartWorkflowExecutionRequest { workflow_run_timeout: run_timeout, ..workflow.start_request() };
        workflow.client().start_workflow_execution(request).await.expect("a start");
        workflow.poll().await;
        workflow.event("WorkflowExecutionTimedOut").await;
    }
    lists_agree(&given, 8).await;
    let directory = given.stop().await;
    assert_eq!(n_quarantined(&directory).await, 6);
    let directory = a_node_in(directory).await.stop().await;
    assert_eq!(n_quarantined(&directory).await, 6, "the rows are gone from their queues");
}

/// Rows that an owner reads before it serves anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_whose_own_rows_are_damaged_is_served_and_counts_its_runs_again() {
    let given = a_node().await;
    for n in 0..6 {
        let workflow = ByHand::new(&given, &format!("run-{n}"));
        workflow.start().await;
        if n % 2 == 0 {
            workflow.terminate().await;
        }
    }
    let directory = given.stop().await;
    let n_counts = damage_all(&directory, RowKind::Counts).await;
    let n_closed = damage_all(&directory, RowKind::ClosedRuns).await;
    assert!(n_counts > 0 && n_closed > 0, "{n_counts} rows of counts, {n_closed} of closed runs");
    put_damaged_job(&directory).await;

    let given = a_node_in(directory).await;
    ByHand::new(&given, "run-1").terminate().await;
    ByHand::new(&given, "another").start().await;
    for (query, n_runs) in [("", 7), ("ExecutionStatus = 'Running'", 3), ("ExecutionStatus = 'Terminated'", 4)] {
        let (namespace, query) = (NAMESPACE.to_owned(), query.to_owned());
        let counted = public::CountWorkflowExecutionsRequest { namespace, query };
        let counted = given.client().count_workflow_executions(counted).await.expect("counts work").into_inner();
        assert_eq!(counted.count, n_runs);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_of_lists_is_left_out_and_the_others_are_listed() {
    let given = a_node().await;
    for n in 0..3 {
        ByHand::new(&given, &format!("run-{n}")).start().await;
    }
    let n_listed = async |given: &Given| {
        let list = public::ListWorkflowExecutionsRequest { namespace: NAMESPACE.into(), ..Default::default() };
        given.client().list_workflow_executions(list).await.expect("lists work").into_inner().executions.len()
    };
    while n_listed(&given).await < 3 {
        tokio::task::yield_now().await;
    }
    let directory = given.stop().await;
    damage_listed(&directory).await;
    let given = a_node_in(directory).await;
    assert_eq!(n_listed(&given).await, 2);
}

/// One run, in all the orders that lists have.
async fn damage_listed(directory: &TempDir) {
    let engine = open(directory);
    let stores = Stores::new(Arc::clone(&engine) as Arc<dyn Engine>);
    let namespace = stores.namespaces.get_by_name(NAMESPACE).await.expect("it is read").expect("it is there").id;
    let segments = stores.visibility.segments(namespace).await.expect("segments are read");
    let mut damaged_run = None;
    for segment in segments {
        let partition = Partition::new(&VISIBILITY, vec![Value::Uuid(namespace.0), Value::Bigint(segment.id)]);
        let page = engine.read(Slice::new(partition.clone(), KeyRange::all(), 10_000)).await.expect("rows are read");
        for mut row in page.rows {
            let has_record = row.values.iter().any(|value| matches!(value, Value::Blob(data) if !data.is_empty()));
            let run_id = row.key.last().cloned();
            if has_record && *damaged_run.get_or_insert_with(|| run_id.clone()) == run_id {
                for value in &mut row.values {
                    if matches!(value, Value::Blob(_)) {
                        *value = Value::Blob(Bytes::from_static(GARBAGE));
                    }
                }
                let change = Versioned { version: i64::MAX, change: RowChange::Put(row) };
                let batch = Batch { versioned: vec![change], ..Batch::new(partition.clone()) };
                engine.write(batch).await.expect("a row is written");
            }
        }
    }
    assert!(damaged_run.is_some(), "no run is listed");
}

/// All rows of a kind, in both shards.
async fn damage_all(directory: &TempDir, kind: RowKind) -> usize {
    let engine = open(directory);
    let mut n_damaged = 0;
    for shard in 1..=2 {
        let partition = Partition::new(&EXECUTIONS, vec![Value::Int(shard)]);
        let of_kind = KeyRange::prefix(vec![Value::Int(kind as i32)]);
        let page = engine.read(Slice::new(partition.clone(), of_kind, 10_000)).await.expect("rows are read");
        for mut row in page.rows {
            row.values[1] = Value::Blob(Bytes::from_static(GARBAGE));
            engine.write(Batch { puts: vec![row], ..Batch::new(partition.clone()) }).await.expect("a row is written");
            n_damaged += 1;
        }
    }
    n_damaged
}

/// How far a job is, in a record that does not decode.
async fn put_damaged_job(directory: &TempDir) {
    let engine = open(directory);
    let id = [Value::Uuid(Uuid::from_u128(1)), Value::from("job"), Value::Uuid(Uuid::nil())];
    let mut key = vec![Value::Int(RowKind::Job as i32)];
    key.extend(id);
    key.extend([Value::Bigint(0), Value::Bigint(0)]);
    let row = Row { key, values: vec![Value::Bigint(0), Value::Blob(Bytes::from_static(GARBAGE))] };
    let partition = Partition::new(&EXECUTIONS, vec![Value::Int(1)]);
    engine.write(Batch { puts: vec![row], ..Batch::new(partition) }).await.expect("a row is written");
}

async fn prepare(workflow: &ByHand) {
    workflow.start().await;
    let task = workflow.poll().await;
    assert!(!task.task_token.is_empty());
    // Waits for the task to end.
    workflow.signal("waiting").await;
}

async fn ends(given: &Given, id: &str) {
    let workflow = ByHand::new(given, id);
    let execution = Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() });
    let request =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution.clone() };
    let described = given.client().describe_workflow_execution(request).await;
    refused(described, Code::Unavailable, "internal history service error");
    workflow.terminate().await;
    // The id is free again.
    let started = async {
        while given.client().start_workflow_execution(workflow.start_request()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), started).await.unwrap_or_else(|_| panic!("{id} is blocked"));
    let request = public::DeleteWorkflowExecutionRequest { namespace: NAMESPACE.into(), workflow_execution: execution };
    given.client().delete_workflow_execution(request).await.unwrap_or_else(|status| panic!("{id}: {status}"));
}

/// The runs that were terminated and could be read, and the template.
async fn lists_agree(given: &Given, n_runs_max: usize) {
    let mut seen = (0, 0);
    let agree = async {
        loop {
            let list = public::ListWorkflowExecutionsRequest { namespace: NAMESPACE.into(), ..Default::default() };
            let listed = given.client().list_workflow_executions(list).await.expect("lists work").into_inner();
            let count = public::CountWorkflowExecutionsRequest { namespace: NAMESPACE.into(), ..Default::default() };
            let counted = given.client().count_workflow_executions(count).await.expect("counts work").into_inner();
            let n_listed = listed.executions.len();
            seen = (n_listed, counted.count);
            if i64::try_from(n_listed).expect("few") == counted.count && n_listed <= n_runs_max {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let agreed = tokio::time::timeout(Duration::from_secs(20), agree).await;
    assert!(agreed.is_ok(), "listed and counted: {seen:?}");
}

async fn damage(directory: &TempDir, id: &str, place: usize) {
    let rows = rows_of(directory, id).await;
    let (partition, mut row) = rows[place].clone();
    row.values[1] = Value::Blob(Bytes::from_static(GARBAGE));
    let engine = open(directory);
    engine.write(Batch { puts: vec![row], ..Batch::new(partition) }).await.expect("a row is written");
}

/// The rows of a workflow's runs, but not the one that names its newest run.
async fn rows_of(directory: &TempDir, id: &str) -> Vec<(Partition, Row)> {
    let engine = open(directory);
    let mut found = Vec::new();
    for shard in 1..=2 {
        let partition = Partition::new(&EXECUTIONS, vec![Value::Int(shard)]);
        let page = engine.read(Slice::new(partition.clone(), KeyRange::all(), 10_000)).await.expect("rows are read");
        let is_of_run = |row: &Row| row.key[2] == Value::Text(id.into()) && row.key[3] != Value::Uuid(Uuid::nil());
        found.extend(page.rows.into_iter().filter(is_of_run).map(|row| (partition.clone(), row)));
    }
    found
}

fn open(directory: &TempDir) -> std::sync::Arc<Embedded> {
    Embedded::open(directory.path().join("data"), Options::default()).expect("the store opens")
}
