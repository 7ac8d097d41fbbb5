//! Runs that hold much: what one input brings costs that input, and never the shard that others share.

use std::time::Duration;

use bytes::Bytes;
use proto::temporal::api::batch::v1::BatchOperationReset;
use proto::temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::common::v1::{Memo, Payload, Payloads, ResetOptions, RetryPolicy, reset_options};
use proto::temporal::api::enums::v1::{
    BatchOperationState, CommandType, EventType, WorkflowExecutionStatus, WorkflowIdConflictPolicy,
};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::start_batch_operation_request::Operation;
use tempfile::TempDir;

use crate::by_hand::{ByHand, PATIENCE};
use crate::commands::{command, fail, finish};
use crate::given::{Given, NAMESPACE, a_node_with, config};

/// A signal may bring 2 MiB.
const SIGNAL_BYTES: usize = 3 << 19;
/// Together more than a store takes in one batch.
const N_SIGNALS: usize = 14;

fn bytes(size: usize) -> Payloads {
    Payloads { payloads: vec![Payload { data: vec![7; size].into(), ..Default::default() }] }
}

/// A node with a single shard, so that whatever happens to one run happens beside all others.
async fn a_node_with_one_shard() -> Given {
    in_one_shard(tempfile::tempdir().expect("a directory")).await
}

async fn in_one_shard(directory: TempDir) -> Given {
    let mut config = config(&directory);
    config.cluster.shards = 1;
    a_node_with(directory, config).await
}

/// A run whose first workflow task completed as event 4, with more signals after it than one batch takes.
async fn full(run: &ByHand) {
    run.begin().await;
    for n in 0..N_SIGNALS {
        let signal = public::SignalWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: Some(run.execution()),
            signal_name: format!("s{n}"),
            input: Some(bytes(SIGNAL_BYTES)),
            ..Default::default()
        };
        run.client().signal_workflow_execution(signal).await.expect("a signal");
    }
}

/// All events of the newest run, over as many pages as it takes.
async fn all_events(run: &ByHand) -> Vec<HistoryEvent> {
    let (mut events, mut next_page_token) = (Vec::new(), Bytes::new());
    loop {
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: Some(run.execution()),
            next_page_token,
            ..Default::default()
        };
        let mut client = run.client().max_decoding_message_size(16 << 20);
        let page = client.get_workflow_execution_history(request).await.expect("a page").into_inner();
        events.extend(page.history.unwrap_or_default().events);
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return events;
        }
    }
}

async fn run_id(run: &ByHand) -> String {
    let info = run.describe().await.workflow_execution_info.expect("a run");
    info.execution.expect("an id").run_id
}

/// The run was reset: it has its signals again, in their order, also for a node that reads them from the store.
async fn has_all_signals(run: &ByHand) {
    let events = all_events(run).await;
    let signals = events.iter().filter(|event| event.event_type() == EventType::WorkflowExecutionSignaled);
    assert_eq!(signals.count(), N_SIGNALS);
    assert!(events.iter().map(|event| event.event_id).eq(1..=events.len() as i64));
}

