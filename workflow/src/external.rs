//! Signals and cancel requests to other workflows, pending until their outcome is known. Requests to one workflow
//! arrive in the order of sending: one is in flight at a time.

use proto::temporal::api::command::v1::{
    RequestCancelExternalWorkflowExecutionCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause, SignalExternalWorkflowExecutionFailedCause, WorkflowTaskFailedCause,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ExternalWorkflowExecutionCancelRequestedEventAttributes, ExternalWorkflowExecutionSignaledEventAttributes,
    HistoryEvent, RequestCancelExternalWorkflowExecutionFailedEventAttributes,
    RequestCancelExternalWorkflowExecutionInitiatedEventAttributes,
    SignalExternalWorkflowExecutionFailedEventAttributes, SignalExternalWorkflowExecutionInitiatedEventAttributes,
};
use uuid::Uuid;

use crate::child::request_id;
use crate::commands::{BadCommand, Completion, check_count, check_size};
use crate::draft::{Annotation, Draft, Entry};
use crate::ids::{EventId, NamespaceId};
use crate::items::Items;
use crate::outcome::{Outcome, Reply};
use crate::state::ExecutionState;
use crate::tasks::TransferTask;
use crate::workflow_task;

/// A signal or a cancel request to another workflow, without a recorded outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalRequest {
    pub initiated_event_id: EventId,
    /// History node that holds the initiated event, which has all other fields.
    pub initiated_batch_id: EventId,
    pub version: i64,
    /// Stable across retries of the request.
    pub request_id: String,
    /// The target.
    pub namespace_id: NamespaceId,
    pub workflow_id: String,
}

/// Outcome of a request to another workflow.
#[derive(Debug, Clone)]
pub struct ExternalAnswer {
    pub initiated_event_id: EventId,
    /// Name of the target namespace.
    pub namespace: String,
    /// Copied from the initiated event.
    pub execution: WorkflowExecution,
    /// Copied from the initiated event.
    pub control: String,
}

/// Decides on a `SignalExternalWorkflowExecution` command.
#[expect(deprecated, reason = "workers still name a namespace")]
pub(crate) fn signal(
    draft: &mut Draft,
    completion: &Completion,
    command: SignalExternalWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadSignalWorkflowExecutionAttributes;
    let namespace_id = completion.namespace_id(draft, cause, &command.namespace)?;
    check_signal(&command, draft.facts.limits.id_length).map_err(|reason| BadCommand::new(cause, reason))?;
    let (n_pending, limit) = (draft.state.external_signals.len(), draft.facts.limits.pending_external_signals);
    let too_many = WorkflowTaskFailedCause::PendingSignalsLimitExceeded;
    check_count(too_many, "pending signals to external workflows", n_pending, limit)?;
    let oversized = "SignalExternalWorkflowExecutionCommandAttributes.Input exceeds size limit.";
    check_size(draft, cause, command.input.as_ref(), oversized)?;
    let what = SignalExternalWorkflowExecutionInitiatedEventAttributes {
        workflow_task_completed_event_id: completion.event_id.0,
        namespace: command.namespace,
        namespace_id: namespace_id.to_string(),
        workflow_execution: command.execution,
        signal_name: command.signal_name,
        input: command.input,
        control: command.control,
        child_workflow_only: command.child_workflow_only,
        header: command.header,
    };
    let what = Attributes::SignalExternalWorkflowExecutionInitiatedEventAttributes(what);
    draft.record(Entry { annotation, ..what.into() });
    send_in_turn(draft, draft.state.last_event_id());
    Ok(())
}

