//! Task rates: the limit that workers set on a queue, and the rates that it reports. Pure.

use std::time::Duration;

use workflow::Timestamp;

#[cfg(test)]
mod tests;

/// Rate that a queue without a limit reports.
pub(super) const UNLIMITED_PER_SECOND: f64 = 100_000.0;

/// A token bucket that holds one second's worth of tasks, and at least one.
pub(super) struct RateLimit {
    /// `None`: unlimited.
    per_second: Option<f64>,
    tokens: f64,
    refilled_at: Timestamp,
}

impl RateLimit {
    pub(super) fn none(now: Timestamp) -> Self {
        Self { per_second: None, tokens: 0.0, refilled_at: now }
    }

    /// The latest poll sets it, for all workers of the queue.
    pub(super) fn set(&mut self, per_second: Option<f64>, now: Timestamp) {
        let per_second = per_second.filter(|rate| rate.is_finite()).map(|rate| rate.max(0.0));
        if per_second == self.per_second {
            return;
        }
        let was_unlimited = self.per_second.is_none();
        self.refill(now);
        self.per_second = per_second;
        self.tokens = if was_unlimited { self.capacity() } else { self.tokens.min(self.capacity()) };
    }

    /// Takes a token; `Err`: when to try again.
    pub(super) fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        let Some(per_second) = self.per_second else { return Ok(()) };
        self.refill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        // At a rate of almost zero the token never comes, until a worker sets another rate.
        let wait = ((1.0 - self.tokens) / per_second).min(NEVER.as_secs_f64());
        Err(now + Duration::from_secs_f64(wait).max(Duration::from_millis(1)))
    }

    /// Returns the token of a task that reached no worker.
    pub(super) fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(self.capacity());
    }

    pub(super) fn per_second(&self) -> f64 {
        self.per_second.unwrap_or(UNLIMITED_PER_SECOND)
    }

    fn capacity(&self) -> f64 {
        match self.per_second {
            None => 0.0,
            Some(0.0) => 0.0,
            Some(per_second) => per_second.max(1.0),
        }
    }

    fn refill(&mut self, now: Timestamp) {
        let Some(per_second) = self.per_second else { return };
        let earned = now.since(self.refilled_at).as_secs_f64() * per_second;
        self.tokens = (self.tokens + earned).min(self.capacity());
        self.refilled_at = self.refilled_at.max(now);
    }
}

const NEVER: Duration = Duration::from_secs(86_400);

/// Tasks per second over the last half minute.
#[derive(Default)]
pub(super) struct Meter {
    /// (second, tasks counted in it).
    seconds: [(i64, u32); Self::WINDOW],
}

impl Meter {
    /// The public API specifies the last 30 seconds.
    const WINDOW: usize = 30;

    pub(super) fn count(&mut self, now: Timestamp) {
        let second = second_of(now);
        let slot = &mut self.seconds[usize::try_from(second).unwrap_or(0) % Self::WINDOW];
        if slot.0 != second {
            *slot = (second, 0);
        }
        slot.1 = slot.1.saturating_add(1);
    }

    pub(super) fn per_second(&self, now: Timestamp) -> f32 {
        let last = second_of(now);
        let first = last - Self::WINDOW as i64;
        let recent = self.seconds.iter().filter(|(second, _)| (first + 1..=last).contains(second));
        recent.map(|(_, n)| *n as f32).sum::<f32>() / Self::WINDOW as f32
    }
}

fn second_of(moment: Timestamp) -> i64 {
    moment.0.div_euclid(1_000_000_000)
}
