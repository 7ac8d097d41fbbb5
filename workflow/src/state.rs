//! ExecutionState: the state of a run, and `check`: its invariants, each with a name.

use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::common::v1::{Memo, Priority, SearchAttributes};
use proto::temporal::api::history::v1::HistoryEvent;

use crate::activity::Activity;
use crate::branch::{Branch, VersionHistoryItem};
use crate::child::Child;
use crate::close::Closed;
use crate::external::ExternalRequest;
use crate::ids::{EventId, ExecutionKey, RunId};
use crate::items::Items;
use crate::options::{CompletionCallback, KnownRequest};
use crate::pause::Pause;
use crate::request_ids::RequestIds;
use crate::reset::ResetPoint;
use crate::start::Started;
use crate::time::Timestamp;
use crate::timer::Timer;
use crate::update::Update;
use crate::workflow_task::WorkflowTask;

/// Replaying a run's events rebuilds this state, except what is `unrecorded`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionState {
    pub key: ExecutionKey,
    /// Start parameters. Immutable once the run is stored.
    pub started: Arc<Started>,
    pub status: Status,
    pub closed: Option<Closed>,
    /// The id that the next recorded event will get.
    pub next_event_id: EventId,
    pub branch: Arc<Branch>,
    /// Failover versions and the events written under each; newest last.
    pub version_history: Vec<VersionHistoryItem>,
    pub workflow_task: WorkflowTask,
    /// Attempt of the pending workflow task, or of the next one; counts from 1. Above 1 the task is transient.
    pub workflow_task_attempt: i32,
    /// Started event of the last completed workflow task: a worker's cache has seen events up to it.
    pub last_completed_started_event_id: Option<EventId>,
    /// Pending activities, by scheduled event id.
    pub activities: Items<Activity>,
    /// Pending user timers, by started event id.
    pub timers: Items<Timer>,
    /// Children not known to be closed, by initiated event id. They stay when the run closes.
    pub children: Items<Child>,
    /// Signals to other workflows without a recorded outcome, by initiated event id.
    pub external_signals: Items<ExternalRequest>,
    /// Cancel requests to other workflows without a recorded outcome, by initiated event id.
    pub external_cancels: Items<ExternalRequest>,
    /// Event of the first cancel request.
    pub cancel_requested: Option<EventId>,
    /// Request ids of recorded signals, by event id, for deduplication.
    pub signal_request_ids: RequestIds,
    pub n_signals: i64,
    /// Updates in history, also completed ones, by first event id.
    pub updates: Items<Update>,
    /// Bytes of all recorded events.
    pub history_size: i64,
    pub memo: Arc<Memo>,
    pub search_attributes: Arc<SearchAttributes>,
    /// Current priority; may differ from the one at the start.
    pub priority: Option<Priority>,
    /// Completion callbacks; stored but not called.
    pub callbacks: Arc<Vec<CompletionCallback>>,
    /// Request ids of starts that joined the run.
    pub known_requests: Arc<Vec<KnownRequest>>,
    /// Reset points, one for each worker version; oldest first.
    pub reset_points: Arc<Vec<ResetPoint>>,
    /// Set while the run is paused.
    pub pause: Option<Pause>,
    pub unrecorded: Unrecorded,
}

/// State that no event records: it is stored, but a replay does not restore it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unrecorded {
    /// Counts the transitions of this run; stored as its `version`, so that a lost write is noticed on load.
    pub db_record_version: i64,
    /// Transaction id of the newest history node, which marks that node as committed.
    pub last_txn_id: i64,
    pub sticky: Option<Sticky>,
    /// Events buffered until the workflow task in flight ends, by sequence number.
    pub buffered_events: Items<HistoryEvent>,
    /// Last sequence number of a buffered event. Never reused, so that all buffered events can be deleted as a range.
    pub last_waiting_place: i64,
    pub last_updated_at: Option<Timestamp>,
    /// Request id of the start that created this run: a repeated start gets the same run.
    pub start_request_id: String,
    /// Request id of the reset that created this run: a repeated reset gets the same run.
    pub reset_request_id: String,
    /// Request id of the cancel request, recorded or buffered.
    pub cancel_request_id: Option<String>,
    /// The run that this one was last reset to.
    pub reset_run_id: Option<RunId>,
    /// The last workflow task could not close the run: signals and updates get "busy" while the next one is in flight.
    pub is_closing: bool,
    pub listing: Listing,
    /// The schedule that started the run, or the first of its chain; notified when the chain ends.
    pub schedule_id: Option<Arc<str>>,
}

