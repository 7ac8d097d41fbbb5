//! User timers: started by a command, ended by firing or by cancellation.

use std::collections::BTreeSet;

use proto::temporal::api::command::v1::{CancelTimerCommandAttributes, StartTimerCommandAttributes};
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    HistoryEvent, TimerCanceledEventAttributes, TimerFiredEventAttributes, TimerStartedEventAttributes,
};

use crate::commands::{BadCommand, Completion, check_count};
use crate::draft::{Annotation, Draft, Entry};
use crate::ids::EventId;
use crate::outcome::{Outcome, Reply};
use crate::state::ExecutionState;
use crate::tasks::TimerTask;
use crate::time::{Timestamp, parse_span, span, to_proto};
use crate::workflow_task;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub timer_id: String,
    pub started_event_id: EventId,
    pub fires_at: Timestamp,
    pub version: i64,
}

/// The pending timer of this name: its firing is neither recorded nor buffered.
fn find(draft: &Draft, completion: &mut Completion, timer_id: &str) -> Option<EventId> {
    let all = draft.state.timers.iter().map(|(_, timer)| (timer.timer_id.as_str(), timer.started_event_id));
    completion.timers.find(timer_id, all, |id| waiting_ends(draft).any(|fired| fired == id.0))
}

/// Started event ids of the timers whose firing is buffered.
fn waiting_ends(draft: &Draft) -> impl Iterator<Item = i64> {
    draft.waiting().filter_map(fired_timer).map(|fired| fired.started_event_id)
}

fn fired_timer(event: &HistoryEvent) -> Option<&TimerFiredEventAttributes> {
    if let Some(Attributes::TimerFiredEventAttributes(fired)) = &event.attributes {
        return Some(fired);
    }
    None
}

/// Decides on a `StartTimer` command.
pub(crate) fn start(
    draft: &mut Draft,
    completion: &mut Completion,
    command: StartTimerCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadStartTimerAttributes;
    check_id(draft, cause, &command.timer_id, "StartTimerCommand")?;
    let delay = parse_span(command.start_to_fire_timeout.as_ref()).map_err(|reason| {
        let timer_id = &command.timer_id;
        let reason = format!("An invalid StartToFireTimeout is set on StartTimerCommand: {reason}. TimerId={timer_id}");
        BadCommand::new(cause, reason)
    })?;
    check_count(cause, "pending timers", draft.state.timers.len(), draft.facts.limits.pending_timers)?;
    if find(draft, completion, &command.timer_id).is_some() {
        let reason =
            format!("invalid history builder state for action: add-timer-started-event, TimerID: {}", command.timer_id);
        return Err(BadCommand::new(WorkflowTaskFailedCause::StartTimerDuplicateId, reason));
    }
    completion.timers.begun(&command.timer_id, draft.state.next_event_id);
    let what = Attributes::TimerStartedEventAttributes(TimerStartedEventAttributes {
        timer_id: command.timer_id,
        start_to_fire_timeout: Some(to_proto(delay)),
        workflow_task_completed_event_id: completion.event_id.0,
    });
    draft.record(Entry { annotation, ..what.into() });
    let started_event_id = draft.state.last_event_id();
    let timer = draft.state.timers.get(started_event_id.0).expect("the timer was just started");
    let (fires_at, version) = (timer.fires_at, timer.version);
    draft.timer(fires_at, TimerTask::UserTimer { started_event_id, version });
    Ok(())
}

