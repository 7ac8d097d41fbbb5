//! Starts over gRPC: policies on runs with the same id, what a start brings along, and its response.

use std::sync::atomic::Ordering;

use proto::temporal::api::command::v1::StartChildWorkflowExecutionCommandAttributes;
use proto::temporal::api::common::v1::callback::{Nexus, Variant};
use proto::temporal::api::common::v1::link::workflow_event::Reference;
use proto::temporal::api::common::v1::{Callback, Link, Priority, WorkflowType, link};
use proto::temporal::api::enums::v1::{
    CallbackState, EventType, HistoryEventFilterType, WorkflowExecutionStatus, WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy,
};
use proto::temporal::api::errordetails::v1::WorkflowExecutionAlreadyStartedFailure;
use proto::temporal::api::workflow::v1::{OnConflictOptions, WorkflowExecutionOptions};
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::by_hand::{ByHand, PATIENCE};
use crate::commands::{continue_as_new, start_child};
use crate::given::{Given, NAMESPACE, a_node, a_node_in, detail, refused, within};

type Started = Result<public::StartWorkflowExecutionResponse, Status>;

async fn start(given: &Given, request: public::StartWorkflowExecutionRequest) -> Started {
    given.client().start_workflow_execution(request).await.map(tonic::Response::into_inner)
}

fn with_policies(
    run: &ByHand,
    reuse: WorkflowIdReusePolicy,
    conflict: WorkflowIdConflictPolicy,
) -> public::StartWorkflowExecutionRequest {
    public::StartWorkflowExecutionRequest {
        workflow_id_reuse_policy: reuse.into(),
        workflow_id_conflict_policy: conflict.into(),
        ..run.start_request()
    }
}

async fn describe(given: &Given, run: &ByHand) -> public::DescribeWorkflowExecutionResponse {
    let request =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: Some(run.execution()) };
    given.client().describe_workflow_execution(request).await.expect("a description").into_inner()
}

/// What becomes of a second start.
#[derive(Debug, PartialEq)]
enum Outcome {
    New,
    Existing,
    AlreadyStarted,
    Refused,
}

fn outcome(first: &str, second: &Started) -> Outcome {
    match second {
        Ok(second) if second.run_id == first => Outcome::Existing,
        Ok(second) => {
            assert!(second.started);
            Outcome::New
        }
        Err(status) if status.code() == Code::AlreadyExists => {
            let failure: WorkflowExecutionAlreadyStartedFailure = detail(status).expect("a typed detail");
            assert_eq!((failure.run_id.as_str(), failure.first_execution_run_id.as_str()), (first, first));
            Outcome::AlreadyStarted
        }
        Err(status) if status.code() == Code::InvalidArgument => Outcome::Refused,
        Err(status) => panic!("{status}"),
    }
}

const REUSE: [WorkflowIdReusePolicy; 3] = [
    WorkflowIdReusePolicy::AllowDuplicate,
    WorkflowIdReusePolicy::AllowDuplicateFailedOnly,
    WorkflowIdReusePolicy::RejectDuplicate,
];
const CONFLICT: [WorkflowIdConflictPolicy; 3] = [
    WorkflowIdConflictPolicy::Fail,
    WorkflowIdConflictPolicy::UseExisting,
    WorkflowIdConflictPolicy::TerminateExisting,
];

#[tokio::test]
async fn a_start_beside_an_open_run_follows_the_conflict_policy() {
    let given = a_node().await;
    let mut firsts = Vec::new();
    for (reuse_number, reuse) in REUSE.into_iter().enumerate() {
        for (conflict_number, conflict) in CONFLICT.into_iter().enumerate() {
            let run = ByHand::new(&given, &format!("open-{reuse_number}-{conflict_number}"));
            firsts.push((run.start().await, run, reuse, conflict));
        }
    }
    for (first, run, reuse, conflict) in firsts {
        let second = start(&given, with_policies(&run, reuse, conflict)).await;
        let expected = match (reuse, conflict) {
            (WorkflowIdReusePolicy::RejectDuplicate, WorkflowIdConflictPolicy::TerminateExisting) => Outcome::Refused,
            (_, WorkflowIdConflictPolicy::UseExisting) => Outcome::Existing,
            (_, WorkflowIdConflictPolicy::TerminateExisting) => Outcome::New,
            (_, WorkflowIdConflictPolicy::Fail | WorkflowIdConflictPolicy::Unspecified) => Outcome::AlreadyStarted,
        };
        assert_eq!(outcome(&first, &second), expected, "{reuse:?} {conflict:?}");
    }
    given.stop().await;
}

