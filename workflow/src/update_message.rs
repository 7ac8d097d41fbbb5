//! Protocol messages: requests of updates to a worker, and its answers with a workflow task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prost::{Message as _, Name};
use proto::temporal::api::command::v1::ProtocolMessageCommandAttributes;
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    WorkflowExecutionUpdateAcceptedEventAttributes, WorkflowExecutionUpdateCompletedEventAttributes,
};
use proto::temporal::api::protocol::v1::Message;
use proto::temporal::api::protocol::v1::message::SequencingId;
use proto::temporal::api::update::v1::{Acceptance, Rejection, Request, Response};

use crate::commands::{BadCommand, Completion};
use crate::draft::Draft;
use crate::ids::EventId;
use crate::outcome::Notice;
use crate::update::{Update, WaitingUpdate, check_total, update_id};

const CAUSE: WorkflowTaskFailedCause = WorkflowTaskFailedCause::BadUpdateWorkflowExecutionMessage;
const PROTOCOL: &str = "temporal.api.update.v1";

/// A worker's answers with a workflow task, and the updates that it may answer.
#[derive(Default)]
pub(crate) struct Answers {
    /// `None` where a command has taken the message.
    messages: Vec<Option<Message>>,
    /// Index of the first message of each id, built once a command names one. A duplicate id cannot be named.
    places: Option<BTreeMap<String, usize>>,
    waiting: Vec<WaitingUpdate>,
    /// Updates that this workflow task rejects: further messages for them are refused.
    rejected: BTreeSet<String>,
}

/// Waiting updates that a workflow task sends to its worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    All,
    /// Unsent ones only: the worker still has the others.
    OnlyNew,
}

/// The requests of updates, as a worker gets them with a workflow task.
pub(crate) fn requests(waiting: &[WaitingUpdate], started_event_id: EventId, sending: Sending) -> Vec<Message> {
    let is_due = |update: &&WaitingUpdate| sending == Sending::All || !update.is_sent;
    waiting
        .iter()
        .filter(is_due)
        .map(|update| Message {
            id: request_message_id(update.id()),
            protocol_instance_id: update.id().to_owned(),
            // After all events that the worker sees with the task.
            sequencing_id: Some(SequencingId::EventId(started_event_id.0 - 1)),
            body: Some(prost_types::Any {
                type_url: format!("type.googleapis.com/{}", Request::full_name()),
                value: update.request.encode_to_vec(),
            }),
        })
        .collect()
}

fn request_message_id(update_id: &str) -> String {
    format!("{update_id}/request")
}

/// Refuses messages without a body or a valid type name.
pub(crate) fn check(messages: &[Message]) -> Result<(), String> {
    for message in messages {
        let body = message.body.as_ref().ok_or("nil message body")?;
        let name = type_name(&body.type_url);
        if name.is_empty() {
            return Err("no message name specified".to_owned());
        }
        if !name.contains('.') {
            return Err(format!("failed to extract protocol type: no . found in {name:?}"));
        }
    }
    Ok(())
}

fn type_name(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or_default()
}

/// All messages are rejections, which leave no event.
pub(crate) fn only_reject(messages: &[Message]) -> bool {
    let is_rejection = |body: &prost_types::Any| type_name(&body.type_url) == Rejection::full_name();
    messages.iter().all(|message| message.body.as_ref().is_some_and(is_rejection))
}

impl Answers {
    pub(crate) fn new(messages: Vec<Message>, waiting: Vec<WaitingUpdate>) -> Self {
        Self { messages: messages.into_iter().map(Some).collect(), waiting, ..Self::default() }
    }

    /// Updates that no worker has answered yet.
    pub(crate) fn waiting(&self) -> &[WaitingUpdate] {
        &self.waiting
    }

    fn take_message(&mut self, message_id: &str) -> Option<Message> {
        let messages = &mut self.messages;
        let places = self.places.get_or_insert_with(|| {
            let ids =
                messages.iter().enumerate().filter_map(|(place, message)| Some((message.as_ref()?.id.clone(), place)));
            // Reversed: the first of an id is inserted last, and stays.
            ids.rev().collect()
        });
        messages.get_mut(*places.get(message_id)?)?.take()
    }

    fn take_waiting(&mut self, update_id: &str) -> Option<WaitingUpdate> {
        let position = self.waiting.iter().position(|waiting| waiting.id() == update_id)?;
        Some(self.waiting.remove(position))
    }
}

