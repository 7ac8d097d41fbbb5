//! What happens to a schedule, and what it does then. The only maker of a schedule's next state.

use std::sync::Arc;
use std::time::Duration;

use cluster::spans;
use proto::temporal::api::common::v1::{Memo, Payloads, SearchAttributes, WorkflowExecution};
use proto::temporal::api::enums::v1::{ScheduleOverlapPolicy, WorkflowExecutionStatus};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::schedule::v1 as public;
use thiserror::Error;
use workflow::Timestamp;

use super::schedule::{BUFFER_MAX, Created, RECENT_ACTIONS, Running, Schedule, Start, Stop, fill_in};
use super::spec::Spec;
use super::{buffer, times};

/// A schedule that has nothing to do any more is forgotten after this time.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A backfill whose actions need not wait for each other takes a few of them, and then a rest.
const BACKFILL_REST: Duration = Duration::from_secs(1);
/// So that the first time of a backfill is one of its times.
const BACKFILL_BEGINS_BEFORE: i64 = 1_000_000;

/// What can happen to a schedule.
#[derive(Debug, Clone)]
pub enum Input {
    Update(Box<Update>),
    Patch {
        patch: public::SchedulePatch,
        request_id: String,
    },
    /// Its timer fired.
    Woken,
    /// What came of actions that were decided.
    Acted(Vec<Outcome>),
    RunClosed(Box<Closed>),
    Delete,
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Started {
        id: i64,
        execution: WorkflowExecution,
        at: Timestamp,
    },
    /// It cannot be started.
    StartFailed {
        id: i64,
    },
    /// A run was asked to stop, or is over.
    StopAsked {
        execution: WorkflowExecution,
        stop: Stop,
    },
}

#[derive(Debug, Clone)]
pub struct Update {
    pub definition: public::Schedule,
    /// Nothing: they stay.
    pub search_attributes: Option<SearchAttributes>,
    /// Nothing: it stays.
    pub memo: Option<Memo>,
    /// The schedule must not have changed since; zero: it may have.
    pub conflict_token: i64,
    pub request_id: String,
}

/// A run that the schedule started is over, and none follows it.
#[derive(Debug, Clone)]
pub struct Closed {
    /// The first of its chain.
    pub execution: WorkflowExecution,
    pub status: WorkflowExecutionStatus,
    pub result: Option<Payloads>,
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub schedule: Schedule,
    /// A timer that is needed besides those that are there.
    pub timer: Option<Timestamp>,
}

/// Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("mismatched conflict token")]
    Conflict,
    /// The same request was heard before.
    #[error("the request is known")]
    Known,
    /// The start of that run is not known to be done yet.
    #[error("the schedule does not know of the run yet")]
    TooEarly,
}

/// A schedule that is being changed.
pub(super) struct Draft {
    wakes_at_before: Option<Timestamp>,
    pub(super) schedule: Schedule,
    /// Nothing if it cannot be read: then it has no times.
    pub(super) spec: Option<Arc<Spec>>,
    /// Backfills are left that this decision had no budget for.
    pub(super) is_backfill_cut: bool,
    pub(super) now: Timestamp,
}

/// A new schedule, which may have something to do at once.
pub fn create(created: Created, patch: Option<public::SchedulePatch>, now: Timestamp) -> Decision {
    let mut draft = Draft::new(Schedule::new(created, now), now);
    if let Some(patch) = patch {
        draft.patch(patch);
    }
    times::backfill(&mut draft);
    draft.finish()
}

/// What the schedule is then; nothing if it stays as it is.
pub fn decide(schedule: &Schedule, input: Input, now: Timestamp) -> Result<Option<Decision>, Refusal> {
    assert!(!schedule.is_over, "nothing happens to a schedule that is over");
    let mut draft = Draft::new(schedule.clone(), now);
    // The time that has passed comes first: it was another schedule's then.
    times::pass(&mut draft);
    // What is done is followed by a rest.
    let takes_more = !matches!(input, Input::Acted(_));
    match input {
        Input::Update(update) => draft.update(*update)?,
        Input::Patch { patch, request_id } => {
            draft.request(request_id)?;
            draft.patch(patch);
        }
        Input::Woken => {}
        Input::Acted(outcomes) => outcomes.into_iter().for_each(|outcome| draft.acted(outcome)),
        Input::RunClosed(closed) => draft.closed(*closed)?,
        Input::Delete => draft.schedule.is_over = true,
    }
    if takes_more {
        times::backfill(&mut draft);
    }
    let decision = draft.finish();
    let is_same = decision.schedule == Schedule { version: decision.schedule.version, ..schedule.clone() };
    Ok((!is_same).then_some(decision))
}

