//! Action times of a schedule: calendars and intervals, minus exclusions, within a time range, plus jitter. Pure.

use std::time::Duration;

use cluster::spans;
use proto::temporal::api::schedule::v1 as public;
use workflow::Timestamp;
use workflow::civil::Zone;

pub mod budget;
mod calendar;
mod canonical;
mod cron;
mod interval;
mod jitter;
mod ranges;
mod search;
#[cfg(test)]
mod tests;

pub use canonical::{SPEC_BYTES_MAX, canonical};

use budget::Budget;
use calendar::{Calendar, Clock};
use interval::Interval;
pub use search::Search;

/// A parsed schedule specification.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    calendars: Vec<Calendar>,
    intervals: Vec<Interval>,
    excluded: Vec<Calendar>,
    /// The times of day on which calendars and intervals may fall.
    clock: Clock,
    zone: Zone,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    jitter: Duration,
}

/// An action time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextTime {
    /// As specified.
    pub nominal: Timestamp,
    /// The same plus jitter.
    pub at: Timestamp,
}

/// There is no next time within the budget: too much is excluded, or too many calendars name no day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schedule calendar specification has too many exclusions. Please modify the specification.")]
pub struct TooManyExclusions;

impl Spec {
    /// Parses a specification. Errors are in the reference's words.
    pub fn parse(spec: &public::ScheduleSpec) -> Result<Self, String> {
        // Skips the checks of size and exclusions for stored specifications: older versions did neither.
        let spec = canonical::structure(spec)?;
        let zone = zone(&spec)?;
        let calendars: Vec<_> = spec.structured_calendar.iter().map(Calendar::new).collect();
        let intervals: Vec<_> = spec.interval.iter().map(Interval::new).collect();
        let of_intervals = if intervals.is_empty() { Clock::NONE } else { Clock::ANY };
        Ok(Self {
            clock: calendars.iter().map(Calendar::clock).fold(of_intervals, Clock::or),
            calendars,
            intervals,
            excluded: spec.exclude_structured_calendar.iter().map(Calendar::new).collect(),
            zone,
            start: spec.start_time.map(Timestamp::from),
            end: spec.end_time.map(Timestamp::from),
            jitter: spec.jitter.and_then(spans::from_proto).unwrap_or_default(),
        })
    }

    /// The first action time that is nominally after this moment; `None` if there is none left.
    pub fn next_time(&self, seed: &str, after: Timestamp) -> Result<Option<NextTime>, TooManyExclusions> {
        let mut budget = self.budget();
        Search::new(self, seed, &mut budget).next_time(after)
    }

    /// Budget of one computation: a request, a decision or a response.
    pub fn budget(&self) -> Budget {
        // Checking an exclusion costs less than searching a calendar.
        Budget::new(self.n_sources() + self.excluded.len() / search::EXCLUDED_PER_STEP)
    }

    fn n_sources(&self) -> usize {
        self.calendars.len() + self.intervals.len()
    }
}

fn zone(spec: &public::ScheduleSpec) -> Result<Zone, String> {
    let name = &spec.timezone_name;
    if !spec.timezone_data.is_empty() {
        return Zone::from_data(&spec.timezone_data).ok_or_else(|| "malformed time zone information".to_owned());
    }
    Zone::named(name).ok_or_else(|| format!("unknown time zone {name}"))
}
