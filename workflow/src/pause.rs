//! Pausing a run: no workflow task and no activity is dispatched until it is unpaused. Events are still recorded, and a
//! worker may finish what it has.

use std::collections::BTreeSet;

use proto::temporal::api::common::v1::SearchAttributes;
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    HistoryEvent, WorkflowExecutionPausedEventAttributes, WorkflowExecutionUnpausedEventAttributes,
    WorkflowTaskFailedEventAttributes,
};

use crate::activity::{self, Activity};
use crate::draft::Draft;
use crate::ids::EventId;
use crate::input::PauseRequest;
use crate::items::Items;
use crate::outcome::{Outcome, Rejection, Reply};
use crate::state::ExecutionState;
use crate::tasks::TimerTask;
use crate::time::Timestamp;
use crate::worker_version::keywords;
use crate::workflow_task::{self, SERVER_IDENTITY, WorkflowTask};
use crate::workflow_task_attempt;

/// The search attribute that names the paused parts of a run.
const PAUSED: &str = "TemporalPauseInfo";

/// Time, author and reason of a run's pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub at: Timestamp,
    pub identity: String,
    pub reason: String,
    pub request_id: String,
}

impl ExecutionState {
    /// The run's pause, even if its event is still buffered.
    #[must_use]
    pub fn paused(&self) -> Option<Pause> {
        current(self, self.unrecorded.buffered_events.iter().map(|(_, event)| event))
    }
}

fn current<'a>(state: &ExecutionState, waiting: impl Iterator<Item = &'a HistoryEvent>) -> Option<Pause> {
    waiting.fold(state.pause.clone(), |pause, event| {
        if let Some(Attributes::WorkflowExecutionPausedEventAttributes(paused)) = &event.attributes {
            return Some(made_by(event, paused));
        }
        let ends = matches!(event.attributes, Some(Attributes::WorkflowExecutionUnpausedEventAttributes(_)));
        pause.filter(|_| !ends)
    })
}

pub(crate) fn is_paused(draft: &Draft) -> bool {
    current(&draft.state, draft.waiting()).is_some()
}

pub(crate) fn pause(draft: &mut Draft, input: PauseRequest) -> Result<Outcome, Rejection> {
    if let Some(pause) = current(&draft.state, draft.waiting()) {
        if !pause.request_id.is_empty() && pause.request_id == input.request_id {
            return Ok(Outcome::Unchanged(Reply::Done));
        }
        return Err(Rejection::FailedPrecondition("workflow is already paused.".to_owned()));
    }
    take_back_task(draft);
    let PauseRequest { identity, reason, request_id } = input;
    let what = WorkflowExecutionPausedEventAttributes { identity, reason, request_id };
    draft.record(Attributes::WorkflowExecutionPausedEventAttributes(what));
    void_dispatched(draft);
    Ok(Outcome::Changed(Reply::Done))
}

/// Withdraws a scheduled workflow task, which no worker may start during the pause: unpausing schedules another.
fn take_back_task(draft: &mut Draft) {
    let WorkflowTask::Scheduled(scheduled) = &draft.state.workflow_task else { return };
    if scheduled.is_recorded() {
        let failed = WorkflowTaskFailedEventAttributes {
            scheduled_event_id: scheduled.event_id.0,
            started_event_id: 0,
            cause: WorkflowTaskFailedCause::WorkflowPauseRequestedBeforeTaskStarted.into(),
            identity: SERVER_IDENTITY.to_owned(),
            ..Default::default()
        };
        draft.record(Attributes::WorkflowTaskFailedEventAttributes(failed));
    } else {
        draft.state.workflow_task = WorkflowTask::None;
        draft.state.workflow_task_attempt = 1;
    }
}

/// Activities that are neither started nor paused themselves.
fn waiting_activities(draft: &Draft) -> Vec<EventId> {
    let waits = |activity: &Activity| activity.unrecorded.started.is_none() && !activity.is_paused();
    let ids = draft.state.activities.iter().filter(|(_, activity)| waits(activity)).map(|(id, _)| EventId(id));
    ids.filter(|id| activity::find(draft, *id).is_some()).collect()
}

fn void_dispatched(draft: &mut Draft) {
    for id in waiting_activities(draft) {
        let activity = draft.state.activities.get_mut(id.0).expect("its id was just read");
        activity.unrecorded.stamp += 1;
    }
}

