//! Lists against a naive look at all runs, and what they read in a large namespace, counted in rows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use persistence::counted::{Counted, Counts};
use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::Engine;
use server::visibility::list::{Among, ListRequest};
use server::visibility::service::Service;
use uuid::Uuid;
use workflow::NamespaceId;

use crate::query_table::{Run, check, custom, fill, runs, service};

fn embedded(directory: &tempfile::TempDir) -> (Arc<dyn Engine>, Arc<Counts>) {
    let options = Options { durability: Durability::None, cache_bytes: 64 << 20 };
    Counted::new(Embedded::open(directory.path(), options).expect("it opens"))
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_answer_as_a_naive_look_at_all_runs_does() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    check(embedded(&directory).0, 5000).await;
}

/// How many runs the first page of a hundred has.
async fn first_page(service: &Service, namespace_id: NamespaceId, query: &str) -> usize {
    let (query, page_size, token) = (query.to_owned(), 100, Default::default());
    let page =
        service.list(ListRequest { namespace_id, custom: custom(), among: Among::Runs, query, page_size, token }).await;
    page.expect("it is listed").executions.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_two_hundred_thousand_runs_read_few_rows() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let (engine, counts) = embedded(&directory);
    let namespace_id = NamespaceId(Uuid::new_v4());
    let (service, stores) = service(engine);
    let runs: Vec<Run> = runs(200_000, namespace_id).into_iter().map(Run::plain).collect();
    fill(&stores, namespace_id, &runs).await;
    let rows_read = || counts.rows_read.load(Ordering::Relaxed);
    for (query, n_runs, rows_max) in [
        ("WorkflowId = 'order-00042'", 4, 200),
        ("Kw = 'rare'", 10, 200),
        ("WorkflowType = 'type-1' AND Kw = 'rare' AND StartTime > '2025-01-01T00:00:00Z'", 0, 200),
        ("", 100, 300),
        ("ExecutionStatus = 'Failed'", 100, 300),
        ("WorkflowType = 'type-1'", 100, 3000),
    ] {
        let before = rows_read();
        let page = first_page(&service, namespace_id, query).await;
        let n_read = rows_read() - before;
        eprintln!("{query:?}: {page} runs, {n_read} rows read");
        assert!(page >= n_runs, "{query}: only {page} runs");
        assert!(n_read <= rows_max, "{query}: {n_read} rows read for {page} runs");
    }
}
