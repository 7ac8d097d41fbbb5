//! Deleting a run over gRPC.

use std::time::Duration;

use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::HistoryEventFilterType;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::given::{Given, NAMESPACE, a_node, refused};

const ID: &str = "unwanted";

async fn start(given: &Given) -> WorkflowExecution {
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "unwanted".into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        ..Default::default()
    };
    let granted = async {
        loop {
            match given.client().start_workflow_execution(start.clone()).await {
                Ok(started) => return started.into_inner().run_id,
                // Right after another start of the same id it is too soon.
                Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
            }
        }
    };
    let run_id = tokio::time::timeout(Duration::from_secs(20), granted).await.expect("the start is granted");
    WorkflowExecution { workflow_id: ID.into(), run_id }
}

fn delete(execution: WorkflowExecution) -> public::DeleteWorkflowExecutionRequest {
    public::DeleteWorkflowExecutionRequest { namespace: NAMESPACE.into(), workflow_execution: Some(execution) }
}

async fn describe(
    given: &Given,
    execution: &WorkflowExecution,
) -> Result<tonic::Response<public::DescribeWorkflowExecutionResponse>, Status> {
    let request =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: Some(execution.clone()) };
    given.client().describe_workflow_execution(request).await
}

async fn until_gone(given: &Given, execution: &WorkflowExecution) {
    let gone = async {
        while describe(given, execution).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the run goes");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_finds_a_run_that_was_deleted() {
    let given = a_node().await;
    let execution = start(&given).await;
    let listening = tokio::spawn({
        let mut client = given.client();
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: Some(execution.clone()),
            wait_new_event: true,
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            ..Default::default()
        };
        async move { client.get_workflow_execution_history(request).await }
    });
    given.client().delete_workflow_execution(delete(execution.clone())).await.expect("an open run can be deleted");
    until_gone(&given, &execution).await;
    let message = format!("workflow execution not found for workflow ID \"{ID}\" and run ID \"{}\"", execution.run_id);
    refused(describe(&given, &execution).await, Code::NotFound, &message);
    refused(given.client().delete_workflow_execution(delete(execution.clone())).await, Code::NotFound, &message);
    let history = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: Some(execution.clone()),
        ..Default::default()
    };
    refused(given.client().get_workflow_execution_history(history).await, Code::NotFound, &message);
    // The long poll returns the close event, or "not found".
    match listening.await.expect("the wait ends") {
        Ok(page) => assert_eq!(page.into_inner().history.unwrap_or_default().events.len(), 1),
        Err(status) => assert_eq!(status.code(), Code::NotFound),
    }
    let current = WorkflowExecution { run_id: String::new(), ..execution.clone() };
    let message = format!("workflow not found for ID: {ID}");
    refused(describe(&given, &current).await, Code::NotFound, &message);

    let next = start(&given).await;
    assert_ne!(next, execution);
    assert!(describe(&given, &current).await.is_ok(), "the id is free again");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_an_older_run_leaves_the_current_one() {
    let given = a_node().await;
    let first = start(&given).await;
    let terminate = public::TerminateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(first.clone()),
        ..Default::default()
    };
    given.client().terminate_workflow_execution(terminate).await.expect("an open run is terminated");
    let second = start(&given).await;
    given.client().delete_workflow_execution(delete(first.clone())).await.expect("a closed run is deleted");
    until_gone(&given, &first).await;
    let current = WorkflowExecution { run_id: String::new(), ..first };
    let described = describe(&given, &current).await.expect("the second run is there").into_inner();
    assert_eq!(described.workflow_execution_info.and_then(|info| info.execution), Some(second));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_no_run_is_refused() {
    let given = a_node().await;
    let nameless = WorkflowExecution::default();
    refused(
        given.client().delete_workflow_execution(delete(nameless)).await,
        Code::InvalidArgument,
        "WorkflowId is not set on request.",
    );
    given.stop().await;
}