pub(crate) fn unpause(draft: &mut Draft, input: PauseRequest) -> Result<Outcome, Rejection> {
    if !is_paused(draft) {
        return Err(Rejection::FailedPrecondition("workflow is not paused.".to_owned()));
    }
    let PauseRequest { identity, reason, request_id } = input;
    let what = WorkflowExecutionUnpausedEventAttributes { identity, reason, request_id };
    draft.record(Attributes::WorkflowExecutionUnpausedEventAttributes(what));
    void_dispatched(draft);
    for id in waiting_activities(draft) {
        dispatch_again(draft, id);
    }
    if draft.state.waits_for_first_task() {
        workflow_task_attempt::begin_or_wait(draft);
    } else {
        workflow_task::ensure(draft);
    }
    Ok(Outcome::Changed(Reply::Done))
}

/// Dispatches the waiting attempt, now or by a timer when it is due.
fn dispatch_again(draft: &mut Draft, scheduled_event_id: EventId) {
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("a pending activity waits");
    let progress = &activity.unrecorded;
    let (at, attempt, stamp) = (progress.attempt_scheduled_at, progress.attempt, progress.stamp);
    let version = activity.version;
    if at > draft.now() {
        draft.timer(at, TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp, version });
    } else {
        activity::dispatch(draft, scheduled_event_id);
    }
}

fn made_by(event: &HistoryEvent, paused: &WorkflowExecutionPausedEventAttributes) -> Pause {
    Pause {
        at: event.event_time.map_or(Timestamp(0), Timestamp::from),
        identity: paused.identity.clone(),
        reason: paused.reason.clone(),
        request_id: paused.request_id.clone(),
    }
}

pub(crate) fn apply_paused(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    paused: &WorkflowExecutionPausedEventAttributes,
) {
    assert!(state.pause.is_none(), "a run is paused once at a time");
    state.pause = Some(made_by(event, paused));
    if state.workflow_task == WorkflowTask::None {
        // The task scheduled after the pause is not a retry of the one before.
        state.workflow_task_attempt = 1;
    }
}

pub(crate) fn apply_unpaused(state: &mut ExecutionState) {
    let ended = state.pause.take();
    assert!(ended.is_some(), "only a paused run is unpaused");
}

pub(crate) fn fits_paused(state: &ExecutionState) -> Result<(), &'static str> {
    if state.pause.is_none() { Ok(()) } else { Err("a run is paused once at a time") }
}

pub(crate) fn fits_unpaused(state: &ExecutionState) -> Result<(), &'static str> {
    if state.pause.is_some() { Ok(()) } else { Err("only a paused run is unpaused") }
}

/// Search attributes of a run as clients see them. The pause attribute is derived from the state: a paused activity has
/// no event.
#[must_use]
pub fn shown_search_attributes(state: &ExecutionState) -> SearchAttributes {
    Pausable::new(state).shown(&state.key.workflow_id, &state.search_attributes)
}

/// Snapshot of a run's pauses. Cheap to create: the activities are shared with its state.
pub(crate) struct Pausable {
    pause: Option<Pause>,
    activities: Items<Activity>,
}

impl Pausable {
    pub(crate) fn new(state: &ExecutionState) -> Self {
        Self { pause: state.paused(), activities: state.activities.clone() }
    }

    /// Whether the transition to this state paused or unpaused something.
    pub(crate) fn is_other(&self, state: &ExecutionState) -> bool {
        let is_paused = |activities: &Items<Activity>, id| activities.get(id).is_some_and(Activity::is_paused);
        let differs = |id| is_paused(&self.activities, id) != is_paused(&state.activities, id);
        self.pause != state.paused() || state.activities.touched().any(differs)
    }

    /// Adds the pause attribute to these search attributes.
    pub(crate) fn shown(&self, workflow_id: &str, attributes: &SearchAttributes) -> SearchAttributes {
        let mut shown = attributes.clone();
        let paused = self.paused(workflow_id);
        if !paused.is_empty() {
            shown.indexed_fields.insert(PAUSED.to_owned(), keywords(&paused));
        }
        shown
    }

    /// The run itself and the reason, then the types of its paused activities.
    fn paused(&self, workflow_id: &str) -> Vec<String> {
        let pause = self.pause.iter();
        let workflow = pause.clone().map(|_| format!("Workflow:{workflow_id}"));
        let reason = pause.filter(|pause| !pause.reason.is_empty()).map(|pause| format!("Reason:{}", pause.reason));
        let paused = self.activities.iter().map(|(_, activity)| activity).filter(|activity| activity.is_paused());
        let types: BTreeSet<&str> = paused.map(|activity| activity.activity_type.as_str()).collect();
        workflow.chain(reason).chain(types.into_iter().map(|name| format!("property:activityType={name}"))).collect()
    }
}
