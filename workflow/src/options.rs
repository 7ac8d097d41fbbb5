//! Options of an open run that clients change: starts that join it, with their request ids and callbacks, and its
//! priority.

use std::sync::Arc;

use proto::temporal::api::common::v1::{Callback, Priority};
use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{HistoryEvent, WorkflowExecutionOptionsUpdatedEventAttributes};

use crate::draft::{Draft, Entry};
use crate::ids::EventId;
use crate::input::{Join, UpdateOptions};
use crate::outcome::{Outcome, Rejection, Reply};
use crate::state::ExecutionState;
use crate::time::Timestamp;

/// A completion callback; stored but not called.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionCallback {
    pub callback: Callback,
    /// Request id of the start that joined the run; empty for the one that created it.
    pub request_id: String,
    pub registered_at: Timestamp,
}

/// A request other than the run's own start and its signals, and its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRequest {
    pub request_id: String,
    pub event_type: EventType,
    pub event_id: EventId,
}

/// Attaches a start that found the run open.
pub(crate) fn join(draft: &mut Draft, input: Join) -> Result<Outcome, Rejection> {
    if is_known(&draft.state, &input.request_id) {
        return Ok(Outcome::Unchanged(Reply::Done));
    }
    check_callbacks(draft, input.callbacks.len())?;
    let what =
        Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(WorkflowExecutionOptionsUpdatedEventAttributes {
            attached_request_id: input.request_id,
            attached_completion_callbacks: input.callbacks,
            ..Default::default()
        });
    draft.record(Entry { links: input.links, ..what.into() });
    Ok(Outcome::Changed(Reply::Done))
}

/// Whether a start with this request id has joined the run, recorded or buffered.
#[must_use]
pub fn is_known(state: &ExecutionState, request_id: &str) -> bool {
    if request_id.is_empty() {
        return false;
    }
    let mut waiting = state.unrecorded.buffered_events.iter().filter_map(|(_, event)| updated(event));
    state.known_requests.iter().any(|known| known.request_id == request_id)
        || waiting.any(|update| update.attached_request_id == request_id)
}

fn updated(event: &HistoryEvent) -> Option<&WorkflowExecutionOptionsUpdatedEventAttributes> {
    if let Some(Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(update)) = &event.attributes {
        return Some(update);
    }
    None
}

/// Whether an event changes the options of a run.
pub(crate) fn is_change(event: &HistoryEvent) -> bool {
    updated(event).is_some()
}

/// Reapplies a change of the base's options to a reset run, unless its request is known there.
pub(crate) fn reapply(draft: &mut Draft, event: HistoryEvent) {
    let request_id = updated(&event).map(|update| update.attached_request_id.as_str()).unwrap_or_default();
    let mut waiting = draft.waiting().filter_map(updated);
    let is_waiting = !request_id.is_empty() && waiting.any(|update| update.attached_request_id == request_id);
    drop(waiting);
    let Some(what) = event.attributes.clone().filter(|_| !is_waiting && !is_known(&draft.state, request_id)) else {
        return;
    };
    draft.record(Entry { links: event.links, ..what.into() });
}

fn check_callbacks(draft: &Draft, n_more: usize) -> Result<(), Rejection> {
    let waiting = draft.waiting().filter_map(updated).map(|update| update.attached_completion_callbacks.len());
    let n_present = draft.state.callbacks.len() + waiting.sum::<usize>();
    let limit = draft.facts.limits.callbacks;
    if n_present + n_more <= limit {
        return Ok(());
    }
    Err(Rejection::FailedPrecondition(format!(
        "cannot attach more than {limit} callbacks to a workflow ({n_present} callbacks already attached)"
    )))
}

impl ExecutionState {
    /// The run's priority, also if its event is still buffered.
    #[must_use]
    pub fn current_priority(&self) -> Option<&Priority> {
        newest_priority(self, self.unrecorded.buffered_events.iter().map(|(_, event)| event))
    }
}

fn newest_priority<'a>(
    state: &'a ExecutionState,
    waiting: impl Iterator<Item = &'a HistoryEvent>,
) -> Option<&'a Priority> {
    let newest = waiting.filter_map(updated).filter_map(|update| update.priority.as_ref()).last();
    newest.or(state.priority.as_ref())
}

/// Changes the run's priority. Tasks that are already dispatched keep the old one.
pub(crate) fn update(draft: &mut Draft, input: UpdateOptions) -> Outcome {
    let present = newest_priority(&draft.state, draft.waiting()).cloned();
    let priority = merged(present.clone(), &input);
    if priority == present {
        return Outcome::Unchanged(Reply::Priority(priority));
    }
    draft.record(Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(
        WorkflowExecutionOptionsUpdatedEventAttributes {
            unset_versioning_override: true,
            identity: input.identity,
            priority: priority.clone(),
            ..Default::default()
        },
    ));
    Outcome::Changed(Reply::Priority(priority))
}

fn merged(present: Option<Priority>, input: &UpdateOptions) -> Option<Priority> {
    let has = |field: &str| input.fields.iter().any(|named| named == field);
    let given = input.priority.clone().unwrap_or_default();
    let mut priority = if has("priority") { input.priority.clone() } else { present };
    if has("priority.priorityKey") {
        priority.get_or_insert_default().priority_key = given.priority_key;
    }
    if has("priority.fairnessKey") {
        priority.get_or_insert_default().fairness_key.clone_from(&given.fairness_key);
    }
    if has("priority.fairnessWeight") {
        priority.get_or_insert_default().fairness_weight = given.fairness_weight;
    }
    priority
}

pub(crate) fn apply_updated(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    update: &WorkflowExecutionOptionsUpdatedEventAttributes,
) {
    let request_id = &update.attached_request_id;
    if !request_id.is_empty() {
        Arc::make_mut(&mut state.known_requests).push(KnownRequest {
            request_id: request_id.clone(),
            event_type: event.event_type(),
            event_id: EventId(event.event_id),
        });
    }
    add_callbacks(state, event, request_id, &update.attached_completion_callbacks);
    if update.priority.is_some() {
        state.priority.clone_from(&update.priority);
    }
}

/// Adds the callbacks of an event.
pub(crate) fn add_callbacks(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    request_id: &str,
    callbacks: &[Callback],
) {
    if callbacks.is_empty() {
        return;
    }
    let registered_at = event.event_time.map_or(state.started.started_at, Timestamp::from);
    Arc::make_mut(&mut state.callbacks).extend(callbacks.iter().map(|callback| CompletionCallback {
        callback: callback.clone(),
        request_id: request_id.to_owned(),
        registered_at,
    }));
}
