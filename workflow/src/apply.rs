//! apply: how an event changes a state. Live transitions, replay and reset share it.
//!
//! Events are not checked here: the code that decided on them, or replay, has done that.

use prost::Message;
use prost::encoding::int64;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;

use crate::branch;
use crate::events::not_built;
use crate::ids::EventId;
use crate::state::{ExecutionState, Status};
use crate::{activity, child, close, external, options, pause, properties, signal, timer, update, workflow_task};

/// Applies any event but a run's first. `batch_id` is the id of the first event of the node that the event is in.
#[rustfmt::skip]
pub(crate) fn apply(state: &mut ExecutionState, event: &HistoryEvent, batch_id: EventId) {
    assert_eq!(event.event_id, state.next_event_id.0, "events are applied in their order");
    assert!(batch_id.0 <= event.event_id, "a node begins with its first event");
    count(state, event);
    let what = event.attributes.as_ref().expect("an event says what happened");
    match what {
        Attributes::WorkflowTaskScheduledEventAttributes(task) => workflow_task::apply_scheduled(state, event, task),
        Attributes::WorkflowTaskStartedEventAttributes(task) => workflow_task::apply_started(state, event, task),
        Attributes::WorkflowTaskCompletedEventAttributes(task) => workflow_task::apply_completed(state, event, task),
        Attributes::WorkflowTaskTimedOutEventAttributes(task) => workflow_task::apply_timed_out(state, task),
        Attributes::WorkflowTaskFailedEventAttributes(task) => workflow_task::apply_failed(state, event, task),
        Attributes::ActivityTaskScheduledEventAttributes(activity) => activity::apply_scheduled(state, event, activity, batch_id),
        Attributes::ActivityTaskStartedEventAttributes(activity) => activity::apply_started(state, event, activity),
        Attributes::ActivityTaskCompletedEventAttributes(activity) => activity::apply_ended(state, activity.scheduled_event_id),
        Attributes::ActivityTaskFailedEventAttributes(activity) => activity::apply_ended(state, activity.scheduled_event_id),
        Attributes::ActivityTaskTimedOutEventAttributes(activity) => activity::apply_ended(state, activity.scheduled_event_id),
        Attributes::ActivityTaskCanceledEventAttributes(activity) => activity::apply_ended(state, activity.scheduled_event_id),
        Attributes::ActivityTaskCancelRequestedEventAttributes(activity) => activity::apply_cancel_requested(state, event, activity),
        Attributes::TimerStartedEventAttributes(timer) => timer::apply_started(state, event, timer),
        Attributes::TimerFiredEventAttributes(timer) => timer::apply_ended(state, timer.started_event_id),
        Attributes::TimerCanceledEventAttributes(timer) => timer::apply_ended(state, timer.started_event_id),
        Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(child) => child::apply_initiated(state, event, child, batch_id),
        Attributes::StartChildWorkflowExecutionFailedEventAttributes(child) => child::apply_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionStartedEventAttributes(child) => child::apply_started(state, event, child),
        Attributes::ChildWorkflowExecutionCompletedEventAttributes(child) => child::apply_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionFailedEventAttributes(child) => child::apply_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionCanceledEventAttributes(child) => child::apply_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionTimedOutEventAttributes(child) => child::apply_ended(state, child.initiated_event_id),
        Attributes::ChildWorkflowExecutionTerminatedEventAttributes(child) => child::apply_ended(state, child.initiated_event_id),
        Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(signal) => external::apply_signal_initiated(state, event, signal, batch_id),
        Attributes::ExternalWorkflowExecutionSignaledEventAttributes(signal) => external::apply_signal_answered(state, signal.initiated_event_id),
        Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(signal) => external::apply_signal_answered(state, signal.initiated_event_id),
        Attributes::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(cancel) => external::apply_cancel_initiated(state, event, cancel, batch_id),
        Attributes::ExternalWorkflowExecutionCancelRequestedEventAttributes(cancel) => external::apply_cancel_answered(state, cancel.initiated_event_id),
        Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(cancel) => external::apply_cancel_answered(state, cancel.initiated_event_id),
        Attributes::WorkflowExecutionSignaledEventAttributes(signal) => signal::apply_signaled(state, event, signal),
        Attributes::WorkflowExecutionCancelRequestedEventAttributes(_) => close::apply_cancel_requested(state, event),
        Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(update) => update::apply_admitted(state, event, update, batch_id),
        Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(update) => update::apply_accepted(state, event, update),
        Attributes::WorkflowExecutionUpdateCompletedEventAttributes(update) => update::apply_completed(state, event, update, batch_id),
        Attributes::UpsertWorkflowSearchAttributesEventAttributes(upsert) => properties::apply_search_attributes(state, upsert),
        Attributes::WorkflowPropertiesModifiedEventAttributes(modify) => properties::apply_modified(state, modify),
        Attributes::WorkflowExecutionCompletedEventAttributes(end) => close::apply_closed(state, event, Status::Completed, &end.new_execution_run_id),
        Attributes::WorkflowExecutionFailedEventAttributes(end) => close::apply_closed(state, event, Status::Failed, &end.new_execution_run_id),
        Attributes::WorkflowExecutionTimedOutEventAttributes(end) => close::apply_closed(state, event, Status::TimedOut, &end.new_execution_run_id),
        Attributes::WorkflowExecutionCanceledEventAttributes(_) => close::apply_closed(state, event, Status::Canceled, ""),
        Attributes::WorkflowExecutionTerminatedEventAttributes(_) => close::apply_closed(state, event, Status::Terminated, ""),
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(end) => close::apply_closed(state, event, Status::ContinuedAsNew, &end.new_execution_run_id),
        Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(update) => options::apply_updated(state, event, update),
        Attributes::WorkflowExecutionPausedEventAttributes(paused) => pause::apply_paused(state, event, paused),
        Attributes::WorkflowExecutionUnpausedEventAttributes(_) => pause::apply_unpaused(state),
        Attributes::MarkerRecordedEventAttributes(_) => {}
        Attributes::WorkflowExecutionStartedEventAttributes(_) => unreachable!("a run starts once"),
        not_built!() => unreachable!("nothing records such an event yet"),
    }
}

/// Applies the counters that every event changes.
pub(crate) fn count(state: &mut ExecutionState, event: &HistoryEvent) {
    state.next_event_id = EventId(event.event_id).next();
    state.history_size += recorded_size(event);
    branch::extend(&mut state.version_history, EventId(event.event_id), event.version);
}

/// Encoded size without the task id, which is not known when the event is decided on.
fn recorded_size(event: &HistoryEvent) -> i64 {
    const TASK_ID_TAG: u32 = 5;
    let task_id = if event.task_id == 0 { 0 } else { int64::encoded_len(TASK_ID_TAG, &event.task_id) };
    i64::try_from(event.encoded_len() - task_id).expect("an event fits in memory")
}
