//! Signals and cancel requests from one workflow to another, over gRPC.

use proto::temporal::api::command::v1::{
    RequestCancelExternalWorkflowExecutionCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause as CancelFailedCause,
    SignalExternalWorkflowExecutionFailedCause as SignalFailedCause, WorkflowTaskFailedCause,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use tonic::Code;

use crate::by_hand::ByHand;
use crate::commands::{cancel_other, execution, names, payloads, queue, signal_other, start_child};
use crate::given::{NAMESPACE, a_node, a_node_across_namespaces, register};

fn signal(workflow_id: &str, name: &str) -> SignalExternalWorkflowExecutionCommandAttributes {
    SignalExternalWorkflowExecutionCommandAttributes {
        execution: Some(execution(workflow_id)),
        signal_name: name.into(),
        input: payloads(name),
        ..Default::default()
    }
}

fn cancel(workflow_id: &str) -> RequestCancelExternalWorkflowExecutionCommandAttributes {
    RequestCancelExternalWorkflowExecutionCommandAttributes {
        workflow_id: workflow_id.into(),
        reason: "never mind".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_signal_and_a_cancel_request_arrive_and_name_their_sender() {
    let given = a_node().await;
    let run_id = ByHand::new(&given, "sender").start().await;
    ByHand::new(&given, "target").start().await;
    ByHand::new(&given, "sender")
        .work(vec![signal_other(signal("target", "go")), cancel_other(cancel("target"))])
        .await;
    ByHand::new(&given, "sender").event("ExternalWorkflowExecutionSignaled").await;
    ByHand::new(&given, "sender").event("ExternalWorkflowExecutionCancelRequested").await;
    let events = ByHand::new(&given, "target").events().await;
    assert_eq!(names(&events)[2..], ["WorkflowExecutionSignaled", "WorkflowExecutionCancelRequested"]);
    let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signaled)) = &events[2].attributes else {
        panic!("no signal")
    };
    let sender = signaled.external_workflow_execution.clone().expect("a sender");
    assert_eq!((sender.workflow_id.as_str(), sender.run_id), ("sender", run_id));
    assert_eq!((signaled.identity.as_str(), &signaled.input), ("history-service", &payloads("go")));
    let Some(Attributes::WorkflowExecutionCancelRequestedEventAttributes(asked)) = &events[3].attributes else {
        panic!("not asked")
    };
    assert_eq!((asked.cause.as_str(), asked.external_initiated_event_id), ("never mind", 6));
    given.stop().await;
}

#[tokio::test]
async fn signals_to_one_workflow_arrive_in_the_order_of_sending() {
    let given = a_node().await;
    ByHand::new(&given, "sender").start().await;
    ByHand::new(&given, "target").start().await;
    let sent: Vec<String> = (0..40).map(|n| format!("signal-{n}")).collect();
    ByHand::new(&given, "sender").work(sent.iter().map(|name| signal_other(signal("target", name))).collect()).await;
    // The last one's answer is the last that the sender gets.
    let mut arrived = Vec::new();
    while arrived.len() < sent.len() {
        ByHand::new(&given, "target").event("WorkflowExecutionSignaled").await;
        let events = ByHand::new(&given, "target").events().await;
        arrived = events
            .into_iter()
            .filter_map(|event| match event.attributes {
                Some(Attributes::WorkflowExecutionSignaledEventAttributes(signaled)) => Some(signaled.signal_name),
                _ => None,
            })
            .collect();
    }
    assert_eq!(arrived, sent);
    given.stop().await;
}

#[tokio::test]
async fn what_cannot_arrive_fails_with_its_cause() {
    let given = a_node().await;
    ByHand::new(&given, "stranger").start().await;
    for (workflow_id, target, child_only) in
        [("asks-nobody", "nobody", false), ("asks-itself", "asks-itself", false), ("asks-no-child", "stranger", true)]
    {
        ByHand::new(&given, workflow_id).start().await;
        let signal = SignalExternalWorkflowExecutionCommandAttributes {
            child_workflow_only: child_only,
            ..signal(target, "go")
        };
        let cancel = RequestCancelExternalWorkflowExecutionCommandAttributes {
            child_workflow_only: child_only,
            ..cancel(target)
        };
        ByHand::new(&given, workflow_id).work(vec![signal_other(signal), cancel_other(cancel)]).await;
        let failed = ByHand::new(&given, workflow_id).event("SignalExternalWorkflowExecutionFailed").await;
        let Some(Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(failed)) = failed.attributes else {
            panic!("no failure")
        };
        assert_eq!(failed.cause(), SignalFailedCause::ExternalWorkflowExecutionNotFound);
        assert_eq!(failed.namespace, NAMESPACE);
        let failed = ByHand::new(&given, workflow_id).event("RequestCancelExternalWorkflowExecutionFailed").await;
        let Some(Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(failed)) = failed.attributes
        else {
            panic!("no failure")
        };
        assert_eq!(failed.cause(), CancelFailedCause::ExternalWorkflowExecutionNotFound);
    }
    assert_eq!(ByHand::new(&given, "stranger").events().await.len(), 2, "it hears nothing");
    given.stop().await;
}

#[tokio::test]
async fn a_workflow_in_another_namespace_is_signaled() {
    let given = a_node_across_namespaces().await;
    given.client().register_namespace(register("elsewhere")).await.expect("a namespace is made");
    ByHand::new(&given, "sender").start().await;
    ByHand::elsewhere(&given, "elsewhere", "target").start().await;
    #[expect(deprecated, reason = "workers still name a namespace")]
    let signal =
        SignalExternalWorkflowExecutionCommandAttributes { namespace: "elsewhere".into(), ..signal("target", "go") };
    ByHand::new(&given, "sender").work(vec![signal_other(signal)]).await;
    let answer = ByHand::new(&given, "sender").event("ExternalWorkflowExecutionSignaled").await;
    let Some(Attributes::ExternalWorkflowExecutionSignaledEventAttributes(answer)) = answer.attributes else {
        panic!("no answer")
    };
    assert_eq!(answer.namespace, "elsewhere");
    ByHand::elsewhere(&given, "elsewhere", "target").event("WorkflowExecutionSignaled").await;
    given.stop().await;
}

#[tokio::test]
async fn commands_that_name_another_namespace_fail_their_workflow_task_unless_they_are_allowed() {
    let given = a_node().await;
    given.client().register_namespace(register("elsewhere")).await.expect("a namespace is made");
    ByHand::elsewhere(&given, "elsewhere", "target").start().await;
    #[expect(deprecated, reason = "workers still name a namespace")]
    let commands = |namespace: &str| {
        let namespace = || namespace.to_owned();
        [
            signal_other(SignalExternalWorkflowExecutionCommandAttributes {
                namespace: namespace(),
                ..signal("target", "go")
            }),
            cancel_other(RequestCancelExternalWorkflowExecutionCommandAttributes {
                namespace: namespace(),
                ..cancel("target")
            }),
            start_child(StartChildWorkflowExecutionCommandAttributes {
                namespace: namespace(),
                workflow_id: "child".into(),
                workflow_type: Some(WorkflowType { name: "child".into() }),
                task_queue: queue("child"),
                ..Default::default()
            }),
        ]
    };
    let causes = [
        WorkflowTaskFailedCause::BadSignalWorkflowExecutionAttributes,
        WorkflowTaskFailedCause::BadRequestCancelExternalWorkflowExecutionAttributes,
        WorkflowTaskFailedCause::BadStartChildExecutionAttributes,
    ];
    for (n, (command, cause)) in commands("elsewhere").into_iter().zip(causes).enumerate() {
        let run = ByHand::new(&given, &format!("sender-{n}"));
        run.start().await;
        let task = run.poll().await;
        let status = run.try_complete(task.task_token, vec![command]).await.expect_err("it is refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().ends_with(": cross namespace commands are not allowed"), "{status:?}");
        let failed = run.event("WorkflowTaskFailed").await;
        let Some(Attributes::WorkflowTaskFailedEventAttributes(failed)) = failed.attributes else { panic!("no cause") };
        assert_eq!(failed.cause(), cause);
        run.terminate().await;
    }
    assert_eq!(ByHand::elsewhere(&given, "elsewhere", "target").events().await.len(), 2, "it hears nothing");
    // Naming the run's own namespace is allowed.
    let run = ByHand::new(&given, "own");
    run.start().await;
    run.work(commands(NAMESPACE).into()).await;
    given.stop().await;
}

#[tokio::test]
async fn two_workflows_that_ask_each_other_at_the_same_moment_both_get_their_answers() {
    let given = a_node().await;
    let pairs: Vec<(String, String)> = (0..8).map(|n| (format!("left-{n}"), format!("right-{n}"))).collect();
    for (left, right) in &pairs {
        ByHand::new(&given, left).start().await;
        ByHand::new(&given, right).start().await;
    }
    for (left, right) in &pairs {
        let ask = |target: &str| (0..5).map(|_| signal_other(signal(target, "go"))).collect::<Vec<_>>();
        let (one, other) = (ByHand::new(&given, left), ByHand::new(&given, right));
        tokio::join!(one.work(ask(right)), other.work(ask(left)));
    }
    for workflow_id in pairs.iter().flat_map(|(left, right)| [left, right]) {
        ByHand::new(&given, workflow_id).event("ExternalWorkflowExecutionSignaled").await;
        ByHand::new(&given, workflow_id).event("WorkflowExecutionSignaled").await;
    }
    given.stop().await;
}