/// A start asks the store for its id only until the shard has learned all its ids.
#[tokio::test]
async fn a_node_that_knows_its_workflow_ids_knows_those_from_before_it_began() {
    const N_OLD: usize = 30;
    /// All of them without a read: then both shards know their ids, or one has none of these.
    const N_UNREAD: usize = 20;
    let given = a_node().await;
    // A queue of its own for each would be read, too.
    let queue = ByHand::new(&given, "one for all").queue();
    let request = |name: String| public::StartWorkflowExecutionRequest {
        task_queue: Some(queue.clone()),
        ..ByHand::new(&given, &name).start_request()
    };
    let old: Vec<_> = (0..N_OLD).map(|n| request(format!("old-{n}"))).collect();
    let new: Vec<_> = (0..100 * N_UNREAD).map(|n| request(format!("new-{n}"))).collect();
    for request in &old {
        start(&given, request.clone()).await.expect("a start");
    }
    let given = a_node_in(given.stop().await).await;
    let reads = || given.node.counts().reads.load(Ordering::Relaxed);
    let mut n_unread = 0;
    for request in new {
        let before = reads();
        start(&given, request).await.expect("a start");
        n_unread = if reads() == before { n_unread + 1 } else { 0 };
        if n_unread == N_UNREAD {
            break;
        }
    }
    assert_eq!(n_unread, N_UNREAD, "new workflow ids are looked for still");
    for request in old {
        let again = start(&given, request.clone()).await;
        let is_known = again.is_err_and(|status| status.code() == Code::AlreadyExists);
        assert!(is_known, "{} was started again", request.workflow_id);
    }
    given.stop().await;
}

/// Each of them would be a read otherwise, all at once, when a busy node restarts.
#[tokio::test]
async fn after_a_restart_the_timers_of_runs_that_closed_before_it_are_not_looked_into() {
    const N_CLOSED: u64 = 200;
    let given = a_node().await;
    let queue = ByHand::new(&given, "one for all").queue();
    let request = |run: &ByHand| public::StartWorkflowExecutionRequest {
        task_queue: Some(queue.clone()),
        workflow_run_timeout: Some(prost_types::Duration { seconds: 3, nanos: 0 }),
        ..run.start_request()
    };
    for n in 0..N_CLOSED {
        let run = ByHand::new(&given, &format!("closed-{n}"));
        start(&given, request(&run)).await.expect("a start");
        run.terminate().await;
    }
    // Its timer fires after all of theirs.
    let last = request(&ByHand::new(&given, "open"));
    start(&given, last).await.expect("a start");
    let given = a_node_in(given.stop().await).await;
    let wait = public::GetWorkflowExecutionHistoryRequest {
        namespace: NAMESPACE.into(),
        execution: Some(ByHand::new(&given, "open").execution()),
        wait_new_event: true,
        history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
        ..Default::default()
    };
    let end = given.client().get_workflow_execution_history(within(PATIENCE, wait)).await.expect("its end");
    let end = end.into_inner().history.unwrap_or_default().events;
    assert_eq!(end[0].event_type(), EventType::WorkflowExecutionTimedOut);
    let n_reads = given.node.counts().reads.load(Ordering::Relaxed);
    assert!(n_reads < N_CLOSED, "{n_reads} reads");
    given.stop().await;
}

