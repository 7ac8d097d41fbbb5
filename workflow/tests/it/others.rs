//! Other workflows, seen from a run under test: children, parents, and those that it signals and cancels.

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    Command, RequestCancelExternalWorkflowExecutionCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause, CommandType, RetryState, SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    WorkflowExecutionCanceledEventAttributes, WorkflowExecutionCompletedEventAttributes,
    WorkflowExecutionFailedEventAttributes, WorkflowExecutionTerminatedEventAttributes,
    WorkflowExecutionTimedOutEventAttributes,
};
use rand::RngExt;
use rand::rngs::SmallRng;
use uuid::Uuid;
use workflow::{
    ChildClosed, ChildStartFailed, ChildStarted, EventId, ExternalAnswer, Input, NamespaceId, Parent, RunId,
};

use crate::run::{Run, command, failure, payloads};

/// The first run of every child.
pub(crate) const CHILD_RUN: RunId = RunId(Uuid::from_u128(50));

pub(crate) fn parent() -> Parent {
    Parent {
        namespace: "here".to_owned(),
        namespace_id: NamespaceId(Uuid::from_u128(100)),
        execution: WorkflowExecution { workflow_id: "parent".to_owned(), run_id: Uuid::from_u128(9).to_string() },
        initiated_event_id: EventId(5),
        initiated_version: 7,
        root: Some(WorkflowExecution { workflow_id: "root".to_owned(), run_id: Uuid::from_u128(8).to_string() }),
    }
}

pub(crate) fn child_attributes(workflow_id: &str) -> StartChildWorkflowExecutionCommandAttributes {
    StartChildWorkflowExecutionCommandAttributes {
        workflow_id: workflow_id.to_owned(),
        workflow_type: Some(WorkflowType { name: "Parcel".to_owned() }),
        input: Some(payloads("parcel")),
        ..Default::default()
    }
}

pub(crate) fn start(attributes: StartChildWorkflowExecutionCommandAttributes) -> Command {
    let attributes = CommandAttributes::StartChildWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::StartChildWorkflowExecution, attributes)
}

pub(crate) fn start_child(workflow_id: &str) -> Command {
    start(child_attributes(workflow_id))
}

pub(crate) fn signal_attributes(workflow_id: &str) -> SignalExternalWorkflowExecutionCommandAttributes {
    let execution = WorkflowExecution { workflow_id: workflow_id.to_owned(), run_id: String::new() };
    SignalExternalWorkflowExecutionCommandAttributes {
        execution: Some(execution),
        signal_name: "go".to_owned(),
        input: Some(payloads("signal")),
        ..Default::default()
    }
}

pub(crate) fn signal(attributes: SignalExternalWorkflowExecutionCommandAttributes) -> Command {
    let attributes = CommandAttributes::SignalExternalWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::SignalExternalWorkflowExecution, attributes)
}

pub(crate) fn cancel_attributes(workflow_id: &str) -> RequestCancelExternalWorkflowExecutionCommandAttributes {
    RequestCancelExternalWorkflowExecutionCommandAttributes {
        workflow_id: workflow_id.to_owned(),
        reason: "never mind".to_owned(),
        ..Default::default()
    }
}

pub(crate) fn cancel(attributes: RequestCancelExternalWorkflowExecutionCommandAttributes) -> Command {
    let attributes = CommandAttributes::RequestCancelExternalWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::RequestCancelExternalWorkflowExecution, attributes)
}

pub(crate) fn started(initiated_event_id: i64) -> Input {
    let initiated_event_id = EventId(initiated_event_id);
    Input::ChildStarted(ChildStarted { initiated_event_id, run_id: CHILD_RUN, header: None })
}

pub(crate) fn start_failed(initiated_event_id: i64) -> Input {
    Input::ChildStartFailed(ChildStartFailed {
        initiated_event_id: EventId(initiated_event_id),
        cause: StartChildWorkflowExecutionFailedCause::WorkflowAlreadyExists,
        control: String::new(),
    })
}

pub(crate) fn closed(workflow_id: &str, initiated_event_id: i64, end: Attributes) -> ChildClosed {
    ChildClosed {
        initiated_event_id: EventId(initiated_event_id),
        initiated_version: 7,
        execution: WorkflowExecution { workflow_id: workflow_id.to_owned(), run_id: CHILD_RUN.to_string() },
        first_run_id: CHILD_RUN,
        end,
        header: None,
    }
}

