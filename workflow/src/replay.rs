//! replay: rebuilds a state from its events. They may come from elsewhere, so each is checked before it is applied.

use std::sync::Arc;

use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use thiserror::Error;
use uuid::Uuid;

use crate::apply::apply;
use crate::branch::Branch;
use crate::child;
use crate::events::{kind, not_built};
use crate::external;
use crate::ids::{EventId, ExecutionKey};
use crate::pause;
use crate::start;
use crate::state::ExecutionState;
use crate::update;
use crate::workflow_task::WorkflowTask;

/// A history that is not valid for a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    #[error("history is empty")]
    Empty,
    #[error("event {found} stands where event {expected} should")]
    Gap { expected: i64, found: i64 },
    #[error("event {event_id} does not fit: {reason}")]
    Misfit { event_id: i64, reason: String },
}

/// Rebuilds a state from its events, given as the batches they were written in.
///
/// # Errors
/// If an event cannot follow those before it.
pub fn replay(key: ExecutionKey, branch: Branch, batches: &[Vec<HistoryEvent>]) -> Result<ExecutionState, ReplayError> {
    let mut origin = Some((key, Arc::new(branch)));
    let mut state: Option<ExecutionState> = None;
    for batch in batches {
        let Some(batch_id) = batch.first().map(|first| EventId(first.event_id)) else { continue };
        for event in batch {
            match (&mut state, origin.take()) {
                (Some(state), _) => {
                    fits(state, event)?;
                    apply(state, event, batch_id);
                }
                (None, Some((key, branch))) => {
                    fits_first(event)?;
                    state = Some(start::apply_started(key, branch, event));
                }
                (None, None) => unreachable!("the first event made a state"),
            }
        }
    }
    state.ok_or(ReplayError::Empty)
}

fn fits_first(event: &HistoryEvent) -> Result<(), ReplayError> {
    if event.event_id != EventId::FIRST.0 {
        return Err(ReplayError::Gap { expected: EventId::FIRST.0, found: event.event_id });
    }
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(first)) = &event.attributes else {
        return Err(misfit(event, "a run begins with its start"));
    };
    if event.event_time.is_none() {
        return Err(misfit(event, "an event has a time"));
    }
    let is_run_id = |text: &str| text.is_empty() || Uuid::parse_str(text).is_ok();
    if !is_run_id(&first.first_execution_run_id) || !is_run_id(&first.continued_execution_run_id) {
        return Err(misfit(event, "a run's id is a UUID"));
    }
    Ok(())
}

fn fits(state: &ExecutionState, event: &HistoryEvent) -> Result<(), ReplayError> {
    if event.event_id != state.next_event_id.0 {
        return Err(ReplayError::Gap { expected: state.next_event_id.0, found: event.event_id });
    }
    let Some(what) = &event.attributes else { return Err(misfit(event, "an event says what happened")) };
    if kind(what).event_type != event.event_type() {
        return Err(misfit(event, "an event's type says the same as its attributes"));
    }
    if event.event_time.is_none() {
        return Err(misfit(event, "an event has a time"));
    }
    if event.version < state.last_version() {
        return Err(misfit(event, "failover versions do not go back"));
    }
    if !state.is_running() {
        return Err(misfit(event, "nothing happens to a closed run"));
    }
    fits_what(state, what).map_err(|reason| misfit(event, reason))
}

fn misfit(event: &HistoryEvent, reason: &str) -> ReplayError {
    ReplayError::Misfit { event_id: event.event_id, reason: reason.to_owned() }
}

