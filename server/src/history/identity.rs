//! Ids that a shard's owner hands out: they grow, and no two owners hand out the same.

use std::sync::atomic::{AtomicI64, Ordering};

use persistence::stores::shards::RangeId;

/// Each lease brings 2^24 ids; a lease is renewed long before they run out.
const IDS_PER_LEASE_BITS: u32 = 24;

/// Ids for history transactions, events, queue tasks and commits, drawn from the lease that is held.
pub(crate) struct IdClock {
    next: AtomicI64,
}

impl IdClock {
    pub(crate) fn new(range_id: RangeId) -> Self {
        Self { next: AtomicI64::new(first_of(range_id)) }
    }

    /// The first of `count` ids in a row.
    pub(crate) fn take(&self, count: usize) -> i64 {
        let count = i64::try_from(count).expect("a handful of ids");
        self.next.fetch_add(count, Ordering::Relaxed)
    }

    /// A new lease: ids go on from its beginning, which lies above all that were handed out.
    pub(crate) fn advance_to(&self, range_id: RangeId) {
        let before = self.next.fetch_max(first_of(range_id), Ordering::Relaxed);
        assert!(before <= first_of(range_id), "ids of a lease ran out before it was renewed");
    }

    /// Three quarters of the lease's ids are gone.
    pub(crate) fn is_running_out(&self, range_id: RangeId) -> bool {
        self.next.load(Ordering::Relaxed) - first_of(range_id) > 3 << (IDS_PER_LEASE_BITS - 2)
    }
}

fn first_of(range_id: RangeId) -> i64 {
    range_id.0 << IDS_PER_LEASE_BITS
}
