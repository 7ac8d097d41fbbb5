//! Reset: a run forked from a prefix of another run's history, to which later events are reapplied.
//!
//! The caller replays the prefix; this module decides what happens next. The event that fails the workflow task records
//! the reset, so that a replay gives the same state.

use std::sync::Arc;

use proto::temporal::api::enums::v1::{ResetReapplyExcludeType, ResetReapplyType, RetryState, WorkflowTaskFailedCause};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{Failure, ResetWorkflowFailureInfo};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ActivityTaskFailedEventAttributes, HistoryEvent, WorkflowExecutionSignaledEventAttributes,
    WorkflowTaskCompletedEventAttributes, WorkflowTaskFailedEventAttributes,
};
use proto::temporal::api::workflow::v1::ResetPointInfo;
use uuid::Uuid;

use crate::activity::{self, ActivityProgress};
use crate::child;
use crate::draft::{Draft, Entry};
use crate::external;
use crate::facts::Facts;
use crate::ids::{EventId, RunId};
use crate::input::UpdateOptions;
use crate::options;
use crate::outcome::{Outcome, Rejection, Reply, Transition};
use crate::start::Started;
use crate::state::ExecutionState;
use crate::tasks::{TimerTask, TransferTask};
use crate::time::Timestamp;
use crate::update;
use crate::worker_version;
use crate::workflow_task::{self, SERVER_IDENTITY, Starting, WorkflowTask};

/// Maximum reset points of a run; the newest are kept.
const POINTS_MAX: usize = 20;
/// Request id of a workflow task start that no worker polled.
const NO_REQUEST: &str = "emptyUuid";

/// Reason and parameters of a reset.
#[derive(Debug, Clone)]
pub struct Reset {
    /// The run whose history is forked.
    pub base_run_id: RunId,
    pub reason: String,
    /// Request id of the reset: a repeated reset gets the same run.
    pub request_id: String,
    /// Request id of the start that created the base: if repeated, it gets the new run.
    pub start_request_id: String,
    /// The schedule that is notified when the chain ends.
    pub schedule_id: Option<Arc<str>>,
    /// Events after the reset point, in order; see `Reapplied`.
    pub events: Vec<HistoryEvent>,
    /// Option changes of the new run, before it begins.
    pub options: Vec<UpdateOptions>,
}

/// Kinds of events after the reset point that are reapplied to the new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reapplied {
    signals: bool,
    updates: bool,
    /// Outcomes of children that the new run shares, and changes of options.
    rest: bool,
}

impl Reapplied {
    /// Clients name exclusions; old clients name inclusions.
    #[must_use]
    #[expect(deprecated, reason = "a client that leaves out all that there is may still name it")]
    pub fn new(included: ResetReapplyType, excluded: &[ResetReapplyExcludeType]) -> Self {
        const ALL: [ResetReapplyExcludeType; 4] = [
            ResetReapplyExcludeType::Signal,
            ResetReapplyExcludeType::Update,
            ResetReapplyExcludeType::Nexus,
            ResetReapplyExcludeType::CancelRequest,
        ];
        let mut excluded = excluded.to_vec();
        match included {
            ResetReapplyType::Unspecified | ResetReapplyType::AllEligible => {}
            ResetReapplyType::Signal => excluded.push(ResetReapplyExcludeType::Update),
            ResetReapplyType::None => {
                excluded.extend([ResetReapplyExcludeType::Signal, ResetReapplyExcludeType::Update]);
            }
        }
        Self {
            signals: !excluded.contains(&ResetReapplyExcludeType::Signal),
            updates: !excluded.contains(&ResetReapplyExcludeType::Update),
            rest: !ALL.iter().all(|kind| excluded.contains(kind)),
        }
    }

    #[must_use]
    pub fn includes(self, event: &HistoryEvent) -> bool {
        let is_signal = matches!(event.attributes, Some(Attributes::WorkflowExecutionSignaledEventAttributes(_)));
        (self.signals && is_signal)
            || (self.updates && update::is_brought_by(event))
            || (self.rest && (child::is_outcome(event) || options::is_change(event)))
    }
}

/// The first workflow task that a version of the worker completed in a chain of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetPoint {
    pub binary_checksum: String,
    pub build_id: String,
    pub run_id: RunId,
    pub first_task_completed_event_id: EventId,
    pub created_at: Timestamp,
    /// Time from which the run may be deleted; `None` while it is open.
    pub expires_at: Option<Timestamp>,
    pub is_resettable: bool,
}

/// Starts a run from the prefix of another run's history that was replayed into this state.
///
/// # Errors
/// If that prefix does not end with a workflow task that is scheduled or started, or failed and is retried.
pub fn reset(replayed: &ExecutionState, reset: Reset, facts: &Facts) -> Result<Box<Transition>, Rejection> {
    assert!(replayed.is_running(), "a run is reset to a point before its end");
    let mut draft = Draft::from_part(replayed, facts);
    draft.state.unrecorded.start_request_id.clone_from(&reset.start_request_id);
    draft.state.unrecorded.reset_request_id.clone_from(&reset.request_id);
    draft.state.unrecorded.schedule_id.clone_from(&reset.schedule_id);
    fail_workflow_task(&mut draft, &reset)?;
    wake(&mut draft);
    fail_activities(&mut draft, &reset.reason);
    for event in reset.events {
        reapply(&mut draft, event);
    }
    for change in reset.options {
        options::update(&mut draft, change);
    }
    workflow_task::ensure(&mut draft);
    let run_id = draft.state.key.run_id;
    Ok(draft.finish(Reply::Started { run_id, task: None }))
}

