//! Iterates over the times of a specification. Keeps a cursor per calendar and interval, so that many times cost little
//! more than one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use workflow::Timestamp;

use super::budget::{Budget, Exhausted};
use super::calendar::{Local, YEAR_MAX};
use super::{NextTime, Spec, TooManyExclusions, jitter};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Consecutive spans of excluded times, of up to a day each, after which the search gives up. The reference gives up
/// after 1.2 million times, a fortnight of seconds.
const EXCLUDED_SPANS_MAX: usize = 20_000;
/// Exclusion checks per step of the budget: each is a few comparisons.
pub(super) const EXCLUDED_PER_STEP: usize = 16;

/// A search that goes forward in time. The seed determines the jitter: different between schedules, stable for each.
pub struct Search<'a> {
    spec: &'a Spec,
    seed: &'a str,
    budget: &'a mut Budget,
    /// The next second and the index of each calendar and interval that has one: calendars come first.
    upcoming: BinaryHeap<Reverse<(i64, usize)>>,
    /// Position in seconds since the epoch; `None` before the search begins.
    at: Option<i64>,
}

impl<'a> Search<'a> {
    pub fn new(spec: &'a Spec, seed: &'a str, budget: &'a mut Budget) -> Self {
        Self { spec, seed, budget, upcoming: BinaryHeap::new(), at: None }
    }

    /// The first action time that is nominally after this moment and after those found before; `None` if there is none
    /// left.
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

    /// End of a span from this second in which every time is excluded; `None` if this second is not.
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

    /// Queues the next second of a calendar or interval.
    fn follow(&mut self, source: usize, second: i64) -> Result<(), Exhausted> {
        self.budget.spend(1)?;
        let Spec { calendars, intervals, zone, .. } = self.spec;
        let next = match calendars.get(source) {
            Some(calendar) => calendar.next(zone, second, self.budget)?,
            None => Some(intervals[source - calendars.len()].next(second)),
        };
        // An interval whose next second overflows ends.
        self.upcoming.extend(next.filter(|next| *next > second).map(|next| Reverse((next, source))));
        Ok(())
    }

    /// The jitter, never beyond the next nominal time: actions keep their order.
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
