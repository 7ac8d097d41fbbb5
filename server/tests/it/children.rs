//! Child workflows over gRPC: each side's history, and what the end of one means to the other.

use proto::temporal::api::command::v1::StartChildWorkflowExecutionCommandAttributes;
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::{
    ParentClosePolicy, StartChildWorkflowExecutionFailedCause, WorkflowExecutionStatus,
};
use proto::temporal::api::errordetails::v1::NamespaceNotFoundFailure;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Code;

use crate::given::{Given, NAMESPACE, a_node, detail, refused, register};
use crate::worker::{
    cancel, complete, continue_as_new, describe, event, execution, fail, finish, history, names, payloads, poll, queue,
    start, start_child, work,
};

/// A child whose queue has its name.
fn child(workflow_id: &str) -> StartChildWorkflowExecutionCommandAttributes {
    StartChildWorkflowExecutionCommandAttributes {
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "child".into() }),
        task_queue: queue(workflow_id),
        input: payloads("input"),
        ..Default::default()
    }
}

/// A parent whose child was started, and whose next task was answered with nothing.
async fn a_parent(given: &Given, workflow_id: &str, child: StartChildWorkflowExecutionCommandAttributes) -> String {
    let run_id = start(given, NAMESPACE, workflow_id).await;
    work(given, workflow_id, vec![start_child(child)]).await;
    work(given, workflow_id, Vec::new()).await;
    run_id
}

#[tokio::test]
async fn a_child_knows_its_parent_and_the_parent_how_its_child_ended() {
    let given = a_node().await;
    let parent_run = a_parent(&given, "parent", child("child")).await;
    let pending = describe(&given, NAMESPACE, "parent").await.pending_children;
    assert_eq!((pending[0].workflow_id.as_str(), pending[0].initiated_id), ("child", 5));
    assert_eq!(pending[0].workflow_type_name, "child");
    let task = poll(&given, NAMESPACE, "child").await;
    assert_eq!(task.workflow_execution.as_ref().expect("a run").run_id, pending[0].run_id);
    let first = &task.history.as_ref().expect("a history").events[0];
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &first.attributes else {
        panic!("not a start")
    };
    let parent = started.parent_workflow_execution.clone().expect("a parent");
    assert_eq!((parent.workflow_id.as_str(), parent.run_id.as_str()), ("parent", parent_run.as_str()));
    assert_eq!((started.parent_workflow_namespace.as_str(), started.parent_initiated_event_id), (NAMESPACE, 5));
    assert_eq!((started.root_workflow_execution.as_ref(), &started.input), (Some(&parent), &payloads("input")));
    complete(&given, task.task_token, vec![finish("result")]).await.expect("the child completes");
    let end = event(&given, NAMESPACE, "parent", "ChildWorkflowExecutionCompleted").await;
    let Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(end)) = end.attributes else {
        panic!("no end")
    };
    assert_eq!((end.initiated_event_id, end.started_event_id, end.result), (5, 6, payloads("result")));
    assert!(describe(&given, NAMESPACE, "parent").await.pending_children.is_empty());
    let info = describe(&given, NAMESPACE, "child").await.workflow_execution_info.expect("a run");
    assert_eq!((info.parent_execution.as_ref(), info.root_execution.as_ref()), (Some(&parent), Some(&parent)));
    given.stop().await;
}

#[tokio::test]
async fn a_parent_hears_of_every_kind_of_end() {
    let given = a_node().await;
    for (workflow_id, command, expected) in [
        ("fails", Some(fail("lost")), "ChildWorkflowExecutionFailed"),
        ("cancels", Some(cancel()), "ChildWorkflowExecutionCanceled"),
        ("is-terminated", None, "ChildWorkflowExecutionTerminated"),
    ] {
        let parent = format!("parent-of-{workflow_id}");
        a_parent(&given, &parent, child(workflow_id)).await;
        match command {
            Some(command) => work(&given, workflow_id, vec![command]).await,
            None => terminate(&given, workflow_id).await,
        }
        event(&given, NAMESPACE, &parent, expected).await;
    }
    let hasty = StartChildWorkflowExecutionCommandAttributes {
        workflow_run_timeout: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..child("hasty")
    };
    a_parent(&given, "parent-of-hasty", hasty).await;
    event(&given, NAMESPACE, "parent-of-hasty", "ChildWorkflowExecutionTimedOut").await;
    given.stop().await;
}

async fn terminate(given: &Given, workflow_id: &str) {
    let request = public::TerminateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(execution(workflow_id)),
        ..Default::default()
    };
    given.client().terminate_workflow_execution(request).await.expect("the run is open");
}

#[tokio::test]
async fn a_child_whose_id_is_taken_fails_to_start() {
    let given = a_node().await;
    start(&given, NAMESPACE, "taken").await;
    start(&given, NAMESPACE, "parent").await;
    work(&given, "parent", vec![start_child(child("taken"))]).await;
    let failed = event(&given, NAMESPACE, "parent", "StartChildWorkflowExecutionFailed").await;
    let Some(Attributes::StartChildWorkflowExecutionFailedEventAttributes(failed)) = failed.attributes else {
        panic!("no failure")
    };
    assert_eq!(failed.cause(), StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists);
    assert_eq!((failed.workflow_id.as_str(), failed.initiated_event_id), ("taken", 5));
    given.stop().await;
}