#[expect(deprecated, reason = "workers still name a namespace")]
fn check_signal(command: &SignalExternalWorkflowExecutionCommandAttributes, length_max: usize) -> Result<(), String> {
    let target = command.execution.as_ref().ok_or("Execution is not set on SignalExternalWorkflowExecutionCommand.")?;
    let (id, run_id) = (&target.workflow_id, &target.run_id);
    let (namespace, name) = (&command.namespace, &command.signal_name);
    if id.is_empty() {
        return Err(format!(
            "WorkflowId is not set on SignalExternalWorkflowExecutionCommand. \
             Namespace={namespace} RunId={run_id} SignalName={name}"
        ));
    }
    if id.len() > length_max {
        return Err(format!(
            "WorkflowId on SignalExternalWorkflowExecutionCommand exceeds length limit. WorkflowId={id} Length={} \
             Limit={length_max} Namespace={namespace} RunId={run_id} SignalName={name}",
            id.len()
        ));
    }
    if !run_id.is_empty() && Uuid::parse_str(run_id).is_err() {
        return Err(format!(
            "Invalid RunId set on SignalExternalWorkflowExecutionCommand. \
             WorkflowId={id} Namespace={namespace} RunId={run_id} SignalName={name}"
        ));
    }
    if name.is_empty() {
        return Err(format!(
            "SignalName is not set on SignalExternalWorkflowExecutionCommand. \
             WorkflowId={id} Namespace={namespace} RunId={run_id}"
        ));
    }
    Ok(())
}

/// Decides on a `RequestCancelExternalWorkflowExecution` command.
#[expect(deprecated, reason = "workers still name a namespace")]
pub(crate) fn request_cancel(
    draft: &mut Draft,
    completion: &Completion,
    command: RequestCancelExternalWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadRequestCancelExternalWorkflowExecutionAttributes;
    let namespace_id = completion.namespace_id(draft, cause, &command.namespace)?;
    check_cancel(completion, &command, draft.facts.limits.id_length)
        .map_err(|reason| BadCommand::new(cause, reason))?;
    let (n_pending, limit) = (draft.state.external_cancels.len(), draft.facts.limits.pending_external_cancels);
    let too_many = WorkflowTaskFailedCause::PendingRequestCancelLimitExceeded;
    check_count(too_many, "pending requests to cancel external workflows", n_pending, limit)?;
    let what = RequestCancelExternalWorkflowExecutionInitiatedEventAttributes {
        workflow_task_completed_event_id: completion.event_id.0,
        namespace: command.namespace,
        namespace_id: namespace_id.to_string(),
        workflow_execution: Some(WorkflowExecution { workflow_id: command.workflow_id, run_id: command.run_id }),
        control: command.control,
        child_workflow_only: command.child_workflow_only,
        reason: command.reason,
    };
    let what = Attributes::RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(what);
    draft.record(Entry { annotation, ..what.into() });
    send_in_turn(draft, draft.state.last_event_id());
    Ok(())
}

#[expect(deprecated, reason = "workers still name a namespace")]
fn check_cancel(
    completion: &Completion,
    command: &RequestCancelExternalWorkflowExecutionCommandAttributes,
    length_max: usize,
) -> Result<(), String> {
    let (id, run_id, namespace) = (&command.workflow_id, &command.run_id, &command.namespace);
    if id.is_empty() {
        return Err(format!(
            "WorkflowId is not set on RequestCancelExternalWorkflowExecutionCommand. \
             Namespace={namespace} RunId={run_id}"
        ));
    }
    if id.len() > length_max {
        return Err(format!(
            "WorkflowId on RequestCancelExternalWorkflowExecutionCommand exceeds length limit. \
             WorkflowId={id} Length={} Limit={length_max} RunId={run_id} Namespace={namespace}",
            id.len()
        ));
    }
    if !run_id.is_empty() && Uuid::parse_str(run_id).is_err() {
        return Err(format!(
            "Invalid RunId set on RequestCancelExternalWorkflowExecutionCommand. \
             WorkflowId={id} RunId={run_id} Namespace={namespace}"
        ));
    }
    if completion.initiated_children.contains(id) {
        return Err(format!(
            "Start and RequestCancel for child workflow is not allowed in same workflow task. \
             WorkflowId={id} RunId={run_id} Namespace={namespace}"
        ));
    }
    Ok(())
}

/// The signal was delivered.
#[expect(deprecated, reason = "old workers send what they want to get back")]
pub(crate) fn signaled(draft: &mut Draft, answer: ExternalAnswer) -> Outcome {
    let Some(request) = find(draft, &draft.state.external_signals, answer.initiated_event_id) else { return nothing() };
    let what = ExternalWorkflowExecutionSignaledEventAttributes {
        initiated_event_id: answer.initiated_event_id.0,
        namespace: answer.namespace,
        namespace_id: request.namespace_id.to_string(),
        workflow_execution: Some(answer.execution),
        control: answer.control,
    };
    answered(draft, &request, Attributes::ExternalWorkflowExecutionSignaledEventAttributes(what))
}

