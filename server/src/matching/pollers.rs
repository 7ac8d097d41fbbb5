//! Recent pollers of a queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prost::Message;
use proto::temporal::api::common::v1::WorkerVersionCapabilities;
use proto::temporal::api::deployment::v1::WorkerDeploymentOptions;
use proto::temporal::api::taskqueue::v1::PollerInfo;
use workflow::Timestamp;

use super::rate::UNLIMITED_PER_SECOND;

#[cfg(test)]
mod tests;

/// A worker that was not seen for this long is forgotten.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// Workers remembered for one queue. Clients choose identities, so their number needs a bound.
const REMEMBERED: usize = 1000;

/// Bytes of the workers remembered for one queue: a `DescribeTaskQueue` response lists them all, twice in the enhanced
/// mode, and fits the 4 MiB that clients accept.
const QUEUE_BYTES: usize = 1 << 20;

/// Bytes of the workers remembered for all queues of a node. Beyond it a worker is served, but not listed.
const NODE_BYTES: usize = 32 << 20;

/// Size of an entry without its texts.
const ENTRY_BYTES: usize = 256;

/// Bytes of all entries of a node's queues.
#[derive(Default)]
pub(super) struct PollerMemory(AtomicUsize);

impl PollerMemory {
    fn reserve(&self, n_bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(n_bytes).filter(|used| *used <= NODE_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn release(&self, n_bytes: usize) {
        self.0.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

/// A worker's description of itself in a poll.
#[derive(Debug, Clone, Default)]
pub(super) struct Poller {
    pub(super) identity: String,
    /// Limit that it sets on its queue, in tasks per second. `None`: none.
    pub(super) tasks_per_second: Option<f64>,
    pub(super) version_capabilities: Option<WorkerVersionCapabilities>,
    pub(super) deployment_options: Option<WorkerDeploymentOptions>,
    /// In a sticky poll: the worker's normal queue. Empty if its SDK does not name it.
    pub(super) normal_queue: String,
}

pub(super) struct PollerHistory {
    seen: HashMap<String, Seen>,
    /// Sum over all entries.
    n_bytes: usize,
    memory: Arc<PollerMemory>,
    /// Time of the latest poll of a worker that has not left since.
    last_seen_at: Option<Timestamp>,
    /// Time of the latest poll of any worker.
    last_polled_at: Option<Timestamp>,
}

struct Seen {
    at: Timestamp,
    n_bytes: usize,
    tasks_per_second: Option<f64>,
    version_capabilities: Option<WorkerVersionCapabilities>,
    deployment_options: Option<WorkerDeploymentOptions>,
}

impl Poller {
    fn n_bytes(&self) -> usize {
        let version = self.version_capabilities.as_ref().map_or(0, Message::encoded_len);
        let deployment = self.deployment_options.as_ref().map_or(0, Message::encoded_len);
        ENTRY_BYTES + self.identity.len() + version + deployment
    }
}

impl PollerHistory {
    pub(super) fn new(memory: Arc<PollerMemory>) -> Self {
        Self { seen: HashMap::new(), n_bytes: 0, memory, last_seen_at: None, last_polled_at: None }
    }

    pub(super) fn saw(&mut self, poller: &Poller, now: Timestamp) {
        (self.last_seen_at, self.last_polled_at) = (Some(now), Some(now));
        if poller.identity.is_empty() {
            return;
        }
        if let Some(seen) = self.seen.get_mut(&poller.identity).filter(|seen| seen.says_the_same(poller)) {
            seen.at = now;
            return;
        }
        self.forget(&poller.identity);
        let n_bytes = poller.n_bytes();
        if !self.make_room(n_bytes, now) || !self.memory.reserve(n_bytes) {
            return;
        }
        self.n_bytes += n_bytes;
        let seen = Seen {
            at: now,
            n_bytes,
            tasks_per_second: poller.tasks_per_second,
            version_capabilities: poller.version_capabilities.clone(),
            deployment_options: poller.deployment_options.clone(),
        };
        self.seen.insert(poller.identity.clone(), seen);
    }

    /// The worker shuts down.
    pub(super) fn left(&mut self, identity: &str) {
        self.forget(identity);
        self.last_seen_at = self.seen.values().map(|seen| seen.at).max();
    }

    pub(super) fn has_seen_within(&self, span: Duration, now: Timestamp) -> bool {
        self.last_seen_at.is_some_and(|at| now.since(at) < span)
    }

    /// Whether any worker polled, even one that has left since.
    pub(super) fn was_polled_within(&self, span: Duration, now: Timestamp) -> bool {
        self.last_polled_at.is_some_and(|at| now.since(at) < span)
    }

    pub(super) fn list(&self, now: Timestamp) -> Vec<PollerInfo> {
        let recent = self.seen.iter().filter(|(_, seen)| now.since(seen.at) < REMEMBERED_FOR);
        recent.map(|(identity, seen)| described(identity, seen)).collect()
    }

    /// Evicts expired workers, then the least recently seen. `false` if `n_bytes` exceed a queue's limit.
    fn make_room(&mut self, n_bytes: usize, now: Timestamp) -> bool {
        if n_bytes > QUEUE_BYTES {
            return false;
        }
        let is_full = |history: &Self| history.seen.len() >= REMEMBERED || history.n_bytes + n_bytes > QUEUE_BYTES;
        if is_full(self) {
            self.forget_all(|seen| now.since(seen.at) >= REMEMBERED_FOR);
        }
        while is_full(self) {
            let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.at).map(|(identity, _)| identity.clone());
            let Some(identity) = oldest else { return false };
            self.forget(&identity);
        }
        true
    }

    fn forget(&mut self, identity: &str) {
        if let Some(seen) = self.seen.remove(identity) {
            self.n_bytes -= seen.n_bytes;
            self.memory.release(seen.n_bytes);
        }
    }

    fn forget_all(&mut self, is_meant: impl Fn(&Seen) -> bool) {
        let gone = self.seen.extract_if(|_, seen| is_meant(seen)).map(|(_, seen)| seen.n_bytes).sum();
        self.n_bytes -= gone;
        self.memory.release(gone);
    }
}

impl Drop for PollerHistory {
    fn drop(&mut self) {
        self.memory.release(self.n_bytes);
    }
}

impl Seen {
    fn says_the_same(&self, poller: &Poller) -> bool {
        self.tasks_per_second == poller.tasks_per_second
            && self.version_capabilities == poller.version_capabilities
            && self.deployment_options == poller.deployment_options
    }
}

#[expect(deprecated, reason = "older SDKs send their version this way, and older tools show it")]
fn described(identity: &str, seen: &Seen) -> PollerInfo {
    PollerInfo {
        last_access_time: Some(seen.at.into()),
        identity: identity.to_owned(),
        rate_per_second: seen.tasks_per_second.unwrap_or(UNLIMITED_PER_SECOND),
        worker_version_capabilities: seen.version_capabilities.clone(),
        deployment_options: seen.deployment_options.clone(),
    }
}
