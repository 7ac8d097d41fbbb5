//! Cron schedules: five fields, `@every`, `@hourly` and the like, in UTC. Pure arithmetic on moments.

use std::time::Duration;

use crate::time::Timestamp;

/// When a workflow runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schedule {
    Every(Duration),
    Calendar(Box<Calendar>),
}

/// Each field is a set of bits; bit n says that value n matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    minutes: u64,
    hours: u64,
    days_of_month: u64,
    months: u64,
    days_of_week: u64,
    /// If both are restricted a day matches if either says so; otherwise both must.
    any_day_field: bool,
}

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A schedule that matches nothing in this many days (28 years: one whole cycle of the calendar) never does.
const DAYS_SEARCHED_MAX: i64 = 28 * 366;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// The text says what is wrong with a schedule that is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "invalid CronSchedule.".to_owned();
        let text = without_zone(text)?;
        if let Some(span) = text.strip_prefix("@every ") {
            let span = parse_span(span.trim()).ok_or_else(invalid)?;
            return Ok(Self::Every(Duration::from_secs(span.as_secs().max(1))));
        }
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            fields => fields,
        };
        let calendar = Calendar::parse(fields).ok_or_else(invalid)?;
        if calendar.next(Timestamp(0)).is_none() {
            return Err("invalid CronSchedule, no time can be found to satisfy the schedule".to_owned());
        }
        Ok(Self::Calendar(Box::new(calendar)))
    }

    /// How long from now until the next time, in whole seconds, for a run whose own time was `scheduled_at`.
    pub(crate) fn backoff(&self, scheduled_at: Timestamp, now: Timestamp) -> Option<Duration> {
        let next = if now < scheduled_at {
            scheduled_at
        } else {
            let next = self.next(scheduled_at)?;
            if next < now { self.next_not_before(scheduled_at, now)? } else { next }
        };
        let wait = next.since(now);
        Some(Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)))
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => {
                let whole_second = Timestamp(after.0 - after.0.rem_euclid(NANOS_PER_SECOND));
                Some(whole_second + *span)
            }
            Self::Calendar(calendar) => calendar.next(after),
        }
    }

    /// The first time at or after `now`, in steps from `from`. Times that were missed are not made up for.
    fn next_not_before(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let just_before = Timestamp(now.0 - 1);
        match self {
            Self::Calendar(calendar) => calendar.next(just_before),
            Self::Every(span) => {
                let first = self.next(from)?;
                let step = i64::try_from(span.as_nanos()).ok()?;
                let missed = now.0.saturating_sub(first.0).max(0);
                let steps = missed.div_euclid(step) + i64::from(missed.rem_euclid(step) > 0);
                Some(Timestamp(first.0.saturating_add(steps.saturating_mul(step))))
            }
        }
    }
}

impl Calendar {
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days_of_month, months, days_of_week] = fields.as_slice() else { return None };
        let is_any = |field: &str| field.split(',').any(|part| part.starts_with(['*', '?']));
        Some(Self {
            minutes: parse_field(minutes, 0, 59, &[])?,
            hours: parse_field(hours, 0, 23, &[])?,
            days_of_month: parse_field(days_of_month, 1, 31, &[])?,
            months: parse_field(months, 1, 12, &MONTHS)?,
            days_of_week: parse_field(days_of_week, 0, 6, &WEEKDAYS)?,
            any_day_field: is_any(days_of_month) || is_any(days_of_week),
        })
    }

    /// The first whole minute after a moment that matches.
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let first_second = after.0.div_euclid(NANOS_PER_SECOND) + 1;
        let first_minute = first_second.div_euclid(60) + i64::from(first_second.rem_euclid(60) > 0);
        let first_day = first_minute.div_euclid(24 * 60);
        for day in first_day..=first_day + DAYS_SEARCHED_MAX {
            if !self.matches_day(day) {
                continue;
            }
            let from_minute = if day == first_day { first_minute.rem_euclid(24 * 60) } else { 0 };
            let found =
                (from_minute..24 * 60).find(|minute| has(self.hours, minute / 60) && has(self.minutes, minute % 60));
            if let Some(minute) = found {
                let seconds = day.checked_mul(SECONDS_PER_DAY)?.checked_add(minute * 60)?;
                let next = Timestamp(seconds.checked_mul(NANOS_PER_SECOND)?);
                assert!(next > after, "the next time is not this one");
                return Some(next);
            }
        }
        None
    }

    fn matches_day(&self, day: i64) -> bool {
        let (month, day_of_month) = civil(day);
        // The first day of all was a Thursday.
        let day_of_week = (day + 4).rem_euclid(7);
        let (in_month, in_week) = (has(self.days_of_month, day_of_month), has(self.days_of_week, day_of_week));
        let is_day = if self.any_day_field { in_month && in_week } else { in_month || in_week };
        has(self.months, month) && is_day
    }
}

fn has(set: u64, value: i64) -> bool {
    (0..64).contains(&value) && set & (1 << value) != 0
}

/// Month and day of month of a day since the epoch: the civil calendar, counted from a March so that leap days come last.
fn civil(day: i64) -> (i64, i64) {
    let day = day + 719_468;
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    assert!((1..=12).contains(&month) && (1..=31).contains(&day_of_month), "a day has a date");
    (month, day_of_month)
}

/// A list of `*`, `value`, `value-value`, each with an optional `/step`.
fn parse_field(field: &str, low: u64, high: u64, names: &[&str]) -> Option<u64> {
    let mut set = 0;
    for part in field.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (low, high),
            Some((first, last)) => (parse_value(first, low, names)?, parse_value(last, low, names)?),
            None => {
                let value = parse_value(range, low, names)?;
                (value, if step.is_some() { high } else { value })
            }
        };
        let step: usize = step.map_or(Some(1), |step| step.parse().ok())?;
        if step == 0 || first < low || last > high || first > last {
            return None;
        }
        set |= (first..=last).step_by(step).fold(0, |bits, value| bits | 1 << value);
    }
    Some(set)
}

fn parse_value(text: &str, low: u64, names: &[&str]) -> Option<u64> {
    let by_name = names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match by_name {
        Some(position) => Some(low + u64::try_from(position).ok()?),
        None => text.parse().ok(),
    }
}

/// Only UTC is known here: what other zones do is data that changes, and the core has none.
fn without_zone(text: &str) -> Result<&str, String> {
    let text = text.trim();
    let Some(rest) = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) else { return Ok(text) };
    let (zone, fields) = rest.split_once(' ').ok_or_else(|| "invalid CronSchedule.".to_owned())?;
    if matches!(zone, "UTC" | "Etc/UTC" | "GMT" | "Etc/GMT") {
        return Ok(fields.trim_start());
    }
    Err(format!("invalid CronSchedule: time zone {zone} is not supported yet, only UTC is"))
}

/// `1h30m`, `90s`, `1.5h`.
fn parse_span(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let length = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let value: f64 = rest[..length].parse().ok()?;
        rest = &rest[length..];
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        seconds += value * factor;
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|span| !span.is_zero())
}

#[cfg(test)]
mod tests;
