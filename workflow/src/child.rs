//! Child workflows: the record of a pending child, its outcome, and how events change it. Commands are in
//! child_command.rs.

use proto::temporal::api::common::v1::{Header, Priority, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{ParentClosePolicy, StartChildWorkflowExecutionFailedCause};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ChildWorkflowExecutionCanceledEventAttributes, ChildWorkflowExecutionCompletedEventAttributes,
    ChildWorkflowExecutionFailedEventAttributes, ChildWorkflowExecutionStartedEventAttributes,
    ChildWorkflowExecutionTerminatedEventAttributes, ChildWorkflowExecutionTimedOutEventAttributes, HistoryEvent,
    StartChildWorkflowExecutionFailedEventAttributes, StartChildWorkflowExecutionInitiatedEventAttributes,
};
use uuid::Uuid;

use crate::draft::{Draft, Entry};
use crate::ids::{EventId, NamespaceId, RunId};
use crate::outcome::{Outcome, Rejection, Reply};
use crate::state::ExecutionState;
use crate::workflow_task;

#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    pub initiated_event_id: EventId,
    /// History node that holds the initiated event, which has the input.
    pub initiated_batch_id: EventId,
    pub version: i64,
    pub namespace: String,
    pub namespace_id: NamespaceId,
    pub workflow_id: String,
    pub workflow_type: String,
    pub parent_close_policy: ParentClosePolicy,
    /// Request id of the start: a repeated start finds its own run.
    pub create_request_id: String,
    /// Set once its start is recorded.
    pub started: Option<ChildStart>,
    pub priority: Option<Priority>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildStart {
    pub event_id: EventId,
    /// The first of the child's runs.
    pub run_id: RunId,
}

/// The child was started.
#[derive(Debug, Clone)]
pub struct ChildStarted {
    pub initiated_event_id: EventId,
    pub run_id: RunId,
    /// Copied from the initiated event.
    pub header: Option<Header>,
}

/// The child could not be started.
#[derive(Debug, Clone)]
pub struct ChildStartFailed {
    pub initiated_event_id: EventId,
    pub cause: StartChildWorkflowExecutionFailedCause,
    /// Copied from the initiated event.
    pub control: String,
}

/// The child closed, and no further run of it follows.
#[derive(Debug, Clone)]
pub struct ChildClosed {
    pub initiated_event_id: EventId,
    pub initiated_version: i64,
    /// The run that closed.
    pub execution: WorkflowExecution,
    pub first_run_id: RunId,
    /// The event that closed it.
    pub end: Attributes,
    /// Copied from the initiated event; needed if the start was not recorded yet.
    pub header: Option<Header>,
}

/// Request id of a run's request to another workflow: unique, and stable across retries and resets of the run.
pub(crate) fn request_id(state: &ExecutionState, event: &HistoryEvent) -> String {
    let branch_id = state.branch.holding(EventId(event.event_id));
    format!("{branch_id}:{}:{}", event.event_id, event.version)
}

/// A pending child: its end is neither recorded nor buffered.
fn find<'a>(draft: &'a Draft, initiated_event_id: EventId) -> Result<&'a Child, Rejection> {
    let child = draft.state.children.get(initiated_event_id.0).ok_or(Rejection::ChildNotFound)?;
    let has_waiting_end = draft.waiting().any(|event| ended_child(event) == Some(initiated_event_id));
    if has_waiting_end { Err(Rejection::ChildNotFound) } else { Ok(child) }
}

/// The first run of a child, if its start is recorded or buffered.
fn first_run<'a>(child: &Child, waiting: impl Iterator<Item = &'a HistoryEvent>) -> Option<RunId> {
    let recorded = child.started.as_ref().map(|started| started.run_id);
    recorded.or_else(|| {
        let mut starts = waiting.filter_map(started_child);
        let start = starts.find(|start| start.initiated_event_id == child.initiated_event_id.0)?;
        run_id_of(start)
    })
}

