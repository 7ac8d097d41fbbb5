//! Long polls: how they end when there is nothing to do.

use std::time::{Duration, Instant};

use proto::temporal::api::enums::v1::TaskQueueKind;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::by_hand::ByHand;
use crate::given::{Given, NAMESPACE, a_node, refused, within};

fn poll(queue: &str, worker: &str) -> public::PollWorkflowTaskQueueRequest {
    public::PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(TaskQueue { name: queue.into(), kind: TaskQueueKind::Normal.into(), ..Default::default() }),
        identity: "worker".into(),
        worker_instance_key: worker.into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_answers_empty_before_its_callers_deadline() {
    let given = a_node().await;
    let began = Instant::now();
    let timeout = Duration::from_secs(3);
    let answer = given.client().poll_workflow_task_queue(within(timeout, poll("quiet", ""))).await.unwrap();
    assert_eq!(answer.into_inner(), public::PollWorkflowTaskQueueResponse::default());
    assert!(began.elapsed() < timeout, "{:?}", began.elapsed());
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_cannot_be_answered_in_time_is_refused() {
    let given = a_node().await;
    let answer = given.client().poll_workflow_task_queue(within(Duration::from_secs(1), poll("quiet", ""))).await;
    refused(answer, Code::FailedPrecondition, "Context timeout is too short.");
    let nameless = public::PollActivityTaskQueueRequest { namespace: NAMESPACE.into(), ..Default::default() };
    refused(given.client().poll_activity_task_queue(nameless).await, Code::InvalidArgument, "taskQueue is not set");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_has_its_polls_answered_and_no_others() {
    let given = a_node().await;
    let mut client = given.client();
    let leaving = tokio::spawn({
        let mut client = given.client();
        async move { client.poll_workflow_task_queue(within(Duration::from_secs(60), poll("quiet", "leaving"))).await }
    });
    let staying = tokio::spawn({
        let mut client = given.client();
        async move { client.poll_workflow_task_queue(within(Duration::from_secs(60), poll("quiet", "staying"))).await }
    });
    // A poll may not have arrived yet: said again until it has.
    let request = public::ShutdownWorkerRequest {
        namespace: NAMESPACE.into(),
        worker_instance_key: "leaving".into(),
        task_queue: "quiet".into(),
        ..Default::default()
    };
    let began = Instant::now();
    while !leaving.is_finished() {
        assert!(began.elapsed() < Duration::from_secs(20), "the poll is answered");
        client.shutdown_worker(request.clone()).await.unwrap();
        tokio::task::yield_now().await;
    }
    let answer = leaving.await.unwrap().unwrap().into_inner();
    assert_eq!(answer, public::PollWorkflowTaskQueueResponse::default());
    assert!(!staying.is_finished());
    assert_a_late_poll_gets_nothing(&given).await;
    given.stop().await;
    // The node's own end released it.
    assert_eq!(staying.await.unwrap().unwrap().into_inner(), public::PollWorkflowTaskQueueResponse::default());
}

/// What the worker sent before it knew that it leaves arrives now: a task that waits is for another worker.
async fn assert_a_late_poll_gets_nothing(given: &Given) {
    let mut client = given.client();
    ByHand::new(given, "busy").start().await;
    let minute = Duration::from_secs(60);
    let late = client.poll_workflow_task_queue(within(minute, poll("busy", "leaving"))).await.expect("a poll");
    assert_eq!(late.into_inner(), public::PollWorkflowTaskQueueResponse::default());
    let activities = public::PollActivityTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: poll("busy", "").task_queue,
        worker_instance_key: "leaving".into(),
        ..Default::default()
    };
    let late = client.poll_activity_task_queue(within(minute, activities)).await.expect("a poll");
    assert_eq!(late.into_inner(), public::PollActivityTaskQueueResponse::default());
    let other = client.poll_workflow_task_queue(within(minute, poll("busy", "other"))).await.expect("a poll");
    assert!(!other.into_inner().task_token.is_empty(), "the task was not lost");
}
