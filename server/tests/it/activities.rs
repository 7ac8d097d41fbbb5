//! Activities over gRPC, step by step: operator actions on them, and their description.

use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{Command, ScheduleActivityTaskCommandAttributes};
use proto::temporal::api::common::v1::{ActivityType, Payload, Payloads, RetryPolicy, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{CommandType, PendingActivityState};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflow::v1::pending_activity_info::pause_info::PausedBy;
use proto::temporal::api::workflow::v1::{PendingActivityInfo, WorkflowExecutionInfo};
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::given::{Given, NAMESPACE, a_node, refused, within};
use crate::paging::until_listed;

/// Longer than anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

fn execution() -> Option<WorkflowExecution> {
    Some(WorkflowExecution { workflow_id: "order".into(), run_id: String::new() })
}

fn queue() -> Option<TaskQueue> {
    Some(TaskQueue { name: "orders".into(), ..Default::default() })
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn payloads(text: &'static str) -> Option<Payloads> {
    Some(Payloads { payloads: vec![Payload { data: text.into(), ..Default::default() }] })
}

/// A run with one activity, "pay", that is retried after an hour.
async fn a_run_with_an_activity(given: &Given) {
    let start = public::StartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "order".into(),
        workflow_type: Some(WorkflowType { name: "Order".into() }),
        task_queue: queue(),
        ..Default::default()
    };
    given.client().start_workflow_execution(start).await.expect("a start");
    let poll =
        public::PollWorkflowTaskQueueRequest { namespace: NAMESPACE.into(), task_queue: queue(), ..Default::default() };
    let task = given.client().poll_workflow_task_queue(within(PATIENCE, poll)).await.expect("a poll").into_inner();
    let schedule = ScheduleActivityTaskCommandAttributes {
        activity_id: "pay".into(),
        activity_type: Some(ActivityType { name: "Pay".into() }),
        task_queue: queue(),
        start_to_close_timeout: seconds(600),
        retry_policy: Some(RetryPolicy { initial_interval: seconds(3600), ..Default::default() }),
        ..Default::default()
    };
    let command = Command {
        command_type: CommandType::ScheduleActivityTask.into(),
        attributes: Some(Attributes::ScheduleActivityTaskCommandAttributes(schedule)),
        ..Default::default()
    };
    let completed = public::RespondWorkflowTaskCompletedRequest {
        task_token: task.task_token,
        commands: vec![command],
        ..Default::default()
    };
    given.client().respond_workflow_task_completed(completed).await.expect("a completion");
}

async fn poll_activity(given: &Given) -> public::PollActivityTaskQueueResponse {
    let poll = public::PollActivityTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: queue(),
        identity: "worker".into(),
        ..Default::default()
    };
    let task = given.client().poll_activity_task_queue(within(PATIENCE, poll)).await.expect("a poll").into_inner();
    assert!(!task.task_token.is_empty(), "an activity came in time");
    task
}

async fn fail(given: &Given, task: &public::PollActivityTaskQueueResponse) {
    let info = FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo::default());
    let failed = public::RespondActivityTaskFailedRequest {
        task_token: task.task_token.clone(),
        failure: Some(Failure { message: "boom".into(), failure_info: Some(info), ..Default::default() }),
        last_heartbeat_details: payloads("half"),
        ..Default::default()
    };
    given.client().respond_activity_task_failed(failed).await.expect("a failure");
}

async fn heartbeat(given: &Given) -> public::RecordActivityTaskHeartbeatByIdResponse {
    let beat = public::RecordActivityTaskHeartbeatByIdRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "order".into(),
        activity_id: "pay".into(),
        details: payloads("more"),
        ..Default::default()
    };
    given.client().record_activity_task_heartbeat_by_id(beat).await.expect("a heartbeat").into_inner()
}

async fn pending(given: &Given) -> PendingActivityInfo {
    let describe = public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution() };
    let described = given.client().describe_workflow_execution(describe).await.expect("a description").into_inner();
    described.pending_activities.into_iter().next().expect("a pending activity")
}