/// The signal failed permanently.
#[expect(deprecated, reason = "old workers send what they want to get back")]
pub(crate) fn signal_failed(
    draft: &mut Draft,
    answer: ExternalAnswer,
    cause: SignalExternalWorkflowExecutionFailedCause,
) -> Outcome {
    let Some(request) = find(draft, &draft.state.external_signals, answer.initiated_event_id) else { return nothing() };
    let what = SignalExternalWorkflowExecutionFailedEventAttributes {
        cause: cause.into(),
        workflow_task_completed_event_id: 0,
        namespace: answer.namespace,
        namespace_id: request.namespace_id.to_string(),
        workflow_execution: Some(answer.execution),
        initiated_event_id: answer.initiated_event_id.0,
        control: answer.control,
    };
    answered(draft, &request, Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(what))
}

/// The cancel request was delivered.
pub(crate) fn cancel_requested(draft: &mut Draft, answer: ExternalAnswer) -> Outcome {
    let Some(request) = find(draft, &draft.state.external_cancels, answer.initiated_event_id) else { return nothing() };
    let what = ExternalWorkflowExecutionCancelRequestedEventAttributes {
        initiated_event_id: answer.initiated_event_id.0,
        namespace: answer.namespace,
        namespace_id: request.namespace_id.to_string(),
        workflow_execution: Some(answer.execution),
    };
    answered(draft, &request, Attributes::ExternalWorkflowExecutionCancelRequestedEventAttributes(what))
}

/// The cancel request failed permanently.
#[expect(deprecated, reason = "old workers send what they want to get back")]
pub(crate) fn cancel_failed(
    draft: &mut Draft,
    answer: ExternalAnswer,
    cause: CancelExternalWorkflowExecutionFailedCause,
) -> Outcome {
    let Some(request) = find(draft, &draft.state.external_cancels, answer.initiated_event_id) else { return nothing() };
    let what = RequestCancelExternalWorkflowExecutionFailedEventAttributes {
        cause: cause.into(),
        workflow_task_completed_event_id: 0,
        namespace: answer.namespace,
        namespace_id: request.namespace_id.to_string(),
        workflow_execution: Some(answer.execution),
        initiated_event_id: answer.initiated_event_id.0,
        control: String::new(),
    };
    answered(draft, &request, Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(what))
}

fn nothing() -> Outcome {
    Outcome::Unchanged(Reply::Done)
}

fn answered(draft: &mut Draft, request: &ExternalRequest, what: Attributes) -> Outcome {
    draft.record(what);
    if let Some(next) = oldest_pending(draft, request) {
        send(draft, next);
    }
    workflow_task::ensure(draft);
    Outcome::Changed(Reply::Done)
}

/// Sends a pending request, unless it must wait for an older one to the same workflow.
fn send_in_turn(draft: &mut Draft, initiated_event_id: EventId) {
    let signals = &draft.state.external_signals;
    let request = signals.get(initiated_event_id.0).or_else(|| draft.state.external_cancels.get(initiated_event_id.0));
    let request = request.expect("the request is pending");
    if oldest_pending(draft, request) == Some(initiated_event_id) {
        send(draft, initiated_event_id);
    }
}

/// Sends the pending requests of a run that a reset created: the oldest to each workflow.
pub(crate) fn send_pending(draft: &mut Draft) {
    let pending = draft.state.external_signals.iter().chain(draft.state.external_cancels.iter());
    let ids: Vec<EventId> = pending.map(|(id, _)| EventId(id)).collect();
    for id in ids {
        send_in_turn(draft, id);
    }
}

fn send(draft: &mut Draft, initiated_event_id: EventId) {
    let version = draft.version();
    let is_signal = draft.state.external_signals.get(initiated_event_id.0).is_some();
    draft.transfer(if is_signal {
        TransferTask::ExternalSignal { initiated_event_id, version }
    } else {
        TransferTask::ExternalCancel { initiated_event_id, version }
    });
}

