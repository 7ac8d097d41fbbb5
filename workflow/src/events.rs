//! Event kinds: their type in the public API, and whether they are buffered while a workflow task is in flight.

use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::history::v1::history_event::Attributes;

/// A kind of event.
pub(crate) struct Kind {
    pub event_type: EventType,
    /// Buffered while a workflow task is in flight: history must not have it between the task's start and its answer.
    pub waits: bool,
}

const fn at_once(event_type: EventType) -> Kind {
    Kind { event_type, waits: false }
}

const fn waits(event_type: EventType) -> Kind {
    Kind { event_type, waits: true }
}

/// One line per event of the public API.
#[rustfmt::skip]
pub(crate) fn kind(what: &Attributes) -> Kind {
    match what {
        Attributes::WorkflowExecutionStartedEventAttributes(_) => at_once(EventType::WorkflowExecutionStarted),
        Attributes::WorkflowExecutionCompletedEventAttributes(_) => at_once(EventType::WorkflowExecutionCompleted),
        Attributes::WorkflowExecutionFailedEventAttributes(_) => at_once(EventType::WorkflowExecutionFailed),
        Attributes::WorkflowExecutionTimedOutEventAttributes(_) => at_once(EventType::WorkflowExecutionTimedOut),
        Attributes::WorkflowExecutionCanceledEventAttributes(_) => at_once(EventType::WorkflowExecutionCanceled),
        Attributes::WorkflowExecutionTerminatedEventAttributes(_) => at_once(EventType::WorkflowExecutionTerminated),
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(_) => at_once(EventType::WorkflowExecutionContinuedAsNew),
        Attributes::WorkflowTaskScheduledEventAttributes(_) => at_once(EventType::WorkflowTaskScheduled),
        Attributes::WorkflowTaskStartedEventAttributes(_) => at_once(EventType::WorkflowTaskStarted),
        Attributes::WorkflowTaskCompletedEventAttributes(_) => at_once(EventType::WorkflowTaskCompleted),
        Attributes::WorkflowTaskTimedOutEventAttributes(_) => at_once(EventType::WorkflowTaskTimedOut),
        Attributes::WorkflowTaskFailedEventAttributes(_) => at_once(EventType::WorkflowTaskFailed),
        Attributes::ActivityTaskScheduledEventAttributes(_) => at_once(EventType::ActivityTaskScheduled),
        Attributes::ActivityTaskCancelRequestedEventAttributes(_) => at_once(EventType::ActivityTaskCancelRequested),
        Attributes::ActivityTaskStartedEventAttributes(_) => waits(EventType::ActivityTaskStarted),
        Attributes::ActivityTaskCompletedEventAttributes(_) => waits(EventType::ActivityTaskCompleted),
        Attributes::ActivityTaskFailedEventAttributes(_) => waits(EventType::ActivityTaskFailed),
        Attributes::ActivityTaskTimedOutEventAttributes(_) => waits(EventType::ActivityTaskTimedOut),
        Attributes::ActivityTaskCanceledEventAttributes(_) => waits(EventType::ActivityTaskCanceled),
        Attributes::ActivityPropertiesModifiedExternallyEventAttributes(_) => waits(EventType::ActivityPropertiesModifiedExternally),
        Attributes::TimerStartedEventAttributes(_) => at_once(EventType::TimerStarted),
        Attributes::TimerCanceledEventAttributes(_) => at_once(EventType::TimerCanceled),
        Attributes::TimerFiredEventAttributes(_) => waits(EventType::TimerFired),
        Attributes::MarkerRecordedEventAttributes(_) => at_once(EventType::MarkerRecorded),
        Attributes::WorkflowExecutionSignaledEventAttributes(_) => waits(EventType::WorkflowExecutionSignaled),
        Attributes::WorkflowExecutionCancelRequestedEventAttributes(_) => waits(EventType::WorkflowExecutionCancelRequested),
        Attributes::UpsertWorkflowSearchAttributesEventAttributes(_) => at_once(EventType::UpsertWorkflowSearchAttributes),
        Attributes::WorkflowPropertiesModifiedEventAttributes(_) => at_once(EventType::WorkflowPropertiesModified),
        Attributes::WorkflowPropertiesModifiedExternallyEventAttributes(_) => waits(EventType::WorkflowPropertiesModifiedExternally),
        Attributes::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(_) => at_once(EventType::RequestCancelExternalWorkflowExecutionInitiated),
        Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(_) => waits(EventType::RequestCancelExternalWorkflowExecutionFailed),
        Attributes::ExternalWorkflowExecutionCancelRequestedEventAttributes(_) => waits(EventType::ExternalWorkflowExecutionCancelRequested),
        Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(_) => at_once(EventType::SignalExternalWorkflowExecutionInitiated),
        Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(_) => waits(EventType::SignalExternalWorkflowExecutionFailed),
        Attributes::ExternalWorkflowExecutionSignaledEventAttributes(_) => waits(EventType::ExternalWorkflowExecutionSignaled),
        Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(_) => at_once(EventType::StartChildWorkflowExecutionInitiated),
        Attributes::StartChildWorkflowExecutionFailedEventAttributes(_) => waits(EventType::StartChildWorkflowExecutionFailed),
        Attributes::ChildWorkflowExecutionStartedEventAttributes(_) => waits(EventType::ChildWorkflowExecutionStarted),
        Attributes::ChildWorkflowExecutionCompletedEventAttributes(_) => waits(EventType::ChildWorkflowExecutionCompleted),
        Attributes::ChildWorkflowExecutionFailedEventAttributes(_) => waits(EventType::ChildWorkflowExecutionFailed),
        Attributes::ChildWorkflowExecutionCanceledEventAttributes(_) => waits(EventType::ChildWorkflowExecutionCanceled),
        Attributes::ChildWorkflowExecutionTimedOutEventAttributes(_) => waits(EventType::ChildWorkflowExecutionTimedOut),
        Attributes::ChildWorkflowExecutionTerminatedEventAttributes(_) => waits(EventType::ChildWorkflowExecutionTerminated),
        Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(_) => waits(EventType::WorkflowExecutionUpdateAdmitted),
        Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(_) => at_once(EventType::WorkflowExecutionUpdateAccepted),
        Attributes::WorkflowExecutionUpdateRejectedEventAttributes(_) => waits(EventType::WorkflowExecutionUpdateRejected),
        Attributes::WorkflowExecutionUpdateCompletedEventAttributes(_) => at_once(EventType::WorkflowExecutionUpdateCompleted),
        Attributes::NexusOperationScheduledEventAttributes(_) => at_once(EventType::NexusOperationScheduled),
        Attributes::NexusOperationStartedEventAttributes(_) => waits(EventType::NexusOperationStarted),
        Attributes::NexusOperationCompletedEventAttributes(_) => waits(EventType::NexusOperationCompleted),
        Attributes::NexusOperationFailedEventAttributes(_) => waits(EventType::NexusOperationFailed),
        Attributes::NexusOperationCanceledEventAttributes(_) => waits(EventType::NexusOperationCanceled),
        Attributes::NexusOperationTimedOutEventAttributes(_) => waits(EventType::NexusOperationTimedOut),
        Attributes::NexusOperationCancelRequestedEventAttributes(_) => at_once(EventType::NexusOperationCancelRequested),
        Attributes::NexusOperationCancelRequestCompletedEventAttributes(_) => waits(EventType::NexusOperationCancelRequestCompleted),
        Attributes::NexusOperationCancelRequestFailedEventAttributes(_) => waits(EventType::NexusOperationCancelRequestFailed),
        Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(_) => waits(EventType::WorkflowExecutionOptionsUpdated),
        Attributes::WorkflowExecutionPausedEventAttributes(_) => waits(EventType::WorkflowExecutionPaused),
        Attributes::WorkflowExecutionUnpausedEventAttributes(_) => waits(EventType::WorkflowExecutionUnpaused),
        Attributes::WorkflowExecutionTimeSkippingTransitionedEventAttributes(_) => waits(EventType::WorkflowExecutionTimeSkippingTransitioned),
    }
}

