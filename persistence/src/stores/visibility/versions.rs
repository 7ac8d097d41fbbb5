//! Versions of the rows of lists: which of two changes of a row is the newer one, whoever sent it and whenever it arrives.
//!
//! They count from a moment that the run, or the segment, has by itself, and not from any clock at the time of writing: so
//! two owners of a shard give the same state the same version. In µs, as the store's own times of writing are.

use workflow::Timestamp;

use super::record::Record;

/// What is never put again is deleted at a version so much higher: whatever may still become of the run, or be on its way,
/// stays behind. A day in µs, more transitions than a run has; the store takes nothing that is days ahead.
pub(super) const FOR_EVER: i64 = 24 * 60 * 60 * 1_000_000;

const NANOS_PER_MICRO: i64 = 1000;

pub(super) fn micros(moment: Timestamp) -> i64 {
    moment.0.max(0) / NANOS_PER_MICRO
}

impl Record {
    /// Every transition of the run makes it higher, and with it what lists are to tell is one and the same: a row that is
    /// put at a version is never deleted at it.
    pub(super) fn row_version(&self) -> i64 {
        micros(self.started_at) + self.version
    }

    pub(super) fn removed_version(&self) -> i64 {
        self.row_version() + FOR_EVER
    }
}

/// How far a segment is. Each step counts after all before it, and none of them takes it back.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    Announced = 0,
    Sealed = 1,
    Settled = 2,
    Removed = 3,
}

impl Stage {
    pub(super) fn new(sealed_at: Option<Timestamp>, is_settled: bool) -> Self {
        match (is_settled, sealed_at) {
            (true, _) => Self::Settled,
            (false, Some(_)) => Self::Sealed,
            (false, None) => Self::Announced,
        }
    }

    pub(super) fn version(self, announced_at: Timestamp) -> i64 {
        micros(announced_at) + self as i64
    }

    /// Of the segment that has this version at this stage.
    pub(super) fn announced_at(self, version: i64) -> Timestamp {
        Timestamp((version - self as i64) * NANOS_PER_MICRO)
    }
}