impl ExecutionState {
    /// Pending children, each with its first run if that is known.
    pub fn pending_children(&self) -> impl Iterator<Item = (&Child, Option<RunId>)> {
        let waiting = || self.unrecorded.buffered_events.iter().map(|(_, event)| event);
        let children = self.children.iter().map(|(_, child)| child);
        children
            .filter(move |child| !waiting().any(|event| ended_child(event) == Some(child.initiated_event_id)))
            .map(move |child| (child, first_run(child, waiting())))
    }
}

fn started_child(event: &HistoryEvent) -> Option<&ChildWorkflowExecutionStartedEventAttributes> {
    if let Some(Attributes::ChildWorkflowExecutionStartedEventAttributes(start)) = &event.attributes {
        return Some(start);
    }
    None
}

fn run_id_of(start: &ChildWorkflowExecutionStartedEventAttributes) -> Option<RunId> {
    let execution = start.workflow_execution.as_ref()?;
    Uuid::parse_str(&execution.run_id).ok().map(RunId)
}

/// The child that an event ends: it closed, or failed to start.
fn ended_child(event: &HistoryEvent) -> Option<EventId> {
    let what = event.attributes.as_ref()?;
    let initiated_event_id = if let Attributes::ChildWorkflowExecutionCompletedEventAttributes(end) = what {
        end.initiated_event_id
    } else if let Attributes::ChildWorkflowExecutionFailedEventAttributes(end) = what {
        end.initiated_event_id
    } else if let Attributes::ChildWorkflowExecutionCanceledEventAttributes(end) = what {
        end.initiated_event_id
    } else if let Attributes::ChildWorkflowExecutionTimedOutEventAttributes(end) = what {
        end.initiated_event_id
    } else if let Attributes::ChildWorkflowExecutionTerminatedEventAttributes(end) = what {
        end.initiated_event_id
    } else if let Attributes::StartChildWorkflowExecutionFailedEventAttributes(end) = what {
        end.initiated_event_id
    } else {
        return None;
    };
    Some(EventId(initiated_event_id))
}

/// Whether an event reports the start or the end of an initiated child.
pub(crate) fn is_outcome(event: &HistoryEvent) -> bool {
    started_child(event).is_some() || ended_child(event).is_some()
}

/// Reapplies an outcome of a child that a reset run shares with its base.
pub(crate) fn reapply(draft: &mut Draft, event: HistoryEvent) {
    let started = started_child(&event).map(|start| EventId(start.initiated_event_id));
    let Some(initiated_event_id) = started.or_else(|| ended_child(&event)) else { return };
    let Ok(child) = find(draft, initiated_event_id) else { return };
    if started.is_some() && first_run(child, draft.waiting()).is_some() {
        return;
    }
    let Some(what) = event.attributes else { return };
    draft.record(Entry { links: event.links, ..what.into() });
}

/// Fills in the started event id of an event that ends a child; it is known only when the event is recorded.
pub(crate) fn wire_started_event(state: &ExecutionState, event: &mut HistoryEvent) {
    let Some(ended) = ended_child(event) else { return };
    let started = state.children.get(ended.0).and_then(|child| child.started.as_ref());
    let started_event_id = started.map_or(0, |started| started.event_id.0);
    let Some(what) = event.attributes.as_mut() else { return };
    if let Attributes::ChildWorkflowExecutionCompletedEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ChildWorkflowExecutionFailedEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ChildWorkflowExecutionCanceledEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ChildWorkflowExecutionTimedOutEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ChildWorkflowExecutionTerminatedEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    }
}

pub(crate) fn start(draft: &mut Draft, input: ChildStarted) -> Result<Outcome, Rejection> {
    let child = find(draft, input.initiated_event_id)?;
    match first_run(child, draft.waiting()) {
        None => record_started(draft, input),
        Some(known) if known == input.run_id => return Ok(Outcome::Unchanged(Reply::Done)),
        Some(_) => return Err(Rejection::ChildNotFound),
    }
    workflow_task::ensure(draft);
    Ok(Outcome::Changed(Reply::Done))
}

