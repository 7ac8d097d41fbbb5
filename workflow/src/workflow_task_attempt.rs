//! A workflow task at a worker: started; then completed with commands, failed, or timed out.

use std::collections::BTreeSet;

use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{HistoryEvent, WorkflowTaskCompletedEventAttributes};

use crate::activity_attempt::{self, server_failure};
use crate::close;
use crate::commands::{self, BadCommand, Completion};
use crate::draft::Draft;
use crate::events::{kind, short_name};
use crate::facts::Facts;
use crate::ids::EventId;
use crate::input::{CompleteWorkflowTask, FailWorkflowTask, StartWorkflowTask};
use crate::names::Names;
use crate::outcome::{Notice, Outcome, Rejection, Reply, Transition, WorkflowTaskStarted};
use crate::pause;
use crate::speculative;
use crate::state::ExecutionState;
use crate::tasks::TimerTask;
use crate::time::Timestamp;
use crate::update::WaitingUpdate;
use crate::update_message::{self, Answers, Sending};
use crate::workflow_task::{
    self, Scheduled, Starting, TaskFailure, WorkflowTask, ensure, fail_running, find_running, schedule,
    scheduled_attributes, start_scheduled, started_attributes,
};

/// Matching found a worker for the task.
pub(crate) fn start(draft: &mut Draft, input: StartWorkflowTask) -> Result<Outcome, Rejection> {
    let Some(scheduled) = draft.state.workflow_task.scheduled() else { return Err(Rejection::WorkflowTaskNotFound) };
    if scheduled.event_id != input.scheduled_event_id {
        return Err(Rejection::WorkflowTaskNotFound);
    }
    if let WorkflowTask::Running(_, running) = &draft.state.workflow_task {
        if running.request_id != input.request_id {
            return Err(Rejection::AlreadyStarted("Workflow"));
        }
        let started = started_reply(&draft.state, &input.updates, Sending::All);
        return Ok(Outcome::Unchanged(Reply::WorkflowTaskStarted(Box::new(started))));
    }
    if scheduled.is_speculative && input.updates.is_empty() {
        // The server lost the update from its memory. The client will send it again.
        speculative::withdraw(draft);
        return Ok(Outcome::Changed(Reply::WorkflowTaskWithdrawn));
    }
    let was_dispatched_here = scheduled.task_queue == input.task_queue;
    match &draft.state.unrecorded.sticky {
        // Another worker than the one with the cache took the task: it needs the whole history.
        Some(sticky) if sticky.task_queue != input.task_queue => draft.state.unrecorded.sticky = None,
        // The task is in a sticky queue that the run has left: its schedule-to-start timer will dispatch it again.
        None if was_dispatched_here && input.task_queue != draft.state.started.task_queue => {
            return Err(Rejection::WorkflowTaskNotFound);
        }
        Some(_) | None => {}
    }
    let StartWorkflowTask { request_id, identity, updates, worker_version, .. } = input;
    start_scheduled(draft, Starting { request_id, identity, n_waiting_updates: updates.len(), worker_version });
    let started = started_reply(&draft.state, &updates, Sending::All);
    Ok(Outcome::Changed(Reply::WorkflowTaskStarted(Box::new(started))))
}

/// A worker answers with commands. If one is bad, none takes effect, and the task fails.
pub(crate) fn complete(
    state: &ExecutionState,
    input: CompleteWorkflowTask,
    facts: &Facts,
) -> Result<Box<Transition>, Rejection> {
    let (scheduled, _) = find_running(state, input.task)?;
    if input.force_new_task && state.paused().is_some() {
        let message = "Workflow is paused and force create new workflow task is not allowed.";
        return Err(Rejection::FailedPrecondition(message.to_owned()));
    }
    commands::check_sequence(&input.commands).map_err(Rejection::InvalidArgument)?;
    update_message::check(&input.messages).map_err(Rejection::InvalidArgument)?;
    let sent: Vec<WaitingUpdate> = input.updates.iter().filter(|update| update.is_sent).cloned().collect();
    let (identity, binary_checksum) = (input.identity.clone(), input.binary_checksum.clone());
    let mut draft = Draft::new(state, facts);
    if is_alive_for_too_long(&input, &scheduled, facts) {
        workflow_task::time_out_running(&mut draft);
        ensure(&mut draft);
        return Ok(draft.finish(Reply::WorkflowTaskHeartbeatTimedOut));
    }
    match process(&mut draft, input, &scheduled) {
        Ok(reply) => Ok(draft.finish(reply)),
        Err(bad) => {
            if scheduled.is_transient() && bad.cause != WorkflowTaskFailedCause::UnhandledCommand {
                // A task that keeps failing is left to time out, so that it is retried with backoff.
                return Err(Rejection::InvalidArgument(bad.message()));
            }
            let mut draft = Draft::new(state, facts);
            let reply = fail_for(&mut draft, &bad, identity, binary_checksum);
            for update in sent {
                draft.notify(Notice::UpdateAborted { update_id: update.id().to_owned() });
            }
            Ok(draft.finish(reply))
        }
    }
}

