//! Lists while runs start and close: the contents of pages, and the visibility lag.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use prost::Message as _;
use proto::temporal::api::common::v1::{Memo, Payload, WorkflowType};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;

use crate::given::{Given, NAMESPACE, a_node};
use crate::paging::{check, ids, of, start, terminate, until_listed};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_there_throughout_is_listed_once_while_others_start_and_close() {
    let given = a_node().await;
    check(&given).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_soon_after_they_start_and_close() {
    const N_RUNS: usize = 20;
    let given = a_node().await;
    let (mut listed, mut closed) = (Vec::new(), Vec::new());
    for n in 0..N_RUNS {
        let workflow_id = format!("run-{n}");
        let run = start(&given, &workflow_id, "cook").await;
        let began = Instant::now();
        until_listed(&given, &format!("WorkflowId = '{workflow_id}'"), &[&workflow_id]).await;
        listed.push(began.elapsed());
        terminate(&given, run).await;
        let began = Instant::now();
        let query = format!("WorkflowId = '{workflow_id}' AND ExecutionStatus = 'Terminated'");
        until_listed(&given, &query, &[&workflow_id]).await;
        closed.push(began.elapsed());
    }
    listed.sort_unstable();
    closed.sort_unstable();
    eprintln!("median lag of lists: {:?} after a start, {:?} after a close", listed[N_RUNS / 2], closed[N_RUNS / 2]);
}

/// A page has at least one run, and no more than 2 MiB of them.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_large_runs_end_by_bytes_and_every_run_is_listed_once_in_every_order() {
    const N_RUNS: usize = 12;
    let given = a_node().await;
    for n in 0..N_RUNS {
        // One in four fills a page by itself.
        start_with_memo(&given, &format!("run-{n:02}"), if n % 4 == 0 { 1_900_000 } else { 600_000 }).await;
    }
    let by_id: Vec<String> = (0..N_RUNS).map(|n| format!("run-{n:02}")).collect();
    let newest_first: Vec<String> = by_id.iter().rev().cloned().collect();
    let began = Instant::now();
    while pages(&given, "").await.concat() != newest_first {
        assert!(began.elapsed().as_secs() < 20, "{:?}", pages(&given, "").await);
    }
    for (query, expected) in [
        ("", &newest_first),
        ("ORDER BY StartTime ASC", &by_id),
        ("ORDER BY WorkflowId ASC", &by_id),
        ("ORDER BY WorkflowId DESC", &newest_first),
        ("WorkflowType = 'large'", &newest_first),
        ("WorkflowType = 'large' ORDER BY WorkflowId ASC", &by_id),
    ] {
        let pages = pages(&given, query).await;
        assert_eq!(&pages.concat(), expected, "{query:?}");
        assert!(pages.len() >= N_RUNS / 3, "{query:?}: {pages:?}");
    }
}

/// An index names more runs than are looked for first, and the runs in order fill the page.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_full_of_bytes_reads_no_candidates() {
    const N_RUNS: usize = 80;
    let given = a_node().await;
    for n in 0..N_RUNS {
        start_with_memo(&given, &format!("run-{n:02}"), 100_000).await;
    }
    let began = Instant::now();
    while pages(&given, "").await.concat().len() < N_RUNS {
        assert!(began.elapsed().as_secs() < 20, "the runs are listed");
    }
    let before = given.node.counts().reads.load(Ordering::Relaxed);
    let request = public::ListWorkflowExecutionsRequest { page_size: 1000, ..of("WorkflowType = 'large'") };
    let page = given.client().list_workflow_executions(request).await.expect("a page").into_inner();
    assert!((15..25).contains(&page.executions.len()), "{} runs of 100 kB", page.executions.len());
    let reads = given.node.counts().reads.load(Ordering::Relaxed) - before;
    assert!(reads < 20, "{reads} reads for a page");
}

async fn pages(given: &Given, query: &str) -> Vec<Vec<String>> {
    let mut request = public::ListWorkflowExecutionsRequest { page_size: 1000, ..of(query) };
    let mut pages = Vec::new();
    loop {
        let page = given.client().list_workflow_executions(request.clone()).await.expect("a page").into_inner();
        assert!(page.encoded_len() <= 2 << 20, "{query:?}: a page of {} bytes", page.encoded_len());
        if !page.executions.is_empty() {
            pages.push(ids(&page.executions));
        }
        if page.next_page_token.is_empty() {
            return pages;
        }
        request.next_page_token = page.next_page_token;
    }
}

async fn start_with_memo(given: &Given, workflow_id: &str, bytes: usize) {
    let memo = Memo {
        fields: HashMap::from([("m".to_owned(), Payload { data: vec![7; bytes].into(), ..Default::default() })]),
    };
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "large".into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        request_id: workflow_id.into(),
        memo: Some(memo),
        ..Default::default()
    };
    given.client().start_workflow_execution(start).await.expect("it starts");
}
