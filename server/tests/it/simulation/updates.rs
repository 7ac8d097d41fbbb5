//! Updates under faults: clients send each until they get its outcome. Whatever the store does and however often the
//! node dies, an update is done once, its outcome is its own, and one that is rejected leaves no trace.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::model::Model;
use prost::Name;
use proto::everrow::history as request;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, ProtocolMessageCommandAttributes};
use proto::temporal::api::common::v1::Payloads;
use proto::temporal::api::enums::v1::{CommandType, UpdateWorkflowExecutionLifecycleStage as Stage};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::update::v1::outcome::Value;
use proto::temporal::api::update::v1::{Acceptance, Input, Meta, Outcome, Rejection, Request, Response, WaitPolicy};
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinSet;

use super::client::{self, Sent, SentTo, pause_after};
use super::worker::{command, text};
use super::world::{Handle, NAMESPACE_ID, World, execution};
use super::{all_faults, for_seeds, simulate};

const N_WORKFLOWS: usize = 4;
const N_CLIENTS: usize = 3;
const N_UPDATES: usize = 6;
const N_CRASHES: u64 = 4;

/// What a worker says of the updates that came with its task: some are rejected by their id, the others done.
pub(super) fn answer(requests: &[Message]) -> (Vec<Message>, Vec<Command>) {
    let messages: Vec<Message> =
        requests.iter().flat_map(|request| answer_one(&request.protocol_instance_id)).collect();
    let placed = messages.iter().filter(|message| !message.id.ends_with("/reject"));
    let commands = placed.map(|message| {
        let attributes = ProtocolMessageCommandAttributes { message_id: message.id.clone() };
        command(CommandType::ProtocolMessage, CommandAttributes::ProtocolMessageCommandAttributes(attributes))
    });
    let commands = commands.collect();
    (messages, commands)
}

fn is_rejected(id: &str) -> bool {
    id.ends_with('0')
}

fn answer_one(id: &str) -> Vec<Message> {
    if is_rejected(id) {
        let failure = Some(Failure { message: id.to_owned(), ..Default::default() });
        let rejection = Rejection { rejected_request: Some(request_of(id)), failure, ..Default::default() };
        return vec![message(id, "reject", &rejection)];
    }
    let acceptance = Acceptance {
        accepted_request_message_id: format!("{id}/request"),
        accepted_request_sequencing_event_id: 1,
        accepted_request: Some(request_of(id)),
    };
    let outcome = Some(Outcome { value: Some(Value::Success(outcome_of(id))) });
    let response = Response { meta: request_of(id).meta, outcome };
    vec![message(id, "accept", &acceptance), message(id, "complete", &response)]
}

fn outcome_of(id: &str) -> Payloads {
    text(&format!("done {id}"))
}

fn message<M: prost::Message + Name>(id: &str, kind: &str, body: &M) -> Message {
    let body = prost_types::Any { type_url: M::type_url(), value: body.encode_to_vec() };
    Message { id: format!("{id}/{kind}"), protocol_instance_id: id.to_owned(), body: Some(body), ..Default::default() }
}

fn request_of(id: &str) -> Request {
    let meta = Meta { update_id: id.to_owned(), identity: "simulated client".to_owned() };
    Request { meta: Some(meta), input: Some(Input { name: "do".into(), ..Default::default() }), ..Default::default() }
}

/// Sends an update until its outcome is known, and checks that it is its own.
async fn update(node: &Handle, workflow_id: &str, id: &str) {
    let request = public::UpdateWorkflowExecutionRequest {
        workflow_execution: Some(execution(workflow_id)),
        wait_policy: Some(WaitPolicy { lifecycle_stage: Stage::Completed.into() }),
        request: Some(request_of(id)),
        ..Default::default()
    };
    let request = request::UpdateWorkflowExecutionRequest { namespace_id: NAMESPACE_ID.into(), request: Some(request) };
    loop {
        let answer = node.services().history.update_workflow_execution(request.clone()).await;
        let outcome = match answer {
            Ok(updated) if updated.stage() == Stage::Completed => updated.outcome.unwrap().value.unwrap(),
            // No answer for the duration of a poll.
            Ok(_) => continue,
            // Enough workflow tasks were lost with their nodes that the run seems to fail.
            Err(ServiceError::WorkflowNotReady(_)) => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        match outcome {
            Value::Success(result) => assert_eq!(result, outcome_of(id), "the outcome of another"),
            Value::Failure(failure) => assert_eq!((failure.message.as_str(), is_rejected(id)), (id, true)),
        }
        return;
    }
}

async fn updates_under_faults(seed: u64) -> usize {
    let model = Model::with_faults(all_faults(seed));
    let mut world = World::start(&model, seed).await;
    let mut sent = Sent::default();
    let mut clients = JoinSet::new();
    for n in 0..N_WORKFLOWS {
        let workflow_id = format!("updated-{n}");
        let run_id = client::start(&world.handle(), &workflow_id, "simulated", "3 1").await;
        let run = SentTo { run_id, n_activities: 3, signals: Vec::new() };
        for client in 0..N_CLIENTS {
            let (node, workflow_id) = (world.handle(), workflow_id.clone());
            clients.spawn(async move {
                for n in 0..N_UPDATES {
                    update(&node, &workflow_id, &format!("{client}-{n}")).await;
                }
            });
        }
        sent.workflows.insert(workflow_id, run);
    }
    for crash in 1..=N_CRASHES {
        tokio::time::sleep(Duration::from_millis(41 * crash)).await;
        world = world.crash_and_restart(&model, seed + crash).await;
    }
    clients.join_all().await;
    model.stop_faults();
    for workflow_id in sent.workflow_ids() {
        // The signal that the workflow waits for before it ends.
        client::signal(&world.handle(), workflow_id, &format!("{workflow_id}-finish")).await;
    }
    world.all_closed(&sent).await;
    world.stop().await;
    let successor = World::start(&model, seed + 100).await;
    for workflow_id in sent.workflow_ids() {
        check(&successor, workflow_id).await;
    }
    successor.stop().await;
    0
}

async fn check(world: &World, workflow_id: &str) {
    let (mut accepted, mut completed) = (BTreeMap::new(), BTreeMap::new());
    for event in world.history(workflow_id).await {
        match event.attributes.unwrap() {
            Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(update) => {
                let previous = accepted.insert(update.protocol_instance_id, event.event_id);
                assert!(previous.is_none(), "{workflow_id}: an update was accepted twice");
            }
            Attributes::WorkflowExecutionUpdateCompletedEventAttributes(update) => {
                let previous = completed.insert(update.meta.unwrap().update_id, update.accepted_event_id);
                assert!(previous.is_none(), "{workflow_id}: an update was completed twice");
            }
            _ => {}
        }
    }
    assert_eq!(accepted, completed, "{workflow_id}: each names the event that accepted it");
    let all = (0..N_CLIENTS).flat_map(|client| (0..N_UPDATES).map(move |n| format!("{client}-{n}")));
    let expected: Vec<String> = all.filter(|id| !is_rejected(id)).collect();
    assert_eq!(completed.into_keys().collect::<Vec<_>>(), expected, "{workflow_id}: all, and none that was rejected");
}

#[test]
fn an_update_is_done_once_and_a_rejected_one_leaves_no_trace() {
    for_seeds(7000..7020, |seed| simulate(updates_under_faults(seed)));
}