/// A worker may heartbeat with a completion without commands, but only for `task_heartbeat_timeout`.
fn is_alive_for_too_long(input: &CompleteWorkflowTask, scheduled: &Scheduled, facts: &Facts) -> bool {
    is_heartbeat(input) && facts.now > scheduled.first_scheduled_at + facts.limits.task_heartbeat_timeout
}

fn is_heartbeat(input: &CompleteWorkflowTask) -> bool {
    input.force_new_task && input.commands.is_empty() && input.messages.is_empty()
}

fn process(draft: &mut Draft, mut input: CompleteWorkflowTask, scheduled: &Scheduled) -> Result<Reply, BadCommand> {
    if input.is_bad_binary {
        let reason = format!("binary {} is marked as bad deployment", input.binary_checksum);
        return Err(BadCommand::new(WorkflowTaskFailedCause::BadBinary, reason));
    }
    let first_scheduled_at = if is_heartbeat(&input) { scheduled.first_scheduled_at } else { draft.now() };
    let reset_to = speculative::discard(draft, &input);
    if reset_to.is_none() {
        record_completed(draft, &mut input);
    }
    draft.state.unrecorded.sticky = input.sticky;
    let mut completion = Completion {
        event_id: draft.state.last_event_id(),
        identity: input.identity,
        has_news: draft.has_waiting(),
        canceled_unstarted: false,
        eager_activities: Vec::new(),
        initiated_children: BTreeSet::new(),
        activities: Names::default(),
        timers: Names::default(),
        memo_size: None,
        search_attributes_size: None,
        namespaces: input.namespaces,
        refused_search_attributes: None,
        answers: Answers::new(input.messages, input.updates),
    };
    commands::process(draft, &mut completion, input.commands, input.refused_search_attributes)?;
    let activities = activity_attempt::start_eagerly(draft, &completion, input.eager_request_id);
    if draft.state.is_running() && !input.force_new_task {
        update_message::reject_unprocessed(draft, &mut completion);
    }
    let needs_task = input.force_new_task || completion.has_news || completion.canceled_unstarted;
    let has_updates = !completion.answers.waiting().is_empty();
    let may_have_task = draft.state.is_running() && !pause::is_paused(draft);
    if !may_have_task || !(needs_task || has_updates) {
        return Ok(Reply::WorkflowTaskCompleted { new_task: None, reset_to, activities });
    }
    if !input.return_new_task {
        workflow_task::schedule_and_dispatch(draft, first_scheduled_at);
        return Ok(Reply::WorkflowTaskCompleted { new_task: None, reset_to, activities });
    }
    if needs_task {
        schedule(draft, first_scheduled_at);
    } else {
        speculative::schedule(draft);
    }
    let updates = completion.answers.waiting();
    let (request_id, identity, worker_version) = (input.request_id, completion.identity, input.worker_version);
    start_scheduled(draft, Starting { request_id, identity, n_waiting_updates: updates.len(), worker_version });
    // A worker that forces a new task still has the updates that it was sent.
    let sending = if input.force_new_task { Sending::OnlyNew } else { Sending::All };
    // The worker that gets it has just had the one before, so it has the history.
    let started = WorkflowTaskStarted { is_sticky: true, ..started_reply(&draft.state, updates, sending) };
    Ok(Reply::WorkflowTaskCompleted { new_task: Some(Box::new(started)), reset_to, activities })
}

