//! Why workflow tasks fail: each cause that a client or a worker can provoke, as history records it.

use std::time::Duration;

use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{
    CancelTimerCommandAttributes, Command, ContinueAsNewWorkflowExecutionCommandAttributes,
    FailWorkflowExecutionCommandAttributes, ModifyWorkflowPropertiesCommandAttributes,
    ProtocolMessageCommandAttributes, RecordMarkerCommandAttributes, RequestCancelActivityTaskCommandAttributes,
    RequestCancelExternalWorkflowExecutionCommandAttributes, ScheduleActivityTaskCommandAttributes,
    ScheduleNexusOperationCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes, StartTimerCommandAttributes,
    UpsertWorkflowSearchAttributesCommandAttributes,
};
use proto::temporal::api::common::v1::{
    ActivityType, MeteringMetadata, SearchAttributes, WorkflowExecution, WorkflowType,
};
use proto::temporal::api::enums::v1::{CommandType, WorkflowTaskFailedCause as Cause};
use proto::temporal::api::history::v1::history_event::Attributes as EventAttributes;
use proto::temporal::api::namespace::v1::{BadBinaries, BadBinaryInfo, NamespaceConfig};
use proto::temporal::api::sdk::v1::WorkflowTaskCompletedMetadata;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::by_hand::ByHand;
use crate::commands::finish;
use crate::given::{NAMESPACE, a_node};

/// One more than a run may have pending of a kind.
const TOO_MANY: usize = 2001;

fn command(kind: CommandType, attributes: Attributes) -> Command {
    Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() }
}

fn empty(kind: CommandType) -> Command {
    Command { command_type: kind.into(), ..Default::default() }
}

fn activity(run: &ByHand, id: &str) -> Command {
    let what = ScheduleActivityTaskCommandAttributes {
        activity_id: id.into(),
        activity_type: Some(ActivityType { name: "Pay".into() }),
        task_queue: Some(run.queue()),
        start_to_close_timeout: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
        ..Default::default()
    };
    command(CommandType::ScheduleActivityTask, Attributes::ScheduleActivityTaskCommandAttributes(what))
}

fn timer(id: &str) -> Command {
    let start_to_fire_timeout = Some(prost_types::Duration { seconds: 30, nanos: 0 });
    let what = StartTimerCommandAttributes { timer_id: id.into(), start_to_fire_timeout };
    command(CommandType::StartTimer, Attributes::StartTimerCommandAttributes(what))
}

fn child(run: &ByHand, id: &str) -> Command {
    let what = StartChildWorkflowExecutionCommandAttributes {
        workflow_id: id.into(),
        workflow_type: Some(WorkflowType { name: "child".into() }),
        task_queue: Some(run.queue()),
        ..Default::default()
    };
    command(CommandType::StartChildWorkflowExecution, Attributes::StartChildWorkflowExecutionCommandAttributes(what))
}

fn signal_external(id: &str) -> Command {
    let what = SignalExternalWorkflowExecutionCommandAttributes {
        execution: Some(WorkflowExecution { workflow_id: id.into(), run_id: String::new() }),
        signal_name: "wake".into(),
        ..Default::default()
    };
    let kind = CommandType::SignalExternalWorkflowExecution;
    command(kind, Attributes::SignalExternalWorkflowExecutionCommandAttributes(what))
}

fn cancel_external(id: &str) -> Command {
    let what = RequestCancelExternalWorkflowExecutionCommandAttributes { workflow_id: id.into(), ..Default::default() };
    let kind = CommandType::RequestCancelExternalWorkflowExecution;
    command(kind, Attributes::RequestCancelExternalWorkflowExecutionCommandAttributes(what))
}

fn many(one: impl Fn(&str) -> Command) -> Vec<Command> {
    (0..TOO_MANY).map(|n| one(&format!("other-{n}"))).collect()
}