fn record_started(draft: &mut Draft, input: ChildStarted) {
    let child = draft.state.children.get(input.initiated_event_id.0).expect("a child that starts is pending");
    let what = ChildWorkflowExecutionStartedEventAttributes {
        namespace: child.namespace.clone(),
        namespace_id: child.namespace_id.to_string(),
        initiated_event_id: input.initiated_event_id.0,
        workflow_execution: Some(WorkflowExecution {
            workflow_id: child.workflow_id.clone(),
            run_id: input.run_id.to_string(),
        }),
        workflow_type: Some(WorkflowType { name: child.workflow_type.clone() }),
        header: input.header,
    };
    draft.record(Attributes::ChildWorkflowExecutionStartedEventAttributes(what));
}

#[expect(deprecated, reason = "old workers send what they want to get back")]
pub(crate) fn fail_start(draft: &mut Draft, input: ChildStartFailed) -> Result<Outcome, Rejection> {
    let child = find(draft, input.initiated_event_id)?;
    if first_run(child, draft.waiting()).is_some() {
        return Err(Rejection::ChildNotFound);
    }
    let what = StartChildWorkflowExecutionFailedEventAttributes {
        namespace: child.namespace.clone(),
        namespace_id: child.namespace_id.to_string(),
        workflow_id: child.workflow_id.clone(),
        workflow_type: Some(WorkflowType { name: child.workflow_type.clone() }),
        cause: input.cause.into(),
        control: input.control,
        initiated_event_id: input.initiated_event_id.0,
        workflow_task_completed_event_id: 0,
    };
    draft.record(Attributes::StartChildWorkflowExecutionFailedEventAttributes(what));
    workflow_task::ensure(draft);
    Ok(Outcome::Changed(Reply::Done))
}

pub(crate) fn close(draft: &mut Draft, input: ChildClosed) -> Result<Outcome, Rejection> {
    let child = find(draft, input.initiated_event_id)?;
    let first_run_id = first_run(child, draft.waiting());
    let is_it = child.version == input.initiated_version
        && child.workflow_id == input.execution.workflow_id
        && first_run_id.is_none_or(|known| known == input.first_run_id);
    if !is_it {
        return Err(Rejection::ChildNotFound);
    }
    let what = end_of(child, input.execution, input.end)?;
    if first_run_id.is_none() {
        // The child closed before its start was recorded.
        let (initiated_event_id, run_id, header) = (input.initiated_event_id, input.first_run_id, input.header);
        record_started(draft, ChildStarted { initiated_event_id, run_id, header });
    }
    draft.record(what);
    workflow_task::ensure(draft);
    Ok(Outcome::Changed(Reply::Done))
}

