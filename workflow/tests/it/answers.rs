//! Updates and what a worker says of them, for tests.

use prost::Name;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{Command, ProtocolMessageCommandAttributes};
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::update::v1::outcome::Value;
use proto::temporal::api::update::v1::{Acceptance, Input, Meta, Outcome, Rejection, Request, Response};

use crate::run::{failure, payloads};

pub(crate) fn update_request(id: &str) -> Request {
    Request {
        meta: Some(meta(id)),
        input: Some(Input { name: "add".to_owned(), args: Some(payloads("1")), header: None }),
        ..Default::default()
    }
}

fn meta(id: &str) -> Meta {
    Meta { update_id: id.to_owned(), identity: "client".to_owned() }
}

pub(crate) fn success() -> Outcome {
    Outcome { value: Some(Value::Success(payloads("2"))) }
}

pub(crate) fn message<M: prost::Message + Name>(id: &str, kind: &str, body: &M) -> Message {
    let body = prost_types::Any { type_url: M::type_url(), value: body.encode_to_vec() };
    Message { id: format!("{id}/{kind}"), protocol_instance_id: id.to_owned(), body: Some(body), ..Default::default() }
}

pub(crate) fn acceptance(id: &str) -> Message {
    let body = Acceptance {
        accepted_request_message_id: format!("{id}/request"),
        accepted_request_sequencing_event_id: 1,
        accepted_request: Some(update_request(id)),
    };
    message(id, "accept", &body)
}

pub(crate) fn rejection(id: &str) -> Message {
    let body = Rejection {
        rejected_request_message_id: format!("{id}/request"),
        rejected_request_sequencing_event_id: 1,
        rejected_request: Some(update_request(id)),
        failure: Some(failure("no")),
    };
    message(id, "reject", &body)
}

pub(crate) fn response(id: &str) -> Message {
    message(id, "complete", &Response { meta: Some(meta(id)), outcome: Some(success()) })
}

pub(crate) fn protocol_message(message_id: &str) -> Command {
    let attributes = ProtocolMessageCommandAttributes { message_id: message_id.to_owned() };
    Command {
        command_type: CommandType::ProtocolMessage.into(),
        attributes: Some(Attributes::ProtocolMessageCommandAttributes(attributes)),
        ..Default::default()
    }
}
