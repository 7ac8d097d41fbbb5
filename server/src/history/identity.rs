//! Ids that a shard's owner allocates: increasing, and unique across owners.

use std::sync::atomic::{AtomicI64, Ordering};

use persistence::stores::shards::RangeId;

/// Each lease brings 2^24 ids; a lease is renewed long before they run out.
const IDS_PER_LEASE_BITS: u32 = 24;

/// Allocates ids for history transactions, events, queue tasks and commits from the current lease.
pub(crate) struct IdClock {
    next: AtomicI64,
}

impl IdClock {
    pub(crate) fn new(range_id: RangeId) -> Self {
        Self { next: AtomicI64::new(first_of(range_id)) }
    }

    /// Returns the first of `count` consecutive ids.
    pub(crate) fn take(&self, count: usize) -> i64 {
        let count = i64::try_from(count).expect("a handful of ids");
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// Continues at the first id of a new lease, which lies above all allocated ids.
    pub(crate) fn advance_to(&self, range_id: RangeId) {
        let before = self.next.fetch_max(first_of(range_id), Ordering::Relaxed);
        assert!(before <= first_of(range_id), "ids of a lease ran out before it was renewed");
    }

    /// Three quarters of the lease's ids are allocated.
    pub(crate) fn is_running_out(&self, range_id: RangeId) -> bool {
        self.next.load(Ordering::Relaxed) - first_of(range_id) > 3 << (IDS_PER_LEASE_BITS - 2)
    }
}

fn first_of(range_id: RangeId) -> i64 {
    range_id.0 << IDS_PER_LEASE_BITS
}
