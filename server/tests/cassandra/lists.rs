//! Lists on Cassandra: the same rows in the same order as on the other engines, and as few rows read.

use std::sync::Arc;
use std::time::Duration;

use persistence::engine::Engine;
use persistence_cql::CqlEngine;
use persistence_cql::schema::{self, LockTerms};
use uuid::Uuid;

use super::given::a_node_with;
use super::query_table::{check, check_costs, check_late_starts};
use super::{ONE_AT_A_TIME, config, paging};

/// How long pages are turned while runs start and close: far more than it takes, so that it ends if it hangs.
const PAGING_WITHIN: Duration = Duration::from_secs(120);

/// On a keyspace that no other test uses.
async fn cassandra() -> Arc<dyn Engine> {
    let config = config().store.cassandra;
    let terms = LockTerms { owner: Uuid::new_v4(), now_ms: 0, holds_for: Duration::from_secs(60) };
    schema::setup(&config, &terms).await.expect("the schema is made");
    Arc::new(CqlEngine::connect(&config).await.expect("the keyspace is there"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_answer_as_a_naive_look_at_all_runs_does() {
    let _alone = ONE_AT_A_TIME.lock().await;
    check(cassandra().await, 5000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_return_a_closed_run_as_closed_though_its_start_arrives_last() {
    check_late_starts(cassandra().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_fifty_thousand_runs_read_few_rows() {
    let _alone = ONE_AT_A_TIME.lock().await;
    check_costs(cassandra().await, 50_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_there_throughout_is_listed_once_while_others_start_and_close() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let given = a_node_with(directory, config()).await;
    tokio::time::timeout(PAGING_WITHIN, paging::check(&given)).await.expect("it is soon over");
    given.stop().await;
}
