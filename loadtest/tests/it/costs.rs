//! The regression guard: what an operation of each scenario costs the store, as counts. Every transition is a batch of its
//! own here, so that the counts do not depend on how fast the machine is; group commit only ever makes them smaller.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as api;

use crate::given::{Given, a_node_with};

/// Per operation, at most.
#[derive(Debug, Clone, Copy)]
struct Cost {
    conditional_writes: f64,
    plain_writes: f64,
    reads: f64,
    rows: f64,
}

/// What checkpoints, the heartbeat, the namespace and learning the workflow ids cost besides, however many operations there are.
const BESIDES: f64 = 16.0;
/// Upper bound of the visibility lag.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

fn spent(given: &Given) -> [u64; 4] {
    let counts = given.counts();
    [&counts.conditional_writes, &counts.plain_writes, &counts.reads, &counts.rows_written]
        .map(|count| count.load(Ordering::Relaxed))
}

async fn check(scenario: &str, count: u32, more: &[&str], cost: Cost) {
    let given = a_node_with(|config| {
        config.cluster.shards = 1;
        config.history.batch_transitions = 1;
    })
    .await;
    let before = spent(&given);
    let count_text = count.to_string();
    let arguments = [scenario, "--count", &count_text, "--concurrency", "4", "--histories", "0"];
    let arguments: Vec<&str> = arguments.into_iter().chain(more.iter().copied()).collect();
    let (output, _) = given.stress(&arguments).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let after = spent(&given);
    let limits = [cost.conditional_writes, cost.plain_writes, cost.reads, cost.rows];
    for (n, name) in ["conditional writes", "plain writes", "reads", "rows"].into_iter().enumerate() {
        let total = u32::try_from(after[n] - before[n]).expect("a small count");
        eprintln!("{scenario}: {name} {:.3} per operation", f64::from(total) / f64::from(count));
        let limit = limits[n] * f64::from(count) + BESIDES;
        assert!(f64::from(total) <= limit, "{count} operations of {scenario} took {total} {name}, not {limit}");
    }
    given.stop().await;
}

/// In the order of the struct. A transition is a conditional write, mostly a history node (a plain write of one row),
/// the rows of the run that changed, of its timers, and of the tasks that it leaves in the queues. Visibility takes two
/// plain writes and up to sixteen rows more per run: the rows of its start are written, and deleted when it ends.
fn cost(conditional_writes: f64, plain_writes: f64, reads: f64, rows: f64) -> Cost {
    Cost { conditional_writes, plain_writes, reads, rows }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_does_nothing_costs_no_more_than_it_did() {
    check("no-op", 40, &[], cost(3.0, 5.0, 0.1, 28.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_of_one_activity_costs_no_more_than_it_did() {
    check("one-activity", 40, &[], cost(7.0, 8.0, 0.1, 43.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_three_activities_costs_no_more_than_it_did() {
    check("chain", 20, &["--size", "3"], cost(15.0, 14.0, 0.1, 73.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_activities_at_once_costs_no_more_than_it_did() {
    // How many workflow tasks there are depends on how many completions each of them finds; this is the most.
    check("fan-out", 10, &["--size", "10"], cost(44.0, 24.0, 0.1, 187.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_one_workflow_costs_no_more_than_it_did() {
    // As many workflow tasks as signals at most; mostly one for several.
    check("signals-to-one", 100, &[], cost(3.0, 3.0, 0.1, 12.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_one_of_many_costs_no_more_than_it_did() {
    check("signals-to-many", 100, &["--size", "4"], cost(3.0, 3.0, 0.1, 12.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_costs_no_more_than_it_did() {
    check("timers", 20, &["--size", "1"], cost(6.0, 8.0, 0.1, 40.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_with_its_parent_costs_no_more_than_it_did() {
    check("children", 20, &["--size", "1"], cost(17.0, 20.0, 0.1, 98.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_continues_once_costs_no_more_than_it_did() {
    check("continue-as-new", 20, &["--size", "1"], cost(6.0, 11.0, 0.1, 58.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_costs_no_more_than_it_did() {
    check("updates", 40, &["--size", "4"], cost(4.0, 3.0, 0.2, 15.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_costs_no_more_than_it_did() {
    // They cost nothing; this is what the workflows cost that are asked.
    check("queries", 40, &["--size", "4"], cost(0.9, 1.6, 0.2, 6.5)).await;
}

/// A run that stays as it is.
fn start_of(workflow_id: &str) -> api::StartWorkflowExecutionRequest {
    api::StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: workflow_id.into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_in_memory_is_found_by_its_id_without_a_read() {
    let given = a_node_with(|config| config.cluster.shards = 1).await;
    let mut client = given.client().await;
    client.start_workflow_execution(start_of("asked for")).await.expect("it starts");
    let signal = api::SignalWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_execution: Some(WorkflowExecution { workflow_id: "asked for".into(), run_id: String::new() }),
        signal_name: "again".into(),
        ..Default::default()
    };
    let reads = given.reads_at_rest().await;
    for _ in 0..40 {
        client.signal_workflow_execution(signal.clone()).await.expect("it is signaled");
    }
    assert_eq!(given.reads_at_rest().await, reads);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_finds_one_run_reads_where_runs_are_and_the_index_and_the_run() {
    const N_LISTS: u64 = 40;
    let given = a_node_with(|config| config.cluster.shards = 1).await;
    let mut client = given.client().await;
    client.start_workflow_execution(start_of("listed")).await.expect("it starts");
    let request = api::ListWorkflowExecutionsRequest {
        namespace: "default".into(),
        query: "WorkflowId = 'listed' AND ExecutionStatus = 'Running'".into(),
        ..Default::default()
    };
    let deadline = tokio::time::Instant::now() + LISTED_WITHIN;
    while client.list_workflow_executions(request.clone()).await.expect("a list").into_inner().executions.is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "it is not listed after {LISTED_WITHIN:?}");
    }
    let before = given.reads_at_rest().await;
    for _ in 0..N_LISTS {
        let listed = client.list_workflow_executions(request.clone()).await.expect("a list").into_inner();
        assert_eq!(listed.executions.len(), 1);
    }
    assert_eq!(given.reads_at_rest().await - before, 3 * N_LISTS);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_from_a_backlog_costs_no_more_than_it_did() {
    // What waits for a worker is spooled, and read again. All are started at once, before the shard knows its workflow ids.
    check("backlog", 40, &[], cost(9.0, 8.0, 1.2, 47.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_left_open_costs_no_more_than_it_did() {
    check("open-runs", 40, &[], cost(3.0, 5.0, 0.1, 26.0)).await;
}
