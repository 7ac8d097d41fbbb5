//! A calendar: the seconds that match, and the next of them.
//!
//! When a zone changes its UTC offset, times in a skipped hour do not occur, and those in a repeated hour occur twice.

use proto::temporal::api::schedule::v1::{Range, StructuredCalendarSpec};
use workflow::civil::{OFFSET_MAX, Zone, date, days_since_epoch};

use super::budget::{Budget, Exhausted};

/// The years that a calendar can name.
pub(super) const YEAR_MIN: i64 = 2000;
pub(super) const YEAR_MAX: i64 = 2100;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

const MONTHS_PER_YEAR: i64 = 12;
/// Difference of two UTC offsets of a zone, at most.
const CLOCKS_APART_MAX: i64 = 2 * OFFSET_MAX;

/// Each set is a bit mask; bit n says that value n matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    clock: Clock,
    days_of_month: u64,
    days_of_week: u64,
    months: u64,
    /// Bit n says that year `YEAR_MIN` + n matches. `None`: every year does.
    years: Option<u128>,
}

/// The times of a day that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    seconds: u64,
    minutes: u64,
    hours: u64,
}

/// Local date and time of a moment in a zone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local {
    year: i64,
    month: i64,
    day_of_month: i64,
    day_of_week: i64,
    second_of_day: i64,
}

impl Local {
    pub(super) fn of(zone: &Zone, at: i64) -> Self {
        let local = at + zone.offset(at);
        let day = local.div_euclid(DAY);
        let (year, month, day_of_month) = date(day);
        Self { year, month, day_of_month, day_of_week: day_of_week(day), second_of_day: local.rem_euclid(DAY) }
    }
}

impl Clock {
    /// Of intervals, which may fall on any second.
    pub(super) const ANY: Self = Self { seconds: u64::MAX, minutes: u64::MAX, hours: u64::MAX };
    pub(super) const NONE: Self = Self { seconds: 0, minutes: 0, hours: 0 };

    pub(super) fn or(self, other: Self) -> Self {
        let Self { seconds, minutes, hours } = other;
        Self { seconds: self.seconds | seconds, minutes: self.minutes | minutes, hours: self.hours | hours }
    }

    fn has(self, second_of_day: i64) -> bool {
        has(self.hours, second_of_day / HOUR)
            && has(self.minutes, second_of_day % HOUR / MINUTE)
            && has(self.seconds, second_of_day % MINUTE)
    }