async fn pause(given: &Given, request_id: &str) -> Result<(), Status> {
    let pause = public::PauseActivityRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        identity: "operator".into(),
        reason: "too hot".into(),
        request_id: request_id.into(),
        activity: Some(public::pause_activity_request::Activity::Id("pay".into())),
    };
    given.client().pause_activity(pause).await.map(|_| ())
}

async fn unpause(given: &Given) {
    let unpause = public::UnpauseActivityRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        activity: Some(public::unpause_activity_request::Activity::UnpauseAll(true)),
        ..Default::default()
    };
    given.client().unpause_activity(unpause).await.expect("the end of a pause");
}

#[tokio::test]
async fn an_activity_that_waits_for_its_next_attempt_is_paused_updated_and_unpaused() {
    let given = a_node().await;
    a_run_with_an_activity(&given).await;
    fail(&given, &poll_activity(&given).await).await;

    let waiting = pending(&given).await;
    assert_eq!((waiting.state(), waiting.attempt), (PendingActivityState::Scheduled, 2));
    assert_eq!(waiting.last_failure.as_ref().expect("a failure").message, "boom");
    assert_eq!((waiting.current_retry_interval, &waiting.heartbeat_details), (seconds(3600), &payloads("half")));
    assert_eq!(waiting.next_attempt_schedule_time, waiting.scheduled_time);
    assert!(waiting.last_attempt_complete_time.is_some());
    assert_eq!(waiting.last_worker_identity, "worker");

    pause(&given, "p").await.expect("a pause");
    pause(&given, "p").await.expect("the same pause");
    refused(pause(&given, "q").await, Code::FailedPrecondition, "activity is already paused");
    let paused = pending(&given).await;
    assert_eq!((paused.state(), paused.paused), (PendingActivityState::Paused, true));
    assert_eq!(paused.next_attempt_schedule_time, None);
    let Some(PausedBy::Manual(by)) = paused.pause_info.and_then(|info| info.paused_by) else { panic!("nobody") };
    assert_eq!((by.identity.as_str(), by.reason.as_str()), ("operator", "too hot"));

    let update = public::UpdateActivityOptionsRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        activity_options: Some(ActivityOptions { heartbeat_timeout: seconds(30), ..Default::default() }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["heartbeat_timeout".into()] }),
        activity: Some(public::update_activity_options_request::Activity::Type("Pay".into())),
        ..Default::default()
    };
    let updated = given.client().update_activity_options(update).await.expect("an update").into_inner();
    assert_eq!(updated.activity_options.expect("options").heartbeat_timeout, seconds(30));
    assert_eq!(pending(&given).await.activity_options.expect("options").heartbeat_timeout, seconds(30));

    unpause(&given).await;
    let task = poll_activity(&given).await;
    assert_eq!((task.attempt, task.heartbeat_details), (2, payloads("half")));
    assert_eq!(task.heartbeat_timeout, seconds(0), "a worker is told what the activity was scheduled with");
    given.stop().await;
}

#[tokio::test]
async fn a_heartbeat_reports_that_its_activity_is_paused_or_reset() {
    let given = a_node().await;
    a_run_with_an_activity(&given).await;
    let task = poll_activity(&given).await;
    let beat = heartbeat(&given).await;
    assert!(!beat.cancel_requested && !beat.activity_paused && !beat.activity_reset);

    pause(&given, "p").await.expect("a pause");
    assert!(heartbeat(&given).await.activity_paused);
    assert_eq!(pending(&given).await.state(), PendingActivityState::PauseRequested);

    let reset = public::ResetActivityRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        reset_heartbeat: true,
        activity: Some(public::reset_activity_request::Activity::MatchAll(true)),
        ..Default::default()
    };
    given.client().reset_activity(reset).await.expect("a reset");
    let beat = heartbeat(&given).await;
    assert!(beat.activity_reset && !beat.activity_paused);

    let completed = public::RespondActivityTaskCompletedRequest {
        task_token: task.task_token,
        result: payloads("done"),
        ..Default::default()
    };
    given.client().respond_activity_task_completed(completed).await.expect("a completion");
    given.stop().await;
}