#[rustfmt::skip]
fn fits_what(state: &ExecutionState, what: &Attributes) -> Result<(), &'static str> {
    match what {
        Attributes::WorkflowTaskScheduledEventAttributes(task) => can_schedule(state, task.attempt),
        Attributes::WorkflowTaskStartedEventAttributes(task) => is_scheduled(state, task.scheduled_event_id),
        Attributes::WorkflowTaskCompletedEventAttributes(task) => is_running(state, task.scheduled_event_id, task.started_event_id),
        Attributes::WorkflowTaskFailedEventAttributes(task) if task.started_event_id == 0 => is_scheduled(state, task.scheduled_event_id),
        Attributes::WorkflowTaskFailedEventAttributes(task) => is_running(state, task.scheduled_event_id, task.started_event_id),
        Attributes::WorkflowTaskTimedOutEventAttributes(task) if task.started_event_id == 0 => is_scheduled(state, task.scheduled_event_id),
        Attributes::WorkflowTaskTimedOutEventAttributes(task) => is_running(state, task.scheduled_event_id, task.started_event_id),
        Attributes::ActivityTaskStartedEventAttributes(activity) => is_activity(state, activity.scheduled_event_id),
        Attributes::ActivityTaskCompletedEventAttributes(activity) => is_activity(state, activity.scheduled_event_id),
        Attributes::ActivityTaskFailedEventAttributes(activity) => is_activity(state, activity.scheduled_event_id),
        Attributes::ActivityTaskTimedOutEventAttributes(activity) => is_activity(state, activity.scheduled_event_id),
        Attributes::ActivityTaskCanceledEventAttributes(activity) => is_activity(state, activity.scheduled_event_id),
        Attributes::ActivityTaskCancelRequestedEventAttributes(activity) => is_cancelable(state, activity.scheduled_event_id),
        Attributes::TimerFiredEventAttributes(timer) => is_timer(state, timer.started_event_id),
        Attributes::TimerCanceledEventAttributes(timer) => is_timer(state, timer.started_event_id),
        Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(child) => child::fits_initiated(child),
        Attributes::StartChildWorkflowExecutionFailedEventAttributes(child) => child::fits_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionStartedEventAttributes(child) => child::fits_started(state, child),
        Attributes::ChildWorkflowExecutionCompletedEventAttributes(child) => child::fits_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionFailedEventAttributes(child) => child::fits_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionCanceledEventAttributes(child) => child::fits_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionTimedOutEventAttributes(child) => child::fits_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionTerminatedEventAttributes(child) => child::fits_ended(state, child.initiated_event_id),
        Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(signal) => external::fits_initiated(&signal.namespace_id),
        Attributes::ExternalWorkflowExecutionSignaledEventAttributes(signal) => external::fits_answer(&state.external_signals, signal.initiated_event_id),
        Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(signal) => external::fits_answer(&state.external_signals, signal.initiated_event_id),
        Attributes::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(cancel) => external::fits_initiated(&cancel.namespace_id),
        Attributes::ExternalWorkflowExecutionCancelRequestedEventAttributes(cancel) => external::fits_answer(&state.external_cancels, cancel.initiated_event_id),
        Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(cancel) => external::fits_answer(&state.external_cancels, cancel.initiated_event_id),
        Attributes::WorkflowExecutionCancelRequestedEventAttributes(_) => is_not_canceled(state),
        Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(update) => update::fits_admitted(state, update),
        Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(update) => update::fits_accepted(state, &update.protocol_instance_id),
        Attributes::WorkflowExecutionUpdateCompletedEventAttributes(update) => update::fits_completed(state, update.meta.as_ref()),
        Attributes::WorkflowExecutionCompletedEventAttributes(end) => is_run_id(&end.new_execution_run_id),
        Attributes::WorkflowExecutionFailedEventAttributes(end) => is_run_id(&end.new_execution_run_id),
        Attributes::WorkflowExecutionTimedOutEventAttributes(end) => is_run_id(&end.new_execution_run_id),
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(end) => is_run_id(&end.new_execution_run_id),
        Attributes::ActivityTaskScheduledEventAttributes(_) | Attributes::TimerStartedEventAttributes(_) => Ok(()),
        Attributes::WorkflowExecutionSignaledEventAttributes(_) | Attributes::MarkerRecordedEventAttributes(_) => Ok(()),
        Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(_) => Ok(()),
        Attributes::UpsertWorkflowSearchAttributesEventAttributes(_) | Attributes::WorkflowPropertiesModifiedEventAttributes(_) => Ok(()),
        Attributes::WorkflowExecutionCanceledEventAttributes(_) | Attributes::WorkflowExecutionTerminatedEventAttributes(_) => Ok(()),
        Attributes::WorkflowExecutionPausedEventAttributes(_) => pause::fits_paused(state),
        Attributes::WorkflowExecutionUnpausedEventAttributes(_) => pause::fits_unpaused(state),
        Attributes::WorkflowExecutionStartedEventAttributes(_) => Err("a run starts once"),
        not_built!() => Err("such events are not supported yet"),
    }
}

fn can_schedule(state: &ExecutionState, attempt: i32) -> Result<(), &'static str> {
    if state.workflow_task != WorkflowTask::None {
        return Err("at most one workflow task is pending");
    }
    if attempt < 1 { Err("attempts count from one") } else { Ok(()) }
}

fn is_scheduled(state: &ExecutionState, scheduled_event_id: i64) -> Result<(), &'static str> {
    match &state.workflow_task {
        WorkflowTask::Scheduled(scheduled) if scheduled.event_id.0 == scheduled_event_id => Ok(()),
        WorkflowTask::Scheduled(_) | WorkflowTask::None | WorkflowTask::Running(..) => {
            Err("no such workflow task is scheduled")
        }
    }
}

fn is_running(state: &ExecutionState, scheduled_event_id: i64, started_event_id: i64) -> Result<(), &'static str> {
    match &state.workflow_task {
        WorkflowTask::Running(scheduled, running)
            if scheduled.event_id.0 == scheduled_event_id && running.event_id.0 == started_event_id =>
        {
            Ok(())
        }
        WorkflowTask::Running(..) | WorkflowTask::Scheduled(_) | WorkflowTask::None => {
            Err("no such workflow task is in flight")
        }
    }
}

fn is_activity(state: &ExecutionState, scheduled_event_id: i64) -> Result<(), &'static str> {
    state.activities.get(scheduled_event_id).map(|_| ()).ok_or("no such activity is pending")
}

fn is_cancelable(state: &ExecutionState, scheduled_event_id: i64) -> Result<(), &'static str> {
    let activity = state.activities.get(scheduled_event_id).ok_or("no such activity is pending")?;
    match activity.cancel_requested_event_id {
        None => Ok(()),
        Some(_) => Err("an activity is asked to cancel once"),
    }
}

fn is_timer(state: &ExecutionState, started_event_id: i64) -> Result<(), &'static str> {
    state.timers.get(started_event_id).map(|_| ()).ok_or("no such timer is pending")
}

fn is_not_canceled(state: &ExecutionState) -> Result<(), &'static str> {
    match state.cancel_requested {
        None => Ok(()),
        Some(_) => Err("a run is asked to cancel once"),
    }
}

fn is_run_id(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || Uuid::parse_str(text).is_ok() { Ok(()) } else { Err("a run's id is a UUID") }
}
