//! An update's stages, seen by its client; and that one id is one update.

use proto::temporal::api::common::v1::link;
use proto::temporal::api::enums::v1::{
    ResourceExhaustedCause, ResourceExhaustedScope, UpdateWorkflowExecutionLifecycleStage as Stage,
};
use proto::temporal::api::errordetails::v1::ResourceExhaustedFailure;
use tonic::Code;

use super::scene::{Scene, acceptance, response, success, updates_of};
use crate::given::{a_node, a_node_in, detail, refused};

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_accepted_and_completed_in_one_task() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "one-task").await;
    let update = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    assert_eq!(updates_of(&task), ["u"]);
    let shown = task.history.as_ref().map_or(0, |history| history.events.len());
    assert_eq!(shown, 6, "the task is shown, though it is not recorded");
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    let updated = update.await.unwrap().unwrap();
    assert_eq!((updated.stage(), updated.outcome), (Stage::Completed, success()));
    let named = updated.update_ref.unwrap();
    assert_eq!(named.update_id, "u");
    assert!(!named.workflow_execution.unwrap().run_id.is_empty());
    assert!(matches!(updated.link.unwrap().variant, Some(link::Variant::WorkflowEvent(_))));
    assert_eq!(
        scene.history().await[4..],
        [
            "WORKFLOW_TASK_SCHEDULED",
            "WORKFLOW_TASK_STARTED",
            "WORKFLOW_TASK_COMPLETED",
            "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
            "WORKFLOW_EXECUTION_UPDATE_COMPLETED"
        ]
    );
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_acceptance_returns_and_the_outcome_can_be_polled_later() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "accepted").await;
    let update = scene.update("u", Stage::Accepted);
    let task = scene.poll().await;
    scene.complete(&task, vec![acceptance("u")], Vec::new()).await.unwrap();
    let updated = update.await.unwrap().unwrap();
    assert_eq!((updated.stage(), updated.outcome), (Stage::Accepted, None));
    let polled = scene.poll_update("u", Stage::Unspecified).await.unwrap();
    assert_eq!((polled.stage(), polled.outcome), (Stage::Accepted, None));

    scene.signal().await;
    let task = scene.poll().await;
    scene.complete(&task, vec![response("u")], Vec::new()).await.unwrap();
    let polled = scene.poll_update("u", Stage::Completed).await.unwrap();
    assert_eq!((polled.stage(), polled.outcome), (Stage::Completed, success()));
    assert_eq!(polled.update_ref.unwrap().update_id, "u");
    let unknown = scene.poll_update("v", Stage::Completed).await;
    refused(unknown, Code::NotFound, "update \"v\" not found");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_is_one_update_while_it_runs_and_after() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "same-id").await;
    let (first, second) = (scene.update("u", Stage::Completed), scene.update("u", Stage::Completed));
    let task = scene.poll().await;
    assert_eq!(updates_of(&task), ["u"]);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    for update in [first, second, scene.update("u", Stage::Completed), scene.update("u", Stage::Accepted)] {
        let updated = update.await.unwrap().unwrap();
        assert_eq!((updated.stage(), updated.outcome), (Stage::Completed, success()));
    }
    let n_events = scene.history().await.len();
    // The outcome survives the run, and a restart of the server.
    scene.terminate().await;
    let given = a_node_in(given.stop().await).await;
    let scene = Scene::new(&given, "same-id");
    let updated = scene.update("u", Stage::Completed).await.unwrap().unwrap();
    assert_eq!((updated.stage(), updated.outcome), (Stage::Completed, success()));
    assert_eq!(scene.history().await.len(), n_events + 1);
    refused(scene.update("v", Stage::Completed).await.unwrap(), Code::NotFound, "workflow execution already completed");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_updates_share_a_task_and_one_that_comes_during_it_gets_the_next() {
    let given = a_node().await;
    let scene = Scene::new(&given, "two");
    scene.start().await;
    let (a, b) = (scene.update("a", Stage::Completed), scene.update("b", Stage::Completed));
    // Both wait for the first task, which is scheduled already.
    while scene.poll_update("a", Stage::Unspecified).await.is_err()
        || scene.poll_update("b", Stage::Unspecified).await.is_err()
    {
        tokio::task::yield_now().await;
    }
    let task = scene.poll().await;
    let mut ids = updates_of(&task);
    ids.sort_unstable();
    assert_eq!(ids, ["a", "b"]);
    let c = scene.update("c", Stage::Completed);
    while scene.poll_update("c", Stage::Unspecified).await.is_err() {
        tokio::task::yield_now().await;
    }
    let answers = vec![acceptance("a"), response("a"), acceptance("b"), response("b")];
    let mut completion = Scene::completion(&task, answers, Vec::new());
    completion.return_new_workflow_task = true;
    let completed = given.client().respond_workflow_task_completed(completion).await.unwrap().into_inner();
    let next = completed.workflow_task.expect("the next task comes at once");
    assert_eq!(updates_of(&next), ["c"]);
    scene.complete(&next, vec![acceptance("c"), response("c")], Vec::new()).await.unwrap();
    for update in [a, b, c] {
        assert_eq!(update.await.unwrap().unwrap().outcome, success());
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_updates_at_once_are_refused() {
    let given = a_node().await;
    let scene = Scene::new(&given, "many");
    scene.start().await;
    let ids: Vec<String> = (0..10).map(|n| format!("u{n}")).collect();
    let updates: Vec<_> = ids.iter().map(|id| scene.update(id, Stage::Accepted)).collect();
    for id in &ids {
        while scene.poll_update(id, Stage::Unspecified).await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    let message = "limit on number of concurrent in-flight updates has been reached (10)";
    let status = refused(scene.update("more", Stage::Accepted).await.unwrap(), Code::ResourceExhausted, message);
    let failure: ResourceExhaustedFailure = detail(&status).unwrap();
    assert_eq!(failure.cause(), ResourceExhaustedCause::ConcurrentLimit);
    assert_eq!(failure.scope(), ResourceExhaustedScope::Namespace);
    let task = scene.poll().await;
    scene.complete(&task, ids.iter().map(|id| acceptance(id)).collect(), Vec::new()).await.unwrap();
    for update in updates {
        assert_eq!(update.await.unwrap().unwrap().stage(), Stage::Accepted);
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_survives_the_node_that_took_it() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "restart").await;
    let lost = scene.update("u", Stage::Completed);
    let task = scene.poll().await;
    let given = a_node_in(given.stop().await).await;
    // The waiting caller gets "unavailable", not the loss of the update.
    assert_eq!(lost.await.unwrap().unwrap_err().code(), Code::Unavailable);
    let scene = Scene::new(&given, "restart");
    let again = scene.update("u", Stage::Completed);
    while scene.poll_update("u", Stage::Unspecified).await.is_err() {
        tokio::task::yield_now().await;
    }
    // The worker answers the task that it has, and the answer is that of the update that was sent again.
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    assert_eq!(again.await.unwrap().unwrap().outcome, success());
    given.stop().await;
}
