//! The embedded engine passes the suite, and keeps what it has across restarts.

use std::sync::Arc;

use bytes::Bytes;
use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::{Batch, Condition, Consistency, Engine, KeyRange, Outcome, Partition, Row, Slice};
use persistence::error::StoreError;
use persistence::tables::EXECUTIONS;
use tempfile::TempDir;
use uuid::Uuid;

const FAST: Options = Options { durability: Durability::None, cache_bytes: 1 << 20 };

mod conforms {
    use super::*;

    /// Without fsync: it makes no difference to what the suite can see, and much to how long it takes.
    async fn engine() -> (Arc<dyn Engine>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        (Embedded::open(directory.path(), FAST).unwrap(), directory)
    }

    persistence::conformance_suite!(engine());
}

#[tokio::test]
async fn a_second_engine_on_the_same_directory_is_turned_away() {
    let directory = tempfile::tempdir().unwrap();
    let first = Embedded::open(directory.path(), FAST).unwrap();
    let Err(StoreError::Unavailable(reason)) = Embedded::open(directory.path(), FAST) else {
        panic!("two engines on one directory");
    };
    assert!(reason.contains("in use by another process"), "{reason}");
    drop(first);
    Embedded::open(directory.path(), FAST).unwrap();
}

#[tokio::test]
async fn a_file_in_place_of_the_directory_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(Embedded::open(file.path(), FAST), Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn everything_written_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    for restart in 0..4_i64 {
        let engine = Embedded::open(directory.path(), Options::default()).unwrap();
        let statics = engine.statics(shard(), Consistency::Quorum).await.unwrap();
        assert_eq!(statics[0], (restart > 0).then(|| restart.into()));
        let page = engine.read(Slice::new(shard(), KeyRange::all(), 100)).await.unwrap();
        assert_eq!(page.rows, (1..=restart).map(run).collect::<Vec<_>>());
        let equals = statics[0].clone();
        let batch = Batch {
            conditions: vec![Condition::Static { column: 0, equals }],
            statics: vec![(0, (restart + 1).into())],
            puts: vec![run(restart + 1)],
            ..Batch::new(shard())
        };
        assert_eq!(engine.write(batch).await, Ok(Outcome::Applied));
    }
}

#[tokio::test]
async fn a_write_whose_caller_went_away_is_settled_by_a_serial_read() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Embedded::open(directory.path(), Options::default()).unwrap();
    for round in 1..50_i64 {
        let abandoned = engine.write(Batch { statics: vec![(0, round.into())], ..Batch::new(shard()) });
        // Polled once, so that it is on its way, and dropped before it is answered, or nearly always.
        let _ = futures_util::FutureExt::now_or_never(abandoned);
        let settled = engine.statics(shard(), Consistency::Serial).await.unwrap();
        assert_eq!(settled[0], Some(round.into()));
    }
}

/// Sixteen callers wait for one another's syncs, not each for its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_wait_together_are_all_written() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Embedded::open(directory.path(), Options::default()).unwrap();
    let callers = (0..16_i64).map(|caller| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            for number in 0..20 {
                let batch = Batch { puts: vec![run(caller * 100 + number)], ..Batch::new(shard()) };
                assert_eq!(engine.write(batch).await, Ok(Outcome::Applied));
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let page = engine.read(Slice::new(shard(), KeyRange::all(), 1000)).await.unwrap();
    assert_eq!(page.rows.len(), 16 * 20);
}

fn shard() -> Partition {
    Partition::new(&EXECUTIONS, vec![1.into()])
}

fn run(version: i64) -> Row {
    let nil = Uuid::nil();
    Row {
        key: vec![1.into(), nil.into(), "workflow".into(), nil.into(), version.into(), 0_i64.into()],
        values: vec![version.into(), Bytes::from_static(b"state").into()],
    }
}