/// Decides on a `ProtocolMessage` command, which gives a message its place in the order of commands.
pub(crate) fn process_command(
    draft: &mut Draft,
    completion: &mut Completion,
    command: &ProtocolMessageCommandAttributes,
) -> Result<(), BadCommand> {
    if command.message_id.is_empty() {
        return Err(bad("MessageID is not set on ProtocolMessageCommand."));
    }
    let Some(message) = completion.answers.take_message(&command.message_id) else {
        return Err(bad(format!("ProtocolMessageCommand referenced absent message ID {}", command.message_id)));
    };
    process(draft, completion, &message)
}

/// Messages without a command come after all commands, in their own order.
pub(crate) fn process_rest(draft: &mut Draft, completion: &mut Completion) -> Result<(), BadCommand> {
    for message in std::mem::take(&mut completion.answers.messages).into_iter().flatten() {
        process(draft, completion, &message)?;
    }
    Ok(())
}

fn process(draft: &mut Draft, completion: &mut Completion, message: &Message) -> Result<(), BadCommand> {
    let body = message.body.as_ref().ok_or_else(|| bad("nil message body"))?;
    let name = type_name(&body.type_url);
    let (protocol, kind) = name.rsplit_once('.').unwrap_or_default();
    if body.encoded_len() > draft.facts.limits.blob_size {
        return Err(BadCommand::fatal(CAUSE, &format!("Message type {name} exceeds size limit.")));
    }
    if protocol != PROTOCOL {
        return Err(bad(format!("unsupported protocol type {protocol}")));
    }
    let id = message.protocol_instance_id.as_str();
    match kind {
        Acceptance::NAME => accept(draft, completion, id, decode(body)?),
        Rejection::NAME => reject(draft, completion, id, decode(body)?),
        Response::NAME => complete(draft, completion, id, decode(body)?),
        _ => Err(bad(format!("Message type *update.{kind} not supported"))),
    }
}

fn decode<M: prost::Message + Default>(body: &prost_types::Any) -> Result<M, BadCommand> {
    M::decode(body.value.as_slice()).map_err(|error| bad(format!("unable to unmarshal request: {error}")))
}

fn accept(draft: &mut Draft, completion: &mut Completion, id: &str, message: Acceptance) -> Result<(), BadCommand> {
    let Some(request) = take_unanswered(draft, completion, id, (Acceptance::NAME, message.accepted_request))? else {
        return Ok(());
    };
    if message.accepted_request_sequencing_event_id == 0 {
        return Err(bad("invalid *update.Acceptance: accepted_request_sequencing_event_id is not set"));
    }
    if message.accepted_request_message_id.is_empty() {
        return Err(bad("invalid *update.Acceptance: accepted_request_message_id is not set"));
    }
    let what =
        Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(WorkflowExecutionUpdateAcceptedEventAttributes {
            protocol_instance_id: id.to_owned(),
            accepted_request_message_id: request_message_id(id),
            accepted_request_sequencing_event_id: message.accepted_request_sequencing_event_id,
            accepted_request: request.in_memory.map(Arc::unwrap_or_clone),
        });
    draft.record(what);
    draft.notify(Notice::UpdateAccepted { update_id: id.to_owned() });
    Ok(())
}

fn reject(draft: &mut Draft, completion: &mut Completion, id: &str, message: Rejection) -> Result<(), BadCommand> {
    if take_unanswered(draft, completion, id, (Rejection::NAME, message.rejected_request))?.is_some() {
        completion.answers.rejected.insert(id.to_owned());
        let failure = message.failure.unwrap_or_default();
        draft.notify(Notice::UpdateRejected { update_id: id.to_owned(), failure });
    }
    Ok(())
}

/// An update that a worker may accept or reject now.
struct Unanswered {
    /// `None`: the request is in an event.
    in_memory: Option<Arc<Request>>,
}

/// `None`: the run is closed, and so are its updates. The worker returns the request, in case the server has lost it
/// from memory.
fn take_unanswered(
    draft: &Draft,
    completion: &mut Completion,
    id: &str,
    (kind, sent_along): (&str, Option<Request>),
) -> Result<Option<Unanswered>, BadCommand> {
    if !draft.state.is_running() && kind != Rejection::NAME {
        return Ok(None);
    }
    if completion.answers.rejected.contains(id) {
        return Err(misplaced(id, kind, "ProvisionallyCompleted"));
    }
    if let Some(waiting) = completion.answers.take_waiting(id) {
        return Ok(Some(Unanswered { in_memory: Some(waiting.request) }));
    }
    match (draft.state.find_update(id), sent_along) {
        (Some(update), _) if !update.is_accepted() => Ok(Some(Unanswered { in_memory: None })),
        (Some(update), _) => Err(misplaced(id, kind, standing(update, completion))),
        (None, Some(request)) => {
            check_total(&draft.state, completion.answers.waiting.len(), &draft.facts.limits).map_err(bad)?;
            Ok(Some(Unanswered { in_memory: Some(Arc::new(request)) }))
        }
        (None, None) => Err(unknown(id)),
    }
}

