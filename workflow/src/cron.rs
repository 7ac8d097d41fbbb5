//! Cron schedules: five fields, `@every`, `@hourly` and the like, in UTC or in a zone that the text names. Parses the
//! text and computes backoffs; dates in a zone are in cron/calendar.rs.

use std::time::Duration;

use crate::civil::Zone;
use crate::time::Timestamp;

mod calendar;

use self::calendar::{Calendar, Days, NANOS_PER_SECOND};

/// A parsed cron schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schedule {
    Every(Duration),
    Calendar(Box<Calendar>),
}

/// The reference's error texts for an invalid schedule.
const INVALID: &str = "invalid CronSchedule.";
const NEVER: &str = "invalid CronSchedule, no time can be found to satisfy the schedule";

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Validates a cron schedule; errors have the reference's text. An empty schedule is valid: no cron.
///
/// # Errors
/// If the text does not parse, or no time matches it.
pub fn check_cron_schedule(text: &str) -> Result<(), &'static str> {
    if text.is_empty() { Ok(()) } else { Schedule::parse(text).map(|_| ()) }
}

impl Schedule {
    /// Errors have the reference's text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (zone, text) = split_zone(text).ok_or(INVALID)?;
        if let Some(span) = text.strip_prefix("@every ") {
            let nanos = parse_span(span).ok_or(INVALID)?;
            let seconds = u64::try_from(nanos.div_euclid(NANOS_PER_SECOND)).unwrap_or(0).max(1);
            return Ok(Self::Every(Duration::from_secs(seconds)));
        }
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            fields => fields,
        };
        let calendar = parse_fields(fields, zone).ok_or(INVALID)?;
        // Searches from the epoch, so that validity does not depend on the current time.
        calendar.next(Timestamp(0)).ok_or(NEVER)?;
        Ok(Self::Calendar(Box::new(calendar)))
    }

    /// Backoff from now until the next time, rounded up to whole seconds, for a run scheduled at `scheduled_at`.
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

    /// The first time at or after `now`, in steps from `from`. Missed times are skipped.
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

/// Takes `CRON_TZ=Europe/Berlin ` or `TZ=Europe/Berlin ` off the front. Without it, the schedule is in UTC.
fn split_zone(text: &str) -> Option<(Zone, &str)> {
    let Some(rest) = text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) else {
        return Some((Zone::Utc, text));
    };
    let (name, fields) = rest.split_once(' ')?;
    Some((Zone::named(name)?, fields.trim()))
}

fn parse_fields(text: &str, zone: Zone) -> Option<Calendar> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days_of_month, months, days_of_week] = fields.as_slice() else { return None };
    let (of_month, of_week) = (parse_field(days_of_month, 1, 31, &[])?, parse_field(days_of_week, 0, 6, &WEEKDAYS)?);
    let days =
        Days { of_month: of_month.values, of_week: of_week.values, both_must_match: of_month.is_any || of_week.is_any };
    Some(Calendar {
        minutes: parse_field(minutes, 0, 59, &[])?.values,
        hours: parse_field(hours, 0, 23, &[])?.values,
        days,
        months: parse_field(months, 1, 12, &MONTHS)?.values,
        zone,
    })
}

/// One field of a schedule.
#[derive(Clone, Copy, Default)]
struct Field {
    /// Bit n says that value n matches.
    values: u64,
    /// It has a `*` or a `?`, so it restricts nothing.
    is_any: bool,
}

/// A list of `*`, `value`, `value-value`, each with an optional `/step`.
fn parse_field(field: &str, low: u64, high: u64, names: &[&str]) -> Option<Field> {
    let mut all = Field::default();
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step: Option<usize> = step.map(|step| step.parse().ok()).map_or(Some(None), |step| step.map(Some))?;
        let is_any = range.split('-').next().is_some_and(|first| first == "*" || first == "?");
        let (first, last) = match range.split_once('-') {
            _ if is_any => (low, high),
            Some((first, last)) => (parse_value(first, low, names)?, parse_value(last, low, names)?),
            None => {
                let value = parse_value(range, low, names)?;
                (value, if step.is_some() { high } else { value })
            }
        };
        let step = step.unwrap_or(1);
        if step == 0 || first < low || last > high || first > last {
            return None;
        }
        all.values |= (first..=last).step_by(step).fold(0, |bits, value| bits | 1 << value);
        all.is_any |= is_any && step == 1;
    }
    Some(all)
}

fn parse_value(text: &str, low: u64, names: &[&str]) -> Option<u64> {
    let by_name = names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match by_name {
        Some(position) => Some(low + u64::try_from(position).ok()?),
        None => text.parse().ok(),
    }
}

/// `1h30m`, `90s`, `1.5h`, `-2m`: in nanoseconds.
fn parse_span(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", NANOS_PER_SECOND),
        ("m", 60 * NANOS_PER_SECOND),
        ("h", 3600 * NANOS_PER_SECOND),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i64 = 0;
    while !rest.is_empty() {
        let length = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number = &rest[..length];
        rest = &rest[length..];
        let (unit, factor) =
            UNITS.iter().filter(|(unit, _)| rest.starts_with(unit)).max_by_key(|(unit, _)| unit.len())?;
        rest = &rest[unit.len()..];
        nanos = nanos.checked_add(scaled(number, *factor)?)?;
    }
    Some(sign * nanos)
}

/// Nanoseconds in `number` units of `factor`; fractions of a nanosecond are dropped.
fn scaled(number: &str, factor: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let parse = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok() };
    let whole = parse(whole)?.checked_mul(factor)?;
    // Digits beyond these are below a nanosecond, whatever the unit.
    const FRACTION_DIGITS: usize = 15;
    let fraction = fraction.get(..fraction.len().min(FRACTION_DIGITS))?;
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let below_one = i128::from(parse(fraction)?) * i128::from(factor) / scale;
    whole.checked_add(i64::try_from(below_one).ok()?)
}

#[cfg(test)]
mod tests;
