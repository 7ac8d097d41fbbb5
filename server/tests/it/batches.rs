//! Batch operations over gRPC.

use std::time::Duration;

use futures_util::future::join_all;
use proto::temporal::api::batch::v1 as batch;
use proto::temporal::api::common::v1::{ResetOptions, WorkflowExecution, WorkflowType, reset_options};
use proto::temporal::api::enums::v1::{
    BatchOperationState, BatchOperationType, EventType, ResourceExhaustedCause, WorkflowExecutionStatus,
};
use proto::temporal::api::errordetails::v1 as details;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::start_batch_operation_request::Operation;
use tonic::{Code, Status};

use crate::by_hand::{ByHand, PATIENCE};
use crate::given::{Given, NAMESPACE, a_node, a_node_in, a_node_with, config, detail, refused, register};

const QUERY: &str = "WorkflowType = 'cook'";

async fn start_runs(given: &Given, n_runs: usize) -> Vec<WorkflowExecution> {
    let mut runs = Vec::new();
    for n in 0..n_runs {
        let start = public::StartWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_id: format!("run-{n}"),
            workflow_type: Some(WorkflowType { name: "cook".into() }),
            task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
            ..Default::default()
        };
        let started = given.client().start_workflow_execution(start).await.expect("a start").into_inner();
        runs.push(WorkflowExecution { workflow_id: format!("run-{n}"), run_id: started.run_id });
    }
    until_counted(given, QUERY, n_runs).await;
    runs
}

