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

use crate::by_hand::ByHand;
use crate::commands::{cancel, continue_as_new, execution, fail, finish, names, payloads, queue, start_child};
use crate::given::{Given, NAMESPACE, a_node, a_node_across_namespaces, detail, refused, register};

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
    let run_id = ByHand::new(given, workflow_id).start().await;
    ByHand::new(given, workflow_id).work(vec![start_child(child)]).await;
    ByHand::new(given, workflow_id).work(Vec::new()).await;
    run_id
}

#[tokio::test]
async fn a_child_knows_its_parent_and_the_parent_how_its_child_ended() {
    let given = a_node().await;
    let parent_run = a_parent(&given, "parent", child("child")).await;
    let pending = ByHand::new(&given, "parent").describe().await.pending_children;
    assert_eq!((pending[0].workflow_id.as_str(), pending[0].initiated_id), ("child", 5));
    assert_eq!(pending[0].workflow_type_name, "child");
    let task = ByHand::new(&given, "child").poll().await;
    assert_eq!(task.workflow_execution.as_ref().expect("a run").run_id, pending[0].run_id);
    let first = &task.history.as_ref().expect("a history").events[0];
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &first.attributes else {
        panic!("not a start")
    };
    let parent = started.parent_workflow_execution.clone().expect("a parent");
    assert_eq!((parent.workflow_id.as_str(), parent.run_id.as_str()), ("parent", parent_run.as_str()));
    assert_eq!((started.parent_workflow_namespace.as_str(), started.parent_initiated_event_id), (NAMESPACE, 5));
    assert_eq!((started.root_workflow_execution.as_ref(), &started.input), (Some(&parent), &payloads("input")));
    ByHand::new(&given, "child").complete(task.task_token, vec![finish("result")]).await;
    let end = ByHand::new(&given, "parent").event("ChildWorkflowExecutionCompleted").await;
    let Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(end)) = end.attributes else {
        panic!("no end")
    };
    assert_eq!((end.initiated_event_id, end.started_event_id, end.result), (5, 6, payloads("result")));
    assert!(ByHand::new(&given, "parent").describe().await.pending_children.is_empty());
    let info = ByHand::new(&given, "child").describe().await.workflow_execution_info.expect("a run");
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
            Some(command) => ByHand::new(&given, workflow_id).work(vec![command]).await,
            None => ByHand::new(&given, workflow_id).terminate().await,
        }
        ByHand::new(&given, &parent).event(expected).await;
    }
    let hasty = StartChildWorkflowExecutionCommandAttributes {
        workflow_run_timeout: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..child("hasty")
    };
    a_parent(&given, "parent-of-hasty", hasty).await;
    ByHand::new(&given, "parent-of-hasty").event("ChildWorkflowExecutionTimedOut").await;
    given.stop().await;
}

#[tokio::test]
async fn a_child_whose_id_is_taken_fails_to_start() {
    let given = a_node().await;
    ByHand::new(&given, "taken").start().await;
    ByHand::new(&given, "parent").start().await;
    ByHand::new(&given, "parent").work(vec![start_child(child("taken"))]).await;
    let failed = ByHand::new(&given, "parent").event("StartChildWorkflowExecutionFailed").await;
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
    ByHand::new(&given, "parent").start().await;
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
    ByHand::new(&given, "parent").work(commands.to_vec()).await;
    for (workflow_id, _) in policies {
        // It has begun, so the parent knows of it.
        ByHand::new(&given, workflow_id).event("WorkflowTaskScheduled").await;
    }
    ByHand::new(&given, "parent").work(vec![finish("done")]).await;
    let end = ByHand::new(&given, "terminated").event("WorkflowExecutionTerminated").await;
    let Some(Attributes::WorkflowExecutionTerminatedEventAttributes(end)) = end.attributes else { panic!("no end") };
    assert_eq!((end.reason.as_str(), end.identity.as_str()), ("by parent close policy", "history-service"));
    let asked = ByHand::new(&given, "canceled").event("WorkflowExecutionCancelRequested").await;
    let Some(Attributes::WorkflowExecutionCancelRequestedEventAttributes(asked)) = asked.attributes else {
        panic!("not asked")
    };
    assert_eq!(asked.external_workflow_execution.expect("the parent").workflow_id, "parent");
    ByHand::new(&given, "abandoned").work(vec![finish("alone")]).await;
    let alone = ByHand::new(&given, "abandoned").describe().await.workflow_execution_info.expect("a run");
    assert_eq!(alone.status(), WorkflowExecutionStatus::Completed);
    given.stop().await;
}