fn complete(draft: &mut Draft, completion: &Completion, id: &str, message: Response) -> Result<(), BadCommand> {
    if !draft.state.is_running() {
        return Ok(());
    }
    let Some(update) = draft.state.find_update(id) else {
        let waiting =
            completion.answers.waiting.iter().find(|waiting| waiting.id() == id).ok_or_else(|| unknown(id))?;
        return Err(misplaced(id, Response::NAME, if waiting.is_sent { "Sent" } else { "Admitted" }));
    };
    let accepted_event_id = match (update.accepted_event_id, update.completed) {
        (Some(accepted), None) => accepted,
        (Some(_) | None, Some(_)) | (None, None) => {
            return Err(misplaced(id, Response::NAME, standing(update, completion)));
        }
    };
    let meta = message.meta.ok_or_else(|| bad("invalid *update.Response: meta is not set"))?;
    if update_id(Some(&meta)).is_empty() {
        return Err(bad("invalid *update.Response: meta.update_id is not set"));
    }
    if meta.update_id != id {
        return Err(bad(format!("invalid *update.Response: meta.update_id != {id}")));
    }
    let outcome = message.outcome.ok_or_else(|| bad("invalid *update.Response: outcome is not set"))?;
    let what =
        Attributes::WorkflowExecutionUpdateCompletedEventAttributes(WorkflowExecutionUpdateCompletedEventAttributes {
            meta: Some(meta),
            accepted_event_id: accepted_event_id.0,
            outcome: Some(outcome.clone()),
        });
    draft.record(what);
    draft.notify(Notice::UpdateCompleted { update_id: id.to_owned(), outcome });
    Ok(())
}

/// Rejects updates that the worker got with its task and did not answer: it does not support updates. Otherwise they
/// would be sent again with each task.
pub(crate) fn reject_unprocessed(draft: &mut Draft, completion: &mut Completion) {
    let waiting = std::mem::take(&mut completion.answers.waiting);
    let (sent, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|waiting| waiting.is_sent);
    completion.answers.waiting = others;
    let in_history = draft.state.updates.iter().map(|(_, update)| update).filter(|update| {
        let was_seen = update.admitted.is_some_and(|admitted| admitted.event_id < completion.event_id);
        was_seen && !update.is_accepted()
    });
    let in_history: Vec<String> = in_history.map(|update| update.update_id.clone()).collect();
    for update_id in sent.iter().map(|waiting| waiting.id().to_owned()).chain(in_history) {
        draft.notify(Notice::UpdateRejected { update_id, failure: unprocessed() });
    }
}

fn unprocessed() -> Failure {
    let info =
        ApplicationFailureInfo { r#type: "UnprocessedUpdate".to_owned(), non_retryable: true, ..Default::default() };
    Failure {
        message: "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow Update is not \
                  supported by the worker."
            .to_owned(),
        source: "Server".to_owned(),
        failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
        ..Default::default()
    }
}

/// State of an update, as the reference names it.
fn standing(update: &Update, completion: &Completion) -> &'static str {
    let is_new = |event_id: EventId| event_id > completion.event_id;
    match (update.accepted_event_id, update.completed) {
        (_, Some(completed)) if is_new(completed.event_id) => "ProvisionallyCompleted",
        (_, Some(_)) => "Completed",
        (Some(accepted), None) if is_new(accepted) => "ProvisionallyAccepted",
        (Some(_), None) => "Accepted",
        (None, None) => "Admitted",
    }
}

fn misplaced(id: &str, kind: &str, standing: &str) -> BadCommand {
    bad(format!(
        "invalid state transition attempted for Update {id}: received *update.{kind} message while in state {standing}"
    ))
}

fn unknown(id: &str) -> BadCommand {
    bad(format!(
        "update {id} wasn't found on the server. This is most likely a transient error which will be resolved \
         automatically by retries"
    ))
}

fn bad(reason: impl Into<String>) -> BadCommand {
    BadCommand::new(CAUSE, reason)
}
