//! Lists on the embedded engine: against a naive look at all runs, and what they read in a large namespace. On the model, because
//! nothing comes late to an embedded engine: what arrives out of order.

use std::sync::Arc;

use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::Engine;
use persistence::model::Model;

use crate::query_table::{check, check_costs, check_late_starts};

fn embedded(directory: &tempfile::TempDir) -> Arc<dyn Engine> {
    let options = Options { durability: Durability::None, cache_bytes: 64 << 20 };
    Embedded::open(directory.path(), options).expect("it opens")
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_answer_as_a_naive_look_at_all_runs_does() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    check(embedded(&directory), 5000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_return_a_closed_run_as_closed_though_its_start_arrives_last() {
    check_late_starts(Model::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_two_hundred_thousand_runs_read_few_rows() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    check_costs(embedded(&directory), 200_000).await;
}