/// One input after the other is answered at once.
async fn goes_on(neighbour: &ByHand) {
    let signal = tokio::time::timeout(Duration::from_secs(2), neighbour.signal("still there"));
    signal.await.expect("the shard is not given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_more_signals_than_one_batch_takes_is_reset() {
    let given = a_node_with_one_shard().await;
    let (run, neighbour) = (ByHand::new(&given, "full"), ByHand::new(&given, "neighbour"));
    neighbour.start().await;
    full(&run).await;
    let reset = public::ResetWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(run.execution()),
        workflow_task_finish_event_id: 4,
        reason: "bad deploy".into(),
        request_id: "r-1".into(),
        ..Default::default()
    };
    let made = run.client().reset_workflow_execution(reset.clone()).await.expect("a reset").into_inner().run_id;
    assert_eq!(run_id(&run).await, made);
    goes_on(&neighbour).await;
    has_all_signals(&run).await;
    // What is in memory does not count, and a part that ends between two nodes can be reset to again.
    let directory = given.stop().await;
    let given = in_one_shard(directory).await;
    let run = ByHand::new(&given, "full");
    has_all_signals(&run).await;
    let again = public::ResetWorkflowExecutionRequest { request_id: "r-2".into(), ..reset };
    let second = run.client().reset_workflow_execution(again).await.expect("a reset").into_inner().run_id;
    assert_ne!(second, made);
    has_all_signals(&run).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_resets_runs_that_hold_much() {
    let given = a_node_with_one_shard().await;
    let run = ByHand::new(&given, "full");
    full(&run).await;
    let before = run_id(&run).await;
    let options = ResetOptions { target: Some(reset_options::Target::FirstWorkflowTask(())), ..Default::default() };
    let request = public::StartBatchOperationRequest {
        namespace: NAMESPACE.into(),
        job_id: "job".into(),
        reason: "bad deploy".into(),
        target_executions: Vec::new(),
        visibility_query: "WorkflowType = 'by hand'".into(),
        operation: Some(Operation::ResetOperation(BatchOperationReset {
            options: Some(options),
            ..Default::default()
        })),
        ..Default::default()
    };
    until_listed(&given).await;
    given.client().start_batch_operation(request).await.expect("the batch begins");
    let over = async {
        loop {
            let request = public::DescribeBatchOperationRequest { namespace: NAMESPACE.into(), job_id: "job".into() };
            let described = given.client().describe_batch_operation(request).await.expect("a batch").into_inner();
            if described.state() != BatchOperationState::Running {
                return described;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, over).await.expect("it comes to an end");
    assert_eq!((done.complete_operation_count, done.failure_operation_count), (1, 0));
    assert_ne!(run_id(&run).await, before);
    given.stop().await;
}

async fn until_listed(given: &Given) {
    let request = public::CountWorkflowExecutionsRequest {
        namespace: NAMESPACE.into(),
        query: "WorkflowType = 'by hand'".into(),
    };
    let listed = async {
        while given.client().count_workflow_executions(request.clone()).await.expect("a count").into_inner().count == 0
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.expect("the run is listed");
}

/// Input, memo and result of the largest sizes that a client may send, through every way in which a run hands them on.
#[tokio::test(flavor = "multi_thread")]
async fn large_payloads_are_carried_over_from_run_to_run() {
    const LARGE: usize = (2 << 20) - 1024;
    let given = a_node_with_one_shard().await;
    let neighbour = ByHand::new(&given, "neighbour");
    neighbour.start().await;
    let memo = |size: usize| {
        let payload = Payload { data: vec![7; size].into(), ..Default::default() };
        Some(Memo { fields: [("all of it".to_owned(), payload)].into() })
    };
    let run = ByHand::new(&given, "heavy");
    let start = public::StartWorkflowExecutionRequest {
        input: Some(bytes(LARGE - 4096)),
        memo: memo(LARGE - 4096),
        retry_policy: Some(RetryPolicy { maximum_attempts: 2, ..Default::default() }),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::TerminateExisting.into(),
        ..run.start_request()
    };
    for _ in 0..2 {
        run.client().start_workflow_execution(start.clone()).await.expect("a start");
    }
    run.work(vec![fail("once more")]).await;
    goes_on(&neighbour).await;
    let onwards = ContinueAsNewWorkflowExecutionCommandAttributes {
        input: Some(bytes(LARGE)),
        memo: memo(1 << 20),
        last_completion_result: Some(bytes(1 << 19)),
        ..Default::default()
    };
    let onwards = CommandAttributes::ContinueAsNewWorkflowExecutionCommandAttributes(onwards);
    run.work(vec![command(CommandType::ContinueAsNewWorkflowExecution, onwards)]).await;
    goes_on(&neighbour).await;
    let terminate = public::TerminateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(run.execution()),
        details: Some(bytes(LARGE)),
        ..Default::default()
    };
    run.client().terminate_workflow_execution(terminate).await.expect("a termination");
    goes_on(&neighbour).await;
    neighbour.work(vec![finish("done")]).await;
    let status = neighbour.describe().await.workflow_execution_info.expect("a run").status();
    assert_eq!(status, WorkflowExecutionStatus::Completed);
    given.stop().await;
}
