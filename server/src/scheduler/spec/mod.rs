//! When a schedule acts: calendars and intervals, less what is excluded, within a time, put off by a jitter. Pure.

use std::time::Duration;

use proto::temporal::api::schedule::v1 as public;
use workflow::Timestamp;
use workflow::civil::Zone;

use crate::spans;

mod calendar;
mod canonical;
mod cron;
mod interval;
mod jitter;
mod ranges;
#[cfg(test)]
mod tests;

pub use canonical::canonical;

use calendar::{Calendar, YEAR_MAX};
use interval::Interval;

/// So many times in a row may be excluded; whatever comes after so many is not looked for.
const EXCLUDED_MAX: usize = 1_000_000;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A schedule's specification, ready to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    calendars: Vec<Calendar>,
    intervals: Vec<Interval>,
    excluded: Vec<Calendar>,
    zone: Zone,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    jitter: Duration,
}

/// A time to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextTime {
    /// As the specification says.
    pub nominal: Timestamp,
    /// The same, put off by the jitter.
    pub at: Timestamp,
}

/// More times are excluded one after another than anybody looks at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schedule calendar specification has too many exclusions. Please modify the specification.")]
pub struct TooManyExclusions;

impl Spec {
    /// Reads a specification. The text says what is wrong with one that is none, in the reference's words.
    pub fn parse(spec: &public::ScheduleSpec) -> Result<Self, String> {
        let spec = canonical(spec)?;
        let zone = zone(&spec)?;
        Ok(Self {
            calendars: spec.structured_calendar.iter().map(Calendar::new).collect(),
            intervals: spec.interval.iter().map(Interval::new).collect(),
            excluded: spec.exclude_structured_calendar.iter().map(Calendar::new).collect(),
            zone,
            start: spec.start_time.map(Timestamp::from),
            end: spec.end_time.map(Timestamp::from),
            jitter: spec.jitter.and_then(spans::from_proto).unwrap_or_default(),
        })
    }

    /// The first time to act that is nominally after this moment; nothing if there is none any more. Schedules with
    /// different seeds are put off differently, and one always in the same way.
    pub fn next_time(&self, seed: &str, after: Timestamp) -> Result<Option<NextTime>, TooManyExclusions> {
        // Just before the start, so that the start itself can be a time.
        let before_start = self.start.map_or(0, |start| start.0.saturating_sub(NANOS_PER_SECOND));
        let mut second = after.0.max(before_start).div_euclid(NANOS_PER_SECOND);
        for _ in 0..EXCLUDED_MAX {
            let Some(next) = self.nominal_after(second) else { return Ok(None) };
            assert!(next > second, "the next time is not this one");
            second = next;
            let Some(nominal) = second.checked_mul(NANOS_PER_SECOND).map(Timestamp) else { return Ok(None) };
            let (year, ..) = workflow::civil::date_of(second);
            if self.end.is_some_and(|end| nominal > end) || year > YEAR_MAX {
                return Ok(None);
            }
            if !self.excluded.iter().any(|calendar| calendar.matches(&self.zone, second)) {
                return Ok(Some(NextTime { nominal, at: nominal + self.put_off(seed, second) }));
            }
        }
        Err(TooManyExclusions)
    }

    /// In seconds since the epoch.
    fn nominal_after(&self, second: i64) -> Option<i64> {
        let calendars = self.calendars.iter().filter_map(|calendar| calendar.next(&self.zone, second));
        calendars.chain(self.intervals.iter().map(|interval| interval.next(second))).min()
    }

    /// Never beyond the next nominal time: actions keep their order.
    fn put_off(&self, seed: &str, nominal: i64) -> Duration {
        if self.jitter.is_zero() {
            return Duration::ZERO;
        }
        let following = self.nominal_after(nominal).map(|next| next.saturating_sub(nominal).unsigned_abs());
        let most = following.map_or(self.jitter, |seconds| self.jitter.min(Duration::from_secs(seconds)));
        jitter::jitter(seed, nominal, most)
    }
}

fn zone(spec: &public::ScheduleSpec) -> Result<Zone, String> {
    let name = &spec.timezone_name;
    if !spec.timezone_data.is_empty() {
        return Zone::from_data(&spec.timezone_data).ok_or_else(|| "malformed time zone information".to_owned());
    }
    Zone::named(name).ok_or_else(|| format!("unknown time zone {name}"))
}
