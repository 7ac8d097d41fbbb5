//! Update-with-start: which run gets the update, and that nothing is half done.

use prost::Name;
use proto::temporal::api::enums::v1::{
    UpdateWorkflowExecutionLifecycleStage as Stage, WorkflowExecutionStatus, WorkflowIdConflictPolicy,
};
use proto::temporal::api::errordetails::v1::{MultiOperationExecutionFailure, WorkflowExecutionAlreadyStartedFailure};
use proto::temporal::api::failure::v1::MultiOperationExecutionAborted;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_request::Operation;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_request::operation::Operation as One;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_response::response::Response;
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use super::scene::{Scene, acceptance, failure_of, rejection, response, success, updates_of};
use crate::given::{NAMESPACE, a_node, detail, refused};

type Both = (public::StartWorkflowExecutionResponse, public::UpdateWorkflowExecutionResponse);

const NOT_EXECUTED: &str = "Update-with-Start could not be executed.";

fn operations(
    start: public::StartWorkflowExecutionRequest,
    update: public::UpdateWorkflowExecutionRequest,
) -> public::ExecuteMultiOperationRequest {
    let operations = [One::StartWorkflow(start), One::UpdateWorkflow(update)];
    let operations = operations.map(|operation| Operation { operation: Some(operation) }).into();
    public::ExecuteMultiOperationRequest { namespace: NAMESPACE.into(), operations, ..Default::default() }
}

