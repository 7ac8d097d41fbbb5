//! Times at a fixed interval, counted from the epoch.

use proto::temporal::api::schedule::v1::IntervalSpec;

/// In whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    every: i64,
    phase: i64,
}

impl Interval {
    pub(super) fn new(spec: &IntervalSpec) -> Self {
        let seconds = |span: Option<prost_types::Duration>| span.map_or(0, |span| span.seconds);
        Self { every: seconds(spec.interval).max(1), phase: seconds(spec.phase).max(0) }
    }

    /// The first time after this one, in seconds since the epoch.
    pub(super) fn next(self, after: i64) -> i64 {
        let rounds = after.saturating_sub(self.phase).div_euclid(self.every) + 1;
        rounds.saturating_mul(self.every).saturating_add(self.phase)
    }
}