#[tokio::test]
async fn a_start_after_a_closed_run_follows_the_reuse_policy() {
    let given = a_node().await;
    let mut firsts = Vec::new();
    for reuse in REUSE {
        for is_failure in [true, false] {
            let run = ByHand::new(&given, &format!("closed-{}-{is_failure}", i32::from(reuse)));
            let first = run.start().await;
            if is_failure {
                run.terminate().await;
            } else {
                let task = run.poll().await;
                run.complete(task.task_token, vec![crate::commands::finish("done")]).await;
            }
            firsts.push((first, run, reuse, is_failure));
        }
    }
    for (first, run, reuse, is_failure) in firsts {
        for conflict in [WorkflowIdConflictPolicy::UseExisting, WorkflowIdConflictPolicy::Fail] {
            let second = start(&given, with_policies(&run, reuse, conflict)).await;
            let expected = match (reuse, is_failure) {
                (WorkflowIdReusePolicy::RejectDuplicate, _) => Outcome::AlreadyStarted,
                (WorkflowIdReusePolicy::AllowDuplicateFailedOnly, false) => Outcome::AlreadyStarted,
                (_, _) => Outcome::New,
            };
            assert_eq!(outcome(&first, &second), expected, "{reuse:?} {is_failure} {conflict:?}");
            if expected == Outcome::New {
                break;
            }
        }
    }
    given.stop().await;
}

fn reference(link: Option<Link>) -> Reference {
    let Some(link::Variant::WorkflowEvent(event)) = link.and_then(|link| link.variant) else { panic!("no link") };
    assert_eq!(event.namespace, NAMESPACE);
    event.reference.expect("an event")
}

#[tokio::test]
async fn a_start_that_joins_an_open_run_leaves_its_request_and_callbacks() {
    let given = a_node().await;
    let run = ByHand::new(&given, "joined");
    let first = start(&given, run.start_request()).await.expect("a start");
    assert!(matches!(reference(first.link), Reference::EventRef(event) if event.event_id == 1));

    let nexus = Nexus { url: "http://localhost/done".into(), header: [("Token".into(), "t".into())].into() };
    let callback = Callback { variant: Some(Variant::Nexus(nexus)), ..Default::default() };
    let joining = public::StartWorkflowExecutionRequest {
        request_id: "join".into(),
        completion_callbacks: vec![callback],
        on_conflict_options: Some(OnConflictOptions {
            attach_request_id: true,
            attach_completion_callbacks: true,
            attach_links: true,
        }),
        ..with_policies(&run, WorkflowIdReusePolicy::AllowDuplicate, WorkflowIdConflictPolicy::UseExisting)
    };
    for _ in 0..2 {
        let joined = start(&given, joining.clone()).await.expect("a start");
        assert!(!joined.started && joined.run_id == first.run_id);
        let Reference::RequestIdRef(request) = reference(joined.link) else { panic!("no request") };
        assert_eq!(
            (request.request_id.as_str(), request.event_type()),
            ("join", EventType::WorkflowExecutionOptionsUpdated)
        );
    }
    // The same request again, whatever its policy says now.
    let failing = public::StartWorkflowExecutionRequest {
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
        on_conflict_options: None,
        ..joining
    };
    assert_eq!(start(&given, failing).await.expect("the same start").run_id, first.run_id);

    let described = describe(&given, &run).await;
    assert_eq!(described.workflow_execution_info.expect("a run").history_length, 3);
    let requests = described.workflow_extended_info.expect("more").request_id_infos;
    assert_eq!((requests.len(), requests["join"].event_id), (2, 3));
    let callback = &described.callbacks[0];
    assert_eq!((callback.state(), callback.request_id.as_str()), (CallbackState::Standby, "join"));
    let Some(Variant::Nexus(nexus)) = callback.callback.clone().and_then(|callback| callback.variant) else { panic!() };
    assert!(nexus.header.contains_key("token"), "names of headers are in small letters");
    given.stop().await;
}

