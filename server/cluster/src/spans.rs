//! Durations as people write them (`1h30m`, `1.5d`, `-90s`), and as the API carries them.

use std::time::Duration;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Bound of the sum of fractions in nanoseconds; less than the largest integer.
const FRACTIONS_MAX: f64 = 9.0e18;

const UNITS: [(&str, i64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("d", 24 * 60 * 60 * NANOS_PER_SECOND),
    ("h", 60 * 60 * NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("s", NANOS_PER_SECOND),
];

/// A duration of the API; `None` if negative. `prost_types` negates a negative one to report it, which overflows for
/// the least number of seconds: a client must not be able to panic a handler.
#[must_use]
pub fn from_proto(span: prost_types::Duration) -> Option<Duration> {
    let is_convertible = span.seconds > i64::MIN / 2;
    is_convertible.then(|| Duration::try_from(span).ok()).flatten()
}

/// Nanoseconds, if the text is a duration. A day has 24 hours.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(0);
    }
    let mut rest = unsigned;
    let (mut whole, mut fractions) = (0_i64, 0.0_f64);
    while !rest.is_empty() {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (written, tail) = rest.split_at(length);
        let (unit, nanos) = UNITS.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        rest = &tail[unit.len()..];
        match written.parse::<i64>() {
            Ok(count) => whole = whole.checked_add(count.checked_mul(nanos)?)?,
            #[expect(clippy::cast_precision_loss, reason = "a unit has few digits")]
            Err(_) => fractions += written.parse::<f64>().ok()? * nanos as f64,
        }
    }
    if unsigned.is_empty() || fractions.is_nan() || fractions >= FRACTIONS_MAX {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is in range, and a part of a nanosecond is none")]
    let nanos = whole.checked_add(fractions as i64)?;
    Some(if text.starts_with('-') { -nanos } else { nanos })
}

#[cfg(test)]
mod tests;
