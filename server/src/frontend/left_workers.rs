//! Workers that recently announced their shutdown. A poll of such a worker may still be in flight, and a task given to
//! it would be lost until it times out. Pure.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::time::Duration;

use workflow::{NamespaceId, Timestamp};

#[cfg(test)]
mod tests;

/// Polls that a worker sent before it left arrive within this time.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// Workers remembered; beyond this the oldest are evicted early.
const REMEMBERED_MAX: usize = 10_000;

/// Keyed hash of a worker's instance key: a client chooses the key's length, and cannot find two keys of the same hash
/// on purpose.
type Worker = u64;

#[derive(Default)]
pub(super) struct LeftWorkers {
    hasher: RandomState,
    left_at: HashMap<Worker, Timestamp>,
    /// Oldest first, with one entry per announcement.
    in_order: VecDeque<(Timestamp, Worker)>,
}

impl LeftWorkers {
    /// An empty key names no worker.
    pub(super) fn insert(&mut self, namespace_id: NamespaceId, instance_key: &str, now: Timestamp) {
        if instance_key.is_empty() {
            return;
        }
        self.forget(now);
        let worker = self.worker(namespace_id, instance_key);
        self.left_at.insert(worker, now);
        self.in_order.push_back((now, worker));
        while self.in_order.len() > REMEMBERED_MAX {
            self.forget_oldest();
        }
        assert!(self.left_at.len() <= self.in_order.len(), "who is remembered is also forgotten");
    }

    pub(super) fn contains(&mut self, namespace_id: NamespaceId, instance_key: &str, now: Timestamp) -> bool {
        if instance_key.is_empty() {
            return false;
        }
        self.forget(now);
        self.left_at.contains_key(&self.worker(namespace_id, instance_key))
    }

    fn worker(&self, namespace_id: NamespaceId, instance_key: &str) -> Worker {
        self.hasher.hash_one((namespace_id, instance_key))
    }

    fn forget(&mut self, now: Timestamp) {
        while self.in_order.front().is_some_and(|(left_at, _)| *left_at + REMEMBERED_FOR <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((left_at, worker)) = self.in_order.pop_front() else { return };
        // The worker may have announced its shutdown again since.
        if self.left_at.get(&worker) == Some(&left_at) {
            self.left_at.remove(&worker);
        }
    }
}
