//! Rows of a shard with random damage: every reader answers, with `Corrupt` if it cannot make sense of a row, and never
//! panics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use persistence::engine::{Batch, Engine, KeyRange, Row, Slice};
use persistence::error::StoreError;
use persistence::stores::executions::{
    CurrentWrite, DeadLetter, QueuedTask, QueuedTimer, RowKind, ScheduleWrite, TimerKey,
};
use persistence::table::Value;
use proto::everrow::record;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use workflow::{CurrentRun, EventId, ExecutionState, StickyDispatch, TimerTask, Timestamp, TransferTask};

use super::executions::{Owner, SHARD, shard_partition, write};
use super::on_model;
use super::sample::Sampler;

const SEED: u64 = 20_261_118;
/// `EVERROW_FUZZ_ROUNDS` sets another number, and `EVERROW_FUZZ_SECONDS` adds rounds until that time is over.
const ROUNDS: usize = 3000;

#[tokio::test]
async fn damaged_rows_are_corrupt_and_no_reason_to_panic() {
    let at_least = std::env::var("EVERROW_FUZZ_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let seconds = std::env::var("EVERROW_FUZZ_SECONDS").map_or(0, |seconds| seconds.parse().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut random = StdRng::seed_from_u64(SEED);
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let mut state = Sampler::new(SEED).state();
    fill(&mut owner, &mut state).await;
    let rows = model.read(Slice::new(shard_partition(), KeyRange::all(), 10_000)).await.unwrap().rows;
    assert!(rows.len() > 10, "{} rows", rows.len());
    let (mut n_corrupt, mut rounds) = (0, 0);
    for round in (0..).take_while(|round| *round < at_least || Instant::now() < until) {
        rounds = round + 1;
        let row = &rows[random.random_range(0..rows.len())];
        put(&*model, damaged(row, &mut random)).await;
        for (reader, read) in readers(&owner, &state).await {
            match read {
                Ok(()) => {}
                Err(StoreError::Corrupt(_)) => n_corrupt += 1,
                Err(error) => panic!("seed {SEED}, round {round}, {reader}, row {:?}: {error}", row.key),
            }
        }
        put(&*model, row.clone()).await;
    }
    println!("{rounds} inputs");
    assert!(n_corrupt > rounds / 10, "damage is noticed: {n_corrupt} of {rounds}");
    assert_eq!(owner.load(&state.key).await, Some(state), "the last row is whole again");
}

/// One row of every kind that a shard has.
async fn fill(owner: &mut Owner, state: &mut ExecutionState) {
    let key = state.key.clone();
    let run = write(state);
    let current = CurrentRun {
        run_id: key.run_id,
        status: state.status,
        started_at: Timestamp(7),
        request_id: "request".into(),
        version: 0,
        joined_request_ids: Vec::new(),
    };
    owner
        .commit(|commit| {
            commit.runs.push(run);
            commit.current.push(CurrentWrite {
                namespace_id: key.namespace_id,
                workflow_id: Arc::clone(&key.workflow_id),
                run: Some(current),
            });
            commit.schedules.push(ScheduleWrite {
                namespace_id: key.namespace_id,
                schedule_id: "schedule".into(),
                version: 1,
                schedule: Some(Arc::new(record::Schedule { conflict_token: 5, ..Default::default() })),
            });
            let sticky =
                StickyDispatch { normal_task_queue: "queue".into(), schedule_to_start_timeout: Duration::from_secs(5) };
            let task = TransferTask::WorkflowTask {
                task_queue: "queue".into(),
                sticky: Some(sticky),
                scheduled_event_id: EventId(2),
                attempt: 1,
                version: 0,
            };
            commit.transfer.push(QueuedTask { task_id: 1, key: key.clone(), task });
            let timer = TimerTask::UserTimer { started_event_id: EventId(5), version: 0 };
            let queued = QueuedTask { task_id: 2, key: key.clone(), task: timer };
            commit.timers.push(QueuedTimer { fires_at: Timestamp(50), queued });
        })
        .await;
}

async fn readers(owner: &Owner, state: &ExecutionState) -> Vec<(&'static str, Result<(), StoreError>)> {
    let store = &owner.stores.executions;
    let key = &state.key;
    let from = TimerKey { fires_at: Timestamp(0), task_id: 0 };
    vec![
        ("load_run", store.load_run(SHARD, key).await.map(drop)),
        ("salvage_run", store.salvage_run(SHARD, key).await.map(drop)),
        ("load_current", store.load_current(SHARD, key.namespace_id, &key.workflow_id).await.map(drop)),
        ("load_schedule", store.load_schedule(SHARD, key.namespace_id, &"schedule".into()).await.map(drop)),
        ("read_transfer", store.read_transfer(SHARD, 0, 10).await.map(drop)),
        ("read_visibility", store.read_visibility(SHARD, 0, 10).await.map(drop)),
        ("read_timers", store.read_timers(SHARD, from, Timestamp(i64::MAX), 10).await.map(drop)),
        ("timer_rows", store.timer_rows(SHARD, key.namespace_id, from, 10).await.map(drop)),
        ("load_counts", store.load_counts(SHARD).await.map(drop)),
        ("load_closed_runs", store.load_closed_runs(SHARD).await.map(drop)),
        ("runs", store.runs(SHARD, key.namespace_id, None).await.map(drop)),
        ("workflow_ids", store.workflow_ids(SHARD, None).await.map(drop)),
    ]
}

#[tokio::test]
async fn a_damaged_row_of_a_queue_comes_as_it_is_beside_the_tasks_of_the_others() {
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let mut state = Sampler::new(SEED).state();
    fill(&mut owner, &mut state).await;
    let key = state.key.clone();
    let task = QueuedTask { task_id: 9, key: key.clone(), task: TransferTask::Close { version: 0 } };
    owner.commit(|commit| commit.transfer.push(task.clone())).await;
    let rows = model.read(Slice::new(shard_partition(), KeyRange::all(), 10_000)).await.unwrap().rows;
    let of = |kind: RowKind| rows.iter().find(|row| row.key[0] == Value::Int(kind as i32)).unwrap().clone();
    let garbage = Bytes::from_static(b"\xff\xff\xff");
    let store = owner.stores.executions.clone();

    // A record that does not decode, one that was cut to nothing, and a format of a later server.
    for (format, data) in [(0, garbage.clone()), (0, Bytes::new()), (7, garbage.clone())] {
        let mut row = of(RowKind::TransferQueue);
        row.values = vec![Value::Bigint(format), Value::Blob(data.clone())];
        put(&*model, row).await;
        let page = store.read_transfer(SHARD, 0, 10).await.unwrap();
        assert_eq!(page.tasks, std::slice::from_ref(&task));
        let [damaged] = page.damaged.as_slice() else { panic!("{:?}", page.damaged) };
        assert_eq!((damaged.task_id, damaged.format, &damaged.data), (1, format, &data));
        let letter = DeadLetter::Row(damaged.clone());
        assert_eq!(DeadLetter::from_message(&letter.to_message()), Ok(letter));
    }
    let mut row = of(RowKind::TimerQueue);
    row.values[1] = Value::Blob(garbage.clone());
    put(&*model, row).await;
    let from = TimerKey { fires_at: Timestamp(0), task_id: 0 };
    let page = store.read_timers(SHARD, from, Timestamp(i64::MAX), 10).await.unwrap();
    assert_eq!((page.tasks.len(), page.damaged[0].sort_key, page.damaged[0].task_id), (0, 50, 2));
    assert!(store.timer_rows(SHARD, key.namespace_id, from, 10).await.unwrap().of_namespace.is_empty());

    // A commit takes the row away.
    let damaged = page.damaged[0].row();
    owner.commit(|commit| commit.damaged_rows.push(damaged)).await;
    let page = store.read_timers(SHARD, from, Timestamp(i64::MAX), 10).await.unwrap();
    assert_eq!((page.tasks.len(), page.damaged.len()), (0, 0));
}

async fn put(engine: &dyn Engine, row: Row) {
    engine.write(Batch { puts: vec![row], ..Batch::new(shard_partition()) }).await.unwrap();
}

/// Bits flipped, bytes lost, doubled or replaced; tags and lengths of records are among them.
fn damaged(row: &Row, random: &mut StdRng) -> Row {
    let change = |value: &Value| {
        let Value::Blob(blob) = value else { return value.clone() };
        let mut bytes = blob.to_vec();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..=bytes.len());
            match random.random_range(0..5) {
                0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
                1 if at < bytes.len() => bytes[at] = random.random(),
                2 => bytes.truncate(at),
                3 => bytes.insert(at, random.random()),
                _ => bytes.extend_from_within(at..),
            }
        }
        Value::Blob(Bytes::from(bytes))
    };
    Row { key: row.key.clone(), values: row.values.iter().map(change).collect() }
}
