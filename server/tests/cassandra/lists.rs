//! Lists on Cassandra: the same rows in the same order as on the other engines, and as few rows read.

use std::sync::Arc;

use persistence::engine::Engine;
use persistence_cql::CqlEngine;
use persistence_cql::schema::{self, LockTerms};
use uuid::Uuid;

use super::query_table::{check, check_costs};
use super::{ONE_AT_A_TIME, config};

/// On a keyspace that no other test uses.
async fn cassandra() -> Arc<dyn Engine> {
    let config = config().store.cassandra;
    let terms = LockTerms { owner: Uuid::new_v4(), now_ms: 0, holds_for: std::time::Duration::from_secs(60) };
    schema::setup(&config, &terms).await.expect("the schema is made");
    Arc::new(CqlEngine::connect(&config).await.expect("the keyspace is there"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_answer_as_a_naive_look_at_all_runs_does() {
    let _alone = ONE_AT_A_TIME.lock().await;
    check(cassandra().await, 5000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_fifty_thousand_runs_read_few_rows() {
    let _alone = ONE_AT_A_TIME.lock().await;
    check_costs(cassandra().await, 50_000).await;
}
