//! Timestamps in queries and payloads: RFC 3339, to the nanosecond.

use workflow::Timestamp;
use workflow::civil::days_since_epoch;

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;
const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// Fraction digits; further ones are ignored.
const FRACTION_DIGITS: usize = 9;

/// Parses a timestamp. Those that 64 bits of nanoseconds cannot hold (before 1677, after 2262) are clamped.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once('T')?;
    let clock_length = rest.find(['Z', '+', '-'])?;
    let (clock, zone) = rest.split_at(clock_length);
    let seconds = days(date)? * SECONDS_PER_DAY + second_of_day(clock.get(..8)?)? - offset(zone)?;
    let nanos = i128::from(seconds) * NANOS_PER_SECOND + i128::from(fraction(&clock[8..])?);
    let bounded = nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    Some(Timestamp(i64::try_from(bounded).expect("it was bounded")))
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Days since the epoch.
fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1..=length).contains(&day) {
        return None;
    }
    Some(days_since_epoch(year, month, day))
}

fn second_of_day(clock: &str) -> Option<i64> {
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let second = digits(parts.next()?, 2)?;
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_time.then_some((hour * 60 + minute) * 60 + second)
}

/// In nanoseconds; after a point or a comma.
fn fraction(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let written = text.strip_prefix(['.', ','])?;
    digits(written, written.len()).or_else(|| (written.len() > 18).then_some(0)).filter(|_| !written.is_empty())?;
    let kept = &written[..written.len().min(FRACTION_DIGITS)];
    format!("{kept:0<FRACTION_DIGITS$}").parse().ok()
}

/// In seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, clock) = if let Some(clock) = zone.strip_prefix('-') { (-1, clock) } else { (1, &zone[1..]) };
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

#[cfg(test)]
mod tests;
