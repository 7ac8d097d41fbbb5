//! The only source of wall time and random numbers; a simulation brings its own. Deadlines, backoff and latencies also
//! read the runtime's monotonic `Instant` directly.
//!
//! The clock never runs backwards, whatever happens to the wall clock: `docs/decisions/0022-clock.md`.

mod steady;
mod wall;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tracing::warn;
use uuid::Uuid;
use workflow::{RunId, Timestamp};

pub use self::wall::SimulatedWall;

use self::steady::SteadyClock;
use self::wall::Wall;
use crate::metrics::clock::{Direction, count_step};

/// Interval at which an idle node reads the wall clock. Sleeps use the monotonic clock, which stops while the machine
/// sleeps: timers that became due must fire within a second.
const WATCHED_EVERY: Duration = Duration::from_millis(500);

/// Cheap to clone; every service gets one.
#[derive(Clone)]
pub struct Env {
    wall: Wall,
    clock: Arc<SteadyClock>,
    reports: Reports,
    /// Notified when time jumps forward.
    jumped: Arc<watch::Sender<()>>,
    random: Arc<Mutex<SmallRng>>,
}

/// Whether a clock reports steps of the wall clock; one per node does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reports {
    Yes,
    No,
}

impl Env {
    #[must_use]
    pub fn system() -> Self {
        Self::new(Wall::system(), rand::make_rng())
    }

    /// The same seed gives the same ids, as long as the callers come in the same order.
    #[must_use]
    pub fn simulated(seed: u64) -> Self {
        Self::simulated_by(&SimulatedWall::new(), seed)
    }

    /// Uses a wall clock that a test holds: the test may set it, and it continues over a node's restart.
    #[must_use]
    pub fn simulated_by(wall: &SimulatedWall, seed: u64) -> Self {
        Self::new(Wall::Simulated(wall.clone()), SmallRng::seed_from_u64(seed))
    }

    fn new(wall: Wall, random: SmallRng) -> Self {
        let clock = Arc::new(SteadyClock::new(wall.read_closely()));
        let (jumped, random) = (Arc::new(watch::Sender::new(())), Arc::new(Mutex::new(random)));
        Self { wall, clock, reports: Reports::Yes, jumped, random }
    }

    /// A separate clock, never before `at_least`, for something whose stored time continues over restarts and from node
    /// to node. Also returns its lead over the wall clock.
    #[must_use]
    pub fn with_own_time(&self, at_least: Timestamp) -> (Self, Duration) {
        let clock = Arc::new(self.clock.fork());
        let lead = clock.raise(at_least, self.wall.read_closely());
        (Self { clock, reports: Reports::No, ..self.clone() }, lead)
    }

    /// The current time. Never goes backwards.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.read(self.wall.read()).unwrap_or_else(|| self.adjusted_now())
    }

    /// Monotonic time of this process, for rates and waits within its lifetime: it is never set. It stops while the
    /// machine sleeps.
    #[must_use]
    pub fn monotonic(&self) -> Timestamp {
        Timestamp(self.wall.ticks())
    }

    #[cold]
    fn adjusted_now(&self) -> Timestamp {
        let adjusted = self.clock.adjust(|| self.wall.read_closely());
        if adjusted.has_jumped {
            self.jumped.send_replace(());
        }
        if let Some(step) = adjusted.step.filter(|_| self.reports == Reports::Yes) {
            report(step);
        }
        adjusted.now
    }

    /// Sleeps until `moment`, by the monotonic clock, or until the wall clock is set forward that far.
    pub async fn sleep_until(&self, moment: Timestamp) {
        // Subscribes before it reads the clock, so that no jump falls between the two.
        let mut jumped = self.jumped.subscribe();
        while self.now() < moment {
            let wait = self.clock.wait(moment, self.wall.ticks());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = jumped.changed() => {}
            }
        }
    }

    /// Detects steps of the wall clock on an idle node, and wakes overdue sleepers. One per node; never returns.
    pub async fn watch_clock(&self) {
        loop {
            tokio::time::sleep(WATCHED_EVERY).await;
            let _ = self.now();
        }
    }

    #[must_use]
    pub fn new_uuid(&self) -> Uuid {
        let bytes: u128 = self.random().random();
        uuid::Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid()
    }

    /// For a run that starts at this time.
    #[must_use]
    pub fn new_run_id(&self, starts_at: Timestamp) -> RunId {
        RunId::new(starts_at, &self.random().random())
    }

    /// A random duration from half to all of `span`, so that many retries do not synchronize.
    #[must_use]
    pub fn jittered(&self, span: Duration) -> Duration {
        span.mul_f64(self.random().random_range(0.5..=1.0))
    }

    fn random(&self) -> std::sync::MutexGuard<'_, SmallRng> {
        self.random.lock().expect("no panic while drawing a number")
    }
}

/// Called once per step.
fn report(step: i64) {
    let by = Duration::from_nanos(step.unsigned_abs());
    if step < 0 {
        count_step(Direction::Back);
        warn!(?by, "wall clock set back; server time goes on and runs 1/16 slower until the wall clock has caught up");
    } else {
        count_step(Direction::Forward);
        warn!(?by, "wall clock set forward or machine slept; timers that became due fire now");
    }
}

#[cfg(test)]
mod tests;
