//! Workflow tasks that leave no trace, and those that do.

use proto::temporal::api::command::v1::RecordMarkerCommandAttributes;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::enums::v1::{CommandType, UpdateWorkflowExecutionLifecycleStage as Stage};
use proto::temporal::api::errordetails::v1::WorkflowNotReadyFailure;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use super::scene::{Scene, acceptance, command, failure_of, rejection, response, success, updates_of};
use crate::given::{NAMESPACE, a_node, detail, refused};

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_update_leaves_no_trace() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "rejected").await;
    let before = scene.history().await;
    for id in ["u", "v"] {
        let update = scene.update(id, Stage::Completed);
        let task = scene.poll().await;
        assert_eq!(task.started_event_id, 6, "the ids are used again");
        let completed = scene.complete(&task, vec![rejection(id)], Vec::new()).await.unwrap();
        assert_eq!(completed.reset_history_event_id, 3, "the worker goes back to the task before");
        let updated = update.await.unwrap().unwrap();
        assert_eq!(updated.stage(), Stage::Completed);
        assert_eq!(failure_of(updated.outcome).message, "not now");
    }
    assert_eq!(scene.history().await, before);
    // Rejected is not known: the same id may be tried again.
    refused(scene.poll_update("u", Stage::Completed).await, Code::NotFound, "update \"u\" not found");
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    assert_eq!(update.await.unwrap().unwrap().outcome, success());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_knows_no_updates_rejects_them() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "ignored").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    let marker = Attributes::RecordMarkerCommandAttributes(RecordMarkerCommandAttributes {
        marker_name: "m".into(),
        ..Default::default()
    });
    scene.complete(&task, Vec::new(), vec![command(CommandType::RecordMarker, marker)]).await.unwrap();
    let failure = failure_of(update.await.unwrap().unwrap().outcome);
    assert!(failure.message.starts_with("Workflow Update is rejected because it wasn't processed by worker."));
    assert_eq!(scene.history().await.len(), 8);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_during_the_task_stands_after_it() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "signaled").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    scene.signal().await;
    scene.complete(&task, vec![rejection("u")], Vec::new()).await.unwrap();
    assert_eq!(failure_of(update.await.unwrap().unwrap().outcome).message, "not now");
    assert_eq!(
        scene.history().await[4..],
        [
            "WORKFLOW_TASK_SCHEDULED",
            "WORKFLOW_TASK_STARTED",
            "WORKFLOW_TASK_COMPLETED",
            "WORKFLOW_EXECUTION_SIGNALED",
            "WORKFLOW_TASK_SCHEDULED"
        ]
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_no_worker_takes_in_time_gets_a_task_that_is_recorded() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "nobody").await;
    let update = scene.update("u", Stage::Completed);
    while scene.history().await.len() < 7 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        scene.history().await[4..],
        ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_TIMED_OUT", "WORKFLOW_TASK_SCHEDULED"]
    );
    let task = scene.poll().await;
    assert_eq!(updates_of(&task), ["u"]);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    assert_eq!(update.await.unwrap().unwrap().outcome, success());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_answer_fails_the_task_and_the_update() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "bad").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    let message = "BadUpdateWorkflowExecutionMessage: invalid state transition attempted for Update u: received \
                   *update.Response message while in state Sent";
    refused(scene.complete(&task, vec![response("u")], Vec::new()).await, Code::InvalidArgument, message);
    let message = "Unable to perform workflow execution update due to unexpected workflow task failure.";
    let status = refused(update.await.unwrap(), Code::FailedPrecondition, message);
    assert!(detail::<WorkflowNotReadyFailure>(&status).is_some());
    assert_eq!(
        scene.history().await[4..7],
        ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_FAILED"]
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_comes_again_after_its_task_failed() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "again").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    let failed = public::RespondWorkflowTaskFailedRequest {
        task_token: task.task_token,
        namespace: NAMESPACE.into(),
        ..Default::default()
    };
    given.client().respond_workflow_task_failed(failed).await.unwrap();
    let task = scene.poll().await;
    assert_eq!(updates_of(&task), ["u"]);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    assert_eq!(update.await.unwrap().unwrap().outcome, success());
    given.stop().await;
}
