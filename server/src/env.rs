//! The only door to the non-deterministic world: the clock and random numbers. A simulation brings its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;
use uuid::Uuid;
use workflow::{RunId, Timestamp};

/// Cheap to clone; every service gets one.
#[derive(Clone)]
pub struct Env {
    clock: Clock,
    random: Arc<Mutex<SmallRng>>,
}

#[derive(Clone, Copy)]
enum Clock {
    System,
    /// Tokio's clock, which a test may pause and advance, counted from a fixed moment.
    Simulated {
        began: Instant,
    },
}

/// 2023-11-14, so that simulated times look like times.
const SIMULATION_BEGINS_AT: Timestamp = Timestamp(1_700_000_000_000_000_000);

impl Env {
    #[must_use]
    pub fn system() -> Self {
        Self { clock: Clock::System, random: Arc::new(Mutex::new(rand::make_rng())) }
    }

    /// The same seed gives the same ids, as long as the callers come in the same order.
    #[must_use]
    pub fn simulated(seed: u64) -> Self {
        Self::simulated_since(Instant::now(), seed)
    }

    /// A world that began earlier: its time goes on over the restart of a node.
    #[must_use]
    pub fn simulated_since(began: Instant, seed: u64) -> Self {
        let clock = Clock::Simulated { began };
        Self { clock, random: Arc::new(Mutex::new(SmallRng::seed_from_u64(seed))) }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self.clock {
            Clock::System => system_now(),
            Clock::Simulated { began } => SIMULATION_BEGINS_AT + began.elapsed(),
        }
    }

    #[must_use]
    pub fn new_uuid(&self) -> Uuid {
        let bytes: u128 = self.random().random();
        uuid::Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid()
    }

    /// For a run that starts at this moment.
    #[must_use]
    pub fn new_run_id(&self, starts_at: Timestamp) -> RunId {
        RunId::new(starts_at, &self.random().random())
    }

    /// A span between a half and the whole of this one, so that retries of many do not march in step.
    #[must_use]
    pub fn jittered(&self, span: Duration) -> Duration {
        span.mul_f64(self.random().random_range(0.5..=1.0))
    }

    fn random(&self) -> std::sync::MutexGuard<'_, SmallRng> {
        self.random.lock().expect("nobody panics while drawing a number")
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn system_now() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}