/// Commands that cannot be, each kind in its own way.
#[rustfmt::skip]
fn bad_attributes(run: &ByHand) -> Vec<(Vec<Command>, Cause)> {
    vec![
        (vec![activity(run, "")], Cause::BadScheduleActivityAttributes),
        (vec![activity(run, "a"), activity(run, "a")], Cause::ScheduleActivityDuplicateId),
        (vec![command(CommandType::RequestCancelActivityTask, Attributes::RequestCancelActivityTaskCommandAttributes(RequestCancelActivityTaskCommandAttributes { scheduled_event_id: 99 }))], Cause::BadRequestCancelActivityAttributes),
        (vec![timer("")], Cause::BadStartTimerAttributes),
        (vec![timer("t"), timer("t")], Cause::StartTimerDuplicateId),
        (vec![command(CommandType::CancelTimer, Attributes::CancelTimerCommandAttributes(CancelTimerCommandAttributes { timer_id: "nobody".into() }))], Cause::BadCancelTimerAttributes),
        (vec![command(CommandType::RecordMarker, Attributes::RecordMarkerCommandAttributes(RecordMarkerCommandAttributes::default()))], Cause::BadRecordMarkerAttributes),
        (vec![empty(CommandType::CompleteWorkflowExecution)], Cause::BadCompleteWorkflowExecutionAttributes),
        (vec![command(CommandType::FailWorkflowExecution, Attributes::FailWorkflowExecutionCommandAttributes(FailWorkflowExecutionCommandAttributes { failure: None }))], Cause::BadFailWorkflowExecutionAttributes),
        (vec![empty(CommandType::CancelWorkflowExecution)], Cause::BadCancelWorkflowExecutionAttributes),
        (vec![command(CommandType::ContinueAsNewWorkflowExecution, Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(ContinueAsNewWorkflowExecutionCommandAttributes {
            workflow_run_timeout: Some(prost_types::Duration { seconds: -1, nanos: 0 }), ..Default::default() }))], Cause::BadContinueAsNewAttributes),
        (vec![cancel_external("")], Cause::BadRequestCancelExternalWorkflowExecutionAttributes),
        (vec![signal_external("")], Cause::BadSignalWorkflowExecutionAttributes),
        (vec![child(run, "")], Cause::BadStartChildExecutionAttributes),
        (vec![command(CommandType::UpsertWorkflowSearchAttributes, Attributes::UpsertWorkflowSearchAttributesCommandAttributes(UpsertWorkflowSearchAttributesCommandAttributes {
            search_attributes: Some(SearchAttributes::default()) }))], Cause::BadSearchAttributes),
        (vec![command(CommandType::ModifyWorkflowProperties, Attributes::ModifyWorkflowPropertiesCommandAttributes(ModifyWorkflowPropertiesCommandAttributes::default()))], Cause::BadModifyWorkflowPropertiesAttributes),
        (vec![command(CommandType::ProtocolMessage, Attributes::ProtocolMessageCommandAttributes(ProtocolMessageCommandAttributes { message_id: "nobody".into() }))], Cause::BadUpdateWorkflowExecutionMessage),
        (vec![command(CommandType::ScheduleNexusOperation, Attributes::ScheduleNexusOperationCommandAttributes(ScheduleNexusOperationCommandAttributes::default()))], Cause::FeatureDisabled),
        (many(|id| activity(run, id)), Cause::PendingActivitiesLimitExceeded),
        (many(|id| child(run, id)), Cause::PendingChildWorkflowsLimitExceeded),
        (many(signal_external), Cause::PendingSignalsLimitExceeded),
        (many(cancel_external), Cause::PendingRequestCancelLimitExceeded),
    ]
}

