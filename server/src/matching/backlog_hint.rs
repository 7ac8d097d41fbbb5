//! The `backlog_count_hint` of sticky queues, and how a worker is freed from one that is out of date. Pure.
//!
//! The Go SDK keeps the hint of the sticky answer that it processed last and, while that is above 0, sends every poll to
//! the sticky queue. A worker handles answers in any order, and a task that was counted can vanish (it expires, or its
//! run closes), so a true count alone is not enough: a worker can end up with a positive hint, an empty sticky queue and
//! no poll on its normal queue until its polls time out a minute later. Every SDK takes an empty answer as a hint of 0.
//! So a positive hint is followed by an empty answer once polls wait on an empty queue, but not before `SETTLED_AFTER`.

use std::time::Duration;

use workflow::Timestamp;

/// The worker has processed an answer that left this long ago, so an empty answer that leaves now is processed after it.
/// Bounds the stall, and limits a queue to one round of early empty answers per second.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct BacklogHint {
    /// A positive hint left `SETTLED_AFTER` before this, and no empty answer since.
    retract_at: Option<Timestamp>,
}

impl BacklogHint {
    pub(super) fn gave_positive(&mut self, now: Timestamp) {
        self.retract_at = Some(now + SETTLED_AFTER);
    }

    pub(super) fn retracted(&mut self) {
        self.retract_at = None;
    }

    pub(super) fn retract_at(&self) -> Option<Timestamp> {
        self.retract_at
    }
}