/// Visibility segments of the run, whose rows are grouped with others that started, or closed, at about the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listing {
    pub started_in: i64,
    /// Set once the run is closed.
    pub closed_in: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Running,
    Completed,
    Failed,
    Canceled,
    Terminated,
    ContinuedAsNew,
    TimedOut,
}

impl Status {
    /// A close status after which the policy "allow duplicate if the last run failed" allows another start.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Canceled | Self::Terminated | Self::TimedOut)
    }
}

/// Sticky queue of the worker that has the run in its cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Sticky {
    pub task_queue: String,
    pub schedule_to_start_timeout: Duration,
}

impl ExecutionState {
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    #[must_use]
    pub fn last_event_id(&self) -> EventId {
        EventId(self.next_event_id.0 - 1)
    }

    /// The failover version of the newest event.
    #[must_use]
    pub fn last_version(&self) -> i64 {
        self.version_history.last().map_or(0, |item| item.version)
    }

    /// The first workflow task is delayed and not yet scheduled.
    #[must_use]
    pub fn waits_for_first_task(&self) -> bool {
        !self.started.first_task_backoff.is_zero() && !self.had_workflow_task()
    }

    pub(crate) fn had_workflow_task(&self) -> bool {
        self.workflow_task != WorkflowTask::None || self.last_completed_started_event_id.is_some()
    }

    /// The state that a replay of this run's events gives: states that differ only in unrecorded parts become equal.
    #[must_use]
    pub fn without_unrecorded(&self) -> Self {
        let mut recorded = self.clone();
        recorded.unrecorded = Unrecorded::default();
        recorded.workflow_task.forget_unrecorded();
        // Further failures of a workflow task leave no event: history records only that it fails.
        recorded.workflow_task_attempt = recorded.workflow_task_attempt.min(2);
        let ids: Vec<i64> = recorded.activities.iter().map(|(id, _)| id).collect();
        for id in ids {
            let activity = recorded.activities.get_mut(id).expect("its id was just read");
            activity.forget_unrecorded();
        }
        recorded
    }

    /// Asserts every invariant by its name.
    pub fn check(&self) {
        assert!(self.next_event_id > EventId::FIRST, "I1 the first event is recorded");
        self.check_history();
        self.check_workflow_task();
        self.check_items();
        self.check_others();
        self.check_close();
    }

    fn check_history(&self) {
        let last = self.version_history.last().expect("I2 version history covers all events");
        assert_eq!(last.event_id, self.last_event_id(), "I2 version history covers all events");
        let is_ordered =
            |pair: &[VersionHistoryItem]| pair[0].event_id < pair[1].event_id && pair[0].version < pair[1].version;
        assert!(self.version_history.windows(2).all(is_ordered), "I3 version history only grows");
        assert!(self.history_size > 0, "I4 recorded events have a size");
    }

