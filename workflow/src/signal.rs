//! Signals: received, counted, deduplicated by request id.

use prost::Message;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{HistoryEvent, WorkflowExecutionSignaledEventAttributes};

use crate::close::check_sender;
use crate::draft::{Draft, Entry};
use crate::input::Signal;
use crate::outcome::{LimitCause, Outcome, Rejection, Reply};
use crate::state::ExecutionState;
use crate::workflow_task;

/// A signal from a client or workflow.
pub(crate) fn receive(draft: &mut Draft, signal: Signal) -> Result<Outcome, Rejection> {
    let waits_for_first_task = draft.state.waits_for_first_task();
    let outcome = accept(draft, signal)?;
    if matches!(outcome, Outcome::Changed(_)) && !waits_for_first_task {
        workflow_task::ensure(draft);
    }
    Ok(outcome)
}

/// A signal-with-start that found the run open: it does not wait for a delayed first workflow task.
pub(crate) fn receive_and_begin(draft: &mut Draft, signal: Signal) -> Result<Outcome, Rejection> {
    let outcome = accept(draft, signal)?;
    if matches!(outcome, Outcome::Changed(_)) {
        workflow_task::ensure(draft);
    }
    Ok(outcome)
}

fn accept(draft: &mut Draft, signal: Signal) -> Result<Outcome, Rejection> {
    if is_known(draft, &signal.request_id) {
        return Ok(Outcome::Unchanged(Reply::Done));
    }
    if !draft.state.is_running() {
        return Err(Rejection::ExecutionClosed);
    }
    check_limits(draft, &signal)?;
    check_sender(&draft.state, signal.sender.as_ref())?;
    record(draft, signal);
    Ok(Outcome::Changed(Reply::Done))
}

/// Records a received signal, or the one that a run was started with.
pub(crate) fn record(draft: &mut Draft, signal: Signal) {
    let what = Attributes::WorkflowExecutionSignaledEventAttributes(WorkflowExecutionSignaledEventAttributes {
        signal_name: signal.name,
        input: signal.input,
        identity: signal.identity,
        header: signal.header,
        request_id: signal.request_id,
        external_workflow_execution: signal.sender.map(|sender| sender.execution),
        ..Default::default()
    });
    draft.record(Entry { links: signal.links, ..what.into() });
}

fn signaled(event: &HistoryEvent) -> Option<&WorkflowExecutionSignaledEventAttributes> {
    if let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) = &event.attributes {
        return Some(signal);
    }
    None
}

fn is_known(draft: &Draft, request_id: &str) -> bool {
    if request_id.is_empty() {
        return false;
    }
    let mut waiting = draft.waiting().filter_map(signaled);
    draft.state.signal_request_ids.contains(request_id) || waiting.any(|signal| signal.request_id == request_id)
}

fn check_limits(draft: &Draft, signal: &Signal) -> Result<(), Rejection> {
    let limits = &draft.facts.limits;
    if signal.input.as_ref().map_or(0, Message::encoded_len) > limits.blob_size {
        let message = "Blob data size exceeds limit.".to_owned();
        return Err(Rejection::LimitExceeded { cause: LimitCause::BlobSize, message });
    }
    let n_waiting = i64::try_from(draft.waiting().filter_map(signaled).count()).unwrap_or(i64::MAX);
    if draft.state.n_signals.saturating_add(n_waiting) >= limits.signals {
        let message = "exceeded workflow execution limit for signal events".to_owned();
        return Err(Rejection::LimitExceeded { cause: LimitCause::Signals, message });
    }
    if draft.state.unrecorded.is_closing && draft.state.workflow_task.is_running() {
        // Otherwise a workflow that is signaled continuously could never close.
        let message = "workflow operation can not be applied because workflow is closing";
        return Err(Rejection::Busy(message.to_owned()));
    }
    Ok(())
}

pub(crate) fn apply_signaled(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    signal: &WorkflowExecutionSignaledEventAttributes,
) {
    state.n_signals += 1;
    assert!(state.n_signals < state.next_event_id.0, "every signal is an event");
    if !signal.request_id.is_empty() {
        state.signal_request_ids.insert(event.event_id, signal.request_id.clone());
    }
}
