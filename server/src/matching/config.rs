//! Settings of the matching service.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchingConfig {
    /// Duration of a poll without a task, in milliseconds. Load balancers often cut connections that are silent for
    /// more than a minute.
    pub long_poll_ms: u64,
    /// Polls waiting at once, over all task queues of the node. Each holds a connection's stream and a few kilobytes.
    pub outstanding_polls: usize,
    /// Task queues loaded at once, about 4 kB each. Beyond it unused queues are unloaded early, then calls on new
    /// queues are rejected: a tenant that invents a queue per request must not take the node's memory.
    pub loaded_queues: usize,
    /// A queue without polls and new tasks for this long is unloaded, in milliseconds. Longer than a poll.
    pub idle_unload_ms: u64,
    /// Tasks written in one append.
    pub spool_batch: usize,
    /// Tasks of one queue waiting to be written; more are rejected, and history retries later.
    pub spool_waiting: usize,
    /// Backlog tasks per read.
    pub backlog_page: usize,
    /// Backlog tasks that one queue keeps in memory for each priority, at least two pages; the rest stays in the store.
    pub backlog_in_memory: usize,
    /// Finished backlog tasks after which a checkpoint is written.
    pub checkpoint_acks: usize,
    /// A checkpoint of fewer is written after this long without another one finishing, in milliseconds.
    pub checkpoint_quiet_ms: u64,
}

impl Default for MatchingConfig {
    fn default() -> Self {
        Self {
            long_poll_ms: 60_000,
            outstanding_polls: 50_000,
            loaded_queues: 50_000,
            idle_unload_ms: 300_000,
            spool_batch: 100,
            spool_waiting: 5_000,
            backlog_page: 1_000,
            backlog_in_memory: 4_000,
            checkpoint_acks: 100,
            checkpoint_quiet_ms: 15_000,
        }
    }
}

impl MatchingConfig {
    pub(super) fn long_poll(&self) -> Duration {
        Duration::from_millis(self.long_poll_ms)
    }

    pub(super) fn idle_unload(&self) -> Duration {
        Duration::from_millis(self.idle_unload_ms)
    }

    pub(super) fn checkpoint_quiet(&self) -> Duration {
        Duration::from_millis(self.checkpoint_quiet_ms)
    }
}
