//! A calendar: which seconds match, and the next one that does.
//!
//! In a zone whose clocks are set, an hour that a day skips has no time in it, and one that it has twice has its times
//! twice.

use proto::temporal::api::schedule::v1::{Range, StructuredCalendarSpec};
use workflow::civil::{Zone, date, days_since_epoch};

/// The years that a calendar can name.
pub(super) const YEAR_MIN: i64 = 2000;
pub(super) const YEAR_MAX: i64 = 2100;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Each set is one of bits; bit n says that value n matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days_of_month: u64,
    days_of_week: u64,
    months: u64,
    /// Bit n says that year `YEAR_MIN` + n matches.
    years: u128,
}

impl Calendar {
    /// Of a specification that was checked.
    pub(super) fn new(spec: &StructuredCalendarSpec) -> Self {
        let all_years = spec.year.is_empty();
        let years = values(&spec.year).filter_map(|year| u32::try_from(year - YEAR_MIN).ok());
        Self {
            seconds: set(&spec.second),
            minutes: set(&spec.minute),
            hours: set(&spec.hour),
            days_of_month: set(&spec.day_of_month),
            days_of_week: set(&spec.day_of_week),
            months: set(&spec.month),
            years: if all_years { u128::MAX } else { years.fold(0, |bits, year| bits | 1_u128.unbounded_shl(year)) },
        }
    }

    pub(super) fn matches(&self, zone: &Zone, at: i64) -> bool {
        let local = at + zone.offset(at);
        let second = local.rem_euclid(DAY);
        self.has_day(local.div_euclid(DAY))
            && has(self.hours, second / HOUR)
            && has(self.minutes, second % HOUR / MINUTE)
            && has(self.seconds, second % MINUTE)
    }

    /// The first second after this one that matches.
    pub(super) fn next(&self, zone: &Zone, after: i64) -> Option<i64> {
        let mut at = after.checked_add(1)?;
        loop {
            // Between two changes of the clocks a zone is plain arithmetic.
            let offset = zone.offset(at);
            let candidate = self.next_local(at + offset)? - offset;
            match zone.first_change(at, candidate) {
                None => return Some(candidate),
                Some(change) => at = change,
            }
        }
    }

    /// The same where clocks are never set, beginning with this very second. Nothing after the last year.
    fn next_local(&self, from: i64) -> Option<i64> {
        let (mut day, mut second) = (from.div_euclid(DAY), from.rem_euclid(DAY));
        loop {
            let (year, month, _) = date(day);
            if year > YEAR_MAX {
                return None;
            }
            if !self.has_year(year) {
                (day, second) = (days_since_epoch(year + 1, 1, 1), 0);
            } else if !has(self.months, month) {
                (day, second) = (days_since_epoch(year, month + 1, 1), 0);
            } else if self.has_day(day)
                && let Some(found) = self.next_in_day(second)
            {
                return Some(day * DAY + found);
            } else {
                (day, second) = (day + 1, 0);
            }
        }
    }

    /// The first second of the day, from this one on, whose clock matches.
    fn next_in_day(&self, from: i64) -> Option<i64> {
        let (hour, minute, second) = (from / HOUR, from % HOUR / MINUTE, from % MINUTE);
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = first(self.seconds, second)
            {
                return Some(hour * HOUR + minute * MINUTE + second);
            }
            if let Some(minute) = first(self.minutes, minute + 1) {
                return Some(hour * HOUR + minute * MINUTE + first(self.seconds, 0)?);
            }
        }
        let hour = first(self.hours, hour + 1)?;
        Some(hour * HOUR + first(self.minutes, 0)? * MINUTE + first(self.seconds, 0)?)
    }

    fn has_day(&self, day: i64) -> bool {
        let (year, month, of_month) = date(day);
        // The first day of all was a Thursday.
        let of_week = (day + 4).rem_euclid(7);
        self.has_year(year)
            && has(self.months, month)
            && has(self.days_of_month, of_month)
            && has(self.days_of_week, of_week)
    }

    fn has_year(&self, year: i64) -> bool {
        u32::try_from(year - YEAR_MIN).is_ok_and(|bit| self.years & 1_u128.unbounded_shl(bit) != 0)
    }
}

fn set(ranges: &[Range]) -> u64 {
    values(ranges)
        .filter_map(|value| u32::try_from(value).ok())
        .fold(0, |bits, value| bits | 1_u64.unbounded_shl(value))
}

/// A range without an end is one value, and one without a step takes all.
fn values(ranges: &[Range]) -> impl Iterator<Item = i64> + '_ {
    ranges.iter().flat_map(|range| {
        let step = usize::try_from(range.step).unwrap_or(1).max(1);
        (range.start..=range.end.max(range.start)).step_by(step).map(i64::from)
    })
}

fn has(set: u64, value: i64) -> bool {
    (0..64).contains(&value) && set & (1 << value) != 0
}

/// The first value of a set, from this one on.
fn first(set: u64, from: i64) -> Option<i64> {
    let rest = set & u64::MAX.unbounded_shl(u32::try_from(from).ok()?);
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}
