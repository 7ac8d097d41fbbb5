//! Lists while runs start and close: what pages tell, and how soon.

use std::time::Instant;

use crate::given::a_node;
use crate::paging::{check, start, terminate, until_listed};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_there_throughout_is_told_once_while_others_start_and_close() {
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