/// Stores in the base of a reset the run that replaces it.
pub(crate) fn leave_to(draft: &mut Draft, run_id: RunId) -> Outcome {
    draft.state.unrecorded.reset_run_id = Some(run_id);
    Outcome::Changed(Reply::Done)
}

/// Fails the workflow task that the new run begins with; the same event names the base run.
fn fail_workflow_task(draft: &mut Draft, reset: &Reset) -> Result<(), Rejection> {
    let fork_event_version = draft.state.last_version();
    // After a workflow task that failed, or timed out at its worker, another attempt is always pending. It left no
    // event, so the new run records it as a first attempt.
    if draft.state.workflow_task == WorkflowTask::None && draft.state.workflow_task_attempt > 1 {
        draft.state.workflow_task_attempt = 1;
        workflow_task::schedule(draft, draft.now());
    }
    let Some(scheduled) = draft.state.workflow_task.scheduled() else {
        return Err(Rejection::InvalidArgument(format!(
            "Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: {}",
            draft.state.next_event_id
        )));
    };
    let scheduled_event_id = scheduled.event_id;
    if !draft.state.workflow_task.is_running() {
        let (request_id, identity) = (NO_REQUEST.to_owned(), SERVER_IDENTITY.to_owned());
        workflow_task::record_start(
            draft,
            Starting { request_id, identity, n_waiting_updates: 0, worker_version: None },
        );
    }
    let WorkflowTask::Running(_, running) = &draft.state.workflow_task else { unreachable!("it was just started") };
    let failed = WorkflowTaskFailedEventAttributes {
        scheduled_event_id: scheduled_event_id.0,
        started_event_id: running.event_id.0,
        cause: WorkflowTaskFailedCause::ResetWorkflow.into(),
        failure: Some(failure(&reset.reason)),
        identity: SERVER_IDENTITY.to_owned(),
        base_run_id: reset.base_run_id.to_string(),
        new_run_id: draft.state.key.run_id.to_string(),
        fork_event_version,
        ..Default::default()
    };
    draft.record(Attributes::WorkflowTaskFailedEventAttributes(failed));
    Ok(())
}

/// Creates queue tasks for pending items: those of the base run do not cover this run.
fn wake(draft: &mut Draft) {
    let version = draft.version();
    if let Some(expires_at) = draft.state.started.run_expires_at {
        draft.timer(expires_at, TimerTask::RunTimeout { version });
    }
    let timers: Vec<_> =
        draft.state.timers.iter().map(|(_, timer)| (timer.fires_at, timer.started_event_id, timer.version)).collect();
    for (fires_at, started_event_id, version) in timers {
        draft.timer(fires_at, TimerTask::UserTimer { started_event_id, version });
    }
    let is_waiting = |(_, activity): &(i64, &activity::Activity)| activity.unrecorded.started.is_none();
    let waiting: Vec<i64> = draft.state.activities.iter().filter(is_waiting).map(|(id, _)| id).collect();
    for id in waiting {
        activity::dispatch(draft, EventId(id));
        activity::arm_timer(draft, EventId(id));
    }
    let children = draft.state.children.iter().map(|(_, child)| (child.initiated_event_id, child.version));
    // A started child may still wait for its first workflow task, which this run's queue task then schedules.
    let children: Vec<_> = children.collect();
    for (initiated_event_id, version) in children {
        draft.transfer(TransferTask::StartChild { initiated_event_id, version });
    }
    external::send_pending(draft);
}

/// Fails started activities: their workers cannot answer to this run.
fn fail_activities(draft: &mut Draft, reason: &str) {
    let failures = draft.state.activities.iter().filter_map(|(id, activity)| {
        let started = activity.unrecorded.started.as_ref()?;
        Some(Attributes::ActivityTaskFailedEventAttributes(ActivityTaskFailedEventAttributes {
            failure: Some(failure(reason)),
            scheduled_event_id: id,
            started_event_id: started.event_id.map_or(0, |event| event.0),
            identity: started.identity.clone(),
            retry_state: RetryState::NonRetryableFailure.into(),
            ..Default::default()
        }))
    });
    for failed in failures.collect::<Vec<_>>() {
        draft.record(failed);
    }
}

