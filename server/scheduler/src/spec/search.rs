//! The times of a specification, one after another. Remembers where each calendar and interval is, so that many times cost
//! little more than one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use workflow::Timestamp;

use super::budget::{Budget, Exhausted};
use super::calendar::{Local, YEAR_MAX};
use super::{NextTime, Spec, TooManyExclusions, jitter};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Spans of excluded times in a row, of up to a day each, after which nothing is looked for any more. The reference gives up
/// after 1.2 million times, a fortnight of seconds.
const EXCLUDED_SPANS_MAX: usize = 20_000;
/// Calendars that are asked about one second for one step: it is a few comparisons each.
pub(super) const EXCLUDED_PER_STEP: usize = 16;

/// A search that goes forward in time. Schedules with different seeds are put off differently, and one always in the same way.
pub struct Search<'a> {
    spec: &'a Spec,
    seed: &'a str,
    budget: &'a mut Budget,
    /// The next second of each calendar and interval that has one, by its number: calendars come first.
    upcoming: BinaryHeap<Reverse<(i64, usize)>>,
    /// Where the search is, in seconds since the epoch; nothing before it has begun.
    at: Option<i64>,
}

impl<'a> Search<'a> {
    pub fn new(spec: &'a Spec, seed: &'a str, budget: &'a mut Budget) -> Self {
        Self { spec, seed, budget, upcoming: BinaryHeap::new(), at: None }
    }

    /// The first time to act that is nominally after this moment and after what was found before; nothing if there is none
    /// any more.
    pub fn next_time(&mut self, after: Timestamp) -> Result<Option<NextTime>, TooManyExclusions> {
        self.find(after).map_err(|Exhausted| TooManyExclusions)
    }

    fn find(&mut self, after: Timestamp) -> Result<Option<NextTime>, Exhausted> {
        // Just before the start, so that the start itself can be a time.
        let before_start = self.spec.start.map_or(0, |start| start.0.saturating_sub(NANOS_PER_SECOND));
        let mut second = after.0.max(before_start).div_euclid(NANOS_PER_SECOND);
        for _ in 0..EXCLUDED_SPANS_MAX {
            let Some(next) = self.nominal_after(second)? else { return Ok(None) };
            assert!(next > second, "the next time is not this one");
            second = next;
            let Some(nominal) = second.checked_mul(NANOS_PER_SECOND).map(Timestamp) else { return Ok(None) };
            let (year, ..) = workflow::civil::date_of(second);
            if self.spec.end.is_some_and(|end| nominal > end) || year > YEAR_MAX {
                return Ok(None);
            }
            match self.excluded_until(second)? {
                // A second before its end, because that is not excluded.
                Some(end) => second = end - 1,
                None => return Ok(Some(NextTime { nominal, at: nominal + self.put_off(second)? })),
            }
        }
        Err(Exhausted)
    }

    /// The end of a span that begins with this second and in which every time is excluded; nothing if this one is not.
    fn excluded_until(&mut self, second: i64) -> Result<Option<i64>, Exhausted> {
        let Spec { excluded, zone, clock, .. } = self.spec;
        if excluded.is_empty() {
            return Ok(None);
        }
        self.budget.spend(u64::try_from(excluded.len() / EXCLUDED_PER_STEP + 1).unwrap_or(u64::MAX))?;
        let local = Local::of(zone, second);
        let excluding = excluded.iter().find(|calendar| calendar.matches(local));
        Ok(excluding.map(|calendar| calendar.matches_until(zone, second, *clock)))
    }

    /// In seconds since the epoch.
    fn nominal_after(&mut self, second: i64) -> Result<Option<i64>, Exhausted> {
        if self.at.is_none() {
            for source in 0..self.spec.n_sources() {
                self.follow(source, second)?;
            }
        }
        assert!(self.at <= Some(second), "a search goes forward");
        self.at = Some(second);
        while let Some(Reverse((next, source))) = self.upcoming.peek().copied() {
            if next > second {
                return Ok(Some(next));
            }
            self.upcoming.pop();
            self.follow(source, second)?;
        }
        Ok(None)
    }

    /// Takes note of the next second of a calendar or interval.
    fn follow(&mut self, source: usize, second: i64) -> Result<(), Exhausted> {
        self.budget.spend(1)?;
        let Spec { calendars, intervals, zone, .. } = self.spec;
        let next = match calendars.get(source) {
            Some(calendar) => calendar.next(zone, second, self.budget)?,
            None => Some(intervals[source - calendars.len()].next(second)),
        };
        // An interval that has run out of numbers stands still.
        self.upcoming.extend(next.filter(|next| *next > second).map(|next| Reverse((next, source))));
        Ok(())
    }

    /// Never beyond the next nominal time: actions keep their order.
    fn put_off(&mut self, nominal: i64) -> Result<Duration, Exhausted> {
        let jitter = self.spec.jitter;
        if jitter.is_zero() {
            return Ok(Duration::ZERO);
        }
        let following = self.nominal_after(nominal)?.map(|next| next.saturating_sub(nominal).unsigned_abs());
        let most = following.map_or(jitter, |seconds| jitter.min(Duration::from_secs(seconds)));
        Ok(jitter::jitter(self.seed, nominal, most))
    }
}
