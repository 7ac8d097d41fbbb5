//! Setting up, updating and checking the schema.

use std::time::{Duration, Instant};

use persistence::engine::{Batch, Engine as _, KeyRange, Outcome, Partition, RowChange, Slice, Versioned};
use persistence::tables;
use persistence_cql::schema::{self, LockTerms, SchemaError};
use persistence_cql::{ConnectError, CqlEngine};
use uuid::Uuid;

use crate::cluster::Keyspace;

const NOW_MS: i64 = 1_700_000_000_000;

fn terms() -> LockTerms {
    LockTerms { owner: Uuid::new_v4(), now_ms: NOW_MS, holds_for: Duration::from_secs(60) }
}

async fn change(keyspace: &Keyspace, text: &str) {
    let text = text.replace("KEYSPACE", &keyspace.config.keyspace);
    keyspace.session().await.query_unpaged(text, ()).await.expect("the node takes it");
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_makes_every_table_and_can_be_repeated() {
    let keyspace = Keyspace::unused();
    let report = schema::setup(&keyspace.config, &terms()).await.unwrap();
    assert_eq!(report.warnings, Vec::<String>::new(), "the tests run on Paxos v2");
    assert_eq!(schema::setup(&keyspace.config, &terms()).await.unwrap(), report);
    assert_eq!(schema::check(&keyspace.config).await.unwrap(), report);

    let engine = CqlEngine::connect(&keyspace.config).await.unwrap();
    for table in tables::ALL {
        let some = |column: &persistence::table::Column| match column.kind {
            persistence::table::Kind::Int => 0.into(),
            persistence::table::Kind::Bigint => 0_i64.into(),
            persistence::table::Kind::Text => "a".into(),
            persistence::table::Kind::Uuid => Uuid::new_v4().into(),
            persistence::table::Kind::Blob => bytes::Bytes::from_static(b"a").into(),
        };
        let of = |columns: &[persistence::table::Column]| columns.iter().map(some).collect::<Vec<_>>();
        let partition = Partition::new(table, of(table.partition));
        let row = persistence::engine::Row { key: of(table.clustering), values: of(table.values) };
        let statics = of(table.statics).into_iter().enumerate().collect::<Vec<_>>();
        let mut batch = Batch { statics, ..Batch::new(partition.clone()) };
        if table.is_versioned {
            batch.versioned.push(Versioned { version: NOW_MS * 1000, change: RowChange::Put(row.clone()) });
        } else {
            batch.puts.push(row.clone());
        }
        assert_eq!(engine.write(batch).await, Ok(Outcome::Applied), "{}", table.name);
        let page = engine.read(Slice::new(partition, KeyRange::all(), 10)).await.unwrap();
        assert_eq!(page.rows, [row], "{}", table.name);
    }
    keyspace.drop().await;
}

/// Leveled, each flush would rewrite a shard's wide row.
#[tokio::test(flavor = "multi_thread")]
async fn the_tables_that_every_workflow_writes_to_are_size_tiered() {
    let keyspace = Keyspace::unused();
    schema::setup(&keyspace.config, &terms()).await.unwrap();
    let session = keyspace.session().await;
    for table in ["executions", "history_node", "visibility"] {
        let query = "SELECT compaction FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
        let found = session.query_unpaged(query, (&keyspace.config.keyspace, table)).await.unwrap();
        let found = found.into_rows_result().unwrap();
        let (compaction,) = found.single_row::<(std::collections::HashMap<String, String>,)>().unwrap();
        assert!(compaction["class"].ends_with("SizeTieredCompactionStrategy"), "{table}: {compaction:?}");
    }
    keyspace.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_set_up_at_the_same_time_all_succeed() {
    let keyspace = Keyspace::unused();
    let setup = || {
        let config = keyspace.config.clone();
        tokio::spawn(async move { schema::setup(&config, &terms()).await })
    };
    for node in [setup(), setup(), setup(), setup()] {
        node.await.unwrap().unwrap();
    }
    schema::check(&keyspace.config).await.unwrap();
    keyspace.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyspace_without_schema_is_told_apart_from_none() {
    let keyspace = Keyspace::unused();
    let missing = schema::check(&keyspace.config).await;
    assert!(matches!(missing, Err(SchemaError::Connect(ConnectError::NoKeyspace(_)))), "{missing:?}");

    keyspace.drop_and_create(&[]).await;
    let empty = schema::check(&keyspace.config).await;
    assert!(matches!(empty, Err(SchemaError::Missing(_))), "{empty:?}");
    schema::update(&keyspace.config, &terms()).await.unwrap();
    schema::check(&keyspace.config).await.unwrap();
    keyspace.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyspace_is_not_made_without_being_told_how() {
    let mut keyspace = Keyspace::unused();
    keyspace.config.replication = None;
    let untold = schema::setup(&keyspace.config, &terms()).await;
    assert!(matches!(untold, Err(SchemaError::NoReplication(_))), "{untold:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_newer_than_the_binary_is_left_alone() {
    let keyspace = Keyspace::unused();
    schema::setup(&keyspace.config, &terms()).await.unwrap();
    change(&keyspace, "INSERT INTO KEYSPACE.schema_version (bucket, version, name) VALUES (0, 9999, 'future')").await;
    for newer in [
        schema::setup(&keyspace.config, &terms()).await,
        schema::update(&keyspace.config, &terms()).await,
        schema::check(&keyspace.config).await,
    ] {
        assert!(matches!(newer, Err(SchemaError::Newer { found: 9999, .. })), "{newer:?}");
    }
    keyspace.drop().await;
}

const OTHER_OWNER: &str = "5b1c395e-b41f-41e5-9f22-ba0be0483c18";
const HOUR_MS: i64 = 3_600_000;

/// The schema as it is while another node applies it.
async fn lock_for_other(keyspace: &Keyspace, expires_at: i64) {
    change(keyspace, "DELETE FROM KEYSPACE.schema_version WHERE bucket = 0").await;
    let set = format!("lock_owner = {OTHER_OWNER}, lock_expires_at = {expires_at}");
    change(keyspace, &format!("UPDATE KEYSPACE.schema_version SET {set} WHERE bucket = 0")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_dead_holder_is_taken_after_one_hold_whatever_its_clock_was() {
    let keyspace = Keyspace::unused();
    schema::setup(&keyspace.config, &terms()).await.unwrap();
    let holds_for = Duration::from_secs(1);
    for expires_at in [NOW_MS + HOUR_MS, NOW_MS - HOUR_MS, i64::MAX, i64::MIN] {
        lock_for_other(&keyspace, expires_at).await;
        let began = Instant::now();
        let updated = schema::update(&keyspace.config, &LockTerms { holds_for, ..terms() }).await;
        updated.unwrap_or_else(|error| panic!("expires at {expires_at}: {error}"));
        let took = began.elapsed();
        eprintln!("expires at {expires_at}: taken after {took:?}");
        assert!(took >= holds_for, "expires at {expires_at}: stolen after {took:?}");
        schema::check(&keyspace.config).await.unwrap();
    }
    keyspace.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_renewed_is_not_taken_whatever_the_clock_of_its_holder_says() {
    let keyspace = Keyspace::unused();
    schema::setup(&keyspace.config, &terms()).await.unwrap();
    lock_for_other(&keyspace, NOW_MS - HOUR_MS).await;
    let session = keyspace.session().await;
    let holder = {
        let name = keyspace.config.keyspace.clone();
        tokio::spawn(async move {
            let mut renewals = tokio::time::interval(Duration::from_millis(200));
            for beat in 1.. {
                renewals.tick().await;
                let expires_at = NOW_MS - HOUR_MS + beat;
                let set = format!("UPDATE {name}.schema_version SET lock_expires_at = {expires_at} WHERE bucket = 0");
                let set = format!("{set} IF lock_owner = {OTHER_OWNER}");
                session.query_unpaged(set, ()).await.expect("the node takes it");
            }
        })
    };
    let hasty = LockTerms { holds_for: Duration::from_secs(3), ..terms() };
    let locked = schema::update(&keyspace.config, &hasty).await;
    assert!(matches!(locked, Err(SchemaError::Locked)), "{locked:?}");
    holder.abort();
    schema::update(&keyspace.config, &hasty).await.unwrap();
    schema::check(&keyspace.config).await.unwrap();
    keyspace.drop().await;
}