#[tokio::test]
async fn a_parent_hears_only_of_the_last_run_of_its_child() {
    let given = a_node().await;
    a_parent(&given, "parent", child("child")).await;
    let first_run = ByHand::new(&given, "parent").describe().await.pending_children[0].run_id.clone();
    ByHand::new(&given, "child").work(vec![continue_as_new()]).await;
    let task = ByHand::new(&given, "child").poll().await;
    let last_run = task.workflow_execution.clone().expect("a run").run_id;
    assert_ne!(first_run, last_run);
    assert_eq!(ByHand::new(&given, "parent").describe().await.pending_children[0].run_id, first_run);
    ByHand::new(&given, "child").complete(task.task_token, vec![finish("at last")]).await;
    let end = ByHand::new(&given, "parent").event("ChildWorkflowExecutionCompleted").await;
    let Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(end)) = end.attributes else {
        panic!("no end")
    };
    assert_eq!(end.workflow_execution.expect("a run").run_id, last_run);
    let ends = names(&ByHand::new(&given, "parent").events().await);
    let n_ends = ends.iter().filter(|name| name.starts_with("ChildWorkflowExecutionCompleted")).count();
    assert_eq!(n_ends, 1);
    given.stop().await;
}

#[tokio::test]
async fn a_child_may_live_in_another_namespace_that_exists() {
    let given = a_node_across_namespaces().await;
    given.client().register_namespace(register("elsewhere")).await.expect("a namespace is made");
    ByHand::new(&given, "parent").start().await;
    let task = ByHand::new(&given, "parent").poll().await;
    let named = |namespace: &str| {
        #[expect(deprecated, reason = "workers still name a namespace")]
        let attributes = StartChildWorkflowExecutionCommandAttributes { namespace: namespace.into(), ..child("child") };
        vec![start_child(attributes)]
    };
    let answer = ByHand::new(&given, "parent").try_complete(task.task_token.clone(), named("nowhere")).await;
    let status = refused(answer, Code::NotFound, "Namespace nowhere is not found.");
    let typed: NamespaceNotFoundFailure = detail(&status).expect("a typed detail");
    assert_eq!(typed.namespace, "nowhere");
    ByHand::new(&given, "parent").complete(task.task_token, named("elsewhere")).await;
    let task = ByHand::elsewhere(&given, "elsewhere", "child").poll().await;
    ByHand::elsewhere(&given, "elsewhere", "child").complete(task.task_token, vec![finish("from afar")]).await;
    ByHand::new(&given, "parent").event("ChildWorkflowExecutionCompleted").await;
    given.stop().await;
}

#[tokio::test]
async fn a_child_of_a_parent_that_closed_at_once_is_never_started() {
    let given = a_node().await;
    ByHand::new(&given, "parent").start().await;
    let abandoned = StartChildWorkflowExecutionCommandAttributes {
        parent_close_policy: ParentClosePolicy::Abandon.into(),
        ..child("abandoned")
    };
    ByHand::new(&given, "parent").work(vec![start_child(child("child")), start_child(abandoned), finish("done")]).await;
    // What comes later in the same queue is done, so what came before is, too.
    ByHand::new(&given, "later").start().await;
    ByHand::new(&given, "later").work(vec![finish("done")]).await;
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
