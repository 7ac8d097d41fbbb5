//! State transitions of a schedule: inputs, and the decisions on them. The only maker of a schedule's next state.

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

/// Retention of a schedule that has nothing left to do.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Pause between the batches of a backfill whose actions may overlap, or whose budget ran out.
const BACKFILL_REST: Duration = Duration::from_secs(1);
/// Nanoseconds by which a backfill begins early, so that its start time itself is included.
const BACKFILL_BEGINS_BEFORE: i64 = 1_000_000;

/// Inputs of a schedule's state machine.
#[derive(Debug, Clone)]
pub enum Input {
    Update(Box<Update>),
    Patch {
        patch: public::SchedulePatch,
        request_id: String,
    },
    /// Its timer fired.
    Woken,
    /// Outcomes of decided actions.
    Acted(Vec<Outcome>),
    RunClosed(Box<Closed>),
    Delete,
}

/// Outcome of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Started {
        id: i64,
        execution: WorkflowExecution,
        at: Timestamp,
    },
    /// The run cannot be started.
    StartFailed {
        id: i64,
    },
    /// The stop request was accepted, or the run is closed.
    StopAsked {
        execution: WorkflowExecution,
        stop: Stop,
    },
}

#[derive(Debug, Clone)]
pub struct Update {
    pub definition: public::Schedule,
    /// `None` keeps them.
    pub search_attributes: Option<SearchAttributes>,
    /// `None` keeps it.
    pub memo: Option<Memo>,
    /// Must equal the schedule's token; zero skips the check.
    pub conflict_token: i64,
    pub request_id: String,
}

/// A run that the schedule started is closed, and none follows it.
#[derive(Debug, Clone)]
pub struct Closed {
    /// The first run of its chain.
    pub execution: WorkflowExecution,
    pub status: WorkflowExecutionStatus,
    pub result: Option<Payloads>,
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub schedule: Schedule,
    /// A timer to add to the pending ones.
    pub timer: Option<Timestamp>,
}

/// The input is rejected, the schedule unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("mismatched conflict token")]
    Conflict,
    /// A duplicate of an earlier request.
    #[error("the request is known")]
    Known,
    /// The start of that run is not acknowledged yet.
    #[error("the schedule does not know of the run yet")]
    TooEarly,
}

/// A schedule that is being changed.
pub(super) struct Draft {
    wakes_at_before: Option<Timestamp>,
    pub(super) schedule: Schedule,
    /// `None` if it does not parse: then it has no times.
    pub(super) spec: Option<Arc<Spec>>,
    /// The budget of this decision ran out with backfills left.
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

/// Applies an input; `None` if the schedule stays unchanged.
pub fn decide(schedule: &Schedule, input: Input, now: Timestamp) -> Result<Option<Decision>, Refusal> {
    assert!(!schedule.is_over, "nothing happens to a schedule that is over");
    let mut draft = Draft::new(schedule.clone(), now);
    // Processes the elapsed time first: it belongs to the definition before this input.
    times::pass(&mut draft);
    // Outcomes do not continue a backfill: it pauses first.
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
        // The clock may be behind the creation time.
        let now = now.max(schedule.moments.created_at);
        let (wakes_at_before, spec) = (schedule.moments.wakes_at, schedule.spec().ok().map(Arc::new));
        Self { wakes_at_before, spec, schedule, is_backfill_cut: false, now }
    }

    /// Processes the buffer, and sets the next timer.
    fn finish(mut self) -> Decision {
        if !self.schedule.is_over {
            buffer::start_buffered(&mut self);
        }
        let wakes_at = self.wakes_at();
        self.schedule.moments.wakes_at = wakes_at;
        self.schedule.version += 1;
        Decision { timer: wakes_at.filter(|_| wakes_at != self.wakes_at_before), schedule: self.schedule }
    }

    /// When the next decision is due.
    fn wakes_at(&mut self) -> Option<Timestamp> {
        let is_due = |moment: &Timestamp| *moment <= self.now;
        // The due timer executes the decided actions; if there is none, a new one does.
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

    /// Whether the schedule acts on its spec: not paused, and with actions left.
    pub(super) fn may_act(&self) -> bool {
        let state = self.schedule.state();
        !state.paused && (!state.limited_actions || state.remaining_actions > 0)
    }

    /// Whether this start is allowed; deducts it from the remaining actions.
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

    /// Skips the times before the update, except those that the new jitter may delay past it.
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

    /// Removes a start from those in flight; `None` if it is no longer there.
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

/// Whether a start comes from a request or from the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manual {
    Yes,
    No,
}