/// Converts a child's close event to the parent's event. The started event id is filled in once known.
fn end_of(child: &Child, execution: WorkflowExecution, end: Attributes) -> Result<Attributes, Rejection> {
    let (namespace, namespace_id) = (child.namespace.clone(), child.namespace_id.to_string());
    let (workflow_execution, initiated_event_id) = (Some(execution), child.initiated_event_id.0);
    let workflow_type = Some(WorkflowType { name: child.workflow_type.clone() });
    let started_event_id = 0;
    Ok(if let Attributes::WorkflowExecutionCompletedEventAttributes(end) = end {
        let result = end.result;
        #[rustfmt::skip]
        let what = ChildWorkflowExecutionCompletedEventAttributes { result, namespace, namespace_id, workflow_execution, workflow_type, initiated_event_id, started_event_id };
        Attributes::ChildWorkflowExecutionCompletedEventAttributes(what)
    } else if let Attributes::WorkflowExecutionFailedEventAttributes(end) = end {
        let (failure, retry_state) = (end.failure, end.retry_state);
        #[rustfmt::skip]
        let what = ChildWorkflowExecutionFailedEventAttributes { failure, namespace, namespace_id, workflow_execution, workflow_type, initiated_event_id, started_event_id, retry_state };
        Attributes::ChildWorkflowExecutionFailedEventAttributes(what)
    } else if let Attributes::WorkflowExecutionCanceledEventAttributes(end) = end {
        let details = end.details;
        #[rustfmt::skip]
        let what = ChildWorkflowExecutionCanceledEventAttributes { details, namespace, namespace_id, workflow_execution, workflow_type, initiated_event_id, started_event_id };
        Attributes::ChildWorkflowExecutionCanceledEventAttributes(what)
    } else if let Attributes::WorkflowExecutionTimedOutEventAttributes(end) = end {
        let retry_state = end.retry_state;
        #[rustfmt::skip]
        let what = ChildWorkflowExecutionTimedOutEventAttributes { namespace, namespace_id, workflow_execution, workflow_type, initiated_event_id, started_event_id, retry_state };
        Attributes::ChildWorkflowExecutionTimedOutEventAttributes(what)
    } else if let Attributes::WorkflowExecutionTerminatedEventAttributes(_) = end {
        #[rustfmt::skip]
        let what = ChildWorkflowExecutionTerminatedEventAttributes { namespace, namespace_id, workflow_execution, workflow_type, initiated_event_id, started_event_id };
        Attributes::ChildWorkflowExecutionTerminatedEventAttributes(what)
    } else {
        return Err(Rejection::InvalidArgument("a child ends with an event that ends a run".to_owned()));
    })
}

pub(crate) fn apply_initiated(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    initiated: &StartChildWorkflowExecutionInitiatedEventAttributes,
    batch_id: EventId,
) {
    let child = Child {
        initiated_event_id: EventId(event.event_id),
        initiated_batch_id: batch_id,
        version: event.version,
        namespace: initiated.namespace.clone(),
        namespace_id: NamespaceId(Uuid::parse_str(&initiated.namespace_id).unwrap_or_default()),
        workflow_id: initiated.workflow_id.clone(),
        workflow_type: initiated.workflow_type.as_ref().map(|kind| kind.name.clone()).unwrap_or_default(),
        parent_close_policy: initiated.parent_close_policy(),
        create_request_id: request_id(state, event),
        started: None,
        priority: initiated.priority.clone(),
    };
    let previous = state.children.insert(event.event_id, child);
    assert!(previous.is_none(), "an event initiates one child");
}

pub(crate) fn apply_started(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    started: &ChildWorkflowExecutionStartedEventAttributes,
) {
    let child = state.children.get_mut(started.initiated_event_id).expect("only a pending child is started");
    assert!(child.started.is_none(), "a child is started once");
    let run_id = run_id_of(started).expect("the run of a child was checked");
    child.started = Some(ChildStart { event_id: EventId(event.event_id), run_id });
}

pub(crate) fn apply_ended(state: &mut ExecutionState, initiated_event_id: i64) {
    let ended = state.children.remove(initiated_event_id);
    assert!(ended.is_some(), "only a pending child ends");
}

pub(crate) fn fits_initiated(
    initiated: &StartChildWorkflowExecutionInitiatedEventAttributes,
) -> Result<(), &'static str> {
    Uuid::parse_str(&initiated.namespace_id).map(|_| ()).map_err(|_| "a namespace's id is a UUID")
}

pub(crate) fn fits_started(
    state: &ExecutionState,
    started: &ChildWorkflowExecutionStartedEventAttributes,
) -> Result<(), &'static str> {
    let child = state.children.get(started.initiated_event_id).ok_or("no such child is pending")?;
    if child.started.is_some() {
        return Err("a child is started once");
    }
    run_id_of(started).map(|_| ()).ok_or("a run's id is a UUID")
}

pub(crate) fn fits_ended(state: &ExecutionState, initiated_event_id: i64) -> Result<(), &'static str> {
    state.children.get(initiated_event_id).map(|_| ()).ok_or("no such child is pending")
}
