//! Timers that share a row.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, StartTimerCommandAttributes};
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::workflowservice::v1 as public;

use crate::by_hand::ByHand;
use crate::commands::{command, name};
use crate::given::{NAMESPACE, a_node, a_node_in, within};

const N_TIMERS: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(30);

fn start_timer(id: u64) -> Command {
    let start_to_fire_timeout = Some(prost_types::Duration { seconds: 2, nanos: 0 });
    let attributes = StartTimerCommandAttributes { timer_id: id.to_string(), start_to_fire_timeout };
    command(CommandType::StartTimer, CommandAttributes::StartTimerCommandAttributes(attributes))
}

#[tokio::test]
async fn timers_of_one_moment_are_one_row_and_each_fires_once_after_a_restart() {
    let given = a_node().await;
    let run = ByHand::new(&given, "sleepy");
    run.start().await;
    let task = run.poll().await;
    let n_rows = || given.node.counts().rows_written.load(Ordering::Relaxed);
    let before = n_rows();
    run.complete(task.task_token, (0..N_TIMERS).map(start_timer).collect()).await;
    // Each is also an item of the run, and the visibility write of the start may be counted.
    let written = n_rows() - before;
    assert!(written < 2 * N_TIMERS, "{written} rows");

    let given = a_node_in(given.stop().await).await;
    let run = ByHand::new(&given, "sleepy");
    let (mut next_page_token, mut fired) = (bytes::Bytes::new(), Vec::new());
    while fired.len() < N_TIMERS as usize {
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: NAMESPACE.into(),
            execution: Some(run.execution()),
            wait_new_event: true,
            next_page_token,
            ..Default::default()
        };
        let page = run.client().get_workflow_execution_history(within(PATIENCE, request)).await.expect("history");
        let page = page.into_inner();
        next_page_token = page.next_page_token;
        let events = page.history.unwrap_or_default().events;
        fired.extend(events.into_iter().filter(|event| name(event) == "TimerFired"));
    }
    let n_fired = run.events().await.iter().filter(|event| name(event) == "TimerFired").count();
    assert_eq!(n_fired, N_TIMERS as usize);
    given.stop().await;
}

/// The core looked through all timers for each: 40 000 took seconds under the run's lock.
#[tokio::test]
async fn a_completion_that_starts_too_many_timers_fails_and_the_run_goes_on() {
    let given = a_node().await;
    let run = ByHand::new(&given, "many-timers");
    run.start().await;
    let task = run.poll().await;
    let refusal = run.try_complete(task.task_token, (0..40_000).map(start_timer).collect()).await;
    let refusal = refusal.expect_err("a run has ten thousand timers at most");
    assert!(refusal.message().contains("pending timers, 10000, has reached"), "{}", refusal.message());
    let task = run.poll().await;
    run.complete(task.task_token, (0..2_000).map(start_timer).collect()).await;
}
