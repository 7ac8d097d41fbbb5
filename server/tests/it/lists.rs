//! Lists and counts over gRPC, of runs that really ran.

use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::given::{Given, NAMESPACE, a_node, refused};
use crate::paging::{ids, list, of, start, terminate, until_listed};

async fn count(given: &Given, query: &str) -> public::CountWorkflowExecutionsResponse {
    let count = public::CountWorkflowExecutionsRequest { namespace: NAMESPACE.into(), query: query.into() };
    given.client().count_workflow_executions(count).await.expect("it is counted").into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_listed_from_its_start_to_its_deletion() {
    let given = a_node().await;
    let first = start(&given, "first", "cook").await;
    start(&given, "second", "bake").await;
    let listed = until_listed(&given, "", &["second", "first"]).await;
    assert!(listed.iter().all(|run| run.status() == WorkflowExecutionStatus::Running && run.close_time.is_none()));
    assert_eq!(listed[1].execution, Some(first.clone()));
    assert_eq!(listed[1].task_queue, "nobody polls");

    terminate(&given, first.clone()).await;
    until_listed(&given, "ExecutionStatus = 'Terminated'", &["first"]).await;
    let listed = until_listed(&given, "", &["second", "first"]).await;
    assert_eq!(listed[1].status(), WorkflowExecutionStatus::Terminated);
    assert!(listed[1].close_time.is_some() && listed[1].history_length > 0);
    assert_eq!(ids(&list(&given, "ExecutionStatus = 'Running'").await), ["second"]);

    let delete =
        public::DeleteWorkflowExecutionRequest { namespace: NAMESPACE.into(), workflow_execution: Some(first) };
    given.client().delete_workflow_execution(delete).await.expect("it is deleted");
    until_listed(&given, "", &["second"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_what_they_are() {
    let given = a_node().await;
    for (workflow_id, workflow_type) in [("a-1", "cook"), ("a-2", "bake"), ("b-1", "cook")] {
        start(&given, workflow_id, workflow_type).await;
    }
    until_listed(&given, "", &["b-1", "a-2", "a-1"]).await;
    for (query, expected) in [
        ("WorkflowType = 'cook'", &["b-1", "a-1"][..]),
        ("WorkflowId = 'a-2'", &["a-2"]),
        ("WorkflowId STARTS_WITH 'a-' AND WorkflowType = 'cook'", &["a-1"]),
        ("StartTime >= '2020-01-01T00:00:00Z' and TaskQueue = 'nobody polls'", &["b-1", "a-2", "a-1"]),
        ("StartTime < '2020-01-01T00:00:00Z'", &[]),
        ("CloseTime IS NOT NULL", &[]),
    ] {
        assert_eq!(ids(&list(&given, query).await), expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_counted_by_status_and_by_what_they_are() {
    let given = a_node().await;
    let mut runs = Vec::new();
    for n in 0..5 {
        runs.push(start(&given, &format!("run-{n}"), if n < 2 { "cook" } else { "bake" }).await);
    }
    for run in runs.drain(..2) {
        terminate(&given, run).await;
    }
    until_listed(&given, "ExecutionStatus = 'Terminated'", &["run-1", "run-0"]).await;
    assert_eq!(count(&given, "").await.count, 5);
    assert_eq!(count(&given, "ExecutionStatus = 'Running'").await.count, 3);
    assert_eq!(count(&given, "WorkflowType = 'cook'").await.count, 2);
    let grouped = count(&given, "GROUP BY ExecutionStatus").await;
    let groups: Vec<_> = grouped.groups.iter().map(|group| (group.group_values[0].data.clone(), group.count)).collect();
    assert_eq!(grouped.count, 5);
    assert_eq!(groups, [("\"Running\"".into(), 3), ("\"Terminated\"".into(), 2)], "by their numbers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_where_its_last_page_ended_and_nowhere_else() {
    let given = a_node().await;
    for n in 0..7 {
        start(&given, &format!("run-{n}"), "cook").await;
    }
    until_listed(&given, "", &["run-6", "run-5", "run-4", "run-3", "run-2", "run-1", "run-0"]).await;
    let mut request = public::ListWorkflowExecutionsRequest { page_size: 3, ..of("") };
    let mut found = Vec::new();
    loop {
        let page = given.client().list_workflow_executions(request.clone()).await.expect("a page").into_inner();
        found.extend(ids(&page.executions));
        if page.next_page_token.is_empty() {
            break;
        }
        request.next_page_token = page.next_page_token;
    }
    assert_eq!(found, ["run-6", "run-5", "run-4", "run-3", "run-2", "run-1", "run-0"]);
    let other_query =
        public::ListWorkflowExecutionsRequest { query: "WorkflowType = 'cook'".into(), ..request.clone() };
    refused(
        given.client().list_workflow_executions(other_query).await,
        Code::InvalidArgument,
        "Invalid NextPageToken.",
    );
    let nonsense = public::ListWorkflowExecutionsRequest { next_page_token: "nonsense".into(), ..request };
    refused(given.client().list_workflow_executions(nonsense).await, Code::InvalidArgument, "Invalid NextPageToken.");
}