/// Reapplies an event of the base run.
fn reapply(draft: &mut Draft, event: HistoryEvent) {
    if child::is_outcome(&event) {
        child::reapply(draft, event);
        return;
    }
    if options::is_change(&event) {
        options::reapply(draft, event);
        return;
    }
    if update::is_brought_by(&event) {
        update::reapply(draft, &event);
        return;
    }
    let Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) = event.attributes else { return };
    let again = WorkflowExecutionSignaledEventAttributes {
        signal_name: signal.signal_name,
        input: signal.input,
        identity: signal.identity,
        header: signal.header,
        request_id: signal.request_id,
        ..Default::default()
    };
    let what = Attributes::WorkflowExecutionSignaledEventAttributes(again);
    draft.record(Entry { links: event.links, ..what.into() });
}

fn failure(reason: &str) -> Failure {
    let info = ResetWorkflowFailureInfo { last_heartbeat_details: None };
    Failure {
        message: reason.to_owned(),
        failure_info: Some(FailureInfo::ResetWorkflowFailureInfo(info)),
        ..Default::default()
    }
}

/// A workflow task failed because of a reset: timeouts of the run and of unstarted activities restart.
pub(crate) fn apply_reset(state: &mut ExecutionState, event: &HistoryEvent) {
    let at = event.event_time.map_or(state.started.started_at, Timestamp::from);
    let started = Arc::make_mut(&mut state.started);
    started.reset_at = Some(at);
    started.execution_expires_at = started.execution_timeout.map(|timeout| at + timeout);
    started.run_expires_at = started.run_timeout.map(|timeout| {
        let expires_at = at + timeout;
        started.execution_expires_at.map_or(expires_at, |of_chain| expires_at.min(of_chain))
    });
    let ids: Vec<i64> = state.activities.iter().map(|(id, _)| id).collect();
    for id in ids {
        let activity = state.activities.get_mut(id).expect("its id was just read");
        if activity.unrecorded.started.is_none() {
            activity.scheduled_at = at;
            activity.unrecorded = ActivityProgress::first_attempt(at);
        }
    }
}

/// Adds a reset point for the first workflow task that a worker version completed.
#[expect(deprecated, reason = "old workers send a checksum, newer ones a stamp")]
pub(crate) fn apply_point(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    completed: &WorkflowTaskCompletedEventAttributes,
) {
    let build_id = completed.worker_version.as_ref().map(|stamp| stamp.build_id.clone()).unwrap_or_default();
    let checksum = &completed.binary_checksum;
    let is_known = |point: &ResetPoint| point.binary_checksum == *checksum && point.build_id == build_id;
    if state.reset_points.iter().any(is_known) {
        return;
    }
    let point = ResetPoint {
        binary_checksum: checksum.clone(),
        build_id,
        run_id: state.key.run_id,
        first_task_completed_event_id: EventId(event.event_id),
        created_at: event.event_time.map_or(state.started.started_at, Timestamp::from),
        expires_at: None,
        is_resettable: state.children.is_empty()
            && state.external_signals.is_empty()
            && state.external_cancels.is_empty(),
    };
    let points = Arc::make_mut(&mut state.reset_points);
    points.push(point);
    let n_too_many = points.len().saturating_sub(POINTS_MAX);
    points.drain(..n_too_many);
    if !checksum.is_empty() {
        worker_version::apply_checksums(state);
    }
}

/// Reset points that a closing run passes to the next one of its chain: its own expire with its retention.
pub(crate) fn points_left(state: &ExecutionState, facts: &Facts) -> Arc<Vec<ResetPoint>> {
    let is_good = |point: &&ResetPoint| point.expires_at.is_none_or(|at| at >= facts.now);
    let left = state.reset_points.iter().filter(is_good).cloned().map(|point| {
        let is_own = point.run_id == state.key.run_id;
        ResetPoint { expires_at: if is_own { Some(facts.now + facts.retention) } else { point.expires_at }, ..point }
    });
    Arc::new(left.collect())
}

impl From<&ResetPoint> for ResetPointInfo {
    #[expect(deprecated, reason = "old workers send a checksum")]
    fn from(point: &ResetPoint) -> Self {
        Self {
            binary_checksum: point.binary_checksum.clone(),
            build_id: point.build_id.clone(),
            run_id: point.run_id.to_string(),
            first_workflow_task_completed_id: point.first_task_completed_event_id.0,
            create_time: Some(point.created_at.into()),
            expire_time: point.expires_at.map(Into::into),
            resettable: point.is_resettable,
        }
    }
}

/// A reset point of an earlier run of the chain, from a run's first event.
#[expect(deprecated, reason = "old workers send a checksum")]
pub(crate) fn point(info: &ResetPointInfo) -> Option<ResetPoint> {
    Some(ResetPoint {
        binary_checksum: info.binary_checksum.clone(),
        build_id: info.build_id.clone(),
        run_id: RunId(Uuid::parse_str(&info.run_id).ok()?),
        first_task_completed_event_id: EventId(info.first_workflow_task_completed_id),
        created_at: info.create_time.map_or(Timestamp(0), Timestamp::from),
        expires_at: info.expire_time.map(Timestamp::from),
        is_resettable: info.resettable,
    })
}

impl Started {
    /// Start time of the run itself: its first event may be that of a base run.
    #[must_use]
    pub fn began_at(&self) -> Timestamp {
        self.reset_at.unwrap_or(self.started_at)
    }
}
