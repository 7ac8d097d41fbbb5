//! The end of a run: cancel requested; completed, failed, canceled, continued as new, terminated, timed out.

use std::time::Duration;

use proto::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, CompleteWorkflowExecutionCommandAttributes,
    ContinueAsNewWorkflowExecutionCommandAttributes, FailWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::Payloads;
use proto::temporal::api::enums::v1::{RetryState, TimeoutType, WorkflowTaskFailedCause};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    HistoryEvent, WorkflowExecutionCancelRequestedEventAttributes, WorkflowExecutionCanceledEventAttributes,
    WorkflowExecutionCompletedEventAttributes, WorkflowExecutionContinuedAsNewEventAttributes,
    WorkflowExecutionFailedEventAttributes, WorkflowExecutionTerminatedEventAttributes,
    WorkflowExecutionTimedOutEventAttributes,
};
use uuid::Uuid;

use crate::activity_attempt::timeout_failure;
use crate::commands::{BadCommand, Completion, check_size};
use crate::draft::{Annotation, Draft, Entry};
use crate::ids::{EventId, RunId};
use crate::input::{RequestCancel, Sender, Terminate};
use crate::next_run::{self, Follow};
use crate::outcome::{Outcome, Rejection, Reply};
use crate::search_attributes;
use crate::speculative;
use crate::state::{ExecutionState, Status};
use crate::tasks::{TimerTask, TransferTask};
use crate::time::Timestamp;
use crate::workflow_task::{self, SERVER_IDENTITY, TaskFailure, WorkflowTask};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub event_id: EventId,
    pub at: Timestamp,
    /// The next run: continue-as-new, retry, cron.
    pub new_run_id: Option<RunId>,
}

/// Cancel requests are idempotent: they succeed also if one came before, or the run is closed.
pub(crate) fn request_cancel(draft: &mut Draft, request: RequestCancel) -> Result<Outcome, Rejection> {
    if !draft.state.is_running() {
        return Ok(Outcome::Unchanged(Reply::Done));
    }
    check_chain(&draft.state, request.first_run_id)?;
    check_sender(&draft.state, request.sender.as_ref())?;
    if draft.state.cancel_requested.is_some() || draft.state.unrecorded.cancel_request_id.is_some() {
        return Ok(Outcome::Unchanged(Reply::Done));
    }
    draft.state.unrecorded.cancel_request_id = Some(request.request_id);
    let what =
        Attributes::WorkflowExecutionCancelRequestedEventAttributes(WorkflowExecutionCancelRequestedEventAttributes {
            cause: request.reason,
            external_initiated_event_id: request.sender.as_ref().map_or(0, |sender| sender.initiated_event_id),
            external_workflow_execution: request.sender.map(|sender| sender.execution),
            identity: request.identity,
        });
    draft.record(Entry { links: request.links, ..what.into() });
    workflow_task::ensure(draft);
    Ok(Outcome::Changed(Reply::Done))
}

pub(crate) fn terminate(draft: &mut Draft, request: Terminate) -> Result<Outcome, Rejection> {
    if !draft.state.is_running() {
        return Err(Rejection::ExecutionClosed);
    }
    check_chain(&draft.state, request.first_run_id)?;
    check_sender(&draft.state, request.sender.as_ref())?;
    record_terminated(draft, request);
    Ok(Outcome::Changed(Reply::Done))
}

/// Terminates a run on behalf of the server.
pub(crate) fn terminate_by_server(draft: &mut Draft, reason: String, details: Option<Payloads>) {
    let identity = SERVER_IDENTITY.to_owned();
    let (first_run_id, links, sender) = (None, Vec::new(), None);
    record_terminated(draft, Terminate { reason, details, identity, first_run_id, links, sender });
}

/// Creates a deletion task; an open run is terminated first.
pub(crate) fn delete(draft: &mut Draft) -> Outcome {
    if draft.state.is_running() {
        terminate_by_server(draft, "Delete workflow execution".to_owned(), None);
    }
    draft.transfer(TransferTask::Delete { version: draft.state.last_version() });
    Outcome::Changed(Reply::Done)
}

/// Window after the retention over which deletions are spread.
const RETENTION_SPREAD: Duration = Duration::from_secs(30 * 60);

