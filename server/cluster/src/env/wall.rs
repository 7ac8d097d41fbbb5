//! Readings of the clocks, from the machine or a simulation. The only reader of the wall clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use workflow::Timestamp;

use super::steady::Reading;

/// 2023-11-14, so that simulated times look like times.
const SIMULATION_BEGINS_AT: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Attempts at a close reading: a thread may be interrupted between the two clocks.
const CLOSE_TRIES: u32 = 8;
/// Largest gap between the monotonic readings around a close reading of the wall clock.
const CLOSE: Duration = Duration::from_micros(100);

/// The wall clock, which may be set at any time. The monotonic clock beside it is always tokio's, which timers use.
#[derive(Clone)]
pub(super) enum Wall {
    System { began: Instant },
    Simulated(SimulatedWall),
}

impl Wall {
    pub(super) fn system() -> Self {
        Self::System { began: Instant::now() }
    }

    /// Reads the wall clock first: if the thread is interrupted between the two, the wall clock seems to be behind, and
    /// time does not run ahead.
    pub(super) fn read(&self) -> Reading {
        let wall = self.now();
        Reading { wall, ticks: self.ticks() }
    }

    /// Reading of the monotonic clock.
    pub(super) fn ticks(&self) -> i64 {
        nanos(self.began().elapsed())
    }

    /// Reads both as close together as possible.
    pub(super) fn read_closely(&self) -> Reading {
        let mut best = (Duration::MAX, self.read());
        for _ in 0..CLOSE_TRIES {
            let before = Instant::now();
            let wall = self.now();
            let after = Instant::now();
            let apart = after.saturating_duration_since(before);
            if apart < best.0 {
                best = (apart, Reading { wall, ticks: nanos(after.saturating_duration_since(self.began())) });
            }
            if apart <= CLOSE {
                break;
            }
        }
        best.1
    }

    fn began(&self) -> Instant {
        match self {
            Self::System { began } => *began,
            Self::Simulated(wall) => wall.began,
        }
    }

    fn now(&self) -> Timestamp {
        match self {
            Self::System { .. } => system_now(),
            Self::Simulated(wall) => wall.now(),
        }
    }
}

/// The wall clock of a simulation: runs with tokio's clock, which a test may pause and advance; a test may also set it.
#[derive(Clone)]
pub struct SimulatedWall {
    began: Instant,
    stepped_by: Arc<AtomicI64>,
}

impl SimulatedWall {
    #[expect(clippy::new_without_default, reason = "it begins at the moment of the call")]
    #[must_use]
    pub fn new() -> Self {
        Self { began: Instant::now(), stepped_by: Arc::default() }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        let now = SIMULATION_BEGINS_AT + self.began.elapsed();
        Timestamp(now.0.saturating_add(self.stepped_by.load(Ordering::Relaxed)))
    }

    /// The clock is set, or the machine wakes from sleep.
    pub fn step_forward(&self, span: Duration) {
        self.stepped_by.fetch_add(nanos(span), Ordering::Relaxed);
    }

    pub fn step_back(&self, span: Duration) {
        self.stepped_by.fetch_sub(nanos(span), Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn system_now() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}

pub(super) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