#[expect(deprecated, reason = "old workers send a checksum or a version")]
fn record_completed(draft: &mut Draft, input: &mut CompleteWorkflowTask) {
    workflow_task::record_completed(
        draft,
        WorkflowTaskCompletedEventAttributes {
            identity: input.identity.clone(),
            binary_checksum: std::mem::take(&mut input.binary_checksum),
            sdk_metadata: input.sdk_metadata.take(),
            metering_metadata: input.metering_metadata.take(),
            worker_version: input.worker_version.clone(),
            ..Default::default()
        },
    );
}

fn fail_for(draft: &mut Draft, bad: &BadCommand, identity: String, binary_checksum: String) -> Reply {
    let message = bad.message();
    let failure = Some(server_failure(message.clone()));
    fail_running(draft, TaskFailure { cause: bad.cause, failure, identity, binary_checksum });
    if bad.is_fatal {
        close::terminate_by_server(draft, message.clone(), None);
    } else {
        ensure(draft);
    }
    assert_eq!(draft.state.is_running(), !bad.is_fatal, "a bad command ends the run only if nothing else can help");
    Reply::BadCommand { cause: bad.cause, message }
}

/// A worker could not process its task.
pub(crate) fn fail(draft: &mut Draft, input: FailWorkflowTask) -> Result<Outcome, Rejection> {
    find_running(&draft.state, input.task)?;
    if input.cause == WorkflowTaskFailedCause::GrpcMessageTooLarge {
        // A retry would be too large again.
        let reason = short_name(input.cause.as_str_name(), "WORKFLOW_TASK_FAILED_CAUSE_");
        close::terminate_by_server(draft, reason, None);
        return Ok(Outcome::Changed(Reply::Done));
    }
    let FailWorkflowTask { cause, failure, identity, binary_checksum, .. } = input;
    fail_running(draft, TaskFailure { cause, failure, identity, binary_checksum });
    ensure(draft);
    Ok(Outcome::Changed(Reply::Done))
}

/// A start-to-close timer is due.
pub(crate) fn time_out_started(draft: &mut Draft, scheduled_event_id: EventId, attempt: i32, version: i64) -> Outcome {
    let WorkflowTask::Running(scheduled, running) = &draft.state.workflow_task else {
        return Outcome::Unchanged(Reply::Done);
    };
    if !is_made_for(scheduled, scheduled_event_id, attempt, version) {
        return Outcome::Unchanged(Reply::Done);
    }
    let expires_at = running.at + scheduled.start_to_close_timeout;
    if expires_at > draft.now() {
        draft.timer(expires_at, TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version });
        return Outcome::Changed(Reply::Done);
    }
    // The run expired first: its timer is due, or nearly so, and ends the run together with the task in flight.
    if draft.state.started.run_expires_at.is_some_and(|run_expires_at| run_expires_at <= expires_at) {
        return Outcome::Unchanged(Reply::Done);
    }
    workflow_task::time_out_running(draft);
    ensure(draft);
    Outcome::Changed(Reply::Done)
}

/// No worker took a sticky or speculative task in time: a normal task goes to the run's own queue.
pub(crate) fn time_out_sticky(draft: &mut Draft, scheduled_event_id: EventId, attempt: i32, version: i64) -> Outcome {
    let WorkflowTask::Scheduled(scheduled) = &draft.state.workflow_task else {
        return Outcome::Unchanged(Reply::Done);
    };
    let is_elsewhere = scheduled.task_queue != draft.state.started.task_queue;
    let may_time_out = !scheduled.is_transient() && (is_elsewhere || scheduled.is_speculative);
    if !is_made_for(scheduled, scheduled_event_id, attempt, version) || !may_time_out {
        return Outcome::Unchanged(Reply::Done);
    }
    let sticky = draft.state.unrecorded.sticky.as_ref().map(|sticky| sticky.schedule_to_start_timeout);
    let patience = if is_elsewhere { sticky } else { Some(speculative::SCHEDULE_TO_START_TIMEOUT) };
    let expires_at = patience.map_or(draft.now(), |patience| scheduled.at + patience);
    if expires_at > draft.now() {
        draft.timer(expires_at, TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version });
        return Outcome::Changed(Reply::Done);
    }
    workflow_task::time_out_scheduled(draft);
    ensure(draft);
    Outcome::Changed(Reply::Done)
}

