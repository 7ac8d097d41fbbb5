//! Interventions under faults: clients query, pause and reset runs that go on meanwhile. Whatever the store does and
//! however often the node dies, a query sees every signal that was acknowledged before it, nothing begins while a run is
//! paused, a run that is reset ends once, and the last run has every signal once and comes to its end.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::model::Model;
use prost::Message as _;
use proto::everrow::{history as request, matching};
use proto::temporal::api::common::v1::{Payloads, WorkflowExecution};
use proto::temporal::api::enums::v1::{QueryResultType, WorkflowExecutionStatus as Status};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::query::v1::{WorkflowQuery, WorkflowQueryResult};
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinSet;

use super::client::{self, Sent, SentTo, pause_after};
use super::worker::text;
use super::world::{Handle, NAMESPACE_ID, Services, World, execution};
use super::{all_faults, checker, for_seeds, simulate};

const N_WORKFLOWS: usize = 5;
const N_ACTIVITIES: usize = 4;
const N_ROUNDS: usize = 6;
const N_CRASHES: u64 = 4;
/// Long enough for whatever was on its way to a worker when a run was paused.
const PAUSE: Duration = Duration::from_millis(300);

/// A worker's answer to a query: the signals that it has seen.
fn seen_signals(events: &[HistoryEvent]) -> Payloads {
    let ids = events.iter().filter_map(|event| match event.attributes.as_ref() {
        Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => Some(signal.request_id.as_str()),
        _ => None,
    });
    text(&ids.collect::<Vec<_>>().join(" "))
}

/// A worker's answers to the queries that came with a workflow task.
pub(super) fn answers(
    queries: HashMap<String, WorkflowQuery>,
    events: &[HistoryEvent],
) -> HashMap<String, WorkflowQueryResult> {
    let answer = Some(seen_signals(events));
    let result = WorkflowQueryResult { result_type: QueryResultType::Answered.into(), answer, ..Default::default() };
    queries.into_keys().map(|id| (id, result.clone())).collect()
}

/// A worker's answer to a query that came alone.
pub(super) async fn answer_alone(services: &Services, task_token: bytes::Bytes, events: &[HistoryEvent]) {
    let answer = public::RespondQueryTaskCompletedRequest {
        completed_type: QueryResultType::Answered.into(),
        query_result: Some(seen_signals(events)),
        ..Default::default()
    };
    let answer = matching::RespondQueryTaskCompletedRequest {
        namespace_id: NAMESPACE_ID.into(),
        token: Some(matching::QueryTaskToken::decode(task_token).unwrap()),
        request: Some(answer),
    };
    // The caller may have given up.
    let _ = services.matching.respond_query_task_completed(answer).await;
}

struct Client {
    node: Handle,
    workflow_id: String,
    run_id: String,
    signals: Vec<String>,
    /// Runs that were reset.
    left: Vec<String>,
}

impl Client {
    async fn run(mut self) -> Self {
        for round in 0..N_ROUNDS {
            let request_id = format!("{}-signal-{round}", self.workflow_id);
            client::signal(&self.node, &self.workflow_id, &request_id).await;
            self.signals.push(request_id);
            self.query_sees_all().await;
            match round % 3 {
                0 => self.pause_for_a_while(round).await,
                1 => self.reset(round).await,
                _ => {}
            }
        }
        // Its last signal ends the workflow.
        let request_id = format!("{}-finish", self.workflow_id);
        client::signal(&self.node, &self.workflow_id, &request_id).await;
        self.signals.push(request_id);
        self
    }

    async fn query(&self) -> public::QueryWorkflowResponse {
        let query = public::QueryWorkflowRequest {
            execution: Some(execution(&self.workflow_id)),
            query: Some(WorkflowQuery { query_type: "signals".into(), ..Default::default() }),
            ..Default::default()
        };
        let timeout = Some(prost_types::Duration { seconds: 10, nanos: 0 });
        let query = request::QueryWorkflowRequest { namespace_id: NAMESPACE_ID.into(), request: Some(query), timeout };
        loop {
            match self.node.services().history.query_workflow(query.clone()).await {
                Ok(answer) => return answer,
                // Its first task is not done yet, or enough were lost with their nodes that the run seems to fail.
                Err(ServiceError::WorkflowNotReady(_)) => tokio::time::sleep(Duration::from_millis(500)).await,
                Err(error) => pause_after(&error).await,
            }
        }
    }

    async fn query_sees_all(&self) {
        let answer = self.query().await.query_result.expect("an answer");
        let told = String::from_utf8(answer.payloads[0].data.to_vec()).unwrap();
        let seen: BTreeSet<&str> = told.split(' ').collect();
        for signal in &self.signals {
            assert!(seen.contains(signal.as_str()), "{}: {signal} is not among {seen:?}", self.workflow_id);
        }
    }

    async fn pause_for_a_while(&self, round: usize) {
        let pause = public::PauseWorkflowExecutionRequest {
            workflow_id: self.workflow_id.clone(),
            request_id: format!("pause-{round}"),
            ..Default::default()
        };
        let namespace_id = NAMESPACE_ID.to_owned();
        let pause = request::PauseWorkflowExecutionRequest { namespace_id, request: Some(pause) };
        while let Err(error) = self.node.services().history.pause_workflow_execution(pause.clone()).await {
            pause_after(&error).await;
        }
        let rejected = self.query().await.query_rejected.expect("a paused run answers no queries");
        assert_eq!(rejected.status(), Status::Paused);
        tokio::time::sleep(PAUSE).await;
        let unpause =
            public::UnpauseWorkflowExecutionRequest { workflow_id: self.workflow_id.clone(), ..Default::default() };
        let namespace_id = NAMESPACE_ID.to_owned();
        let unpause = request::UnpauseWorkflowExecutionRequest { namespace_id, request: Some(unpause) };
        loop {
            match self.node.services().history.unpause_workflow_execution(unpause.clone()).await {
                // Not paused any more: an earlier try was done after all.
                Ok(_) | Err(ServiceError::FailedPrecondition(_)) => return,
                Err(error) => pause_after(&error).await,
            }
        }
    }

