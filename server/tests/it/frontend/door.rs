//! What does not get past the door: texts that are too long, and messages that are nested too deep, over gRPC and over HTTP.

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, ScheduleActivityTaskCommandAttributes};
use proto::temporal::api::common::v1::ActivityType;
use proto::temporal::api::deployment::v1::WorkerDeploymentOptions;
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::by_hand::{ByHand, PATIENCE};
use crate::commands::{command, execution, finish};
use crate::given::{NAMESPACE, a_node, a_node_in, refused, register, within};

/// As deep as a failure may be.
const LEVELS_MAX: usize = 80;
const TOO_DEEP: &str = "the request has messages nested more than 80 levels deep";

fn schedule(run: &ByHand) -> Command {
    let attributes = ScheduleActivityTaskCommandAttributes {
        activity_id: "only".into(),
        activity_type: Some(ActivityType { name: "step".into() }),
        task_queue: Some(run.queue()),
        start_to_close_timeout: Some(prost_types::Duration { seconds: 600, nanos: 0 }),
        ..Default::default()
    };
    command(CommandType::ScheduleActivityTask, CommandAttributes::ScheduleActivityTaskCommandAttributes(attributes))
}

/// A failure of an activity for good, with causes: `levels` failures in all.
fn failure(levels: usize) -> Option<Failure> {
    let info = ApplicationFailureInfo { non_retryable: true, ..Default::default() };
    let info = Some(FailureInfo::ApplicationFailureInfo(info));
    let innermost = Failure { failure_info: info.clone(), ..Default::default() };
    let around = |cause, _| Failure { cause: Some(Box::new(cause)), failure_info: info.clone(), ..Default::default() };
    Some((1..levels).fold(innermost, around))
}

fn levels(failure: Option<&Failure>) -> usize {
    std::iter::successors(failure, |failure| failure.cause.as_deref()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_accepted_can_be_read_back() {
    let given = a_node().await;
    let run = ByHand::new(&given, "deep");
    run.start().await;
    run.work(vec![schedule(&run)]).await;
    let poll = public::PollActivityTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(run.queue()),
        ..Default::default()
    };
    let activity = given.client().poll_activity_task_queue(within(PATIENCE, poll)).await.expect("a poll").into_inner();
    // A workflow task runs, so what the activity answers is buffered.
    run.signal("go on").await;
    let task = run.poll().await;
    let failed = |levels| public::RespondActivityTaskFailedRequest {
        task_token: activity.task_token.clone(),
        failure: failure(levels),
        ..Default::default()
    };
    for too_deep in [LEVELS_MAX + 1, 100, 101, 1000] {
        let answer = given.client().respond_activity_task_failed(failed(too_deep)).await;
        refused(answer, Code::InvalidArgument, TOO_DEEP);
    }
    // The innermost has its details one level below it.
    given.client().respond_activity_task_failed(failed(LEVELS_MAX - 1)).await.expect("it is accepted");
    run.complete(task.task_token, Vec::new()).await;
    let directory = given.stop().await;

    let given = a_node_in(directory).await;
    let run = ByHand::new(&given, "deep");
    let event = run.event("ActivityTaskFailed").await;
    let Some(Attributes::ActivityTaskFailedEventAttributes(failed)) = event.attributes else { panic!("no failure") };
    assert_eq!(levels(failed.failure.as_ref()), LEVELS_MAX - 1);
    run.describe().await;
    run.work(vec![finish("done")]).await;
    run.event("WorkflowExecutionCompleted").await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_are_absurd_are_refused_and_not_kept() {
    let given = a_node().await;
    let mut client = given.client();
    let absurd = || "x".repeat(3_900_000);
    let too_long = |field: &str, max: usize| format!("{field} exceeds maximum allowed length (3900000/{max})");

    let describe =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: Some(execution(&absurd())) };
    let answer = client.describe_workflow_execution(describe).await;
    refused(answer, Code::InvalidArgument, &too_long("WorkflowId", 1000));

    let left = public::ShutdownWorkerRequest {
        namespace: NAMESPACE.into(),
        worker_instance_key: absurd(),
        ..Default::default()
    };
    refused(client.shutdown_worker(left).await, Code::InvalidArgument, &too_long("WorkerInstanceKey", 1000));

    let options = WorkerDeploymentOptions { deployment_name: absurd(), ..Default::default() };
    let poll = public::PollWorkflowTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(TaskQueue { name: "q".into(), ..Default::default() }),
        deployment_options: Some(options),
        ..Default::default()
    };
    let answer = client.poll_workflow_task_queue(within(PATIENCE, poll)).await;
    refused(answer, Code::InvalidArgument, &too_long("DeploymentName", 1000));

    let described = public::RegisterNamespaceRequest { description: absurd(), ..register("described") };
    refused(client.register_namespace(described).await, Code::InvalidArgument, &too_long("Description", 1000));
    given.stop().await;
}

/// The words for an id that is a little too long stay the reference's own.
#[tokio::test(flavor = "multi_thread")]
async fn known_words_for_a_long_id_stay() {
    let given = a_node().await;
    let long = "x".repeat(1001);
    let run = ByHand::new(&given, "words");
    let start = public::StartWorkflowExecutionRequest { workflow_id: long.clone(), ..run.start_request() };
    let answer = given.client().start_workflow_execution(start).await;
    refused(answer, Code::InvalidArgument, "WorkflowId exceeds maximum allowed length (1001/1000)");
    let start = public::StartWorkflowExecutionRequest { request_id: long, ..run.start_request() };
    let answer = given.client().start_workflow_execution(start).await;
    refused(answer, Code::InvalidArgument, "RequestId length exceeds limit.");
    given.stop().await;
}
