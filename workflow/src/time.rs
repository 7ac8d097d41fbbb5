//! Timestamps and spans. The caller provides them; nothing here reads a clock.

use std::ops::Add;
use std::time::Duration;

/// Nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

const NANOS_PER_SECOND: i64 = 1_000_000_000;
pub(crate) const NANOS_PER_MILLI: i64 = 1_000_000;

/// Maximum span: 250 years, as long as nanoseconds in 64 bits allow with room to add.
const SPAN_MAX: Duration = Duration::from_secs(250 * 365 * 24 * 60 * 60);

impl Timestamp {
    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Rounded as the public API rounds expiration times.
    #[must_use]
    pub(crate) fn rounded_to_millis(self) -> Self {
        Self(self.0.saturating_add(NANOS_PER_MILLI / 2).div_euclid(NANOS_PER_MILLI).saturating_mul(NANOS_PER_MILLI))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates: a timeout of a thousand years is one that never comes.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

impl From<Timestamp> for prost_types::Timestamp {
    fn from(moment: Timestamp) -> Self {
        let nanos = i32::try_from(moment.0.rem_euclid(NANOS_PER_SECOND)).expect("a remainder of 10^9 fits");
        Self { seconds: moment.0.div_euclid(NANOS_PER_SECOND), nanos }
    }
}

impl From<prost_types::Timestamp> for Timestamp {
    fn from(moment: prost_types::Timestamp) -> Self {
        Self(moment.seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(i64::from(moment.nanos)))
    }
}

/// A span as the public API writes it.
pub(crate) fn to_proto(span: Duration) -> prost_types::Duration {
    let span = span.min(SPAN_MAX);
    let nanos = i32::try_from(span.subsec_nanos()).expect("less than 10^9 nanoseconds fit");
    prost_types::Duration { seconds: i64::try_from(span.as_secs()).expect("250 years fit"), nanos }
}

/// Parses a span from the public API: absent is zero, too long is capped, invalid is an error text.
pub(crate) fn parse_span(span: Option<&prost_types::Duration>) -> Result<Duration, &'static str> {
    let Some(span) = span else { return Ok(Duration::ZERO) };
    if (span.seconds > 0 && span.nanos < 0) || (span.seconds < 0 && span.nanos > 0) {
        return Err("duration has seconds and nanos with different signs");
    }
    if span.seconds < 0 || span.nanos < 0 {
        return Err("negative duration");
    }
    let seconds = u64::try_from(span.seconds).unwrap_or(u64::MAX);
    let nanos = u32::try_from(span.nanos).unwrap_or(0);
    Ok(Duration::from_secs(seconds).saturating_add(Duration::from_nanos(u64::from(nanos))).min(SPAN_MAX))
}

/// A span of an event or a policy, which was checked on input.
pub(crate) fn span(span: Option<&prost_types::Duration>) -> Duration {
    parse_span(span).unwrap_or(Duration::ZERO)
}

/// The same, where zero stands for "no limit".
pub(crate) fn limit(timeout: Option<&prost_types::Duration>) -> Option<Duration> {
    nonzero(span(timeout))
}

pub(crate) fn nonzero(span: Duration) -> Option<Duration> {
    (!span.is_zero()).then_some(span)
}