#[tokio::test]
async fn a_signal_with_start_that_has_the_request_id_of_a_start_is_not_lost() {
    let given = a_node().await;
    let run = ByHand::new(&given, "shared-id");
    let first = public::StartWorkflowExecutionRequest { request_id: "shared".into(), ..run.start_request() };
    let run_id = start(&given, first).await.expect("a start").run_id;
    let request = public::SignalWithStartWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_id: run.name.clone(),
        workflow_type: run.start_request().workflow_type,
        task_queue: Some(run.queue()),
        request_id: "shared".into(),
        signal_name: "kept".into(),
        ..Default::default()
    };
    for _ in ["once", "again"] {
        let answer = given.client().signal_with_start_workflow_execution(request.clone()).await;
        let answer = answer.expect("the run is open").into_inner();
        assert_eq!((answer.run_id.as_str(), answer.started), (run_id.as_str(), false));
    }
    let events = run.events().await;
    let signals = events.iter().filter(|event| event.event_type() == EventType::WorkflowExecutionSignaled);
    assert_eq!(signals.count(), 1, "it is there, and once");
    given.stop().await;
}

#[tokio::test]
async fn an_id_that_no_run_can_have_is_refused() {
    let given = a_node().await;
    let workflow_id = "x".repeat(70_000);
    let execution = Some(proto::temporal::api::common::v1::WorkflowExecution { workflow_id, ..Default::default() });
    let describe =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: execution.clone() };
    let status = given.client().describe_workflow_execution(describe).await.expect_err("it is too long");
    assert_eq!(status.code(), Code::InvalidArgument);
    let signal = public::SignalWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: execution,
        signal_name: "lost".into(),
        ..Default::default()
    };
    let status = given.client().signal_workflow_execution(signal).await.expect_err("it is too long");
    assert_eq!(status.code(), Code::InvalidArgument);
    given.stop().await;
}

#[tokio::test]
async fn a_cron_run_begins_at_its_first_time() {
    let given = a_node().await;
    let run = ByHand::new(&given, "cron");
    let request = public::StartWorkflowExecutionRequest {
        cron_schedule: "CRON_TZ=Europe/Berlin 0 3 * * *".into(),
        ..run.start_request()
    };
    start(&given, request).await.expect("a start");
    let info = describe(&given, &run).await.workflow_execution_info.expect("a run");
    assert_eq!((info.status(), info.history_length), (WorkflowExecutionStatus::Running, 1), "no workflow task yet");
    assert!(info.execution_time.expect("a time").seconds > info.start_time.expect("a time").seconds);

    let every_second = ByHand::new(&given, "cron-often");
    let request =
        public::StartWorkflowExecutionRequest { cron_schedule: "@every 1s".into(), ..every_second.start_request() };
    let first = start(&given, request).await.expect("a start").run_id;
    let task = every_second.poll().await;
    every_second.complete(task.task_token, vec![crate::commands::finish("done")]).await;
    let info = describe(&given, &every_second).await.workflow_execution_info.expect("a run");
    assert_ne!(info.execution.expect("the next run").run_id, first);
    assert_eq!(info.first_run_id, first);
    given.stop().await;
}

#[tokio::test]
async fn a_priority_is_updated_by_its_mask() {
    let given = a_node().await;
    let run = ByHand::new(&given, "hurried");
    run.start().await;
    let priority = Some(Priority { priority_key: 1, ..Default::default() });
    let request = public::UpdateWorkflowExecutionOptionsRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(run.execution()),
        workflow_execution_options: Some(WorkflowExecutionOptions { priority: priority.clone(), ..Default::default() }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["priority.priority_key".into()] }),
        ..Default::default()
    };
    let updated = given.client().update_workflow_execution_options(request.clone()).await.expect("an update");
    let options = updated.into_inner().workflow_execution_options.expect("options");
    assert_eq!(options.priority, priority);
    assert_eq!(describe(&given, &run).await.workflow_execution_info.expect("a run").priority, priority);
    let unknown = public::UpdateWorkflowExecutionOptionsRequest {
        update_mask: Some(prost_types::FieldMask { paths: vec!["nonsense".into()] }),
        ..request
    };
    let message = "error parsing UpdateMask: proto: invalid path \"nonsense\" for message \
                   \"temporal.api.workflow.v1.WorkflowExecutionOptions\"";
    refused(given.client().update_workflow_execution_options(unknown).await, Code::InvalidArgument, message);
    given.stop().await;
}