async fn last_cause(run: &ByHand) -> Option<Cause> {
    run.events().await.iter().rev().find_map(|event| match &event.attributes {
        Some(EventAttributes::WorkflowTaskFailedEventAttributes(failed)) => Some(failed.cause()),
        Some(_) | None => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_command_fails_its_task_and_the_worker_hears_why() {
    let given = a_node().await;
    for (n, (commands, cause)) in bad_attributes(&ByHand::new(&given, "template")).into_iter().enumerate() {
        let run = ByHand::new(&given, &format!("bad-{n}"));
        run.start().await;
        let request =
            public::RespondWorkflowTaskCompletedRequest { commands, ..run.completion(run.poll().await.task_token) };
        let status = run.respond(request).await.expect_err(cause.as_str_name());
        assert_eq!(status.code(), Code::InvalidArgument, "{cause:?}: {status:?}");
        assert_eq!(last_cause(&run).await, Some(cause), "{status:?}");
        // The task comes again, as a second attempt that leaves no event until it ends.
        assert_eq!(run.poll().await.attempt, 2, "{cause:?}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_why_its_task_fails() {
    let given = a_node().await;
    let causes = [
        Cause::WorkflowWorkerUnhandledFailure,
        Cause::NonDeterministicError,
        Cause::ResetStickyTaskQueue,
        Cause::PayloadsTooLarge,
        Cause::Unspecified,
    ];
    for cause in causes {
        let run = ByHand::new(&given, cause.as_str_name());
        run.start().await;
        let request = public::RespondWorkflowTaskFailedRequest {
            namespace: NAMESPACE.into(),
            task_token: run.poll().await.task_token,
            cause: cause.into(),
            ..Default::default()
        };
        run.client().respond_workflow_task_failed(request).await.unwrap();
        assert_eq!(last_cause(&run).await, Some(cause));
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_why_it_ends_a_task() {
    let given = a_node().await;
    let terminated = ByHand::new(&given, "terminated");
    terminated.start().await;
    terminated.poll().await;
    terminated.terminate().await;
    assert_eq!(last_cause(&terminated).await, Some(Cause::ForceCloseCommand));

    let unseen = ByHand::new(&given, "unseen");
    unseen.start().await;
    let task = unseen.poll().await;
    unseen.signal("unseen").await;
    let request = public::RespondWorkflowTaskCompletedRequest {
        commands: vec![finish("done")],
        ..unseen.completion(task.task_token)
    };
    assert_eq!(unseen.respond(request).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(last_cause(&unseen).await, Some(Cause::UnhandledCommand));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(deprecated, reason = "older workers still tell their version this way")]
async fn nothing_is_taken_from_a_binary_that_is_marked_as_bad() {
    let given = a_node().await;
    let run = ByHand::new(&given, "binary");
    run.start().await;
    let task = run.poll().await;
    let bad = BadBinaries { binaries: [("broken".to_owned(), BadBinaryInfo::default())].into() };
    let update = public::UpdateNamespaceRequest {
        namespace: NAMESPACE.into(),
        config: Some(NamespaceConfig { bad_binaries: Some(bad), ..Default::default() }),
        ..Default::default()
    };
    run.client().update_namespace(update).await.unwrap();
    let request = public::RespondWorkflowTaskCompletedRequest {
        binary_checksum: "broken".into(),
        ..run.completion(task.task_token)
    };
    let status = run.respond(request).await.unwrap_err();
    assert_eq!(status.message(), "BadBinary: binary broken is marked as bad deployment");
    assert_eq!(last_cause(&run).await, Some(Cause::BadBinary));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_sdk_says_of_its_task_is_kept() {
    let given = a_node().await;
    let run = ByHand::new(&given, "metadata");
    run.start().await;
    let metadata = WorkflowTaskCompletedMetadata {
        core_used_flags: vec![1, 3],
        lang_used_flags: vec![2],
        sdk_name: "temporal-hand".into(),
        sdk_version: "1.2.3".into(),
    };
    let metering = MeteringMetadata { nonfirst_local_activity_execution_attempts: 7 };
    let request = public::RespondWorkflowTaskCompletedRequest {
        sdk_metadata: Some(metadata.clone()),
        metering_metadata: Some(metering),
        ..run.completion(run.poll().await.task_token)
    };
    run.respond(request).await.unwrap();
    let events = run.events().await;
    let Some(EventAttributes::WorkflowTaskCompletedEventAttributes(completed)) = &events[3].attributes else {
        panic!("{:?}", events[3])
    };
    assert_eq!((completed.sdk_metadata.as_ref(), completed.metering_metadata), (Some(&metadata), Some(metering)));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_freed_from_its_sticky_queue_goes_to_all_workers() {
    let given = a_node().await;
    let run = ByHand::new(&given, "freed");
    run.start().await;
    let task = run.poll().await;
    run.complete_stickily(task.task_token, Duration::from_secs(3600)).await;
    let reset = public::ResetStickyTaskQueueRequest { namespace: NAMESPACE.into(), execution: Some(run.execution()) };
    run.client().reset_sticky_task_queue(reset.clone()).await.unwrap();
    run.signal("wake").await;
    let task = run.poll().await;
    assert_eq!(task.history.unwrap().events.len(), 7, "with the whole history");
    run.complete(task.task_token, vec![finish("done")]).await;
    let status = run.client().reset_sticky_task_queue(reset).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, "workflow execution already completed"));
    given.stop().await;
}