/// Schedules a first workflow task that was delayed, or waited for the parent to record its child's start.
pub(crate) fn begin(draft: &mut Draft) -> Outcome {
    let had_task = draft.state.had_workflow_task() && !draft.state.workflow_task.is_speculative();
    if had_task || pause::is_paused(draft) {
        return Outcome::Unchanged(Reply::Done);
    }
    begin_or_wait(draft);
    Outcome::Changed(Reply::Done)
}

/// Schedules the first workflow task, or a timer for it if it is delayed.
pub(crate) fn begin_or_wait(draft: &mut Draft) {
    let begins_at = draft.state.started.started_at + draft.state.started.first_task_backoff;
    if begins_at > draft.now() {
        let version = draft.state.version_history.first().map_or(0, |item| item.version);
        draft.timer(begins_at, TimerTask::FirstWorkflowTask { version });
    } else if draft.state.workflow_task.is_speculative() {
        // An update came before a delayed start. Its task may leave no event, but the first one must be recorded.
        speculative::make_normal(draft, None);
    } else {
        ensure(draft);
    }
}

/// Schedules the first workflow task and gives it to the worker that started the run.
pub(crate) fn begin_at_once(draft: &mut Draft, request_id: String, identity: String) -> WorkflowTaskStarted {
    assert!(!draft.state.had_workflow_task(), "only the first task is started with its run");
    schedule(draft, draft.now());
    start_scheduled(draft, Starting { request_id, identity, n_waiting_updates: 0, worker_version: None });
    started_reply(&draft.state, &[], Sending::All)
}

fn is_made_for(scheduled: &Scheduled, event_id: EventId, attempt: i32, version: i64) -> bool {
    scheduled.event_id == event_id && scheduled.attempt == attempt && scheduled.version == version
}

fn started_reply(state: &ExecutionState, updates: &[WaitingUpdate], sending: Sending) -> WorkflowTaskStarted {
    let WorkflowTask::Running(scheduled, running) = &state.workflow_task else {
        unreachable!("the task was just started")
    };
    WorkflowTaskStarted {
        scheduled_event_id: scheduled.event_id,
        started_event_id: running.event_id,
        previous_started_event_id: state.last_completed_started_event_id.map_or(0, |id| id.0),
        attempt: scheduled.attempt,
        scheduled_at: scheduled.at,
        started_at: running.at,
        workflow_type: state.started.workflow_type.clone(),
        task_queue: state.started.task_queue.clone(),
        is_sticky: state.unrecorded.sticky.is_some(),
        next_event_id: state.next_event_id,
        transient_events: unwritten(state),
        messages: update_message::requests(updates, running.event_id, sending),
    }
}

/// Events of an unrecorded pending task, as shown to its worker. They take the next event ids, unless other events were
/// recorded in between.
fn unwritten(state: &ExecutionState) -> Vec<HistoryEvent> {
    let Some(scheduled) = state.workflow_task.scheduled().filter(|scheduled| !scheduled.is_recorded()) else {
        return Vec::new();
    };
    let event = |event_id: EventId, at: Timestamp, what| HistoryEvent {
        event_id: event_id.0,
        event_time: Some(at.into()),
        event_type: kind(&what).event_type.into(),
        version: scheduled.version,
        attributes: Some(what),
        ..Default::default()
    };
    let queue = workflow_task::current_queue(state);
    let schedule = scheduled_attributes(queue, scheduled.attempt, scheduled.start_to_close_timeout);
    let mut events = vec![event(scheduled.event_id, scheduled.at, schedule)];
    if let WorkflowTask::Running(_, running) = &state.workflow_task {
        let start = started_attributes(scheduled.event_id, running.clone());
        events.push(event(running.event_id, running.at, start));
    }
    events
}

/// Unrecorded events of a pending workflow task, as shown to readers other than its worker.
#[must_use]
pub fn unwritten_events(state: &ExecutionState) -> Vec<HistoryEvent> {
    let mut events = unwritten(state);
    for event in &mut events {
        if let Some(Attributes::WorkflowTaskStartedEventAttributes(started)) = &mut event.attributes {
            // The worker is named only when the task has completed.
            started.identity.clear();
        }
    }
    events
}