#[tokio::test]
async fn a_start_that_joined_a_run_finds_it_again_whatever_became_of_it() {
    let given = a_node().await;
    let run = ByHand::new(&given, "joined-before");
    let first = run.start().await;
    let joining = public::StartWorkflowExecutionRequest {
        request_id: "join".into(),
        on_conflict_options: Some(OnConflictOptions { attach_request_id: true, ..Default::default() }),
        ..with_policies(&run, WorkflowIdReusePolicy::AllowDuplicate, WorkflowIdConflictPolicy::UseExisting)
    };
    let terminating = public::StartWorkflowExecutionRequest {
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::TerminateExisting.into(),
        on_conflict_options: None,
        ..joining.clone()
    };
    start(&given, joining.clone()).await.expect("a start");
    let again = start(&given, terminating.clone()).await.expect("the same start");
    assert_eq!((again.run_id.as_str(), again.started), (first.as_str(), false));
    assert_eq!(again.status(), WorkflowExecutionStatus::Running, "it was not terminated");
    run.terminate().await;
    let mut given = given;
    // From memory, and by a node that reads it from the store.
    for _ in 0..2 {
        for request in [&joining, &terminating] {
            let again = start(&given, request.clone()).await.expect("the same start");
            assert_eq!((again.run_id.as_str(), again.started), (first.as_str(), false));
            assert_eq!(again.status(), WorkflowExecutionStatus::Terminated);
            assert!(matches!(reference(again.link), Reference::RequestIdRef(joined) if joined.request_id == "join"));
        }
        given = a_node_in(given.stop().await).await;
    }
    let other = public::StartWorkflowExecutionRequest { request_id: "other".into(), ..joining };
    let other = start(&given, other).await.expect("another start");
    assert!(other.started && other.run_id != first);
    given.stop().await;
}

#[tokio::test]
async fn a_priority_that_is_updated_during_a_workflow_task_is_shown_and_inherited_at_once() {
    let given = a_node().await;
    let run = ByHand::new(&given, "hurried-parent");
    run.start().await;
    let task = run.poll().await;
    let priority = Some(Priority { priority_key: 2, ..Default::default() });
    let request = public::UpdateWorkflowExecutionOptionsRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(run.execution()),
        workflow_execution_options: Some(WorkflowExecutionOptions { priority: priority.clone(), ..Default::default() }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["priority".into()] }),
        ..Default::default()
    };
    given.client().update_workflow_execution_options(request).await.expect("an update");
    assert_eq!(describe(&given, &run).await.workflow_execution_info.expect("a run").priority, priority);
    let child = ByHand::new(&given, "hurried-child");
    let command = start_child(StartChildWorkflowExecutionCommandAttributes {
        workflow_id: child.name.clone(),
        workflow_type: Some(WorkflowType { name: "child".into() }),
        task_queue: Some(child.queue()),
        ..Default::default()
    });
    run.complete(task.task_token, vec![command]).await;
    let task = child.poll().await;
    assert_eq!(task.workflow_type.map(|kind| kind.name).as_deref(), Some("child"));
    assert_eq!(describe(&given, &child).await.workflow_execution_info.expect("a child").priority, priority);
    given.stop().await;
}

#[tokio::test]
async fn a_run_that_a_command_continued_says_that_it_has_no_timeout() {
    let given = a_node().await;
    let run = ByHand::new(&given, "untimed");
    run.start().await;
    let config = |described: public::DescribeWorkflowExecutionResponse| described.execution_config.expect("a config");
    assert_eq!(config(describe(&given, &run).await).workflow_run_timeout, None);
    run.work(vec![continue_as_new()]).await;
    let none = Some(prost_types::Duration::default());
    assert_eq!(config(describe(&given, &run).await).workflow_run_timeout, none);
    given.stop().await;
}
