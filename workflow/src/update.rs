//! Updates in history: admitted, accepted, completed. Updates that are not in history yet are in the server's memory,
//! and come with the inputs that concern them.

use std::sync::Arc;

use prost::Message;
use proto::temporal::api::enums::v1::UpdateAdmittedEventOrigin;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    HistoryEvent, WorkflowExecutionUpdateAcceptedEventAttributes, WorkflowExecutionUpdateAdmittedEventAttributes,
    WorkflowExecutionUpdateCompletedEventAttributes,
};
use proto::temporal::api::update::v1::{Meta, Request};

use crate::close::check_chain;
use crate::draft::Draft;
use crate::facts::Limits;
use crate::ids::EventId;
use crate::input::AdmitUpdate;
use crate::outcome::{LimitCause, Outcome, Rejection, Reply};
use crate::speculative;
use crate::state::ExecutionState;

/// From this attempt on, an update would only fail with its workflow task.
const FAILING_ATTEMPT: i32 = 3;

/// An update in history. Kept after completion: a repeated request finds its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub update_id: String,
    /// Set if an event has its request: a reset reapplied it.
    pub admitted: Option<RecordedAt>,
    pub accepted_event_id: Option<EventId>,
    /// Location of its outcome.
    pub completed: Option<RecordedAt>,
}

/// Location of an event in history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedAt {
    pub event_id: EventId,
    /// History node that holds the event.
    pub batch_id: EventId,
}

/// An admitted update that is neither accepted nor rejected: only the server's memory has it.
#[derive(Debug, Clone)]
pub struct WaitingUpdate {
    pub request: Arc<Request>,
    /// Sent to a worker with a workflow task.
    pub is_sent: bool,
}

impl WaitingUpdate {
    #[must_use]
    pub fn id(&self) -> &str {
        update_id(self.request.meta.as_ref())
    }
}

impl Update {
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.accepted_event_id.is_some()
    }

    /// Its first event, the key of `ExecutionState::updates`.
    #[must_use]
    pub fn first_event_id(&self) -> EventId {
        let first = self.admitted.map(|admitted| admitted.event_id).or(self.accepted_event_id);
        first.expect("an update that history knows has an event")
    }
}

impl ExecutionState {
    #[must_use]
    pub fn find_update(&self, update_id: &str) -> Option<&Update> {
        // Newest first: a lookup is most likely for an update that was just sent.
        self.updates.iter().rev().map(|(_, update)| update).find(|update| update.update_id == update_id)
    }
}

/// Admits a client's update. Nothing is recorded: a workflow task is scheduled to send it, unless one is pending.
pub(crate) fn admit(draft: &mut Draft, input: &AdmitUpdate) -> Result<Outcome, Rejection> {
    check_chain(&draft.state, input.first_run_id)?;
    let update_id = update_id(input.request.meta.as_ref());
    let is_known = draft.state.find_update(update_id).is_some();
    if !draft.state.is_running() {
        return if is_known { Ok(Outcome::Unchanged(Reply::Done)) } else { Err(Rejection::ExecutionClosed) };
    }
    if draft.state.paused().is_some() {
        let message = "Workflow is paused. Cannot update the workflow.";
        return Err(Rejection::FailedPrecondition(message.to_owned()));
    }
    if draft.state.workflow_task_attempt >= FAILING_ATTEMPT {
        let message = "Unable to perform workflow execution update due to Workflow Task in failed state.";
        return Err(Rejection::WorkflowNotReady(message.to_owned()));
    }
    if draft.state.unrecorded.is_closing && draft.state.workflow_task.is_running() {
        let message = "workflow operation can not be applied because workflow is closing";
        return Err(Rejection::Busy(message.to_owned()));
    }
    if is_known || input.waiting.iter().any(|waiting| waiting.id() == update_id) {
        return Ok(Outcome::Unchanged(Reply::Done));
    }
    check_limits(&draft.state, input, &draft.facts.limits)?;
    // A task that is scheduled takes the update along; after one in flight another is scheduled for it.
    if draft.state.workflow_task.scheduled().is_some() {
        return Ok(Outcome::Unchanged(Reply::Done));
    }
    speculative::ensure(draft);
    Ok(Outcome::Changed(Reply::Done))
}

fn check_limits(state: &ExecutionState, input: &AdmitUpdate, limits: &Limits) -> Result<(), Rejection> {
    let n_unfinished = state.updates.iter().filter(|(_, update)| update.completed.is_none()).count();
    if input.waiting.len() + n_unfinished >= limits.updates_in_flight {
        let limit = limits.updates_in_flight;
        let message = format!("limit on number of concurrent in-flight updates has been reached ({limit})");
        return Err(Rejection::LimitExceeded { cause: LimitCause::UpdatesInFlight, message });
    }
    check_total(state, input.waiting.len(), limits)
        .map_err(|message| Rejection::LimitExceeded { cause: LimitCause::Updates, message })?;
    let size: usize = input.waiting.iter().map(|waiting| waiting.id().len() + waiting.request.encoded_len()).sum();
    if size + input.request.encoded_len() >= limits.updates_in_flight_size {
        let limit = limits.updates_in_flight_size;
        let message = format!("limit on total payload size of in-flight updates has been reached ({limit} bytes)");
        return Err(Rejection::LimitExceeded { cause: LimitCause::UpdatesInFlight, message });
    }
    Ok(())
}

