//! Limits over gRPC: errors that a client and a worker get for one byte too much.

use bytes::Bytes;
use prost::Message as _;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, ScheduleActivityTaskCommandAttributes};
use proto::temporal::api::common::v1::{ActivityType, Payload, Payloads};
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::by_hand::{ByHand, PATIENCE};
use crate::commands::command;
use crate::given::{Given, NAMESPACE, a_node, a_node_with, config, refused, within};

const BLOB_BYTES: usize = 2 << 20;

/// Payloads of this many bytes in total.
fn blob(bytes: usize) -> Option<Payloads> {
    let with_data = |data: usize| Payloads {
        payloads: vec![Payload { data: Bytes::from(vec![b'x'; data]), ..Default::default() }],
    };
    let mut blobs = (bytes - 64..bytes).map(with_data);
    blobs.find(|blob| blob.encoded_len() == bytes)
}

fn schedule(run: &ByHand, activity_id: &str) -> Command {
    let attributes = ScheduleActivityTaskCommandAttributes {
        activity_id: activity_id.into(),
        activity_type: Some(ActivityType { name: "step".into() }),
        task_queue: Some(run.queue()),
        start_to_close_timeout: Some(prost_types::Duration { seconds: 600, nanos: 0 }),
        ..Default::default()
    };
    command(CommandType::ScheduleActivityTask, CommandAttributes::ScheduleActivityTaskCommandAttributes(attributes))
}

/// The token of the next activity task.
async fn poll_activity(given: &Given, run: &ByHand) -> Bytes {
    let poll = public::PollActivityTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(run.queue()),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = given.client().poll_activity_task_queue(within(PATIENCE, poll)).await.expect("a poll").into_inner();
    assert!(!task.task_token.is_empty(), "an activity came in time");
    task.task_token
}

#[tokio::test]
async fn a_start_and_a_signal_carry_so_much_and_no_more() {
    let given = a_node().await;
    for bytes in [BLOB_BYTES - 1, BLOB_BYTES, BLOB_BYTES + 1] {
        let run = ByHand::new(&given, &format!("of-{bytes}"));
        let start = public::StartWorkflowExecutionRequest { input: blob(bytes), ..run.start_request() };
        let started = given.client().start_workflow_execution(start).await;
        let signal = public::SignalWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            workflow_execution: Some(ByHand::new(&given, &format!("of-{BLOB_BYTES}")).execution()),
            signal_name: "more".into(),
            input: blob(bytes),
            ..Default::default()
        };
        if bytes <= BLOB_BYTES {
            started.expect("a start");
        } else {
            refused(started, Code::InvalidArgument, "Blob data size exceeds limit.");
        }
        if bytes == BLOB_BYTES {
            given.client().signal_workflow_execution(signal).await.expect("a signal");
        } else if bytes > BLOB_BYTES {
            let answer = given.client().signal_workflow_execution(signal).await;
            refused(answer, Code::InvalidArgument, "Blob data size exceeds limit.");
        }
    }
    given.stop().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_its_activity() {
    let given = a_node().await;
    let run = ByHand::new(&given, "large-results");
    run.start().await;
    run.work(vec![schedule(&run, "fits")]).await;
    for (bytes, expected) in [(BLOB_BYTES, "ActivityTaskCompleted"), (BLOB_BYTES + 1, "ActivityTaskFailed")] {
        let completed = public::RespondActivityTaskCompletedRequest {
            task_token: poll_activity(&given, &run).await,
            result: blob(bytes),
            ..Default::default()
        };
        given.client().respond_activity_task_completed(completed).await.expect("an answer is taken");
        let event = run.event(expected).await;
        if let Some(Attributes::ActivityTaskFailedEventAttributes(failed)) = event.attributes {
            let failure = failed.failure.expect("a failure");
            assert_eq!(failure.message, "Complete result exceeds size limit.");
            assert!(matches!(failure.failure_info, Some(FailureInfo::ServerFailureInfo(info)) if info.non_retryable));
        } else {
            run.work(vec![schedule(&run, "does-not")]).await;
        }
    }
    given.stop().await;
}

#[tokio::test]
async fn a_run_in_which_too_much_piles_up_is_terminated() {
    let given = a_node().await;
    let run = ByHand::new(&given, "piling-up");
    run.start().await;
    run.work((0..5).map(|n| schedule(&run, &n.to_string())).collect()).await;
    for n in 0..5 {
        let heartbeat = public::RecordActivityTaskHeartbeatRequest {
            task_token: poll_activity(&given, &run).await,
            details: blob(BLOB_BYTES - 200_000),
            ..Default::default()
        };
        let answer = given.client().record_activity_task_heartbeat(heartbeat).await;
        if n < 4 {
            answer.expect("a heartbeat");
        } else {
            refused(answer, Code::InvalidArgument, "Workflow mutable state size exceeds limit.");
        }
    }
    let end = run.event("WorkflowExecutionTerminated").await;
    let Some(Attributes::WorkflowExecutionTerminatedEventAttributes(end)) = end.attributes else { panic!("runs on") };
    assert_eq!(end.reason, "Workflow mutable state size exceeds limit.");
    assert_eq!(end.identity, "history-service");
    given.stop().await;
}

/// As suites of SDKs set it.
#[tokio::test]
async fn the_count_of_events_that_suggests_continue_as_new_is_a_setting() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut config = config(&directory);
    config.history.suggest_continue_as_new_events = 6;
    let given = a_node_with(directory, config).await;
    let run = ByHand::new(&given, "long");
    run.start().await;
    let mut suggested = Vec::new();
    for _ in 0..2 {
        let task = run.poll().await;
        let started = task.history.unwrap_or_default().events.pop().and_then(|event| event.attributes);
        let Some(Attributes::WorkflowTaskStartedEventAttributes(started)) = started else { panic!("a task starts") };
        suggested.push(started.suggest_continue_as_new);
        run.complete(task.task_token, Vec::new()).await;
        run.signal("more").await;
    }
    assert_eq!(suggested, [false, true]);
}
