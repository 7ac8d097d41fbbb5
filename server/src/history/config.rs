//! Settings of the history service.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryConfig {
    /// Ceiling of the cache of executions, in bytes, over all shards of the node.
    pub cache_bytes: u64,
    /// Recent event batches kept with each cached execution, in bytes, so that young runs are read from memory.
    pub recent_events_bytes: usize,
    /// For each shard, what it may take to know its workflow ids: 800 000 in a MiB. With more of them, or with 0, every start
    /// of a new one asks the store first.
    pub workflow_ids_bytes: usize,
    /// Transitions in one commit. More would make the first of them wait for the last.
    pub batch_transitions: usize,
    /// Bytes in one commit. Cassandra refuses a mutation of half a commit-log segment (16 MiB by default).
    pub batch_bytes: usize,
    /// Transitions waiting on a shard; callers beyond it wait their turn.
    pub waiting_transitions: usize,
    /// Queue tasks that one shard keeps in memory, per queue; the rest is read from the store later.
    pub queue_tasks_in_memory: usize,
    /// Queue tasks executed at once, over all shards of the node. One that brings a task to a worker lasts as long as the commit
    /// of its start; so this also bounds how many of those share a commit.
    pub task_pool_size: usize,
    /// Clients that list a history get its events as bytes and decode them by themselves, which spares a busy node the work
    /// and the memory. All current SDKs can.
    pub raw_history: bool,
    /// How many operations a batch does in a second, at most: the workers of the runs it touches have their own work.
    pub batch_operations_per_second: f32,
    /// Events after which a workflow task suggests to its worker that the run continue as new.
    pub suggest_continue_as_new_events: i64,
    /// Whether workflows may start children in other namespaces, and signal and cancel workflows there. Off, as in the reference:
    /// whoever may run a worker of one namespace need not be trusted in the others.
    pub cross_namespace_commands: bool,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            recent_events_bytes: 64 << 10,
            workflow_ids_bytes: 4 << 20,
            batch_transitions: 128,
            batch_bytes: 2 << 20,
            waiting_transitions: 4096,
            queue_tasks_in_memory: 20_000,
            task_pool_size: 1024,
            raw_history: false,
            batch_operations_per_second: 50.0,
            suggest_continue_as_new_events: 4096,
            cross_namespace_commands: false,
        }
    }
}