    /// The first second of the day, from this one on, that matches.
    fn first(self, from: i64) -> Option<i64> {
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

    /// Length of a span from this second, which matches, in which every one of `candidates` matches.
    fn matches_for(self, second_of_day: i64, candidates: Self) -> i64 {
        let covers = |own: u64, theirs: u64, max: i64| {
            let domain = u64::MAX.unbounded_shr(u32::try_from(63 - max).unwrap_or(0));
            own & theirs & domain == theirs & domain
        };
        if !covers(self.seconds, candidates.seconds, 59) {
            1
        } else if !covers(self.minutes, candidates.minutes, 59) {
            MINUTE - second_of_day % MINUTE
        } else if !covers(self.hours, candidates.hours, 23) {
            HOUR - second_of_day % HOUR
        } else {
            DAY - second_of_day
        }
    }
}

impl Calendar {
    /// Values outside a field's domain match nothing: excluded calendars that were stored by older versions were not
    /// checked.
    pub(super) fn new(spec: &StructuredCalendarSpec) -> Self {
        let years = set(&spec.year, YEAR_MIN, YEAR_MAX);
        let small = |ranges: &[Range], max| u64::try_from(set(ranges, 0, max)).expect("less than 64 values fit");
        Self {
            clock: Clock {
                seconds: small(&spec.second, 59),
                minutes: small(&spec.minute, 59),
                hours: small(&spec.hour, 23),
            },
            days_of_month: small(&spec.day_of_month, 31),
            days_of_week: small(&spec.day_of_week, 6),
            months: small(&spec.month, MONTHS_PER_YEAR),
            years: (!spec.year.is_empty()).then_some(years),
        }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    pub(super) fn matches(&self, local: Local) -> bool {
        self.clock.has(local.second_of_day)
            && has(self.days_of_month, local.day_of_month)
            && has(self.days_of_week, local.day_of_week)
            && has(self.months, local.month)
            && self.next_year(local.year) == Some(local.year)
    }

    /// End of a span from this second, which matches, in which every one of `candidates` matches. A day at most.
    pub(super) fn matches_until(&self, zone: &Zone, at: i64, candidates: Clock) -> i64 {
        let end = at + self.clock.matches_for(Local::of(zone, at).second_of_day, candidates);
        zone.first_change(at, end).unwrap_or(end)
    }

    /// The first second after this one that matches.
    pub(super) fn next(&self, zone: &Zone, after: i64, budget: &mut Budget) -> Result<Option<i64>, Exhausted> {
        let Some(mut at) = after.checked_add(1) else { return Ok(None) };
        loop {
            // Between two changes, the UTC offset is constant.
            let offset = zone.offset(at);
            let Some(found) = self.next_local(at + offset, budget)? else { return Ok(None) };
            let candidate = found - offset;
            // No offset of the zone gives an earlier match, except just after `at`, if clocks are set back, and just
            // before the candidate, if they are set forward: changes in between do not matter.
            let looked_at = candidate.min(at.saturating_add(CLOCKS_APART_MAX));
            budget.spend(days_in(at, looked_at))?;
            match zone.first_change(at, looked_at) {
                Some(change) => at = change,
                None if looked_at == candidate => return Ok(Some(candidate)),
                None => at = looked_at.max(candidate - CLOCKS_APART_MAX),
            }
        }
    }

    /// The same with a constant UTC offset, beginning with `from` itself. `None` after the last year.
    fn next_local(&self, from: i64, budget: &mut Budget) -> Result<Option<i64>, Exhausted> {
        let today = from.div_euclid(DAY);
        let (mut year, mut month, mut day) = date(today);
        let Some(first_of_day) = self.clock.first(0) else { return Ok(None) };
        if let Some(second) = self.clock.first(from.rem_euclid(DAY))
            && self.next_year(year) == Some(year)
            && has(self.months, month)
            && has(self.days_of(year, month), day)
        {
            return Ok(Some(today * DAY + second));
        }
        day += 1;
        loop {
            budget.spend(1)?;
            let Some(next_year) = self.next_year(year) else { return Ok(None) };
            if next_year > year {
                (year, month, day) = (next_year, 1, 1);
            }
            let Some(next_month) = first(self.months, month) else {
                (year, month, day) = (year + 1, 1, 1);
                continue;
            };
            if next_month > month {
                (month, day) = (next_month, 1);
            }
            if let Some(day) = first(self.days_of(year, month), day) {
                return Ok(Some(days_since_epoch(year, month, day) * DAY + first_of_day));
            }
            (month, day) = (month + 1, 1);
        }
    }

    /// The days of a month that match.
    fn days_of(&self, year: i64, month: i64) -> u64 {
        const WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
        let first_day = days_since_epoch(year, month, 1);
        let n_days = days_since_epoch(year, month + 1, 1) - first_day;
        let starts_with = day_of_week(first_day);
        let of_week = self.days_of_week & 0x7f;
        let week = ((of_week >> starts_with) | (of_week << (7 - starts_with))) & 0x7f;
        // Days are counted from one.
        let of_week = (week * WEEKS) << 1;
        self.days_of_month & of_week & (u64::MAX >> (63 - n_days)) & !1
    }

    /// The first year that matches, from this one on.
    fn next_year(&self, from: i64) -> Option<i64> {
        let Some(years) = self.years else { return (from <= YEAR_MAX).then_some(from) };
        let rest = years & u128::MAX.unbounded_shl(u32::try_from((from - YEAR_MIN).max(0)).ok()?);
        (rest != 0).then(|| YEAR_MIN + i64::from(rest.trailing_zeros()))
    }
}

/// The epoch was a Thursday.
fn day_of_week(day: i64) -> i64 {
    (day + 4).rem_euclid(7)
}

/// Days that are searched for offset changes.
fn days_in(from: i64, to: i64) -> u64 {
    1 + to.saturating_sub(from).unsigned_abs() / DAY.unsigned_abs()
}

/// Bit n says that value `min` + n is in one of the ranges. A range without end is one value, and without step has step
/// 1. Does not iterate beyond `min` and `max`: ranges come from clients.
fn set(ranges: &[Range], min: i64, max: i64) -> u128 {
    let mut bits = 0;
    for range in ranges {
        let (start, end, step) = (i64::from(range.start), i64::from(range.end), i64::from(range.step).max(1));
        let end = end.max(start).min(max);
        let below = (min - start).max(0);
        let mut value = start + (below + step - 1) / step * step;
        while value <= end {
            bits |= 1_u128.unbounded_shl(u32::try_from(value - min).unwrap_or(u32::MAX));
            value += step;
        }
    }
    bits
}

fn has(set: u64, value: i64) -> bool {
    (0..64).contains(&value) && set & (1 << value) != 0
}

/// The first value of a set, from this one on.
fn first(set: u64, from: i64) -> Option<i64> {
    let rest = set & u64::MAX.unbounded_shl(u32::try_from(from).ok()?);
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}
