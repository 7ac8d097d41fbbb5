//! A schedule: its definition and state.

use std::sync::Arc;
use std::time::Duration;

use cluster::spans;
use proto::temporal::api::common::v1::{Memo, Payloads, SearchAttributes, WorkflowExecution};
use proto::temporal::api::enums::v1::ScheduleOverlapPolicy;
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::schedule::v1 as public;
use workflow::{ExecutionKey, NamespaceId, RunId, Timestamp};

use super::spec::Spec;

/// Catch-up window if the schedule sets none.
const CATCHUP_WINDOW_DEFAULT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Lower bound of the catch-up window.
const CATCHUP_WINDOW_MIN: Duration = Duration::from_secs(10);
/// Buffered starts at most, and backfills at most.
pub(super) const BUFFER_MAX: usize = 1000;
/// Recent actions kept per schedule.
pub(super) const RECENT_ACTIONS: usize = 10;
/// Request ids kept per schedule for deduplication.
const REQUESTS_MAX: usize = 32;
/// Conflict token of a new schedule.
const FIRST_CONFLICT_TOKEN: i64 = 1;

#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub key: Key,
    /// Counts its transitions.
    pub version: i64,
    /// In its canonical form, with defaults filled in.
    pub definition: public::Schedule,
    pub memo: Memo,
    pub search_attributes: SearchAttributes,
    pub conflict_token: i64,
    pub moments: Moments,
    pub work: Work,
    pub counts: Counts,
    pub recent_actions: Vec<public::ScheduleActionResult>,
    pub carried: Carried,
    pub requests: Requests,
    /// Deleted, or idle past its retention: it is no longer found, and its rows are removed.
    pub is_over: bool,
}

/// Identity of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub namespace_id: NamespaceId,
    pub schedule_id: Arc<str>,
    /// Distinguishes it from an earlier one of the same id.
    pub run_id: RunId,
    /// The segment of the namespace's visibility rows that has it.
    pub listed_in: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    /// Times up to here are processed.
    pub processed_at: Timestamp,
    /// When its timer fires; `None` if it waits for requests and closing runs only.
    pub wakes_at: Option<Timestamp>,
}

/// Unfinished work of a schedule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Work {
    /// Starts waiting for their turn.
    pub buffer: Vec<Start>,
    /// Remaining backfills; the first is in progress.
    pub backfills: Vec<public::BackfillRequest>,
    /// Starts that are decided and not acknowledged.
    pub starting: Vec<Start>,
    /// Runs that it waits for to close.
    pub running: Vec<Running>,
    pub next_start_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub id: i64,
    pub nominal_at: Timestamp,
    /// `nominal_at` plus jitter.
    pub acts_at: Timestamp,
    /// As requested; unspecified is the schedule's own policy by the time of the decision.
    pub overlap_policy: ScheduleOverlapPolicy,
    /// By a trigger or a backfill: starts even if the schedule is paused.
    pub is_manual: bool,
    /// Started beside other runs; its close is not waited for.
    pub overlaps: bool,
    /// Retry deadline.
    pub gives_up_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// The first run of its chain.
    pub execution: WorkflowExecution,
    /// The stop request to send, to make room for the next run.
    pub stop: Option<Stop>,
    pub is_stop_asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    Cancel,
    Terminate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub actions: i64,
    pub missed_catchup_window: i64,
    pub overlap_skipped: i64,
    pub buffer_dropped: i64,
}

/// Result and failure that one run carries over to the next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Carried {
    pub last_completion_result: Option<Payloads>,
    pub continued_failure: Option<Failure>,
}

/// Request ids for deduplication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requests {
    pub create: String,
    /// Of the last updates and patches.
    pub changes: Vec<String>,
}

impl Requests {
    pub(super) fn knows(&self, request_id: &str) -> bool {
        !request_id.is_empty() && self.changes.iter().any(|known| known == request_id)
    }

    pub(super) fn remember(&mut self, request_id: String) {
        if self.changes.len() == REQUESTS_MAX {
            self.changes.remove(0);
        }
        self.changes.push(request_id);
    }
}

