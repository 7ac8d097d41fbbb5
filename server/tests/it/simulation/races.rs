//! Requests that meet at the worst moment, over many seeds of latency.

use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::model::{Faults, Model};
use proto::everrow::{history as to_history, matching as to_matching};
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, ContinueAsNewWorkflowExecutionCommandAttributes};
use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{CommandType, WorkflowExecutionStatus, WorkflowIdConflictPolicy};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use server::history::config::HistoryConfig;
use tokio::task::JoinSet;

use super::worker::text;
use super::world::{NAMESPACE_ID, Services, World, execution};
use super::{Plan, for_seeds, load_under_faults, simulate};

const ID: &str = "contended";

fn latency(seed: u64) -> Faults {
    Faults { latency: Duration::from_micros(500)..Duration::from_millis(8), ..Faults::none(seed) }
}

/// A queue that only the test polls.
fn quiet_queue() -> TaskQueue {
    TaskQueue { name: "quiet".into(), ..Default::default() }
}

fn start(request_id: &str, conflict: WorkflowIdConflictPolicy) -> to_history::StartWorkflowExecutionRequest {
    let request = public::StartWorkflowExecutionRequest {
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "contended".into() }),
        task_queue: Some(quiet_queue()),
        request_id: request_id.into(),
        workflow_id_conflict_policy: conflict.into(),
        ..Default::default()
    };
    to_history::StartWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    }
}

fn signal_with_start(request_id: &str) -> to_history::SignalWithStartWorkflowExecutionRequest {
    let request = public::SignalWithStartWorkflowExecutionRequest {
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "contended".into() }),
        task_queue: Some(quiet_queue()),
        signal_name: "hello".into(),
        signal_input: Some(text("hello")),
        request_id: request_id.into(),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::UseExisting.into(),
        ..Default::default()
    };
    to_history::SignalWithStartWorkflowExecutionRequest { namespace_id: NAMESPACE_ID.into(), request: Some(request) }
}

fn signal(request_id: &str) -> to_history::SignalWorkflowExecutionRequest {
    let request = public::SignalWorkflowExecutionRequest {
        workflow_execution: Some(execution(ID)),
        signal_name: "hello".into(),
        request_id: request_id.into(),
        ..Default::default()
    };
    to_history::SignalWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    }
}

async fn poll(services: &Services) -> public::PollWorkflowTaskQueueResponse {
    loop {
        let request = public::PollWorkflowTaskQueueRequest { task_queue: Some(quiet_queue()), ..Default::default() };
        let namespace_id = NAMESPACE_ID.into();
        let poll =
            to_matching::PollWorkflowTaskQueueRequest { namespace_id, request: Some(request), ..Default::default() };
        let task = services.matching.poll_workflow_task_queue(poll).await.unwrap();
        if !task.task_token.is_empty() {
            return task;
        }
    }
}

fn continue_as_new(task_token: bytes::Bytes) -> to_history::RespondWorkflowTaskCompletedRequest {
    let attributes = ContinueAsNewWorkflowExecutionCommandAttributes::default();
    let command = Command {
        command_type: CommandType::ContinueAsNewWorkflowExecution.into(),
        attributes: Some(CommandAttributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes)),
        ..Default::default()
    };
    let request =
        public::RespondWorkflowTaskCompletedRequest { task_token, commands: vec![command], ..Default::default() };
    to_history::RespondWorkflowTaskCompletedRequest { namespace_id: NAMESPACE_ID.into(), request: Some(request) }
}

async fn status(services: &Services, run_id: &str) -> WorkflowExecutionStatus {
    let execution = WorkflowExecution { workflow_id: ID.into(), run_id: run_id.into() };
    let request = public::DescribeWorkflowExecutionRequest { execution: Some(execution), ..Default::default() };
    let namespace_id = NAMESPACE_ID.into();
    let request = to_history::DescribeWorkflowExecutionRequest { namespace_id, request: Some(request) };
    services.history.describe_workflow_execution(request).await.unwrap().workflow_execution_info.unwrap().status()
}

#[test]
fn a_signal_with_start_that_meets_a_start_keeps_its_signal() {
    for_seeds(0..20, |seed| {
        simulate(async {
            let world = World::start(&Model::with_faults(latency(seed)), seed).await;
            let history = world.handle().services().history;
            let (started, signaled) = tokio::join!(
                history.start_workflow_execution(start("one", WorkflowIdConflictPolicy::UseExisting)),
                history.signal_with_start_workflow_execution(signal_with_start("other")),
            );
            assert_eq!(started.unwrap().run_id, signaled.unwrap().run_id);
            let events = world.history(ID).await;
            let is_signal = |what: &Attributes| matches!(what, Attributes::WorkflowExecutionSignaledEventAttributes(_));
            assert_eq!(events.iter().filter(|event| event.attributes.as_ref().is_some_and(is_signal)).count(), 1);
            world.stop().await;
            0
        })
    });
}

