//! Versions of visibility rows: which of two changes of a row is newer, whichever node sent it and whenever it arrives.
//!
//! They count from a stored time of the run or segment, not from a clock at the time of writing: so two owners of a
//! shard give the same state the same version. In µs, like the store's write timestamps.

use workflow::Timestamp;

use super::record::Record;

/// Added to the version of a final delete, so that it outranks later transitions of the run and writes in flight. A day
/// in µs: more transitions than a run has, and not days ahead, which the store refuses.
pub(super) const FOR_EVER: i64 = 24 * 60 * 60 * 1_000_000;

const NANOS_PER_MICRO: i64 = 1000;

pub(super) fn micros(moment: Timestamp) -> i64 {
    moment.0.max(0) / NANOS_PER_MICRO
}

impl Record {
    /// Every transition of the run raises it, and equal versions have equal records: a row that is put at a version is
    /// never deleted at it.
    pub(super) fn row_version(&self) -> i64 {
        micros(self.started_at) + self.version
    }

    pub(super) fn removed_version(&self) -> i64 {
        self.row_version() + FOR_EVER
    }
}

/// Stage of a segment. Each one outranks all earlier ones.
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

    /// The announcement time of a segment that has this version at this stage.
    pub(super) fn announced_at(self, version: i64) -> Timestamp {
        Timestamp((version - self as i64) * NANOS_PER_MICRO)
    }
}