/// Decides on a `CancelTimer` command.
pub(crate) fn cancel(
    draft: &mut Draft,
    completion: &mut Completion,
    command: CancelTimerCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadCancelTimerAttributes;
    check_id(draft, cause, &command.timer_id, "CancelTimerCommand")?;
    let pending = find(draft, completion, &command.timer_id).map(|id| id.0);
    // If it fired while the task was in flight, the buffered firing is dropped.
    let started_event_id = pending.or_else(|| {
        let is_it = |event: &HistoryEvent| fired_timer(event).is_some_and(|fired| fired.timer_id == command.timer_id);
        draft.forget_waiting(is_it).as_ref().and_then(fired_timer).map(|fired| fired.started_event_id)
    });
    let Some(started_event_id) = started_event_id else {
        let reason = format!(
            "invalid history builder state for action: add-timer-canceled-event, TimerID: {}",
            command.timer_id
        );
        return Err(BadCommand::new(cause, reason));
    };
    completion.timers.ended(&command.timer_id);
    let what = Attributes::TimerCanceledEventAttributes(TimerCanceledEventAttributes {
        timer_id: command.timer_id,
        started_event_id,
        workflow_task_completed_event_id: completion.event_id.0,
        identity: completion.identity.clone(),
    });
    draft.record(Entry { annotation, ..what.into() });
    Ok(())
}

/// A timer task is due: all due timers fire, the earliest first.
pub(crate) fn fire(draft: &mut Draft, started_event_id: EventId, version: i64) -> Outcome {
    let waiting: BTreeSet<i64> = waiting_ends(draft).collect();
    let mut due: Vec<(Timestamp, i64)> = Vec::new();
    for (id, timer) in draft.state.timers.iter() {
        if timer.fires_at <= draft.now() && !waiting.contains(&id) {
            due.push((timer.fires_at, id));
        }
    }
    if due.is_empty() {
        return not_yet(draft, started_event_id, version);
    }
    due.sort_unstable();
    for (_, id) in due {
        let timer = draft.state.timers.get(id).expect("a due timer is pending");
        assert!(timer.fires_at <= draft.now(), "no timer fires early");
        let what = Attributes::TimerFiredEventAttributes(TimerFiredEventAttributes {
            timer_id: timer.timer_id.clone(),
            started_event_id: id,
        });
        draft.record(what);
    }
    workflow_task::ensure(draft);
    assert!(draft.state.had_workflow_task(), "fired timers need a workflow task");
    Outcome::Changed(Reply::Done)
}

/// Re-arms an early timer task; drops an obsolete one.
fn not_yet(draft: &mut Draft, started_event_id: EventId, version: i64) -> Outcome {
    let Some(timer) = draft.state.timers.get(started_event_id.0) else { return Outcome::Unchanged(Reply::Done) };
    let fires_at = timer.fires_at;
    if fires_at <= draft.now() || timer.version != version {
        return Outcome::Unchanged(Reply::Done);
    }
    draft.timer(fires_at, TimerTask::UserTimer { started_event_id, version });
    Outcome::Changed(Reply::Done)
}

fn check_id(draft: &Draft, cause: WorkflowTaskFailedCause, timer_id: &str, command: &str) -> Result<(), BadCommand> {
    if timer_id.is_empty() {
        return Err(BadCommand::new(cause, format!("TimerId is not set on {command}.")));
    }
    let (length, limit) = (timer_id.len(), draft.facts.limits.id_length);
    if length > limit {
        let reason =
            format!("TimerId on {command} exceeds length limit. TimerId={timer_id} Length={length} Limit={limit}");
        return Err(BadCommand::new(cause, reason));
    }
    Ok(())
}

pub(crate) fn apply_started(state: &mut ExecutionState, event: &HistoryEvent, started: &TimerStartedEventAttributes) {
    // Counted from the event's time and not from now: replay in another cell must give the same time.
    let started_at = event.event_time.map_or(state.started.started_at, Timestamp::from);
    let timer = Timer {
        timer_id: started.timer_id.clone(),
        started_event_id: EventId(event.event_id),
        fires_at: started_at + span(started.start_to_fire_timeout.as_ref()),
        version: event.version,
    };
    let previous = state.timers.insert(event.event_id, timer);
    assert!(previous.is_none(), "an event starts one timer");
}

pub(crate) fn apply_ended(state: &mut ExecutionState, started_event_id: i64) {
    let ended = state.timers.remove(started_event_id);
    assert!(ended.is_some(), "only a pending timer ends");
}
