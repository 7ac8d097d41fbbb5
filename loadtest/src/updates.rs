//! Updates as a worker sees them: each request is accepted and completed in the task that brings it.

use prost::{Message as _, Name};
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::update::v1::{Acceptance, Outcome, Request, Response, outcome};

use crate::{commands, payload};

/// Result of an update with this value.
#[must_use]
pub(crate) fn returned(value: u64) -> u64 {
    value + 1
}

/// The messages that answer those of a task, and the commands that order them.
pub(crate) fn answer(messages: &[Message]) -> (Vec<Message>, Vec<Command>) {
    let (mut answers, mut given) = (Vec::new(), Vec::new());
    for message in messages {
        let body = message.body.as_ref().map(|body| body.value.as_slice()).unwrap_or_default();
        let Ok(request) = Request::decode(body) else { continue };
        for answer in [acceptance(message, &request), response(message, request)] {
            given.push(commands::protocol_message(answer.id.clone()));
            answers.push(answer);
        }
    }
    (answers, given)
}

fn acceptance(asked: &Message, request: &Request) -> Message {
    let body = Acceptance {
        accepted_request_message_id: asked.id.clone(),
        accepted_request_sequencing_event_id: sequencing_event_id(asked),
        accepted_request: Some(request.clone()),
    };
    message(asked, "accept", &body)
}

fn response(asked: &Message, request: Request) -> Message {
    let args = request.input.and_then(|input| input.args);
    let value: u64 = payload::read(args.as_ref()).unwrap_or_default();
    let success = outcome::Value::Success(payload::json(returned(value)));
    let body = Response { meta: request.meta, outcome: Some(Outcome { value: Some(success) }) };
    message(asked, "complete", &body)
}

fn sequencing_event_id(asked: &Message) -> i64 {
    use proto::temporal::api::protocol::v1::message::SequencingId;
    match asked.sequencing_id {
        Some(SequencingId::EventId(event_id)) => event_id,
        Some(SequencingId::CommandIndex(_)) | None => 0,
    }
}

fn message<M: prost::Message + Name>(asked: &Message, kind: &str, body: &M) -> Message {
    let body = prost_types::Any { type_url: M::type_url(), value: body.encode_to_vec() };
    Message {
        id: format!("{}/{kind}", asked.protocol_instance_id),
        protocol_instance_id: asked.protocol_instance_id.clone(),
        body: Some(body),
        ..Default::default()
    }
}
