//! Settings of the history service.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryConfig {
    /// Cache of executions over all shards of the node, in bytes.
    pub cache_bytes: u64,
    /// Recent event batches kept with each cached execution, in bytes, so that young runs are read from memory.
    pub recent_events_bytes: usize,
    /// Bloom filter of workflow ids, in bytes per shard: 800 000 ids per MiB. With more ids, or with 0, every start of
    /// a new workflow id reads the store first.
    pub workflow_ids_bytes: usize,
    /// Transitions in one commit. A larger batch delays its first transition.
    pub batch_transitions: usize,
    /// Bytes in one commit. Cassandra refuses a mutation of half a commit-log segment (16 MiB by default).
    pub batch_bytes: usize,
    /// Transitions waiting on a shard; further callers wait for a permit.
    pub waiting_transitions: usize,
    /// Queue tasks that one shard keeps in memory, per queue; the rest is read from the store later.
    pub queue_tasks_in_memory: usize,
    /// Queue tasks executed at once, over all shards of the node. A dispatch to a worker lasts until its start is
    /// committed, so this also bounds how many dispatches share a commit.
    pub task_pool_size: usize,
    /// Return listed history as encoded bytes, which saves a busy node CPU and memory. All current SDKs decode them.
    pub raw_history: bool,
    /// Maximum operations per second of one batch operation: the workers of its runs have other work.
    pub batch_operations_per_second: f32,
    /// Events after which a workflow task suggests to its worker that the run continue as new.
    pub suggest_continue_as_new_events: i64,
    /// Allow workflows to start children, and to signal and cancel workflows, in other namespaces. Off, as in the
    /// reference: a worker of one namespace need not be trusted in the others.
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
