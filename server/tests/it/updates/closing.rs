//! What becomes of updates when their run ends.

use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{
    Command, CompleteWorkflowExecutionCommandAttributes, ContinueAsNewWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::enums::v1::{CommandType, UpdateWorkflowExecutionLifecycleStage as Stage};
use tonic::Code;

use super::scene::{Scene, acceptance, command, failure_of, response, success, updates_of};
use crate::given::{a_node, refused};

const UNFINISHED: &str = "Workflow Update failed because the Workflow completed before the Update completed.";

fn complete_workflow() -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes::default();
    command(CommandType::CompleteWorkflowExecution, Attributes::CompleteWorkflowExecutionCommandAttributes(attributes))
}

fn continue_as_new() -> Command {
    let attributes = ContinueAsNewWorkflowExecutionCommandAttributes::default();
    command(
        CommandType::ContinueAsNewWorkflowExecution,
        Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes),
    )
}

async fn is_admitted(scene: &Scene<'_>, id: &str) {
    while scene.poll_update(id, Stage::Unspecified).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_run_aborts_what_it_has_not_accepted() {
    let given = a_node().await;
    let scene = Scene::new(&given, "terminated");
    scene.start().await;
    let update = scene.update("u", Stage::Completed);
    is_admitted(&scene, "u").await;
    scene.terminate().await;
    let message = "workflow update was aborted by closing workflow";
    refused(update.await.unwrap(), Code::NotFound, message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_run_fails_what_it_has_accepted() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "unfinished").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    scene.complete(&task, vec![acceptance("u")], Vec::new()).await.unwrap();
    scene.terminate().await;
    for outcome in [
        update.await.unwrap().unwrap().outcome,
        scene.update("u", Stage::Completed).await.unwrap().unwrap().outcome,
        scene.poll_update("u", Stage::Completed).await.unwrap().outcome,
    ] {
        let failure = failure_of(outcome);
        assert_eq!((failure.message.as_str(), failure.source.as_str()), (UNFINISHED, "Server"));
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_completes_in_the_task_of_an_update_leaves_it_unfinished() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "completed").await;
    let (accepted, ignored) = (scene.update("a", Stage::Accepted), scene.update("b", Stage::Completed));
    is_admitted(&scene, "a").await;
    is_admitted(&scene, "b").await;
    let task = scene.poll().await;
    scene.complete(&task, vec![acceptance("a")], vec![complete_workflow()]).await.unwrap();
    let updated = accepted.await.unwrap().unwrap();
    assert_eq!(updated.stage(), Stage::Completed);
    assert_eq!(failure_of(updated.outcome).message, UNFINISHED);
    refused(ignored.await.unwrap(), Code::NotFound, "workflow update was aborted by closing workflow");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_goes_on_to_the_next_run() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "continued").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    let first_run = task.workflow_execution.clone().unwrap().run_id;
    scene.complete(&task, Vec::new(), vec![continue_as_new()]).await.unwrap();
    let mut task = scene.poll().await;
    if updates_of(&task).is_empty() {
        // The new run's first task was quicker than the update: it comes with the next.
        scene.complete(&task, Vec::new(), Vec::new()).await.unwrap();
        task = scene.poll().await;
    }
    assert_eq!(updates_of(&task), ["u"]);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    let updated = update.await.unwrap().unwrap();
    assert_eq!(updated.outcome, success());
    assert_ne!(updated.update_ref.unwrap().workflow_execution.unwrap().run_id, first_run);
    given.stop().await;
}