#[tokio::test]
async fn an_operation_on_no_activity_is_refused() {
    let given = a_node().await;
    a_run_with_an_activity(&given).await;
    let nobody = public::ResetActivityRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        activity: Some(public::reset_activity_request::Activity::Id("nobody".into())),
        ..Default::default()
    };
    let no_such = "Can't find pending activity with such ID. Invalid activityID or activity already completed";
    refused(given.client().reset_activity(nobody.clone()).await, Code::NotFound, no_such);
    let untargeted = public::ResetActivityRequest { activity: None, ..nobody.clone() };
    let no_target = "Either Activity.Id or Activity.Type should be set on request.";
    refused(given.client().reset_activity(untargeted).await, Code::InvalidArgument, no_target);
    let nowhere = public::ResetActivityRequest { execution: None, ..nobody };
    let no_workflow = "WorkflowId is not set on request.";
    refused(given.client().reset_activity(nowhere).await, Code::InvalidArgument, no_workflow);
    let both = public::UpdateActivityOptionsRequest {
        namespace: NAMESPACE.into(),
        execution: execution(),
        update_mask: Some(prost_types::FieldMask { paths: vec!["heartbeat_timeout".into()] }),
        activity: Some(public::update_activity_options_request::Activity::MatchAll(true)),
        restore_original: true,
        ..Default::default()
    };
    let contradiction = "Both UpdateMask and RestoreOriginal are provided";
    refused(given.client().update_activity_options(both).await, Code::InvalidArgument, contradiction);
    given.stop().await;
}

/// Answers by the ids of workflow and activity, as someone without the task's token gives them.
#[tokio::test]
async fn an_activity_is_answered_by_its_id() {
    let given = a_node().await;
    let (namespace, workflow_id, activity_id) = (NAMESPACE.to_owned(), "order".to_owned(), "pay".to_owned());
    a_run_with_an_activity(&given).await;
    let heartbeat = public::RecordActivityTaskHeartbeatByIdRequest {
        namespace: namespace.clone(),
        workflow_id: workflow_id.clone(),
        activity_id: activity_id.clone(),
        details: payloads("half"),
        ..Default::default()
    };
    let early = given.client().record_activity_task_heartbeat_by_id(heartbeat.clone()).await;
    assert_eq!(early.expect_err("no worker has it yet").code(), Code::NotFound);
    poll_activity(&given).await;
    let alive = given.client().record_activity_task_heartbeat_by_id(heartbeat).await.expect("a heartbeat").into_inner();
    assert!(!alive.cancel_requested && !alive.activity_paused);
    let info = FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo::default());
    let failed = public::RespondActivityTaskFailedByIdRequest {
        namespace: namespace.clone(),
        workflow_id: workflow_id.clone(),
        activity_id: activity_id.clone(),
        failure: Some(Failure { message: "later".into(), failure_info: Some(info), ..Default::default() }),
        ..Default::default()
    };
    given.client().respond_activity_task_failed_by_id(failed).await.expect("a failure");
    let pending = pending(&given).await;
    assert_eq!((pending.attempt, pending.last_failure.map(|failure| failure.message)), (2, Some("later".into())));
    assert_eq!(pending.heartbeat_details, payloads("half"));
    let canceled = public::RespondActivityTaskCanceledByIdRequest {
        namespace: namespace.clone(),
        workflow_id: workflow_id.clone(),
        activity_id: activity_id.clone(),
        ..Default::default()
    };
    let uncalled = given.client().respond_activity_task_canceled_by_id(canceled).await;
    assert_eq!(uncalled.expect_err("nobody asked for that").code(), Code::NotFound);
    let completed = public::RespondActivityTaskCompletedByIdRequest {
        namespace,
        workflow_id,
        activity_id,
        result: payloads("paid"),
        identity: "by phone".into(),
        ..Default::default()
    };
    given.client().respond_activity_task_completed_by_id(completed.clone()).await.expect("a completion");
    let again = given.client().respond_activity_task_completed_by_id(completed).await;
    assert_eq!(again.expect_err("it is over").code(), Code::NotFound);
    given.stop().await;
}

