//! Faults of the model: drawn from a seed, or injected by a test.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::engine::Batch;

/// A fault of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `Unavailable`; not applied.
    Unavailable,
    /// `OutcomeUnknown`; not applied.
    TimeoutNotApplied,
    /// `OutcomeUnknown`; applied.
    TimeoutApplied,
    /// `OutcomeUnknown`; accepted but not visible. The next write to the partition, or the next serial read of it,
    /// applies it first. Drawn by chance instead of injected, it may also be dropped for good at that moment, or become
    /// visible before.
    ///
    /// Nothing settles a write to a versioned table: it arrives at `Model::deliver_late`, whatever is written before;
    /// drawn by chance, it may also arrive earlier.
    AppliedLater,
}

/// Probability of each fault; those of a write add up to at most 1.
#[derive(Debug, Clone)]
pub struct Faults {
    pub seed: u64,
    pub unavailable: f64,
    pub timeout_not_applied: f64,
    pub timeout_applied: f64,
    pub applied_later: f64,
    /// Probability that a read fails.
    pub read_unavailable: f64,
    /// Latency of a request, and of its answer. Slept on tokio's clock.
    pub latency: Range<Duration>,
    /// Writes that may meet a fault.
    pub writes: Writes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    All,
    OnlyConditional,
}

impl Faults {
    /// No faults: a base to change where wanted.
    #[must_use]
    pub fn none(seed: u64) -> Self {
        Self {
            seed,
            unavailable: 0.0,
            timeout_not_applied: 0.0,
            timeout_applied: 0.0,
            applied_later: 0.0,
            read_unavailable: 0.0,
            latency: Duration::ZERO..Duration::ZERO,
            writes: Writes::All,
        }
    }
}

/// The faults and their random number generator.
pub(super) struct Dice {
    faults: Faults,
    random: StdRng,
}

impl Dice {
    pub(super) fn new(faults: Faults) -> Self {
        let Faults { unavailable, timeout_not_applied, timeout_applied, applied_later, .. } = faults;
        let total = unavailable + timeout_not_applied + timeout_applied + applied_later;
        assert!((0.0..=1.0).contains(&total), "the faults of a write add up to a probability");
        let random = StdRng::seed_from_u64(faults.seed);
        Self { faults, random }
    }

    pub(super) fn latency(&mut self) -> Duration {
        if self.faults.latency.is_empty() {
            return self.faults.latency.start;
        }
        self.random.random_range(self.faults.latency.clone())
    }

    /// Draws the fault of this write, if any.
    pub(super) fn strike(&mut self, batch: &Batch) -> Option<Fault> {
        if self.faults.writes == Writes::OnlyConditional && !batch.is_conditional() {
            return None;
        }
        let mut roll: f64 = self.random.random();
        let odds = [
            (self.faults.unavailable, Fault::Unavailable),
            (self.faults.timeout_not_applied, Fault::TimeoutNotApplied),
            (self.faults.timeout_applied, Fault::TimeoutApplied),
            (self.faults.applied_later, Fault::AppliedLater),
        ];
        for (probability, fault) in odds {
            if roll < probability {
                return Some(fault);
            }
            roll -= probability;
        }
        None
    }

    pub(super) fn fails_read(&mut self) -> bool {
        self.random.random_bool(self.faults.read_unavailable)
    }

    pub(super) fn flip(&mut self) -> bool {
        self.random.random()
    }
}
