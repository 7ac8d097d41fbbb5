//! What the stores build on conditions: a lease, and finding out about a write whose outcome is unknown.

use std::sync::Arc;

use bytes::Bytes;
use persistence::engine::{Batch, Condition, Consistency, Current, Engine, KeyRange, Outcome, Partition, Row, Slice};
use persistence::error::StoreError;
use persistence::table::Value;
use persistence::tables::EXECUTIONS;
use persistence_cql::CqlEngine;
use uuid::Uuid;

use crate::cluster::Keyspace;

const RANGE_ID: usize = 0;
const COMMIT_ID: usize = 1;

fn shard() -> Partition {
    Partition::new(&EXECUTIONS, vec![1.into()])
}

fn row(id: i64) -> Row {
    let key = vec![1.into(), Uuid::nil().into(), "workflow".into(), Uuid::nil().into(), 0_i64.into(), id.into()];
    Row { key, values: vec![id.into(), Bytes::from_static(b"data").into()] }
}

fn take_lease(from: Option<i64>, to: i64) -> Batch {
    Batch {
        conditions: vec![Condition::Static { column: RANGE_ID, equals: from.map(Value::from) }],
        statics: vec![(RANGE_ID, to.into())],
        ..Batch::new(shard())
    }
}

fn commit(range_id: i64, commit_id: i64) -> Batch {
    Batch {
        conditions: vec![Condition::Static { column: RANGE_ID, equals: Some(range_id.into()) }],
        statics: vec![(COMMIT_ID, commit_id.into())],
        puts: vec![row(commit_id)],
        ..Batch::new(shard())
    }
}

async fn commit_id(engine: &dyn Engine) -> Option<Value> {
    engine.statics(shard(), Consistency::Serial).await.expect("statics are readable")[COMMIT_ID].clone()
}

async fn ids(engine: &dyn Engine) -> Vec<Value> {
    let page = engine.read(Slice::new(shard(), KeyRange::all(), 1000)).await.expect("rows are readable");
    page.rows.into_iter().map(|row| row.key[5].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposed_owner_commits_nothing() {
    let keyspace = Keyspace::unused();
    keyspace.drop_and_create(&[&EXECUTIONS]).await;
    let (first, second) = (keyspace.engine().await, keyspace.engine().await);
    assert_eq!(first.write(take_lease(None, 1)).await, Ok(Outcome::Applied));
    assert_eq!(first.write(commit(1, 10)).await, Ok(Outcome::Applied));
    assert_eq!(second.write(take_lease(Some(1), 2)).await, Ok(Outcome::Applied));

    let refused = Ok(Outcome::Refused(vec![Current::Static(Some(2_i64.into()))]));
    assert_eq!(first.write(commit(1, 11)).await, refused);
    assert_eq!(first.write(take_lease(Some(1), 2)).await, refused);
    assert_eq!(second.write(commit(2, 12)).await, Ok(Outcome::Applied));
    assert_eq!(ids(&*second).await, [10_i64.into(), 12_i64.into()]);
    keyspace.drop().await;
}

/// Gives up on requests after a millisecond, which is before Paxos is through: so outcomes are unknown, and the
/// committer's way to find out is tried on a real node.
#[tokio::test(flavor = "multi_thread")]
async fn taking_the_lease_settles_a_write_of_unknown_outcome() {
    let keyspace = Keyspace::unused();
    keyspace.drop_and_create(&[&EXECUTIONS]).await;
    let patient = keyspace.engine().await;
    let mut config = keyspace.config.clone();
    config.request_timeout_ms = 1;
    let hasty: Arc<dyn Engine> = Arc::new(CqlEngine::connect(&config).await.unwrap());

    assert_eq!(patient.write(take_lease(None, 1)).await, Ok(Outcome::Applied));
    let mut n_unknown = 0;
    for range_id in 1..=20_i64 {
        let outcome = hasty.write(commit(range_id, range_id)).await;
        n_unknown += usize::from(matches!(outcome, Err(StoreError::OutcomeUnknown(_))));

        assert_eq!(patient.write(take_lease(Some(range_id), range_id + 1)).await, Ok(Outcome::Applied));
        let is_applied = commit_id(&*patient).await == Some(range_id.into());
        match outcome {
            Ok(Outcome::Applied) => assert!(is_applied, "an acknowledged commit is gone"),
            Ok(Outcome::Refused(_)) | Err(StoreError::Unavailable(_)) => {
                assert!(!is_applied, "a refused commit is there")
            }
            // Either way, but all of it or nothing.
            Err(StoreError::OutcomeUnknown(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert_eq!(ids(&*patient).await.contains(&range_id.into()), is_applied, "half a commit");
    }
    assert!(n_unknown > 0, "no outcome was unknown, so nothing was tried");

    let settled = ids(&*patient).await;
    assert_eq!(patient.write(take_lease(Some(21), 22)).await, Ok(Outcome::Applied));
    assert_eq!(ids(&*patient).await, settled, "a commit under an old lease came in late");
    keyspace.drop().await;
}

/// More deleted rows than Cassandra is willing to pass in one read.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_does_not_suffer_from_rows_deleted_before_it() {
    const DELETED: i64 = 120_000;
    const BATCH: usize = 3000;
    let keyspace = Keyspace::unused();
    keyspace.drop_and_create(&[&EXECUTIONS]).await;
    let engine = keyspace.engine().await;
    assert_eq!(engine.write(take_lease(None, 1)).await, Ok(Outcome::Applied));
    let ids: Vec<i64> = (0..DELETED).collect();
    for ids in ids.chunks(BATCH) {
        let deletes = ids.iter().map(|id| row(*id).key).collect();
        assert_eq!(engine.write(Batch { deletes, ..Batch::new(shard()) }).await, Ok(Outcome::Applied));
    }
    assert_eq!(engine.write(commit(1, DELETED)).await, Ok(Outcome::Applied));
    assert_eq!(commit_id(&*engine).await, Some(DELETED.into()));
    assert_eq!(engine.write(take_lease(Some(1), 2)).await, Ok(Outcome::Applied));
    keyspace.drop().await;
}
