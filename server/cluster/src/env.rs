//! The only source of wall time and random numbers; a simulation brings its own. Deadlines, backoff and latencies also read
//! the runtime's monotonic `Instant` directly.
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

/// How often an idle node looks at the wall clock. Sleeps are measured by the monotonic clock, which stands still while a
/// machine sleeps: what became due meanwhile is to happen within a second.
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

/// Of the clocks of a node one reports steps of the wall clock.
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

    /// Time by a wall clock that a test holds: it may set it, and it goes on over the restart of a node.
    #[must_use]
    pub fn simulated_by(wall: &SimulatedWall, seed: u64) -> Self {
        Self::new(Wall::Simulated(wall.clone()), SmallRng::seed_from_u64(seed))
    }

    fn new(wall: Wall, random: SmallRng) -> Self {
        let clock = Arc::new(SteadyClock::new(wall.read_closely()));
        let (jumped, random) = (Arc::new(watch::Sender::new(())), Arc::new(Mutex::new(random)));
        Self { wall, clock, reports: Reports::Yes, jumped, random }
    }

    /// For something that is stored with its own time, which goes on over restarts and from node to node: a clock of its
    /// own that is never before `at_least`. Also, how far ahead of the wall clock it is.
    #[must_use]
    pub fn with_own_time(&self, at_least: Timestamp) -> (Self, Duration) {
        let clock = Arc::new(self.clock.fork());
        let lead = clock.raise(at_least, self.wall.read_closely());
        (Self { clock, reports: Reports::No, ..self.clone() }, lead)
    }

    /// What time it is. Never earlier than before.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.read(self.wall.read()).unwrap_or_else(|| self.adjusted_now())
    }

    /// How long this process has run, for rates and waits that do not outlive it: nobody sets this clock. It stands still
    /// while the machine sleeps.
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

    /// Returns when it is this late: after that span by the monotonic clock, or as soon as the wall clock is set forward.
    pub async fn sleep_until(&self, moment: Timestamp) {
        // Listens before it looks, so that no jump falls between the two.
        let mut jumped = self.jumped.subscribe();
        while self.now() < moment {
            let wait = self.clock.wait(moment, self.wall.ticks());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = jumped.changed() => {}
            }
        }
    }

    /// Notices steps of the wall clock while nobody else looks at it, and wakes those that sleep past their time. One for a
    /// node; never returns.
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

/// Once for each step.
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