#[tokio::test]
async fn an_activity_of_a_workflow_is_operated_on_by_the_newer_rpcs_too() {
    let given = a_node().await;
    a_run_with_an_activity(&given).await;
    fail(&given, &poll_activity(&given).await).await;
    let (namespace, workflow_id, activity_id) = (NAMESPACE.to_owned(), "order".to_owned(), "pay".to_owned());
    let pause = public::PauseActivityExecutionRequest { namespace, workflow_id, activity_id, ..Default::default() };
    given.client().pause_activity_execution(pause.clone()).await.expect("a pause");
    assert_eq!(pending(&given).await.state(), PendingActivityState::Paused);

    let update = public::UpdateActivityExecutionOptionsRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "order".into(),
        activity_id: "pay".into(),
        activity_options: Some(ActivityOptions { heartbeat_timeout: seconds(30), ..Default::default() }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["heartbeat_timeout".into()] }),
        ..Default::default()
    };
    let updated =
        given.client().update_activity_execution_options(update.clone()).await.expect("an update").into_inner();
    assert_eq!(updated.activity_options.expect("options").heartbeat_timeout, seconds(30));

    let reset = public::ResetActivityExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "order".into(),
        activity_id: "pay".into(),
        keep_paused: true,
        ..Default::default()
    };
    given.client().reset_activity_execution(reset).await.expect("a reset");
    let kept = pending(&given).await;
    assert_eq!((kept.state(), kept.attempt), (PendingActivityState::Paused, 1));
    let unpause = public::UnpauseActivityExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: "order".into(),
        activity_id: "pay".into(),
        ..Default::default()
    };
    given.client().unpause_activity_execution(unpause).await.expect("the end of a pause");
    assert_eq!(poll_activity(&given).await.attempt, 1);

    let alone = public::PauseActivityExecutionRequest { workflow_id: String::new(), ..pause.clone() };
    refused(given.client().pause_activity_execution(alone).await, Code::NotFound, "activity not found for ID: pay");
    let unnamed = public::PauseActivityExecutionRequest { activity_id: String::new(), ..pause };
    refused(given.client().pause_activity_execution(unnamed).await, Code::InvalidArgument, "activity ID is required");
    let unsaid = public::UpdateActivityExecutionOptionsRequest { update_mask: None, ..update };
    let refusal = given.client().update_activity_execution_options(unsaid).await;
    refused(refusal, Code::InvalidArgument, "UpdateMask is not provided");
    given.stop().await;
}

#[tokio::test]
async fn a_run_is_found_by_the_types_of_its_paused_activities() {
    let given = a_node().await;
    a_run_with_an_activity(&given).await;
    let told = |listed: &[WorkflowExecutionInfo]| {
        let attributes = listed[0].search_attributes.clone().unwrap_or_default();
        attributes.indexed_fields.get("TemporalPauseInfo").map(|value| value.data.clone())
    };
    let paused = "TemporalPauseInfo = 'property:activityType=Pay'";
    pause(&given, "p").await.expect("a pause");
    assert_eq!(
        told(&until_listed(&given, paused, &["order"]).await).expect("it is told"),
        "[\"property:activityType=Pay\"]"
    );
    unpause(&given).await;
    until_listed(&given, paused, &[]).await;
    assert_eq!(told(&until_listed(&given, "TemporalPauseInfo IS NULL", &["order"]).await), None);
    given.stop().await;
}