fn record_terminated(draft: &mut Draft, request: Terminate) {
    interrupt(draft);
    let what = Attributes::WorkflowExecutionTerminatedEventAttributes(WorkflowExecutionTerminatedEventAttributes {
        reason: request.reason,
        details: request.details,
        identity: request.identity,
    });
    draft.record(Entry { links: request.links, ..what.into() });
    assert!(!draft.state.is_running(), "a terminated run is over");
}

/// Fails a workflow task in flight, so that buffered events are recorded before the end of the run.
fn interrupt(draft: &mut Draft) {
    if draft.state.workflow_task.is_running() {
        workflow_task::fail_running(draft, TaskFailure::forced());
    }
    speculative::withdraw(draft);
    draft.flush();
    assert!(!draft.state.workflow_task.is_running(), "no workflow task is in flight when its run ends");
}

pub(crate) fn check_chain(state: &ExecutionState, first_run_id: Option<RunId>) -> Result<(), Rejection> {
    if first_run_id.is_none_or(|first| first == state.started.first_run_id) {
        return Ok(());
    }
    let run_id = first_run_id.map(|id| id.to_string()).unwrap_or_default();
    Err(Rejection::OtherChain { workflow_id: state.key.workflow_id.to_string(), run_id })
}

/// `child_only` restricts senders to their own children.
pub(crate) fn check_sender(state: &ExecutionState, sender: Option<&Sender>) -> Result<(), Rejection> {
    let Some(sender) = sender.filter(|sender| sender.child_only) else { return Ok(()) };
    let is_parent = state.started.parent.as_ref().is_some_and(|parent| parent.execution == sender.execution);
    if is_parent { Ok(()) } else { Err(Rejection::OtherParent) }
}

/// Runs that closed in one second are deleted together, so that their timers share a row. Successive seconds are far
/// apart, so that a burst of closed runs is not deleted in a burst.
fn retention_spread(closed_at: Timestamp) -> Duration {
    /// `STRIDE + 1` is coprime to the spread in seconds, so no two seconds have the same deletion time.
    const STRIDE: u64 = 1102;
    let second = closed_at.since(Timestamp(0)).as_secs();
    Duration::from_secs(second * STRIDE % RETENTION_SPREAD.as_secs())
}

/// Creates the tasks that follow the end of a run, however it ended.
pub(crate) fn follow_up(draft: &mut Draft) {
    let closed = draft.state.closed.clone().expect("only a closed run is followed up");
    let version = draft.state.last_version();
    // If another run follows, the parent or the schedule waits for the end of that run.
    let is_waited_for = draft.state.started.parent.is_some() || draft.state.unrecorded.schedule_id.is_some();
    if (is_waited_for && closed.new_run_id.is_none()) || !draft.state.children.is_empty() {
        draft.transfer(TransferTask::Close { version });
    }
    if !draft.is_to_be_deleted() {
        let retention = draft.facts.retention + retention_spread(closed.at);
        draft.timer(closed.at + retention, TimerTask::Retention { version });
    }
}

/// Times out the run. It may be retried, or run again by its cron schedule.
pub(crate) fn time_out_run(draft: &mut Draft) -> Outcome {
    let Some(expires_at) = draft.state.started.run_expires_at.filter(|_| draft.state.is_running()) else {
        return Outcome::Unchanged(Reply::Done);
    };
    if expires_at > draft.now() {
        let version = draft.state.version_history.first().map_or(0, |item| item.version);
        draft.timer(expires_at, TimerTask::RunTimeout { version });
        return Outcome::Changed(Reply::Done);
    }
    let failure = timeout_failure("workflow timeout".to_owned(), TimeoutType::StartToClose);
    let chain_is_over = draft.state.started.execution_expires_at.is_some_and(|expires_at| expires_at <= draft.now());
    let (retry_state, follow) =
        if chain_is_over { (RetryState::Timeout, None) } else { next_run::after_failure(draft, Some(&failure)) };
    record_timed_out(draft, retry_state, follow.as_ref());
    if let Some(follow) = follow {
        let last_result = draft.state.started.again.as_ref().and_then(|again| again.last_completion_result.clone());
        next_run::again(draft, &follow, Some(failure), last_result);
    }
    Outcome::Changed(Reply::Done)
}