#[test]
fn replacing_a_run_that_continues_as_new_leaves_one_open_run() {
    let met = for_seeds(0..20, |seed| {
        simulate(async {
            let config = HistoryConfig { cache_bytes: 0, ..HistoryConfig::default() };
            let world = World::start_as(&Model::with_faults(latency(seed)), seed, config).await;
            let services = world.handle().services();
            services.history.start_workflow_execution(start("first", WorkflowIdConflictPolicy::Fail)).await.unwrap();
            let task = poll(&services).await;
            // Two starts of one id within a second are too soon.
            tokio::time::sleep(Duration::from_secs(2)).await;
            let (continued, replaced) = tokio::join!(
                services.history.respond_workflow_task_completed(continue_as_new(task.task_token.clone())),
                services.history.start_workflow_execution(start("last", WorkflowIdConflictPolicy::TerminateExisting)),
            );
            let first = task.workflow_execution.unwrap().run_id;
            let mut runs = vec![first.clone()];
            runs.extend(second_run(&services, &first).await);
            // Right after the run it was to replace continued as another, it is too soon for a third.
            runs.extend(replaced.ok().map(|replacement| replacement.run_id));
            let mut n_open = 0;
            for run_id in &runs {
                n_open += usize::from(status(&services, run_id).await == WorkflowExecutionStatus::Running);
            }
            assert_eq!(n_open, 1, "open runs among {runs:?}");
            world.stop().await;
            usize::from(continued.is_ok())
        })
    });
    assert!(met.iter().sum::<usize>() > 0, "the run never continued");
}

/// The run that the first one continued as, if it did.
async fn second_run(services: &Services, first: &str) -> Option<String> {
    let execution = WorkflowExecution { workflow_id: ID.into(), run_id: first.into() };
    let request = public::GetWorkflowExecutionHistoryRequest { execution: Some(execution), ..Default::default() };
    let namespace_id = NAMESPACE_ID.into();
    let request = to_history::GetWorkflowExecutionHistoryRequest {
        namespace_id,
        request: Some(request),
        shows_unwritten: false,
        follows_next_run: true,
    };
    let page = services.history.get_workflow_execution_history(request).await.unwrap();
    match page.history.unwrap().into_events().unwrap().last().unwrap().attributes.clone() {
        Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(end)) => Some(end.new_execution_run_id),
        _ => None,
    }
}

/// The shard learns its ids while the first starts are on their way; what one of them adds must not be missed.
#[test]
fn no_workflow_is_started_twice_while_its_shard_learns_its_ids() {
    const N_WORKFLOWS: usize = 60;
    for_seeds(0..20, |seed| {
        simulate(async {
            // Nothing but the store and the ids knows of a run whose start is over.
            let config = HistoryConfig { cache_bytes: 0, batch_transitions: 4, ..HistoryConfig::default() };
            let world = World::start_as(&Model::with_faults(latency(seed)), seed, config).await;
            let history = world.handle().services().history;
            let mut workflows = JoinSet::new();
            for n in 0..N_WORKFLOWS {
                let history = Arc::clone(&history);
                workflows.spawn(async move {
                    tokio::time::sleep(Duration::from_millis(n as u64 / 2)).await;
                    let [first, second] = ["first", "second"].map(|request_id| {
                        let mut start = start(request_id, WorkflowIdConflictPolicy::Fail);
                        start.request.as_mut().unwrap().workflow_id = format!("learned-{n}");
                        start
                    });
                    let first = history.start_workflow_execution(first).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let second = history.start_workflow_execution(second).await;
                    let Err(ServiceError::AlreadyStarted { run_id, .. }) = second else {
                        panic!("learned-{n} was started again");
                    };
                    assert_eq!(run_id, first.run_id);
                });
            }
            workflows.join_all().await;
            world.stop().await;
            0
        })
    });
}

#[test]
fn a_crowd_of_repeated_requests_does_not_stop_a_shard() {
    simulate(async {
        let config = HistoryConfig { waiting_transitions: 16, ..HistoryConfig::default() };
        let world = World::start_as(&Model::with_faults(latency(1)), 1, config).await;
        let history = world.handle().services().history;
        history.start_workflow_execution(start("one", WorkflowIdConflictPolicy::Fail)).await.unwrap();
        history.signal_workflow_execution(signal("same")).await.unwrap();
        let mut repetitions = JoinSet::new();
        for _ in 0..200 {
            let history = Arc::clone(&history);
            repetitions.spawn(async move { history.signal_workflow_execution(signal("same")).await });
        }
        let patience = Duration::from_secs(600);
        let answers = tokio::time::timeout(patience, repetitions.join_all()).await.expect("all are answered");
        assert!(answers.iter().all(Result::is_ok));
        world.stop().await;
    });
}

#[test]
fn queues_that_overflow_memory_are_worked_off() {
    let plan = Plan { n_workflows: 12, n_activities: 4, n_signals: 10 };
    let config = HistoryConfig { queue_tasks_in_memory: 4, batch_transitions: 4, ..HistoryConfig::default() };
    for_seeds(0..8, |seed| {
        let faults = Faults { timeout_applied: 0.2, read_unavailable: 0.2, ..latency(seed) };
        simulate(load_under_faults(seed, faults, &plan, config.clone()))
    });
}