async fn until_counted(given: &Given, query: &str, n_runs: usize) {
    let counted = async {
        while n_counted(given, query).await != n_runs {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.unwrap_or_else(|_| panic!("{n_runs} runs with {query}"));
}

async fn n_counted(given: &Given, query: &str) -> usize {
    let request = public::CountWorkflowExecutionsRequest { namespace: NAMESPACE.into(), query: query.into() };
    let answer = given.client().count_workflow_executions(request).await.expect("a count").into_inner();
    usize::try_from(answer.count).expect("a count is not negative")
}

fn of(job_id: &str, operation: Operation) -> public::StartBatchOperationRequest {
    public::StartBatchOperationRequest {
        namespace: NAMESPACE.into(),
        visibility_query: QUERY.into(),
        job_id: job_id.into(),
        reason: "spring cleaning".into(),
        operation: Some(operation),
        ..Default::default()
    }
}

fn terminate() -> Operation {
    Operation::TerminationOperation(batch::BatchOperationTermination { identity: "op".into(), details: None })
}

fn signal() -> Operation {
    let (signal, identity) = ("clean".into(), "op".into());
    Operation::SignalOperation(batch::BatchOperationSignal { signal, identity, ..Default::default() })
}

async fn begin(given: &Given, request: public::StartBatchOperationRequest) -> Result<(), Status> {
    given.client().start_batch_operation(request).await.map(|_| ())
}

async fn describe(given: &Given, job_id: &str) -> Result<public::DescribeBatchOperationResponse, Status> {
    let request = public::DescribeBatchOperationRequest { namespace: NAMESPACE.into(), job_id: job_id.into() };
    given.client().describe_batch_operation(request).await.map(tonic::Response::into_inner)
}

async fn until(
    given: &Given,
    job_id: &str,
    reached: impl Fn(&public::DescribeBatchOperationResponse) -> bool,
) -> public::DescribeBatchOperationResponse {
    let waiting = async {
        loop {
            let described = describe(given, job_id).await.expect("the batch is there");
            if reached(&described) {
                return described;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the batch comes so far")
}

async fn until_over(given: &Given, job_id: &str) -> public::DescribeBatchOperationResponse {
    until(given, job_id, |described| described.state() != BatchOperationState::Running).await
}

/// Runs a batch on all, and returns its final description.
async fn whole(given: &Given, job_id: &str, operation: Operation) -> public::DescribeBatchOperationResponse {
    begin(given, of(job_id, operation)).await.expect("the batch begins");
    until_over(given, job_id).await
}

fn counts(described: &public::DescribeBatchOperationResponse) -> (i64, i64, i64) {
    (described.total_operation_count, described.complete_operation_count, described.failure_operation_count)
}

async fn events(given: &Given, run: &WorkflowExecution, wanted: EventType) -> usize {
    let request = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: Some(run.clone()),
        ..Default::default()
    };
    let page = given.client().get_workflow_execution_history(request).await.expect("a history").into_inner();
    page.history.expect("events").events.iter().filter(|event| event.event_type() == wanted).count()
}

async fn status(given: &Given, run: &WorkflowExecution) -> WorkflowExecutionStatus {
    let (namespace, execution) = (NAMESPACE.into(), Some(run.clone()));
    let request = public::DescribeWorkflowExecutionRequest { namespace, execution };
    let described = given.client().describe_workflow_execution(request).await.expect("a run").into_inner();
    described.workflow_execution_info.expect("info").status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_terminates_all_open_runs_that_its_query_finds() {
    let given = a_node().await;
    let runs = start_runs(&given, 12).await;
    let other = ByHand::new(&given, "other");
    other.start().await;
    let done = whole(&given, "job", terminate()).await;
    assert_eq!((done.state(), counts(&done)), (BatchOperationState::Completed, (12, 12, 0)));
    assert_eq!(done.operation_type(), BatchOperationType::TerminateWorkflow);
    assert_eq!((done.identity.as_str(), done.reason.as_str(), done.query.as_str()), ("op", "spring cleaning", QUERY));
    assert!(done.start_time.is_some() && done.close_time.is_some());
    for run in &runs {
        assert_eq!(status(&given, run).await, WorkflowExecutionStatus::Terminated);
    }
    assert_eq!(status(&given, &other.execution()).await, WorkflowExecutionStatus::Running);
    until_counted(&given, &format!("{QUERY} AND ExecutionStatus = 'Terminated'"), 12).await;
    let again = whole(&given, "again", terminate()).await;
    assert_eq!((again.state(), counts(&again)), (BatchOperationState::Completed, (0, 0, 0)));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_the_node_leaves_in_the_middle_goes_on_and_reaches_each_run_once() {
    const N_RUNS: usize = 250;
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut slow = config(&directory);
    slow.history.batch_operations_per_second = 110.0;
    let given = a_node_with(directory, slow).await;
    let runs = start_runs(&given, N_RUNS).await;
    begin(&given, of("job", signal())).await.expect("the batch begins");
    let so_far = until(&given, "job", |described| described.complete_operation_count > 0).await;
    assert_eq!((so_far.state(), so_far.total_operation_count), (BatchOperationState::Running, 250));
    assert!(so_far.complete_operation_count < 250, "{so_far:?}");

    let given = a_node_in(given.stop().await).await;
    let done = until_over(&given, "job").await;
    assert_eq!((done.state(), counts(&done)), (BatchOperationState::Completed, (250, 250, 0)));
    assert_eq!(done.start_time, so_far.start_time);
    for run in &runs {
        assert_eq!(events(&given, run, EventType::WorkflowExecutionSignaled).await, 1, "{run:?}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_does_what_it_is_asked_to_do() {
    let given = a_node().await;
    let runs = start_runs(&given, 3).await;
    let cancel = Operation::CancellationOperation(batch::BatchOperationCancellation { identity: "op".into() });
    let done = whole(&given, "cancel", cancel).await;
    assert_eq!((done.operation_type(), counts(&done)), (BatchOperationType::CancelWorkflow, (3, 3, 0)));
    for run in &runs {
        assert_eq!(events(&given, run, EventType::WorkflowExecutionCancelRequested).await, 1);
    }
    use batch::batch_operation_unpause_activities::Activity;
    let unpause =
        batch::BatchOperationUnpauseActivities { activity: Some(Activity::MatchAll(true)), ..Default::default() };
    let done = whole(&given, "unpause", Operation::UnpauseActivitiesOperation(unpause)).await;
    assert_eq!((done.operation_type(), counts(&done)), (BatchOperationType::UnpauseActivity, (3, 3, 0)));

    let target = Some(reset_options::Target::FirstWorkflowTask(()));
    let options = Some(ResetOptions { target, ..Default::default() });
    let reset = batch::BatchOperationReset { options, ..Default::default() };
    let done = whole(&given, "reset", Operation::ResetOperation(reset)).await;
    assert_eq!((done.state(), done.total_operation_count), (BatchOperationState::Completed, 3));
    // Counts without a filter include all runs at once. Visibility lags behind with those that the resets began, and
    // the batches below must not miss them.
    until_counted(&given, QUERY, n_counted(&given, "").await).await;
    let target = Some(reset_options::Target::BuildId("none".into()));
    let options = Some(ResetOptions { target, ..Default::default() });
    let reset = batch::BatchOperationReset { options, ..Default::default() };
    let done = whole(&given, "build", Operation::ResetOperation(reset)).await;
    assert_eq!(done.complete_operation_count, 0, "no run has such a build");
    assert!(done.failure_operation_count >= 3);

    let delete = Operation::DeletionOperation(batch::BatchOperationDeletion { identity: "op".into() });
    let done = whole(&given, "delete", delete).await;
    assert_eq!((done.state(), done.failure_operation_count), (BatchOperationState::Completed, 0));
    until_counted(&given, QUERY, 0).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_by_batch_starts_each_run_again() {
    let given = a_node().await;
    let by_hand = ByHand::new(&given, "reset me");
    let first = by_hand.start().await;
    let task = by_hand.poll().await;
    let answer = by_hand.completion(task.task_token);
    by_hand.client().respond_workflow_task_completed(answer).await.expect("the task is completed");
    until_counted(&given, "WorkflowId = 'reset me'", 1).await;
    let target = Some(reset_options::Target::LastWorkflowTask(()));
    let options = Some(ResetOptions { target, ..Default::default() });
    let reset = batch::BatchOperationReset { options, ..Default::default() };
    let request = public::StartBatchOperationRequest {
        visibility_query: "WorkflowId = 'reset me'".into(),
        ..of("job", Operation::ResetOperation(reset))
    };
    begin(&given, request).await.expect("the batch begins");
    let done = until_over(&given, "job").await;
    assert_eq!((done.operation_type(), counts(&done)), (BatchOperationType::ResetWorkflow, (1, 1, 0)));
    let first = WorkflowExecution { run_id: first, ..by_hand.execution() };
    assert_eq!(status(&given, &first).await, WorkflowExecutionStatus::Terminated);
    assert_eq!(status(&given, &by_hand.execution()).await, WorkflowExecutionStatus::Running);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_may_be_named_one_by_one_and_those_that_are_gone_count_as_done() {
    let given = a_node().await;
    let mut runs = start_runs(&given, 2).await;
    runs.push(WorkflowExecution { workflow_id: "nobody".into(), run_id: String::new() });
    #[expect(deprecated, reason = "older clients do it so")]
    let request = public::StartBatchOperationRequest {
        visibility_query: String::new(),
        executions: runs.clone(),
        ..of("job", signal())
    };
    begin(&given, request).await.expect("the batch begins");
    let done = until_over(&given, "job").await;
    assert_eq!((done.state(), counts(&done)), (BatchOperationState::Completed, (3, 3, 0)));
    let named: Vec<_> = done.executions.iter().map(|execution| execution.business_id.as_str()).collect();
    assert_eq!(named, ["run-0", "run-1", "nobody"]);
    assert_eq!(events(&given, &runs[0], EventType::WorkflowExecutionSignaled).await, 1);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_batch_of_a_namespace_runs_at_a_time_until_it_is_stopped() {
    let given = a_node().await;
    start_runs(&given, 5).await;
    let slow = public::StartBatchOperationRequest { max_operations_per_second: 0.01, ..of("slow", terminate()) };
    begin(&given, slow.clone()).await.expect("the batch begins");
    let status = refused(
        begin(&given, of("second", terminate())).await,
        Code::ResourceExhausted,
        "Max concurrent batch operations is reached",
    );
    let found: details::ResourceExhaustedFailure = detail(&status).expect("a detail");
    assert_eq!(found.cause(), ResourceExhaustedCause::ConcurrentLimit);

    let stop = |job_id: &str| public::StopBatchOperationRequest {
        namespace: NAMESPACE.into(),
        job_id: job_id.into(),
        reason: "enough".into(),
        identity: "op".into(),
    };
    given.client().stop_batch_operation(stop("slow")).await.expect("it is stopped");
    let stopped = describe(&given, "slow").await.expect("it is there");
    assert_eq!(stopped.state(), BatchOperationState::Failed);
    assert!(stopped.close_time.is_some());
    let message = "workflow execution already completed";
    refused(given.client().stop_batch_operation(stop("slow")).await, Code::NotFound, message);
    let message = "workflow not found for ID: none";
    refused(given.client().stop_batch_operation(stop("none")).await, Code::NotFound, message);
    refused(describe(&given, "none").await, Code::NotFound, message);
    let again = begin(&given, slow).await.expect_err("a job has its id for itself");
    assert_eq!(again.code(), Code::AlreadyExists);
    whole(&given, "second", terminate()).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_listed_in_pages_the_last_to_end_first() {
    let given = a_node().await;
    for n in 0..5 {
        whole(&given, &format!("job-{n}"), terminate()).await;
    }
    let mut request =
        public::ListBatchOperationsRequest { namespace: NAMESPACE.into(), page_size: 2, ..Default::default() };
    let mut listed = Vec::new();
    loop {
        let page = given.client().list_batch_operations(request.clone()).await.expect("a page").into_inner();
        listed.extend(page.operation_info);
        if page.next_page_token.is_empty() {
            break;
        }
        request.next_page_token = page.next_page_token;
    }
    let ids: Vec<_> = listed.iter().map(|info| info.job_id.as_str()).collect();
    assert_eq!(ids, ["job-4", "job-3", "job-2", "job-1", "job-0"]);
    assert!(listed.iter().all(|info| info.operation_type() == BatchOperationType::TerminateWorkflow));
    let nonsense = public::ListBatchOperationsRequest { next_page_token: "nonsense".into(), ..request };
    refused(given.client().list_batch_operations(nonsense).await, Code::InvalidArgument, "Invalid NextPageToken.");
    given.stop().await;
}

/// The first task that wakes up runs a job, and the end of another job may wake it.
#[tokio::test(flavor = "multi_thread")]
async fn batches_of_many_namespaces_begin_at_once_and_none_is_lost() {
    let given = a_node().await;
    let batches = (0..24).map(|n| {
        let (namespace, mut client) = (format!("n-{n}"), given.client());
        async move {
            client.register_namespace(register(&namespace)).await.expect("others register too");
            let request = public::StartBatchOperationRequest { namespace: namespace.clone(), ..of("job", terminate()) };
            client.start_batch_operation(request).await.expect("the batch begins");
            loop {
                let (namespace, job_id) = (namespace.clone(), "job".to_owned());
                let request = public::DescribeBatchOperationRequest { namespace, job_id };
                let described = client.describe_batch_operation(request).await.expect("it is there").into_inner();
                if described.state() != BatchOperationState::Running {
                    return described.state();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    let states = tokio::time::timeout(PATIENCE, join_all(batches)).await.expect("all end");
    assert!(states.iter().all(|state| *state == BatchOperationState::Completed), "{states:?}");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_batch_is_refused_or_fails() {
    let given = a_node().await;
    let missing = "must provide required parameters: BatchType,Reason,Namespace, AND one of (Query OR Executions OR \
                   TargetExecutions)";
    let nameless = Operation::SignalOperation(batch::BatchOperationSignal::default());
    let aimless = batch::BatchOperationReset { options: Some(ResetOptions::default()), ..Default::default() };
    let cases = [
        (public::StartBatchOperationRequest { operation: None, ..of("job", terminate()) }, missing),
        (public::StartBatchOperationRequest { reason: String::new(), ..of("job", terminate()) }, missing),
        (public::StartBatchOperationRequest { visibility_query: String::new(), ..of("job", terminate()) }, missing),
        (of("", terminate()), "JobId is not set on request."),
        (of("job", nameless), "must provide signal name"),
        (of("job", Operation::ResetOperation(aimless)), "batch reset missing target"),
        (of("job", Operation::ResetOperation(Default::default())), "unknown batch reset type Unspecified"),
        (of("job", Operation::UpdateWorkflowOptionsOperation(Default::default())), "must provide UpdateOptions"),
        (of("job", Operation::UnpauseActivitiesOperation(Default::default())), "activity filter must be set"),
        (of("job", Operation::ResetActivitiesOperation(Default::default())), "must provide ActivityType or MatchAll"),
    ];
    for (request, message) in cases {
        refused(begin(&given, request).await, Code::InvalidArgument, message);
    }
    let unreadable = public::StartBatchOperationRequest { visibility_query: "()".into(), ..of("job", terminate()) };
    let message = "invalid visibility query: syntax error at position 29";
    refused(begin(&given, unreadable).await, Code::InvalidArgument, message);
    let unknown = public::StartBatchOperationRequest { visibility_query: "Foo = 1".into(), ..of("job", terminate()) };
    begin(&given, unknown).await.expect("it can be read");
    assert_eq!(until_over(&given, "job").await.state(), BatchOperationState::Failed);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_stopped_tells_what_it_did() {
    let given = a_node().await;
    start_runs(&given, 20).await;
    let slow = public::StartBatchOperationRequest { max_operations_per_second: 10.0, ..of("slow", terminate()) };
    begin(&given, slow).await.expect("the batch begins");
    let under_way = until(&given, "slow", |described| described.complete_operation_count >= 3).await;
    assert_eq!((under_way.state(), under_way.total_operation_count), (BatchOperationState::Running, 20));
    let stop = public::StopBatchOperationRequest {
        namespace: NAMESPACE.into(),
        job_id: "slow".into(),
        reason: "enough".into(),
        identity: "op".into(),
    };
    given.client().stop_batch_operation(stop).await.expect("it is stopped");
    // What was under way then ends on its own, and is counted.
    let terminated = format!("{QUERY} AND ExecutionStatus = 'Terminated'");
    let counted = async {
        loop {
            let told = describe(&given, "slow").await.expect("it is there");
            let n_terminated = n_counted(&given, &terminated).await;
            if told.complete_operation_count == n_terminated as i64 {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let told = tokio::time::timeout(PATIENCE, counted).await.expect("the counts agree");
    assert_eq!((told.state(), told.failure_operation_count), (BatchOperationState::Failed, 0));
    assert!((3..20).contains(&told.complete_operation_count), "{}", told.complete_operation_count);
    // They are rows, not memory.
    let given = a_node_in(given.stop().await).await;
    let kept = describe(&given, "slow").await.expect("it is there");
    assert_eq!(kept.complete_operation_count, told.complete_operation_count);
    given.stop().await;
}
