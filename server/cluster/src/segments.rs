//! Assigns a segment of a namespace's visibility rows to each start and close of a run. History stores the segment with
//! the run; visibility reports how much a segment has taken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use workflow::{NamespaceId, Timestamp};

use crate::env::Env;

/// Starts and closes per segment. About four rows each, so that a partition stays at some tens of megabytes.
const RUNS_MAX: usize = 50_000;
/// A segment is sealed at this age, so that visibility queries can skip it by age.
pub const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Tolerated difference between the clocks of nodes, and of one node before and after it was set.
pub const CLOCK_SLACK: Duration = Duration::from_secs(60);
/// Visibility may have settled or removed the segment of a change that it gets this late. Less than the time for which
/// housekeeping leaves a segment alone.
const LATE: Duration = Duration::from_secs(5 * 60);
/// Random bits of an id, which separate segments of two nodes that begin in the same millisecond.
const RANDOM_BITS: u32 = 20;

/// The segments of this node. Cheap to clone.
#[derive(Clone)]
pub struct Segments {
    env: Env,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    newest: HashMap<NamespaceId, Newest>,
    sealed: Vec<Sealed>,
}

struct Newest {
    id: i64,
    began_at: Timestamp,
    /// Latest start or close, in it or before it. Shards have clocks of their own.
    latest: Timestamp,
    n_runs: usize,
}

impl Newest {
    fn takes(&self, now: Timestamp) -> bool {
        let is_full = self.n_runs >= RUNS_MAX || now.since(self.began_at) >= AGE_MAX;
        // Visibility queries would not look for it there.
        let is_before_it = self.began_at > now + CLOCK_SLACK;
        !is_full && !is_before_it
    }
}

/// A segment that takes no more runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    pub namespace_id: NamespaceId,
    pub id: i64,
    pub at: Timestamp,
}

impl Segments {
    #[must_use]
    pub fn new(env: Env) -> Self {
        Self { env, shared: Arc::default() }
    }

    /// The segment for a run that starts or closes now.
    pub fn current(&self, namespace_id: NamespaceId, now: Timestamp) -> i64 {
        let mut shared = self.lock();
        let mut latest = now;
        if let Some(newest) = shared.newest.get_mut(&namespace_id) {
            if newest.takes(now) {
                newest.latest = newest.latest.max(now);
                return newest.id;
            }
            latest = newest.latest.max(now);
            let sealed = Sealed { namespace_id, id: newest.id, at: latest };
            shared.sealed.push(sealed);
        }
        let id = self.new_id(now);
        shared.newest.insert(namespace_id, Newest { id, began_at: now, latest, n_runs: 0 });
        id
    }

    /// Current time of a namespace: a shard's clock may be ahead of the node's, and a visibility query must not mistake
    /// a run closed by it for one that closes during the query.
    #[must_use]
    pub fn now(&self, namespace_id: NamespaceId) -> Timestamp {
        let latest = self.lock().newest.get(&namespace_id).map(|newest| newest.latest);
        latest.into_iter().fold(self.env.now(), Timestamp::max)
    }

    /// If the event is older than `LATE`, its segment may already be settled or removed: returns the time to
    /// re-announce the segment with.
    #[must_use]
    pub fn announced_again_at(&self, happened_at: Timestamp) -> Option<Timestamp> {
        let now = self.env.now();
        (now.since(happened_at) > LATE).then_some(now)
    }

    /// Counts starts and closes written into a segment.
    pub fn took(&self, namespace_id: NamespaceId, segment: i64, n_runs: usize) {
        if let Some(newest) = self.lock().newest.get_mut(&namespace_id).filter(|newest| newest.id == segment) {
            newest.n_runs += n_runs;
        }
    }

    /// Segments sealed since the last call.
    pub fn take_sealed(&self) -> Vec<Sealed> {
        std::mem::take(&mut self.lock().sealed)
    }

    fn new_id(&self, now: Timestamp) -> i64 {
        let random = i64::from(self.env.new_uuid().as_fields().0 >> (u32::BITS - RANDOM_BITS));
        // Never 0, the directory's id.
        (now.0.max(1_000_000) / 1_000_000) << RANDOM_BITS | random
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic while holding it")
    }
}

/// When a segment began. Its runs start or close at most `CLOCK_SLACK` earlier.
#[must_use]
pub fn begins_at(segment: i64) -> Timestamp {
    Timestamp((segment >> RANDOM_BITS) * 1_000_000)
}

#[cfg(test)]
mod tests;