/// The execution timeout of the chain is over.
pub(crate) fn time_out_execution(draft: &mut Draft) -> Outcome {
    let Some(expires_at) = draft.state.started.execution_expires_at.filter(|_| draft.state.is_running()) else {
        return Outcome::Unchanged(Reply::Done);
    };
    if expires_at > draft.now() {
        let version = draft.state.version_history.first().map_or(0, |item| item.version);
        draft.timer(expires_at, TimerTask::ExecutionTimeout { version });
    } else {
        record_timed_out(draft, RetryState::Timeout, None);
    }
    Outcome::Changed(Reply::Done)
}

fn record_timed_out(draft: &mut Draft, retry_state: RetryState, follow: Option<&Follow>) {
    interrupt(draft);
    draft.record(Attributes::WorkflowExecutionTimedOutEventAttributes(WorkflowExecutionTimedOutEventAttributes {
        retry_state: retry_state.into(),
        new_execution_run_id: new_run_id(draft, follow),
    }));
}

fn new_run_id(draft: &Draft, follow: Option<&Follow>) -> String {
    follow.map(|_| draft.facts.new_run_id.to_string()).unwrap_or_default()
}

/// Decides on a `CompleteWorkflowExecution` command.
pub(crate) fn complete(
    draft: &mut Draft,
    completion: &Completion,
    command: CompleteWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    check_no_news(completion)?;
    // The cause is the reference's, though it names another command.
    let cause = WorkflowTaskFailedCause::BadScheduleActivityAttributes;
    let oversized = "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.";
    check_size(draft, cause, command.result.as_ref(), oversized)?;
    let follow = next_run::by_schedule(draft);
    let result = follow.as_ref().and_then(|_| command.result.clone());
    let what = Attributes::WorkflowExecutionCompletedEventAttributes(WorkflowExecutionCompletedEventAttributes {
        result: command.result,
        workflow_task_completed_event_id: completion.event_id.0,
        new_execution_run_id: new_run_id(draft, follow.as_ref()),
    });
    draft.record(Entry { annotation, ..what.into() });
    if let Some(follow) = follow {
        next_run::again(draft, &follow, None, result);
    }
    Ok(())
}

/// Decides on a `FailWorkflowExecution` command.
pub(crate) fn fail(
    draft: &mut Draft,
    completion: &Completion,
    command: FailWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    check_no_news(completion)?;
    let cause = WorkflowTaskFailedCause::BadFailWorkflowExecutionAttributes;
    if command.failure.is_none() {
        return Err(BadCommand::new(cause, "Failure is not set on FailWorkflowExecutionCommand."));
    }
    let oversized = "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.";
    check_size(draft, cause, command.failure.as_ref(), oversized)?;
    let (retry_state, follow) = next_run::after_failure(draft, command.failure.as_ref());
    let failure = follow.as_ref().and_then(|_| command.failure.clone());
    let what = Attributes::WorkflowExecutionFailedEventAttributes(WorkflowExecutionFailedEventAttributes {
        failure: command.failure,
        retry_state: retry_state.into(),
        workflow_task_completed_event_id: completion.event_id.0,
        new_execution_run_id: new_run_id(draft, follow.as_ref()),
    });
    draft.record(Entry { annotation, ..what.into() });
    if let Some(follow) = follow {
        let last_result = follow.last_result_of(&draft.state.started);
        next_run::again(draft, &follow, failure, last_result);
    }
    Ok(())
}

/// Decides on a `CancelWorkflowExecution` command.
pub(crate) fn cancel(
    draft: &mut Draft,
    completion: &Completion,
    command: CancelWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    check_no_news(completion)?;
    let what = Attributes::WorkflowExecutionCanceledEventAttributes(WorkflowExecutionCanceledEventAttributes {
        workflow_task_completed_event_id: completion.event_id.0,
        details: command.details,
    });
    draft.record(Entry { annotation, ..what.into() });
    Ok(())
}