/// Checks that a run has room for one more update, with `n_waiting` in memory.
pub(crate) fn check_total(state: &ExecutionState, n_waiting: usize, limits: &Limits) -> Result<(), String> {
    if state.updates.len() + n_waiting < limits.updates {
        return Ok(());
    }
    Err(format!(
        "The limit on the total number of distinct updates in this workflow has been reached ({}). Make sure any \
         duplicate updates share an Update ID so the server can deduplicate them, and consider rejecting updates that \
         you aren't going to process. You can also Continue-as-New to avoid this; we recommend you check \
         Continue-as-New Suggested in your Workflow.",
        limits.updates
    ))
}

/// The update that an event brings into history, and its origin.
fn brought(event: &HistoryEvent) -> Option<(&Request, UpdateAdmittedEventOrigin)> {
    if let Some(Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(admitted)) = &event.attributes {
        return Some((admitted.request.as_ref()?, admitted.origin()));
    }
    if let Some(Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(accepted)) = &event.attributes {
        // Without a request here, an admitted event has it.
        return Some((accepted.accepted_request.as_ref()?, UpdateAdmittedEventOrigin::Reapply));
    }
    None
}

/// Whether a reset to a point before this event reapplies an update.
pub(crate) fn is_brought_by(event: &HistoryEvent) -> bool {
    brought(event).is_some()
}

/// Reapplies an update of the base run: an admitted event records its request.
pub(crate) fn reapply(draft: &mut Draft, event: &HistoryEvent) {
    let Some((request, origin)) = brought(event) else { return };
    let id = update_id(request.meta.as_ref());
    let is_it = |(request, _): (&Request, _)| update_id(request.meta.as_ref()) == id;
    let is_known = draft.waiting().filter_map(brought).any(is_it);
    if is_known || draft.state.find_update(id).is_some() {
        return;
    }
    draft.record(Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(
        WorkflowExecutionUpdateAdmittedEventAttributes { request: Some(request.clone()), origin: origin.into() },
    ));
}

/// The id that a client gave the update; empty if the message has none.
pub(crate) fn update_id(meta: Option<&Meta>) -> &str {
    meta.map_or("", |meta| meta.update_id.as_str())
}

pub(crate) fn apply_admitted(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    admitted: &WorkflowExecutionUpdateAdmittedEventAttributes,
    batch_id: EventId,
) {
    let request = admitted.request.as_ref().expect("an update is admitted with its request");
    let update = Update {
        update_id: update_id(request.meta.as_ref()).to_owned(),
        admitted: Some(RecordedAt { event_id: EventId(event.event_id), batch_id }),
        accepted_event_id: None,
        completed: None,
    };
    let previous = state.updates.insert(event.event_id, update);
    assert!(previous.is_none(), "an event admits one update");
}

pub(crate) fn apply_accepted(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    accepted: &WorkflowExecutionUpdateAcceptedEventAttributes,
) {
    let accepted_event_id = Some(EventId(event.event_id));
    if let Some(update) = known_mut(state, &accepted.protocol_instance_id) {
        assert!(!update.is_accepted(), "an update is accepted once");
        update.accepted_event_id = accepted_event_id;
        return;
    }
    let update_id = accepted.protocol_instance_id.clone();
    let update = Update { update_id, admitted: None, accepted_event_id, completed: None };
    let previous = state.updates.insert(event.event_id, update);
    assert!(previous.is_none(), "an event accepts one update");
}

pub(crate) fn apply_completed(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    completed: &WorkflowExecutionUpdateCompletedEventAttributes,
    batch_id: EventId,
) {
    let update = known_mut(state, update_id(completed.meta.as_ref())).expect("only an accepted update completes");
    assert!(update.is_accepted(), "an update is accepted before it completes");
    assert!(update.completed.is_none(), "an update completes once");
    update.completed = Some(RecordedAt { event_id: EventId(event.event_id), batch_id });
}

fn known_mut<'a>(state: &'a mut ExecutionState, update_id: &str) -> Option<&'a mut Update> {
    let id = state.find_update(update_id)?.first_event_id();
    state.updates.get_mut(id.0)
}

pub(crate) fn fits_admitted(
    state: &ExecutionState,
    admitted: &WorkflowExecutionUpdateAdmittedEventAttributes,
) -> Result<(), &'static str> {
    let request = admitted.request.as_ref().ok_or("an update is admitted with its request")?;
    match state.find_update(update_id(request.meta.as_ref())) {
        None => Ok(()),
        Some(_) => Err("an update is admitted once"),
    }
}

pub(crate) fn fits_accepted(state: &ExecutionState, update_id: &str) -> Result<(), &'static str> {
    match state.find_update(update_id) {
        Some(update) if update.is_accepted() => Err("an update is accepted once"),
        Some(_) | None => Ok(()),
    }
}

pub(crate) fn fits_completed(state: &ExecutionState, meta: Option<&Meta>) -> Result<(), &'static str> {
    let update = state.find_update(update_id(meta)).ok_or("no such update was accepted")?;
    match update.completed {
        None if update.is_accepted() => Ok(()),
        None => Err("no such update was accepted"),
        Some(_) => Err("an update completes once"),
    }
}