    fn check_workflow_task(&self) {
        assert!(self.workflow_task_attempt >= 1, "I5 attempts count from one");
        if let Some(started) = self.last_completed_started_event_id {
            assert!(started < self.next_event_id, "I6 the last completed task lies in history");
        }
        if let Some(scheduled) = self.workflow_task.scheduled() {
            assert_eq!(scheduled.attempt, self.workflow_task_attempt, "I7 a task has the attempt of its run");
            if scheduled.is_recorded() {
                assert!(scheduled.event_id < self.next_event_id, "I8 a normal task is recorded");
            }
            assert!(scheduled.event_id <= self.next_event_id, "I9 a transient task stands at the end of history");
            if scheduled.is_speculative {
                assert_eq!(
                    scheduled.event_id, self.next_event_id,
                    "I24 nothing is recorded while a speculative task is pending"
                );
                assert_eq!(scheduled.attempt, 1, "I25 a speculative task is a first attempt");
            }
        }
        let waits = matches!(self.workflow_task, WorkflowTask::Scheduled(_));
        assert!(!waits || self.pause.is_none(), "I35 no workflow task of a paused run waits for a worker");
        if let WorkflowTask::Running(scheduled, running) = &self.workflow_task {
            assert!(scheduled.event_id < running.event_id, "I10 a task is scheduled before it is started");
            if !scheduled.is_recorded() {
                assert_eq!(
                    scheduled.event_id, self.next_event_id,
                    "I11 nothing is recorded while a transient task runs"
                );
            } else {
                assert_eq!(running.event_id, self.last_event_id(), "I12 nothing is recorded while a task runs");
            }
        } else {
            assert!(self.unrecorded.buffered_events.is_empty(), "I13 events wait only for a task in flight");
        }
        let last = self.unrecorded.buffered_events.iter().next_back();
        let last_place = self.unrecorded.last_waiting_place;
        assert!(last.is_none_or(|(place, _)| place <= last_place), "I36 a place in the line is not given twice");
    }

    fn check_items(&self) {
        for (id, activity) in self.activities.iter() {
            assert_eq!(id, activity.scheduled_event_id.0, "I14 an activity is found by its scheduled event");
            assert!(activity.scheduled_event_id < self.next_event_id, "I15 a pending activity lies in history");
            assert!(activity.unrecorded.attempt >= 1, "I16 attempts of an activity count from one");
        }
        for (id, timer) in self.timers.iter() {
            assert_eq!(id, timer.started_event_id.0, "I17 a timer is found by its started event");
            assert!(timer.started_event_id < self.next_event_id, "I18 a pending timer lies in history");
        }
        for (id, update) in self.updates.iter() {
            assert_eq!(id, update.first_event_id().0, "I26 an update is found by its first event");
            assert!(update.first_event_id() < self.next_event_id, "I27 an update lies in history");
            assert!(update.is_accepted() || update.completed.is_none(), "I28 only an accepted update completes");
        }
        let n_ids = i64::try_from(self.signal_request_ids.len()).expect("a count of items in memory fits");
        assert!(n_ids <= self.n_signals, "I19 a request id belongs to a recorded signal");
    }

    /// Children and requests to other workflows.
    fn check_others(&self) {
        for (id, child) in self.children.iter() {
            assert_eq!(id, child.initiated_event_id.0, "I29 a child is found by its initiated event");
            assert!(child.initiated_event_id < self.next_event_id, "I30 a pending child lies in history");
            let started = child.started.as_ref().map_or(child.initiated_event_id, |started| started.event_id);
            assert!(started >= child.initiated_event_id, "I31 a child is initiated before it is started");
            assert!(started < self.next_event_id, "I32 the start of a child lies in history");
        }
        for (id, request) in self.external_signals.iter().chain(self.external_cancels.iter()) {
            assert_eq!(id, request.initiated_event_id.0, "I33 a request is found by its initiated event");
            assert!(request.initiated_event_id < self.next_event_id, "I34 a pending request lies in history");
        }
    }

    fn check_close(&self) {
        assert_eq!(self.is_running(), self.closed.is_none(), "I20 exactly a closed run has an end");
        if let Some(closed) = &self.closed {
            assert_eq!(closed.event_id, self.last_event_id(), "I21 nothing is recorded after the end");
            assert_eq!(self.workflow_task, WorkflowTask::None, "I22 a closed run has no workflow task");
            assert!(self.unrecorded.buffered_events.is_empty(), "I23 nothing waits for a closed run");
        }
    }
}