/// Decides on a `ContinueAsNewWorkflowExecution` command.
#[expect(deprecated, reason = "old workers send the failure and the build id")]
pub(crate) fn continue_as_new(
    draft: &mut Draft,
    completion: &Completion,
    command: ContinueAsNewWorkflowExecutionCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    check_no_news(completion)?;
    let cause = WorkflowTaskFailedCause::BadContinueAsNewAttributes;
    search_attributes::check_defined(completion)?;
    let command = next_run::normalize(draft, command).map_err(|reason| BadCommand::new(cause, reason))?;
    search_attributes::check_admitted(completion, |reason| {
        let kind = command.workflow_type.as_ref().map_or("", |kind| kind.name.as_str());
        format!("invalid SearchAttributes on ContinueAsNewWorkflowExecutionCommand: {reason}. WorkflowType={kind}")
    })?;
    let oversized = "ContinueAsNewWorkflowExecutionCommandAttributes. Input exceeds size limit.";
    check_size(draft, cause, command.input.as_ref(), oversized)?;
    let oversized = "ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit.";
    check_size(draft, cause, command.memo.as_ref(), oversized)?;
    search_attributes::check_size(draft, cause, command.search_attributes.as_ref())?;
    let what =
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(WorkflowExecutionContinuedAsNewEventAttributes {
            new_execution_run_id: draft.facts.new_run_id.to_string(),
            workflow_type: command.workflow_type.clone(),
            task_queue: command.task_queue.clone(),
            input: command.input.clone(),
            workflow_run_timeout: command.workflow_run_timeout,
            workflow_task_timeout: command.workflow_task_timeout,
            workflow_task_completed_event_id: completion.event_id.0,
            backoff_start_interval: command.backoff_start_interval,
            initiator: command.initiator,
            failure: command.failure.clone(),
            last_completion_result: command.last_completion_result.clone(),
            header: command.header.clone(),
            memo: command.memo.clone(),
            search_attributes: command.search_attributes.clone(),
            inherit_build_id: command.inherit_build_id,
            initial_versioning_behavior: command.initial_versioning_behavior,
        });
    draft.record(Entry { annotation, ..what.into() });
    next_run::continue_as_new(draft, command).map_err(|rejection| BadCommand::new(cause, rejection.to_string()))
}

fn check_no_news(completion: &Completion) -> Result<(), BadCommand> {
    if completion.has_news { Err(BadCommand::unhandled()) } else { Ok(()) }
}

/// Age of a run, counted from when its first workflow task was due. Negative before that.
pub(crate) fn lifetime_nanos(state: &ExecutionState, now: Timestamp) -> i64 {
    let began_at = state.started.started_at + state.started.first_task_backoff;
    now.0.saturating_sub(began_at.0)
}

/// Raises a backoff to the minimum interval between runs, to prevent a tight loop.
pub(crate) fn backoff_at_least(
    state: &ExecutionState,
    now: Timestamp,
    backoff: Duration,
    interval: Duration,
) -> Duration {
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let lifetime = lifetime_nanos(state, now);
    if lifetime.saturating_add(nanos(backoff)) >= nanos(interval) {
        return backoff;
    }
    let least = Duration::from_nanos(u64::try_from(nanos(interval).saturating_sub(lifetime)).unwrap_or(0));
    assert!(least >= backoff, "a run does not come earlier than it was meant to");
    least
}

pub(crate) fn apply_cancel_requested(state: &mut ExecutionState, event: &HistoryEvent) {
    assert!(state.cancel_requested.is_none(), "a run is asked to cancel once");
    state.cancel_requested = Some(EventId(event.event_id));
}

pub(crate) fn apply_closed(state: &mut ExecutionState, event: &HistoryEvent, status: Status, new_run_id: &str) {
    assert_ne!(status, Status::Running, "an end is no beginning");
    assert!(state.closed.is_none(), "a run ends once");
    let new_run_id = (!new_run_id.is_empty())
        .then(|| RunId(Uuid::parse_str(new_run_id).expect("the id of the next run was checked")));
    state.status = status;
    state.closed = Some(Closed {
        event_id: EventId(event.event_id),
        at: event.event_time.map_or(state.started.started_at, Timestamp::from),
        new_run_id,
    });
    state.workflow_task = WorkflowTask::None;
    state.workflow_task_attempt = 1;
    state.unrecorded.sticky = None;
}

#[cfg(test)]
mod tests {
    //! Deletion times of runs that closed one after the other.

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn runs_of_two_seconds_never_go_in_the_same_one() {
        const N_SECONDS: u64 = 2 * 3600;
        let closed_at = |second: u64| Timestamp(0) + Duration::from_secs(1_794_940_000 + second);
        let goes_at = |second: u64| closed_at(second) + retention_spread(closed_at(second));
        assert_eq!((0..N_SECONDS).map(goes_at).collect::<BTreeSet<_>>().len() as u64, N_SECONDS);
    }
}