pub(crate) fn completed() -> Attributes {
    Attributes::WorkflowExecutionCompletedEventAttributes(WorkflowExecutionCompletedEventAttributes {
        result: Some(payloads("delivered")),
        ..Default::default()
    })
}

/// All ways in which a child ends, and what its parent's history calls them.
pub(crate) fn ends() -> [(Attributes, &'static str); 5] {
    let failed = WorkflowExecutionFailedEventAttributes {
        failure: Some(failure("lost")),
        retry_state: RetryState::MaximumAttemptsReached.into(),
        ..Default::default()
    };
    let canceled =
        WorkflowExecutionCanceledEventAttributes { details: Some(payloads("details")), ..Default::default() };
    let timed_out =
        WorkflowExecutionTimedOutEventAttributes { retry_state: RetryState::Timeout.into(), ..Default::default() };
    let terminated = WorkflowExecutionTerminatedEventAttributes::default();
    [
        (completed(), "ChildWorkflowExecutionCompleted"),
        (Attributes::WorkflowExecutionFailedEventAttributes(failed), "ChildWorkflowExecutionFailed"),
        (Attributes::WorkflowExecutionCanceledEventAttributes(canceled), "ChildWorkflowExecutionCanceled"),
        (Attributes::WorkflowExecutionTimedOutEventAttributes(timed_out), "ChildWorkflowExecutionTimedOut"),
        (Attributes::WorkflowExecutionTerminatedEventAttributes(terminated), "ChildWorkflowExecutionTerminated"),
    ]
}

pub(crate) fn answer(initiated_event_id: i64) -> ExternalAnswer {
    ExternalAnswer {
        initiated_event_id: EventId(initiated_event_id),
        namespace: "here".to_owned(),
        execution: WorkflowExecution { workflow_id: "other".to_owned(), run_id: String::new() },
        control: "back".to_owned(),
    }
}

/// A command about another workflow, for a walk.
pub(crate) fn any_command(random: &mut SmallRng, workflow_id: &str) -> Command {
    match random.random_range(0..4) {
        0 | 1 => start_child(workflow_id),
        2 => signal(signal_attributes(workflow_id)),
        _ => cancel(cancel_attributes(workflow_id)),
    }
}

/// Whether a run waits for other workflows.
pub(crate) fn awaits_any(run: &Run) -> bool {
    let state = &run.state;
    let n_pending = state.children.len() + state.external_signals.len() + state.external_cancels.len();
    let waits_for_parent = state.started.parent.is_some() && state.next_event_id == EventId::FIRST.next();
    state.is_running() && (n_pending > 0 || waits_for_parent)
}

/// An input that other workflows may send to a run at any time, for a walk.
pub(crate) fn any_answer(random: &mut SmallRng, run: &Run) -> Input {
    let any = |random: &mut SmallRng, ids: Vec<i64>| match ids.len() {
        0 => random.random_range(0..40),
        len => ids[random.random_range(0..len)],
    };
    let signal = any(random, run.state.external_signals.iter().map(|(id, _)| id).collect());
    let cancel = any(random, run.state.external_cancels.iter().map(|(id, _)| id).collect());
    let child = any(random, run.state.children.iter().map(|(id, _)| id).collect());
    match random.random_range(0..12) {
        0 => Input::ExternalSignaled(answer(signal)),
        1 => {
            let cause = SignalExternalWorkflowExecutionFailedCause::ExternalWorkflowExecutionNotFound;
            Input::ExternalSignalFailed(answer(signal), cause)
        }
        2 => Input::ExternalCancelRequested(answer(cancel)),
        3 => {
            let cause = CancelExternalWorkflowExecutionFailedCause::ExternalWorkflowExecutionNotFound;
            Input::ExternalCancelFailed(answer(cancel), cause)
        }
        4..=6 => started(child),
        7 => start_failed(child),
        8 | 9 => Input::ScheduleFirstTask,
        _ => {
            let ends = ends();
            let (end, _) = ends[random.random_range(0..ends.len())].clone();
            let workflow_id = run.state.children.get(child).map_or("nobody", |child| &child.workflow_id);
            Input::ChildClosed(Box::new(closed(workflow_id, child, end)))
        }
    }
}