#[tokio::test]
async fn the_end_of_a_parent_is_what_each_policy_makes_of_it() {
    let given = a_node().await;
    start(&given, NAMESPACE, "parent").await;
    let policies = [
        ("terminated", ParentClosePolicy::Terminate),
        ("canceled", ParentClosePolicy::RequestCancel),
        ("abandoned", ParentClosePolicy::Abandon),
    ];
    let commands = policies.map(|(workflow_id, policy)| {
        start_child(StartChildWorkflowExecutionCommandAttributes {
            parent_close_policy: policy.into(),
            ..child(workflow_id)
        })
    });
    work(&given, "parent", commands.to_vec()).await;
    for (workflow_id, _) in policies {
        // It has begun, so the parent knows of it.
        event(&given, NAMESPACE, workflow_id, "WorkflowTaskScheduled").await;
    }
    work(&given, "parent", vec![finish("done")]).await;
    let end = event(&given, NAMESPACE, "terminated", "WorkflowExecutionTerminated").await;
    let Some(Attributes::WorkflowExecutionTerminatedEventAttributes(end)) = end.attributes else { panic!("no end") };
    assert_eq!((end.reason.as_str(), end.identity.as_str()), ("by parent close policy", "history-service"));
    let asked = event(&given, NAMESPACE, "canceled", "WorkflowExecutionCancelRequested").await;
    let Some(Attributes::WorkflowExecutionCancelRequestedEventAttributes(asked)) = asked.attributes else {
        panic!("not asked")
    };
    assert_eq!(asked.external_workflow_execution.expect("the parent").workflow_id, "parent");
    work(&given, "abandoned", vec![finish("alone")]).await;
    let alone = describe(&given, NAMESPACE, "abandoned").await.workflow_execution_info.expect("a run");
    assert_eq!(alone.status(), WorkflowExecutionStatus::Completed);
    given.stop().await;
}

#[tokio::test]
async fn a_parent_hears_only_of_the_last_run_of_its_child() {
    let given = a_node().await;
    a_parent(&given, "parent", child("child")).await;
    let first_run = describe(&given, NAMESPACE, "parent").await.pending_children[0].run_id.clone();
    work(&given, "child", vec![continue_as_new()]).await;
    let task = poll(&given, NAMESPACE, "child").await;
    let last_run = task.workflow_execution.clone().expect("a run").run_id;
    assert_ne!(first_run, last_run);
    assert_eq!(describe(&given, NAMESPACE, "parent").await.pending_children[0].run_id, first_run);
    complete(&given, task.task_token, vec![finish("at last")]).await.expect("the child completes");
    let end = event(&given, NAMESPACE, "parent", "ChildWorkflowExecutionCompleted").await;
    let Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(end)) = end.attributes else {
        panic!("no end")
    };
    assert_eq!(end.workflow_execution.expect("a run").run_id, last_run);
    let ends = names(&history(&given, NAMESPACE, execution("parent")).await);
    let n_ends = ends.iter().filter(|name| name.starts_with("ChildWorkflowExecutionCompleted")).count();
    assert_eq!(n_ends, 1);
    given.stop().await;
}

#[tokio::test]
async fn a_child_may_live_in_another_namespace_that_exists() {
    let given = a_node().await;
    given.client().register_namespace(register("elsewhere")).await.expect("a namespace is made");
    start(&given, NAMESPACE, "parent").await;
    let task = poll(&given, NAMESPACE, "parent").await;
    let named = |namespace: &str| {
        #[expect(deprecated, reason = "workers still name a namespace")]
        let attributes = StartChildWorkflowExecutionCommandAttributes { namespace: namespace.into(), ..child("child") };
        vec![start_child(attributes)]
    };
    let answer = complete(&given, task.task_token.clone(), named("nowhere")).await;
    let status = refused(answer, Code::NotFound, "Namespace nowhere is not found.");
    let typed: NamespaceNotFoundFailure = detail(&status).expect("a typed detail");
    assert_eq!(typed.namespace, "nowhere");
    complete(&given, task.task_token, named("elsewhere")).await.expect("the task is still there");
    let task = poll(&given, "elsewhere", "child").await;
    complete(&given, task.task_token, vec![finish("from afar")]).await.expect("the child completes");
    event(&given, NAMESPACE, "parent", "ChildWorkflowExecutionCompleted").await;
    given.stop().await;
}

#[tokio::test]
async fn a_child_of_a_parent_that_closed_at_once_is_never_started() {
    let given = a_node().await;
    start(&given, NAMESPACE, "parent").await;
    let abandoned = StartChildWorkflowExecutionCommandAttributes {
        parent_close_policy: ParentClosePolicy::Abandon.into(),
        ..child("abandoned")
    };
    work(&given, "parent", vec![start_child(child("child")), start_child(abandoned), finish("done")]).await;
    // What comes later in the same queue is done, so what came before is, too.
    start(&given, NAMESPACE, "later").await;
    work(&given, "later", vec![finish("done")]).await;
    for workflow_id in ["child", "abandoned"] {
        let request = public::DescribeWorkflowExecutionRequest {
            namespace: NAMESPACE.into(),
            execution: Some(execution(workflow_id)),
        };
        let answer = given.client().describe_workflow_execution(request).await;
        assert_eq!(answer.expect_err("no such run").code(), Code::NotFound);
    }
    given.stop().await;
}