/// Events that end something: recorded after all other buffered events, so that a start buffered with them precedes
/// them.
pub(crate) fn comes_last(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::ActivityTaskCompleted
            | EventType::ActivityTaskFailed
            | EventType::ActivityTaskTimedOut
            | EventType::ActivityTaskCanceled
            | EventType::ChildWorkflowExecutionCompleted
            | EventType::ChildWorkflowExecutionFailed
            | EventType::ChildWorkflowExecutionTimedOut
            | EventType::ChildWorkflowExecutionCanceled
            | EventType::ChildWorkflowExecutionTerminated
            | EventType::NexusOperationCompleted
            | EventType::NexusOperationFailed
            | EventType::NexusOperationCanceled
            | EventType::NexusOperationTimedOut
    )
}

/// A worker that does not know such an event may ignore it: it changes nothing for the workflow's code.
pub(crate) fn may_be_ignored(what: &Attributes) -> bool {
    matches!(
        what,
        Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(_)
            | Attributes::WorkflowExecutionPausedEventAttributes(_)
            | Attributes::WorkflowExecutionUnpausedEventAttributes(_)
    )
}

/// Short names, as the reference writes a value of an enum in its messages: `WORKFLOW_TASK_FAILED_CAUSE_BAD_BINARY` is
/// `BadBinary`.
pub(crate) fn short_name(name: &str, prefix: &str) -> String {
    let words = name.strip_prefix(prefix).unwrap_or(name).split('_');
    words
        .flat_map(|word| {
            let first = word.chars().take(1);
            first.chain(word.chars().skip(1).map(|letter| letter.to_ascii_lowercase()))
        })
        .collect()
}

/// Events of unsupported features, such as Nexus, and of rejected updates, which leave none. Nothing records them, and
/// a history that has them is refused.
macro_rules! not_built {
    () => {
        Attributes::ActivityPropertiesModifiedExternallyEventAttributes(_)
            | Attributes::WorkflowPropertiesModifiedExternallyEventAttributes(_)
            | Attributes::WorkflowExecutionUpdateRejectedEventAttributes(_)
            | Attributes::NexusOperationScheduledEventAttributes(_)
            | Attributes::NexusOperationStartedEventAttributes(_)
            | Attributes::NexusOperationCompletedEventAttributes(_)
            | Attributes::NexusOperationFailedEventAttributes(_)
            | Attributes::NexusOperationCanceledEventAttributes(_)
            | Attributes::NexusOperationTimedOutEventAttributes(_)
            | Attributes::NexusOperationCancelRequestedEventAttributes(_)
            | Attributes::NexusOperationCancelRequestCompletedEventAttributes(_)
            | Attributes::NexusOperationCancelRequestFailedEventAttributes(_)
            | Attributes::WorkflowExecutionTimeSkippingTransitionedEventAttributes(_)
    };
}
pub(crate) use not_built;
