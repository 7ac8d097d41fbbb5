//! Facts: what a decision takes from outside: the time, ids made beforehand, and the limits of a run.

use std::time::Duration;

use uuid::Uuid;

use crate::ids::RunId;
use crate::time::Timestamp;

/// Environment of a decision.
#[derive(Debug, Clone)]
pub struct Facts {
    pub now: Timestamp,
    pub failover_version: i64,
    /// Id of the next run, if this transition creates one.
    pub new_run_id: RunId,
    /// Request id of that run's start, which no client sent.
    pub new_request_id: Uuid,
    /// Retention of a run that closes now.
    pub retention: Duration,
    /// Visibility segment of a run that starts or closes now.
    pub segment: i64,
    pub limits: Limits,
}

/// Limits with the reference's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    pub blob_size: usize,
    pub history_size: i64,
    pub history_count: i64,
    /// Bytes of a run besides its history.
    pub mutable_state_size: usize,
    pub suggest_continue_as_new_size: i64,
    pub suggest_continue_as_new_count: i64,
    pub pending_activities: usize,
    pub pending_children: usize,
    pub pending_external_signals: usize,
    pub pending_external_cancels: usize,
    /// The reference has no such limit. Each timer is a row that is written under the run's lock, and each firing scans
    /// all timers.
    pub pending_timers: usize,
    pub signals: i64,
    /// Updates that are not completed.
    pub updates_in_flight: usize,
    /// Bytes of updates that no worker has answered.
    pub updates_in_flight_size: usize,
    /// Updates of one run in any state, except rejected ones.
    pub updates: usize,
    pub suggest_continue_as_new_updates: usize,
    /// Events that may be sent to a worker again after a discarded speculative task.
    pub discarded_events: i64,
    pub callbacks: usize,
    /// Bytes of the events of one transition.
    pub transaction_size: i64,
    pub buffered_events: usize,
    pub buffered_events_size: usize,
    pub id_length: usize,
    /// Bytes of the data of one search attribute.
    pub search_attribute_value_size: usize,
    /// Bytes of all search attributes of a run.
    pub search_attributes_size: usize,
    pub default_task_timeout: Duration,
    pub task_timeout_max: Duration,
    /// Longest time that a worker may keep a workflow task alive without a command.
    pub task_heartbeat_timeout: Duration,
    /// Maximum backoff added to the timeout of a workflow task that keeps failing.
    pub task_retry_interval_max: Duration,
    /// Minimum time between the starts of consecutive runs of a chain.
    pub start_interval_min: Duration,
    /// Bytes of a failure that is kept for the next attempt of an activity.
    pub activity_failure_size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_size: 2 * 1024 * 1024,
            history_size: 50 * 1024 * 1024,
            history_count: 50 * 1024,
            mutable_state_size: 8 * 1024 * 1024,
            suggest_continue_as_new_size: 4 * 1024 * 1024,
            suggest_continue_as_new_count: 4 * 1024,
            pending_activities: 2000,
            pending_children: 2000,
            pending_external_signals: 2000,
            pending_external_cancels: 2000,
            pending_timers: 10_000,
            signals: 10_000,
            updates_in_flight: 10,
            updates_in_flight_size: 20 * 1024 * 1024,
            updates: 2000,
            suggest_continue_as_new_updates: 1800,
            discarded_events: 10,
            callbacks: 32,
            transaction_size: 4 * 1024 * 1024,
            buffered_events: 100,
            buffered_events_size: 2 * 1024 * 1024,
            id_length: 1000,
            search_attribute_value_size: 2 * 1024,
            search_attributes_size: 40 * 1024,
            default_task_timeout: Duration::from_secs(10),
            task_timeout_max: Duration::from_secs(120),
            task_heartbeat_timeout: Duration::from_secs(30 * 60),
            task_retry_interval_max: Duration::from_secs(10 * 60),
            start_interval_min: Duration::from_secs(1),
            activity_failure_size: 4 * 1024,
        }
    }
}