    /// To the beginning, so that only signals are left of what the run did.
    async fn reset(&mut self, round: usize) {
        let reset = public::ResetWorkflowExecutionRequest {
            workflow_execution: Some(WorkflowExecution {
                workflow_id: self.workflow_id.clone(),
                run_id: self.run_id.clone(),
            }),
            workflow_task_finish_event_id: self.first_task_ended().await,
            request_id: format!("{}-reset-{round}", self.workflow_id),
            ..Default::default()
        };
        let reset = request::ResetWorkflowExecutionRequest { namespace_id: NAMESPACE_ID.into(), request: Some(reset) };
        let new_run_id = loop {
            match self.node.services().history.reset_workflow_execution(reset.clone()).await {
                Ok(done) => break done.run_id,
                Err(error) => pause_after(&error).await,
            }
        };
        self.left.push(std::mem::replace(&mut self.run_id, new_run_id));
    }

    /// A query was answered, so there is such an event.
    async fn first_task_ended(&self) -> i64 {
        let events = client::history(&self.node, execution(&self.workflow_id)).await;
        let first = events
            .iter()
            .find(|event| matches!(event.attributes, Some(Attributes::WorkflowTaskCompletedEventAttributes(_))));
        first.expect("a task was completed").event_id
    }
}

async fn interventions_under_faults(seed: u64) -> usize {
    let model = Model::with_faults(all_faults(seed));
    let mut world = World::start(&model, seed).await;
    let mut clients = JoinSet::new();
    for n in 0..N_WORKFLOWS {
        let (node, workflow_id) = (world.handle(), format!("interrupted-{n}"));
        let plan = format!("{N_ACTIVITIES} {}", N_ROUNDS + 1);
        let run_id = client::start(&node, &workflow_id, "simulated", &plan).await;
        clients.spawn(Client { node, workflow_id, run_id, signals: Vec::new(), left: Vec::new() }.run());
    }
    for crash in 1..=N_CRASHES {
        tokio::time::sleep(Duration::from_millis(211 * crash)).await;
        world = world.crash_and_restart(&model, seed + crash).await;
    }
    let clients = clients.join_all().await;
    model.stop_faults();
    let mut sent = Sent::default();
    for client in &clients {
        let Client { run_id, signals, .. } = client;
        let run = SentTo { run_id: run_id.clone(), n_activities: N_ACTIVITIES, signals: signals.clone() };
        sent.workflows.insert(client.workflow_id.clone(), run);
    }
    world.all_closed(&sent).await;
    world.stop().await;
    let successor = World::start(&model, seed + 100).await;
    checker::check(&successor, &sent).await;
    for client in &clients {
        check_reset_runs(&successor, client).await;
        check_pauses(&client.workflow_id, &successor.history(&client.workflow_id).await);
    }
    successor.stop().await;
    0
}

async fn check_reset_runs(world: &World, client: &Client) {
    let unique: BTreeSet<&String> = client.left.iter().chain([&client.run_id]).collect();
    assert_eq!(unique.len(), client.left.len() + 1, "{}: each reset makes a run", client.workflow_id);
    for run_id in &client.left {
        let run = WorkflowExecution { workflow_id: client.workflow_id.clone(), run_id: run_id.clone() };
        let events = client::history(&world.handle(), run).await;
        let is_end = |event: &&HistoryEvent| {
            matches!(event.attributes, Some(Attributes::WorkflowExecutionTerminatedEventAttributes(_)))
        };
        assert_eq!(events.iter().filter(is_end).count(), 1, "{run_id} ends once");
        assert!(is_end(&events.last().unwrap()), "{run_id}: nothing comes after its end");
        check_pauses(run_id, &events);
    }
}

/// While a run is paused, no task of it is scheduled, and what is started was started before.
fn check_pauses(run: &str, events: &[HistoryEvent]) {
    let mut paused_at = None;
    for event in events {
        let at = event.event_time.map(|time| (time.seconds, time.nanos));
        match event.attributes.as_ref().unwrap() {
            Attributes::WorkflowExecutionPausedEventAttributes(_) => paused_at = Some(at),
            Attributes::WorkflowExecutionUnpausedEventAttributes(_) => paused_at = None,
            Attributes::WorkflowTaskScheduledEventAttributes(_) | Attributes::WorkflowTaskStartedEventAttributes(_) => {
                assert!(paused_at.is_none(), "{run}: {event:?} while it was paused");
            }
            Attributes::ActivityTaskStartedEventAttributes(_) => {
                assert!(paused_at.is_none_or(|paused_at| at <= paused_at), "{run}: {event:?} while it was paused");
            }
            _ => {}
        }
    }
}

#[test]
fn queries_see_what_was_acknowledged_pauses_hold_and_resets_lose_nothing() {
    for_seeds(8000..8020, |seed| simulate(interventions_under_faults(seed)));
}