/// The oldest pending request to the same workflow as `like`.
fn oldest_pending(draft: &Draft, like: &ExternalRequest) -> Option<EventId> {
    let answered: Vec<i64> = draft.waiting().filter_map(answered_request).collect();
    let is_pending = |(id, request): &(i64, &ExternalRequest)| {
        request.namespace_id == like.namespace_id && request.workflow_id == like.workflow_id && !answered.contains(id)
    };
    // Each kind is in order of sending.
    let signal = draft.state.external_signals.iter().find(is_pending);
    let cancel = draft.state.external_cancels.iter().find(is_pending);
    let ids = [signal, cancel].into_iter().flatten().map(|(id, _)| EventId(id));
    ids.min()
}

/// A pending request: its answer is neither recorded nor buffered.
fn find(draft: &Draft, requests: &Items<ExternalRequest>, initiated_event_id: EventId) -> Option<ExternalRequest> {
    let has_waiting_answer = draft.waiting().any(|event| answered_request(event) == Some(initiated_event_id.0));
    requests.get(initiated_event_id.0).filter(|_| !has_waiting_answer).cloned()
}

/// The request that an event answers.
fn answered_request(event: &HistoryEvent) -> Option<i64> {
    let what = event.attributes.as_ref()?;
    if let Attributes::ExternalWorkflowExecutionSignaledEventAttributes(answer) = what {
        Some(answer.initiated_event_id)
    } else if let Attributes::SignalExternalWorkflowExecutionFailedEventAttributes(answer) = what {
        Some(answer.initiated_event_id)
    } else if let Attributes::ExternalWorkflowExecutionCancelRequestedEventAttributes(answer) = what {
        Some(answer.initiated_event_id)
    } else if let Attributes::RequestCancelExternalWorkflowExecutionFailedEventAttributes(answer) = what {
        Some(answer.initiated_event_id)
    } else {
        None
    }
}

pub(crate) fn apply_signal_initiated(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    initiated: &SignalExternalWorkflowExecutionInitiatedEventAttributes,
    batch_id: EventId,
) {
    let request = request(state, event, (&initiated.namespace_id, initiated.workflow_execution.as_ref()), batch_id);
    let previous = state.external_signals.insert(event.event_id, request);
    assert!(previous.is_none(), "an event sends one signal");
}

pub(crate) fn apply_cancel_initiated(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    initiated: &RequestCancelExternalWorkflowExecutionInitiatedEventAttributes,
    batch_id: EventId,
) {
    let request = request(state, event, (&initiated.namespace_id, initiated.workflow_execution.as_ref()), batch_id);
    let previous = state.external_cancels.insert(event.event_id, request);
    assert!(previous.is_none(), "an event sends one cancel request");
}

fn request(
    state: &ExecutionState,
    event: &HistoryEvent,
    (namespace_id, target): (&str, Option<&WorkflowExecution>),
    batch_id: EventId,
) -> ExternalRequest {
    ExternalRequest {
        initiated_event_id: EventId(event.event_id),
        initiated_batch_id: batch_id,
        version: event.version,
        request_id: request_id(state, event),
        namespace_id: NamespaceId(Uuid::parse_str(namespace_id).unwrap_or_default()),
        workflow_id: target.map(|target| target.workflow_id.clone()).unwrap_or_default(),
    }
}

pub(crate) fn apply_signal_answered(state: &mut ExecutionState, initiated_event_id: i64) {
    let answered = state.external_signals.remove(initiated_event_id);
    assert!(answered.is_some(), "only a pending signal is answered");
}

pub(crate) fn apply_cancel_answered(state: &mut ExecutionState, initiated_event_id: i64) {
    let answered = state.external_cancels.remove(initiated_event_id);
    assert!(answered.is_some(), "only a pending cancel request is answered");
}

pub(crate) fn fits_initiated(namespace_id: &str) -> Result<(), &'static str> {
    Uuid::parse_str(namespace_id).map(|_| ()).map_err(|_| "a namespace's id is a UUID")
}

pub(crate) fn fits_answer(requests: &Items<ExternalRequest>, initiated_event_id: i64) -> Result<(), &'static str> {
    requests.get(initiated_event_id).map(|_| ()).ok_or("no such request to another workflow is pending")
}