/// A schedule to create.
pub struct Created {
    pub key: Key,
    pub definition: public::Schedule,
    pub memo: Memo,
    pub search_attributes: SearchAttributes,
    pub request_id: String,
}

impl Schedule {
    pub(super) fn new(created: Created, now: Timestamp) -> Self {
        let Created { key, mut definition, memo, search_attributes, request_id } = created;
        fill_in(&mut definition);
        Self {
            key,
            version: 0,
            definition,
            memo,
            search_attributes,
            conflict_token: FIRST_CONFLICT_TOKEN,
            moments: Moments { created_at: now, updated_at: None, processed_at: now, wakes_at: None },
            work: Work::default(),
            counts: Counts::default(),
            recent_actions: Vec::new(),
            carried: Carried::default(),
            requests: Requests { create: request_id, changes: Vec::new() },
            is_over: false,
        }
    }

    pub fn spec(&self) -> Result<Spec, String> {
        self.definition.spec.as_ref().map_or_else(|| Spec::parse(&public::ScheduleSpec::default()), Spec::parse)
    }

    /// Jitter differs between schedules, and is stable for each.
    pub fn jitter_seed(&self) -> String {
        format!("{}-{}", self.key.namespace_id, self.key.schedule_id)
    }

    pub fn state(&self) -> public::ScheduleState {
        self.definition.state.clone().unwrap_or_default()
    }

    pub fn is_paused(&self) -> bool {
        self.definition.state.as_ref().is_some_and(|state| state.paused)
    }

    pub(super) fn state_mut(&mut self) -> &mut public::ScheduleState {
        self.definition.state.get_or_insert_default()
    }

    pub fn policies(&self) -> public::SchedulePolicies {
        self.definition.policies.unwrap_or_default()
    }

    /// Resolves the policy of a start: unspecified is the schedule's own.
    pub(super) fn overlap_policy(&self, asked: ScheduleOverlapPolicy) -> ScheduleOverlapPolicy {
        resolved(asked, self.policies().overlap_policy())
    }

    pub(super) fn catchup_window(&self) -> Duration {
        catchup_window(self.policies().catchup_window)
    }

    /// Whether decided actions are not acknowledged yet.
    pub fn has_actions(&self) -> bool {
        !self.work.starting.is_empty() || self.stops().next().is_some()
    }

    /// Stop requests to send.
    pub fn stops(&self) -> impl Iterator<Item = (&WorkflowExecution, Stop)> {
        let waiting = self.work.running.iter().filter(|run| !run.is_stop_asked);
        waiting.filter_map(|run| run.stop.map(|stop| (&run.execution, stop)))
    }

    /// The schedule's key in queue tasks.
    pub fn task_key(&self) -> ExecutionKey {
        let Key { namespace_id, schedule_id, run_id, .. } = &self.key;
        ExecutionKey { namespace_id: *namespace_id, workflow_id: Arc::clone(schedule_id), run_id: *run_id }
    }
}

/// Fills in defaults, so that describe shows them.
pub(super) fn fill_in(definition: &mut public::Schedule) {
    definition.spec.get_or_insert_default();
    definition.action.get_or_insert_default();
    definition.state.get_or_insert_default();
    let policies = definition.policies.get_or_insert_default();
    policies.set_overlap_policy(resolved(ScheduleOverlapPolicy::Unspecified, policies.overlap_policy()));
    policies.catchup_window = catchup_window(policies.catchup_window).try_into().ok();
}

fn resolved(asked: ScheduleOverlapPolicy, own: ScheduleOverlapPolicy) -> ScheduleOverlapPolicy {
    let given = [asked, own].into_iter().find(|policy| *policy != ScheduleOverlapPolicy::Unspecified);
    given.unwrap_or(ScheduleOverlapPolicy::Skip)
}

fn catchup_window(given: Option<prost_types::Duration>) -> Duration {
    let Some(given) = given else { return CATCHUP_WINDOW_DEFAULT };
    // Negative durations become the minimum.
    spans::from_proto(given).unwrap_or_default().max(CATCHUP_WINDOW_MIN)
}
