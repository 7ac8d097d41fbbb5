//! Runs that are started, closed and listed by their clients; and the claim that pages of a list neither repeat nor skip one
//! while others start and close. On whatever engine the node has.

use std::time::{Duration, Instant};

use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflow::v1::WorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;

use crate::given::{Given, NAMESPACE};

/// Far longer than lists lag behind; met only if something is broken.
const PATIENCE: Duration = Duration::from_secs(20);
/// The server is to have the processors meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(5);

pub(crate) async fn start(given: &Given, workflow_id: &str, workflow_type: &str) -> WorkflowExecution {
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: workflow_type.into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        request_id: workflow_id.into(),
        ..Default::default()
    };
    let run_id = given.client().start_workflow_execution(start).await.expect("it starts").into_inner().run_id;
    WorkflowExecution { workflow_id: workflow_id.into(), run_id }
}

pub(crate) async fn terminate(given: &Given, execution: WorkflowExecution) {
    let terminate = public::TerminateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(execution),
        ..Default::default()
    };
    given.client().terminate_workflow_execution(terminate).await.expect("it is terminated");
}

pub(crate) fn of(query: &str) -> public::ListWorkflowExecutionsRequest {
    public::ListWorkflowExecutionsRequest { namespace: NAMESPACE.into(), query: query.into(), ..Default::default() }
}

pub(crate) async fn list(given: &Given, query: &str) -> Vec<WorkflowExecutionInfo> {
    given.client().list_workflow_executions(of(query)).await.expect("it is listed").into_inner().executions
}

pub(crate) fn ids(listed: &[WorkflowExecutionInfo]) -> Vec<String> {
    listed.iter().map(|run| run.execution.clone().unwrap_or_default().workflow_id).collect()
}

/// What a query finds once it finds these, in this order.
pub(crate) async fn until_listed(given: &Given, query: &str, expected: &[&str]) -> Vec<WorkflowExecutionInfo> {
    let began = Instant::now();
    loop {
        let listed = list(given, query).await;
        if ids(&listed) == expected {
            return listed;
        }
        assert!(began.elapsed() < PATIENCE, "{query:?} finds {:?}, not {expected:?}", ids(&listed));
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// A run that is there throughout is returned once, however many start and close between pages.
pub(crate) async fn check(given: &Given) {
    const N_RUNS: usize = 40;
    let mut runs = Vec::new();
    for n in 0..N_RUNS {
        runs.push(start(given, &format!("there-{n:02}"), "cook").await);
    }
    let newest_first: Vec<String> = (0..N_RUNS).rev().map(|n| format!("there-{n:02}")).collect();
    let newest_first: Vec<&str> = newest_first.iter().map(String::as_str).collect();
    until_listed(given, "", &newest_first).await;
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
            // Closes some that were returned, and some that were not.
            start(given, &format!("new-{round}-{page}"), "bake").await;
            let closing: Vec<WorkflowExecution> = [0, runs.len() / 2].map(|n| runs.remove(n)).into_iter().collect();
            for run in closing {
                let workflow_id = run.workflow_id.clone();
                terminate(given, run).await;
                let query = format!("WorkflowId = '{workflow_id}' AND ExecutionStatus = 'Terminated'");
                until_listed(given, &query, &[&workflow_id]).await;
            }
        }
        told.sort_unstable();
        let all: Vec<String> = (0..N_RUNS).map(|n| format!("there-{n:02}")).collect();
        assert_eq!(told, all, "round {round}");
    }
}