impl Draft {
    fn new(schedule: Schedule, now: Timestamp) -> Self {
        // Time does not go backwards for a schedule, whatever the clock says.
        let now = now.max(schedule.moments.created_at);
        let (wakes_at_before, spec) = (schedule.moments.wakes_at, schedule.spec().ok().map(Arc::new));
        Self { wakes_at_before, spec, schedule, is_backfill_cut: false, now }
    }

    /// Does what there is to do now, and says when to look again.
    fn finish(mut self) -> Decision {
        if !self.schedule.is_over {
            buffer::work_off(&mut self);
        }
        let wakes_at = self.wakes_at();
        self.schedule.moments.wakes_at = wakes_at;
        self.schedule.version += 1;
        Decision { timer: wakes_at.filter(|_| wakes_at != self.wakes_at_before), schedule: self.schedule }
    }

    /// When the schedule must be looked at again.
    fn wakes_at(&mut self) -> Option<Timestamp> {
        let is_due = |moment: &Timestamp| *moment <= self.now;
        // The timer that is due does what was decided, or a new one does.
        let at_once = self.schedule.moments.wakes_at.filter(is_due).unwrap_or(self.now);
        if self.schedule.is_over || self.schedule.has_actions() {
            return Some(at_once);
        }
        if self.is_backfill_cut || self.backfills_beside_others() {
            return Some(self.now + BACKFILL_REST);
        }
        let next = times::next(self).filter(|_| self.may_act());
        let work = &self.schedule.work;
        let is_idle = work.running.is_empty() && work.buffer.is_empty() && work.backfills.is_empty();
        if next.is_some() || self.schedule.is_paused() || !is_idle {
            return next;
        }
        let ends_at = self.last_event() + RETENTION;
        self.schedule.is_over = is_due(&ends_at);
        Some(if self.schedule.is_over { at_once } else { ends_at })
    }

    fn backfills_beside_others(&self) -> bool {
        let first = self.schedule.work.backfills.first();
        let policy = first.map(|backfill| self.schedule.overlap_policy(backfill.overlap_policy()));
        policy == Some(ScheduleOverlapPolicy::AllowAll)
    }

    fn last_event(&self) -> Timestamp {
        let action = self.schedule.recent_actions.last().and_then(|action| action.actual_time);
        let moments = &self.schedule.moments;
        [action.map(Timestamp::from), moments.updated_at].into_iter().flatten().fold(moments.created_at, Timestamp::max)
    }

    /// Whether the schedule acts by itself.
    pub(super) fn may_act(&self) -> bool {
        let state = self.schedule.state();
        !state.paused && (!state.limited_actions || state.remaining_actions > 0)
    }

    /// Whether this start may be, which counts as one of the actions that are left.
    pub(super) fn spend(&mut self, start: &Start) -> bool {
        if start.is_manual {
            return true;
        }
        let may_act = self.may_act();
        let state = self.schedule.state_mut();
        if may_act && state.limited_actions {
            state.remaining_actions -= 1;
            self.schedule.conflict_token += 1;
        }
        may_act
    }

    pub(super) fn buffer_start(&mut self, times: (Timestamp, Timestamp), asked: ScheduleOverlapPolicy, manual: Manual) {
        let work = &mut self.schedule.work;
        if work.buffer.len() >= BUFFER_MAX {
            self.schedule.counts.buffer_dropped += 1;
            return;
        }
        let (nominal_at, acts_at) = times;
        let id = work.next_start_id;
        work.next_start_id += 1;
        work.buffer.push(Start {
            id,
            nominal_at,
            acts_at,
            overlap_policy: asked,
            is_manual: manual == Manual::Yes,
            overlaps: false,
            gives_up_at: self.now,
        });
    }

    fn request(&mut self, request_id: String) -> Result<(), Refusal> {
        if self.schedule.requests.knows(&request_id) {
            return Err(Refusal::Known);
        }
        if !request_id.is_empty() {
            self.schedule.requests.remember(request_id);
        }
        Ok(())
    }

    fn update(&mut self, update: Update) -> Result<(), Refusal> {
        let Update { mut definition, search_attributes, memo, conflict_token, request_id } = update;
        self.request(request_id)?;
        if conflict_token != 0 && conflict_token != self.schedule.conflict_token {
            return Err(Refusal::Conflict);
        }
        fill_in(&mut definition);
        self.schedule.definition = definition;
        self.spec = self.schedule.spec().ok().map(Arc::new);
        self.pass_over();
        if let Some(attributes) = search_attributes {
            self.schedule.search_attributes = attributes;
        }
        if let Some(memo) = memo {
            self.schedule.memo = memo;
        }
        self.schedule.moments.updated_at = Some(self.now);
        self.schedule.conflict_token += 1;
        Ok(())
    }

