//! Lists while runs start and close: what pages tell, and how soon.

use std::time::Instant;

use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::workflowservice::v1 as public;

use crate::given::a_node;
use crate::lists::{ids, of, start, terminate, until_listed};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_there_throughout_is_told_once_while_others_start_and_close() {
    const N_RUNS: usize = 40;
    let given = a_node().await;
    let mut runs = Vec::new();
    for n in 0..N_RUNS {
        runs.push(start(&given, &format!("there-{n:02}"), "cook").await);
    }
    let newest_first: Vec<String> = (0..N_RUNS).rev().map(|n| format!("there-{n:02}")).collect();
    let newest_first: Vec<&str> = newest_first.iter().map(String::as_str).collect();
    until_listed(&given, "", &newest_first).await;
    for round in 0..2 {
        let mut request = public::ListWorkflowExecutionsRequest { page_size: 7, ..of("") };
        let mut told = Vec::new();
        for page in 0.. {
            let answer = given.client().list_workflow_executions(request.clone()).await.expect("a page").into_inner();
            told.extend(ids(&answer.executions).into_iter().filter(|id| id.starts_with("there-")));
            if answer.next_page_token.is_empty() {
                break;
            }
            request.next_page_token = answer.next_page_token;
            // Some that were told, and some that were not.
            start(&given, &format!("new-{round}-{page}"), "bake").await;
            let closing: Vec<WorkflowExecution> = [0, runs.len() / 2].map(|n| runs.remove(n)).into_iter().collect();
            for run in closing {
                let workflow_id = run.workflow_id.clone();
                terminate(&given, run).await;
                let query = format!("WorkflowId = '{workflow_id}' AND ExecutionStatus = 'Terminated'");
                until_listed(&given, &query, &[&workflow_id]).await;
            }
        }
        told.sort_unstable();
        let all: Vec<String> = (0..N_RUNS).map(|n| format!("there-{n:02}")).collect();
        assert_eq!(told, all, "round {round}");
    }
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
