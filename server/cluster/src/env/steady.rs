//! A clock that follows the wall clock and never runs backwards. Its callers pass the readings of both clocks.
//!
//! Between steps of the wall clock it runs with the monotonic clock. A wall clock that was set forward is followed at
//! once. One that was set back is not: the clock is then *ahead* of it, and runs slower by `1 / SLEW` until they meet.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use workflow::Timestamp;

/// A clock that is ahead runs slower by 1/16: a step of 30 s is gone after 8 minutes, one of 2 h after 32 h, and a
/// timer of 15 s takes 16. NTP daemons slew by up to 1/12.
const SLEW: i64 = 16;
/// Nanoseconds. The two clocks are read one after the other, so they differ a little; and they may drift.
const TOLERANCE: i64 = 1_000_000;
/// Smallest reported step, in nanoseconds. NTP daemons slew smaller offsets and step larger ones (`ntpd`: from 128 ms).
const REPORTED: i64 = 100_000_000;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) wall: Timestamp,
    /// Monotonic clock, in nanoseconds since some origin.
    pub(super) ticks: i64,
}

/// Result of an adjustment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Adjusted {
    pub(super) now: Timestamp,
    /// Time jumped forward: sleepers must check it again.
    pub(super) has_jumped: bool,
    /// Reported step of the wall clock, in nanoseconds.
    pub(super) step: Option<i64>,
}

/// Time at each tick, until the wall clock is set again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Course {
    from_ticks: i64,
    from_time: i64,
    /// Lead over the wall clock at `from_ticks`.
    lead: i64,
}

impl Course {
    fn elapsed(&self, ticks: i64) -> i64 {
        // Zero: another thread set the course after this one had read the ticks.
        ticks.saturating_sub(self.from_ticks).max(0)
    }

    fn lead_at(&self, ticks: i64) -> i64 {
        self.lead - (self.elapsed(ticks) / SLEW).min(self.lead)
    }

    fn time_at(&self, ticks: i64) -> i64 {
        self.from_time.saturating_add(self.elapsed(ticks) - (self.lead - self.lead_at(ticks)))
    }

    /// The wall clock minus its expected value without a step.
    fn deviation(&self, reading: Reading) -> i64 {
        let expected = self.time_at(reading.ticks).saturating_sub(self.lead_at(reading.ticks));
        reading.wall.0.saturating_sub(expected)
    }
}

pub(super) struct SteadyClock {
    published: Published,
    adjusting: Mutex<()>,
}

impl SteadyClock {
    pub(super) fn new(reading: Reading) -> Self {
        let course = Course { from_ticks: reading.ticks, from_time: reading.wall.0, lead: 0 };
        Self { published: Published::new(course), adjusting: Mutex::default() }
    }

    /// A separate clock that continues from this one's time.
    pub(super) fn fork(&self) -> Self {
        Self { published: Published::new(self.published.load()), adjusting: Mutex::default() }
    }

    /// `None` if the wall clock was set since the last adjustment: `adjust` must follow.
    pub(super) fn read(&self, reading: Reading) -> Option<Timestamp> {
        let course = self.published.load();
        let is_on_course = course.deviation(reading).saturating_abs() < TOLERANCE;
        is_on_course.then(|| Timestamp(course.time_at(reading.ticks)))
    }

    /// Adjusts to a step of the wall clock.
    pub(super) fn adjust(&self, read: impl FnOnce() -> Reading) -> Adjusted {
        let adjusting = self.adjusting.lock().unwrap_or_else(PoisonError::into_inner);
        let (reading, course) = (read(), self.published.load());
        let (before, deviation) = (course.time_at(reading.ticks), course.deviation(reading));
        if deviation.saturating_abs() < TOLERANCE {
            return Adjusted { now: Timestamp(before), has_jumped: false, step: None };
        }
        let now = before.max(reading.wall.0);
        self.set(now, reading);
        drop(adjusting);
        let step = Some(deviation).filter(|deviation| deviation.saturating_abs() >= REPORTED);
        Adjusted { now: Timestamp(now), has_jumped: now > before, step }
    }

    /// Raises the clock to `at_least`, the time of an earlier clock. Returns its lead over the wall clock.
    pub(super) fn raise(&self, at_least: Timestamp, reading: Reading) -> Duration {
        let _adjusting = self.adjusting.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.published.load().time_at(reading.ticks).max(reading.wall.0).max(at_least.0);
        self.set(now, reading);
        Timestamp(now).since(reading.wall)
    }

    /// Monotonic time until `until`, unless the wall clock is set.
    pub(super) fn wait(&self, until: Timestamp, ticks: i64) -> Duration {
        let course = self.published.load();
        let left = until.0.saturating_sub(course.time_at(ticks)).max(0);
        // While it is ahead, `SLEW - 1` nanoseconds take `SLEW`; that ends after `SLEW` times the lead.
        let lost = (left / (SLEW - 1) + 1).min(course.lead_at(ticks));
        Duration::from_nanos(left.saturating_add(lost).unsigned_abs())
    }

    /// The caller holds `adjusting`.
    fn set(&self, now: i64, reading: Reading) {
        let lead = now.saturating_sub(reading.wall.0).max(0);
        self.published.store(Course { from_ticks: reading.ticks, from_time: now, lead });
    }
}

/// A seqlock of the course, which is read often and rarely changed: readers take no lock.
struct Published {
    /// Odd while the course is being changed.
    version: AtomicU64,
    from_ticks: AtomicI64,
    from_time: AtomicI64,
    lead: AtomicI64,
}

impl Published {
    fn new(course: Course) -> Self {
        Self {
            version: AtomicU64::new(0),
            from_ticks: AtomicI64::new(course.from_ticks),
            from_time: AtomicI64::new(course.from_time),
            lead: AtomicI64::new(course.lead),
        }
    }

    fn load(&self) -> Course {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let course = Course {
                from_ticks: self.from_ticks.load(Ordering::Relaxed),
                from_time: self.from_time.load(Ordering::Relaxed),
                lead: self.lead.load(Ordering::Relaxed),
            };
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                return course;
            }
            std::hint::spin_loop();
        }
    }

    /// One caller at a time.
    fn store(&self, course: Course) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.from_ticks.store(course.from_ticks, Ordering::Relaxed);
        self.from_time.store(course.from_time, Ordering::Relaxed);
        self.lead.store(course.lead, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
