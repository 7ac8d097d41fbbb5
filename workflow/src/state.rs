//! ExecutionState: what a run is, and `check`: what must hold of it, each invariant with a name.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::common::v1::{Memo, SearchAttributes};
use proto::temporal::api::history::v1::HistoryEvent;

use crate::activity::Activity;
use crate::branch::{Branch, VersionHistoryItem};
use crate::close::Closed;
use crate::ids::{EventId, ExecutionKey};
use crate::items::Items;
use crate::start::Started;
use crate::time::Timestamp;
use crate::timer::Timer;
use crate::workflow_task::WorkflowTask;

/// Replaying a run's events gives this state again, save for what is `unrecorded`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionState {
    pub key: ExecutionKey,
    /// How it was started. Never changes.
    pub started: Arc<Started>,
    pub status: Status,
    pub closed: Option<Closed>,
    /// The id that the next recorded event will get.
    pub next_event_id: EventId,
    pub branch: Arc<Branch>,
    /// Which failover version wrote which events; the last item is the newest.
    pub version_history: Vec<VersionHistoryItem>,
    pub workflow_task: WorkflowTask,
    /// Of the pending workflow task, or of the next one; counts from 1. Above 1 the task is transient.
    pub workflow_task_attempt: i32,
    /// Started event of the last workflow task that completed: what a worker's cache has seen.
    pub last_completed_started_event_id: Option<EventId>,
    /// Pending activities, by scheduled event id.
    pub activities: Items<Activity>,
    /// Pending user timers, by started event id.
    pub timers: Items<Timer>,
    /// Event of the first cancel request.
    pub cancel_requested: Option<EventId>,
    /// Request ids of recorded signals, by event id: a repeated request is not a second signal.
    pub signal_request_ids: Items<String>,
    pub n_signals: i64,
    /// Bytes of all recorded events.
    pub history_size: i64,
    pub memo: Arc<Memo>,
    pub search_attributes: Arc<SearchAttributes>,
    pub unrecorded: Unrecorded,
}

/// What no event tells: it is stored, but a replay does not bring it back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unrecorded {
    /// Counts the transitions of this run; stored as its `version`, so that a lost write is noticed on load.
    pub db_record_version: i64,
    /// Transaction id of the newest history node, which names it as real.
    pub last_txn_id: i64,
    pub sticky: Option<Sticky>,
    /// Events that wait for the workflow task in flight to end, by their place in the line.
    pub buffered_events: Items<HistoryEvent>,
    pub last_updated_at: Option<Timestamp>,
    /// Of the start that made this run: the same request gets the same run.
    pub start_request_id: String,
    /// Of the cancel request, recorded or buffered.
    pub cancel_request_id: Option<String>,
    /// The last workflow task tried to close the run and could not: signals wait until the next one has ended.
    pub is_closing: bool,
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

/// The worker that has the run in its cache, and the queue it listens to.
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

    /// What a replay of this run's events gives.
    #[must_use]
    pub fn without_unrecorded(&self) -> Self {
        self.clone()
    }

    /// Asserts every invariant by its name.
    pub fn check(&self) {
        assert!(self.next_event_id > EventId::FIRST, "I1 the first event is recorded");
    }

    /// Request ids are also needed as a set; it is small, and built where it is asked for.
    #[must_use]
    pub fn known_signal_requests(&self) -> BTreeSet<&str> {
        self.signal_request_ids.iter().map(|(_, id)| id.as_str()).collect()
    }
}