    /// Of the times before the update only those are the new schedule's that its jitter puts off until after it.
    fn pass_over(&mut self) {
        let jitter = self.schedule.definition.spec.as_ref().and_then(|spec| spec.jitter);
        let jitter = jitter.and_then(spans::from_proto).unwrap_or_default();
        let from = self.now.0.saturating_sub(i64::try_from(jitter.as_nanos()).unwrap_or(i64::MAX));
        let moments = &mut self.schedule.moments;
        moments.processed_at = moments.processed_at.max(Timestamp(from));
    }

    fn patch(&mut self, patch: public::SchedulePatch) {
        if let Some(trigger) = patch.trigger_immediately {
            let at = trigger.scheduled_time.map_or(self.now, Timestamp::from);
            self.buffer_start((at, at), trigger.overlap_policy(), Manual::Yes);
        }
        for mut backfill in patch.backfill_request {
            if self.schedule.work.backfills.len() >= BUFFER_MAX {
                self.schedule.counts.buffer_dropped += 1;
                continue;
            }
            let from = backfill.start_time.map_or(Timestamp(0), Timestamp::from);
            backfill.start_time = Some(Timestamp(from.0.saturating_sub(BACKFILL_BEGINS_BEFORE)).into());
            self.schedule.work.backfills.push(backfill);
        }
        if !patch.pause.is_empty() {
            self.set_paused(true, patch.pause);
        }
        if !patch.unpause.is_empty() {
            self.set_paused(false, patch.unpause);
        }
    }

    fn set_paused(&mut self, paused: bool, notes: String) {
        let state = self.schedule.state_mut();
        state.paused = paused;
        state.notes = notes;
        self.schedule.conflict_token += 1;
    }

    /// Takes a start out of those that are under way; nothing if it is not one of them any more.
    fn take_start(&mut self, id: i64) -> Option<Start> {
        let starting = &mut self.schedule.work.starting;
        let place = starting.iter().position(|start| start.id == id)?;
        Some(starting.remove(place))
    }

    fn acted(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Started { id, execution, at } => self.started(id, execution, at),
            Outcome::StartFailed { id } => drop(self.take_start(id)),
            Outcome::StopAsked { execution, stop } => self.stop_asked(&execution, stop),
        }
    }

    fn started(&mut self, id: i64, execution: WorkflowExecution, at: Timestamp) {
        let Some(start) = self.take_start(id) else { return };
        self.schedule.counts.actions += 1;
        let recent = &mut self.schedule.recent_actions;
        if recent.len() == RECENT_ACTIONS {
            recent.remove(0);
        }
        recent.push(public::ScheduleActionResult {
            schedule_time: Some(start.acts_at.into()),
            actual_time: Some(at.into()),
            start_workflow_result: Some(execution.clone()),
            start_workflow_status: WorkflowExecutionStatus::Running.into(),
        });
        if !start.overlaps {
            self.schedule.work.running.push(Running { execution, stop: None, is_stop_asked: false });
        }
    }

    fn stop_asked(&mut self, execution: &WorkflowExecution, stop: Stop) {
        let running = self.schedule.work.running.iter_mut();
        for run in running.filter(|run| run.execution == *execution && run.stop == Some(stop)) {
            run.is_stop_asked = true;
        }
    }

    fn closed(&mut self, closed: Closed) -> Result<(), Refusal> {
        let Closed { execution, status, result, failure } = closed;
        for action in &mut self.schedule.recent_actions {
            if action.start_workflow_result.as_ref() == Some(&execution) {
                action.set_start_workflow_status(status);
            }
        }
        let running = &mut self.schedule.work.running;
        let Some(place) = running.iter().position(|run| run.execution == execution) else {
            let id = &execution.workflow_id;
            let is_early = self.schedule.work.starting.iter().any(|start| self.schedule.workflow_id(start) == *id);
            let is_known =
                self.schedule.recent_actions.iter().any(|a| a.start_workflow_result.as_ref() == Some(&execution));
            return if is_early && !is_known { Err(Refusal::TooEarly) } else { Ok(()) };
        };
        running.remove(place);
        self.pause_after(&execution.workflow_id, status, failure.as_ref());
        if result.is_some() {
            self.schedule.carried.last_completion_result = result;
            self.schedule.carried.continued_failure = None;
        } else if failure.is_some() {
            self.schedule.carried.continued_failure = failure;
        }
        Ok(())
    }

    fn pause_after(&mut self, workflow_id: &str, status: WorkflowExecutionStatus, failure: Option<&Failure>) {
        if !self.schedule.policies().pause_on_failure || self.schedule.is_paused() {
            return;
        }
        if status == WorkflowExecutionStatus::Failed {
            let message = failure.map_or("", |failure| &failure.message);
            self.set_paused(true, format!("paused due to workflow failure: {workflow_id}: {message}"));
        } else if status == WorkflowExecutionStatus::TimedOut {
            self.set_paused(true, format!("paused due to workflow timeout: {workflow_id}"));
        }
    }
}

/// Whether a start was asked for, or comes by the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manual {
    Yes,
    No,
}