impl Scene<'_> {
    fn execute(&self, request: public::ExecuteMultiOperationRequest) -> JoinHandle<Result<Both, Status>> {
        let mut client = self.given.client();
        tokio::spawn(async move {
            let responses = client.execute_multi_operation(request).await?.into_inner().responses;
            let mut responses = responses.into_iter().filter_map(|response| response.response);
            let (Some(Response::StartWorkflow(start)), Some(Response::UpdateWorkflow(update))) =
                (responses.next(), responses.next())
            else {
                panic!("a response to each operation")
            };
            Ok((start, update))
        })
    }

    fn update_with_start(&self, id: &str, conflict: WorkflowIdConflictPolicy) -> JoinHandle<Result<Both, Status>> {
        let mut start = self.start_request();
        start.workflow_id_conflict_policy = conflict.into();
        self.execute(operations(start, self.update_request(id, Stage::Completed)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_with_the_update_in_its_first_task() {
    let given = a_node().await;
    let scene = Scene::new(&given, "started");
    let both = scene.update_with_start("u", WorkflowIdConflictPolicy::Fail);
    let task = scene.poll().await;
    assert_eq!(updates_of(&task), ["u"]);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    let (start, update) = both.await.unwrap().unwrap();
    assert!(start.started);
    assert_eq!(start.run_id, task.workflow_execution.unwrap().run_id);
    assert_eq!((update.stage(), update.outcome), (Stage::Completed, success()));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_run_is_used_if_the_caller_allows_it() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "used").await;
    let both = scene.update_with_start("u", WorkflowIdConflictPolicy::UseExisting);
    let task = scene.poll().await;
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    let (start, update) = both.await.unwrap().unwrap();
    assert!(!start.started);
    assert_eq!(start.status(), WorkflowExecutionStatus::Running);
    assert_eq!(update.outcome, success());
    // What is done is found again, whatever the policy, and also when the run is over.
    for _ in 0..2 {
        let (start, update) = scene.update_with_start("u", WorkflowIdConflictPolicy::Fail).await.unwrap().unwrap();
        assert!(!start.started);
        assert_eq!(update.outcome, success());
        scene.terminate_if_open().await;
    }
    given.stop().await;
}

impl Scene<'_> {
    async fn terminate_if_open(&self) {
        let history = self.history().await;
        if history.last().is_some_and(|last| last != "WORKFLOW_EXECUTION_TERMINATED") {
            self.terminate().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_run_is_left_alone_if_the_caller_does_not_allow_it() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "conflict").await;
    let refusal = scene.update_with_start("u", WorkflowIdConflictPolicy::Fail).await.unwrap();
    let status = refused(refusal, Code::AlreadyExists, NOT_EXECUTED);
    let failure: MultiOperationExecutionFailure = detail(&status).unwrap();
    let [start, update] = failure.statuses.as_slice() else { panic!("a status of each operation") };
    assert_eq!((start.code, update.code), (Code::AlreadyExists.into(), Code::Aborted.into()));
    assert!(start.details[0].type_url.ends_with(&WorkflowExecutionAlreadyStartedFailure::type_url()));
    assert!(update.details[0].type_url.ends_with(&MultiOperationExecutionAborted::type_url()));
    assert_eq!(update.message, "Operation was aborted.");
    assert_eq!(scene.history().await.len(), 4);
    refused(scene.poll_update("u", Stage::Unspecified).await, Code::NotFound, "update \"u\" not found");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_finds_the_run_that_it_started() {
    let given = a_node().await;
    let scene = Scene::new(&given, "repeated");
    let mut start = scene.start_request();
    start.request_id = "the same".into();
    let request = operations(start, scene.update_request("u", Stage::Completed));
    let first = scene.execute(request.clone());
    let task = scene.poll().await;
    let second = scene.execute(request);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    assert_eq!(first.0.run_id, second.0.run_id);
    assert_eq!((first.1.outcome, second.1.outcome), (success(), success()));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_update_does_not_take_the_start_back() {
    let given = a_node().await;
    let scene = Scene::new(&given, "rejecting");
    let both = scene.update_with_start("u", WorkflowIdConflictPolicy::Fail);
    let task = scene.poll().await;
    scene.complete(&task, vec![rejection("u")], Vec::new()).await.unwrap();
    let (start, update) = both.await.unwrap().unwrap();
    assert!(start.started);
    assert_eq!(failure_of(update.outcome).message, "not now");
    assert_eq!(scene.history().await.len(), 4);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_under_the_update_names_the_operation_that_failed() {
    let given = a_node().await;
    let scene = Scene::new(&given, "ending");
    let both = scene.update_with_start("u", WorkflowIdConflictPolicy::Fail);
    let _task = scene.poll().await;
    scene.terminate().await;
    let status = refused(both.await.unwrap(), Code::NotFound, NOT_EXECUTED);
    let failure: MultiOperationExecutionFailure = detail(&status).unwrap();
    assert_eq!(failure.statuses[0].code, i32::from(Code::Ok), "the start was done");
    assert_eq!(failure.statuses[1].message, "workflow update was aborted by closing workflow");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_is_checked() {
    let given = a_node().await;
    let scene = Scene::new(&given, "checked");
    let (start, update) = (scene.start_request(), scene.update_request("u", Stage::Completed));
    let only_one = public::ExecuteMultiOperationRequest {
        operations: vec![Operation { operation: Some(One::StartWorkflow(start.clone())) }],
        namespace: NAMESPACE.into(),
        ..Default::default()
    };
    let message = "Operations have to be exactly [Start, Update].";
    refused(scene.execute(only_one).await.unwrap(), Code::InvalidArgument, message);

    let mut elsewhere = update.clone();
    elsewhere.workflow_execution.as_mut().unwrap().workflow_id = "another".into();
    let mut with_run = update.clone();
    with_run.workflow_execution.as_mut().unwrap().run_id = uuid::Uuid::nil().to_string();
    let cron = public::StartWorkflowExecutionRequest { cron_schedule: "@daily".into(), ..start.clone() };
    let foreign = public::StartWorkflowExecutionRequest { namespace: "another".into(), ..start.clone() };
    for (start, update, position, message) in [
        (start.clone(), elsewhere, 1, "WorkflowId is not consistent with previous operation(s)."),
        (start, with_run, 1, "RunId is not allowed."),
        (cron, update.clone(), 0, "CronSchedule is not allowed."),
        (foreign, update, 0, "Operation namespace did not match request's namespace."),
    ] {
        let refusal = scene.execute(operations(start, update)).await.unwrap();
        let status = refused(refusal, Code::InvalidArgument, NOT_EXECUTED);
        let failure: MultiOperationExecutionFailure = detail(&status).unwrap();
        assert_eq!(failure.statuses[position].message, message);
        assert_eq!(failure.statuses[1 - position].code, i32::from(Code::Aborted));
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_a_closed_run_only_accepted_starts_another_run() {
    let given = a_node().await;
    let scene = Scene::idle(&given, "unfinished-before").await;
    let update = scene.update("u", Stage::Accepted);
    let task = scene.poll().await;
    let first = task.workflow_execution.clone().unwrap().run_id;
    scene.complete(&task, vec![acceptance("u")], Vec::new()).await.unwrap();
    assert_eq!(update.await.unwrap().unwrap().stage(), Stage::Accepted);
    scene.terminate().await;
    let both = scene.update_with_start("u", WorkflowIdConflictPolicy::Fail);
    let task = scene.poll().await;
    assert_eq!(updates_of(&task), ["u"]);
    scene.complete(&task, vec![acceptance("u"), response("u")], Vec::new()).await.unwrap();
    let (start, update) = both.await.unwrap().unwrap();
    assert!(start.started);
    assert_ne!(start.run_id, first);
    assert_eq!((update.stage(), update.outcome), (Stage::Completed, success()));
    given.stop().await;
}
