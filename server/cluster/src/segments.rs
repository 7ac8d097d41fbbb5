//! Which segment of a namespace's visibility rows a run belongs to that starts, or closes, now. History asks and remembers
//! the answer with the run; visibility tells how much a segment has taken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use workflow::{NamespaceId, Timestamp};

use crate::env::Env;

/// Starts and closes that a segment takes. About four rows each, so that a partition stays at some tens of megabytes.
const RUNS_MAX: usize = 50_000;
/// A segment takes nothing any more after this time, so that lists can leave it out by its age.
pub const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Clocks of nodes, and of one node before and after it was set, may differ by this and nothing is missed.
pub const CLOCK_SLACK: Duration = Duration::from_secs(60);
/// What lists hear of so late goes into a segment that they may have settled or forgotten. Less than the time for which they
/// leave a segment alone.
const LATE: Duration = Duration::from_secs(5 * 60);
/// The bits of an id that keep the segments of two nodes apart which begin in the same millisecond.
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
    /// The latest moment at which something started or closed, in it or before it. Shards have clocks of their own.
    latest: Timestamp,
    n_runs: usize,
}

impl Newest {
    fn takes(&self, now: Timestamp) -> bool {
        let is_full = self.n_runs >= RUNS_MAX || now.since(self.began_at) >= AGE_MAX;
        // Lists would not look for it there.
        let is_before_it = self.began_at > now + CLOCK_SLACK;
        !is_full && !is_before_it
    }
}

/// A segment that takes nothing any more.
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

    /// What time it is for a namespace: a shard's time may be ahead of the node's, and lists must not take what closed by it
    /// for what closes while they are read.
    #[must_use]
    pub fn now(&self, namespace_id: NamespaceId) -> Timestamp {
        let latest = self.lock().newest.get(&namespace_id).map(|newest| newest.latest);
        latest.into_iter().fold(self.env.now(), Timestamp::max)
    }

    /// As of when lists must hear of a segment once more before they are told of what happened then: now, if that is so
    /// long ago that they may have settled the segment, or forgotten it.
    #[must_use]
    pub fn announced_again_at(&self, happened_at: Timestamp) -> Option<Timestamp> {
        let now = self.env.now();
        (now.since(happened_at) > LATE).then_some(now)
    }

    /// So many starts and closes were written into a segment.
    pub fn took(&self, namespace_id: NamespaceId, segment: i64, n_runs: usize) {
        if let Some(newest) = self.lock().newest.get_mut(&namespace_id).filter(|newest| newest.id == segment) {
            newest.n_runs += n_runs;
        }
    }

    /// Those that were sealed since the last call.
    pub fn take_sealed(&self) -> Vec<Sealed> {
        std::mem::take(&mut self.lock().sealed)
    }

    fn new_id(&self, now: Timestamp) -> i64 {
        let random = i64::from(self.env.new_uuid().as_fields().0 >> (u32::BITS - RANDOM_BITS));
        // Never 0, which is the directory's.
        (now.0.max(1_000_000) / 1_000_000) << RANDOM_BITS | random
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nobody panics while holding it")
    }
}

/// Nothing in a segment started or closed before this.
#[must_use]
pub fn begins_at(segment: i64) -> Timestamp {
    Timestamp((segment >> RANDOM_BITS) * 1_000_000)
}

#[cfg(test)]
mod tests;
