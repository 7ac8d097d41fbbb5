//! Moments. The caller brings them; nothing here asks what time it is.

use std::ops::Add;
use std::time::Duration;

/// Nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
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
        let nanos = i32::try_from(moment.0.rem_euclid(1_000_000_000)).expect("a remainder of 10^9 fits");
        Self { seconds: moment.0.div_euclid(1_000_000_000), nanos }
    }
}

impl From<prost_types::Timestamp> for Timestamp {
    fn from(moment: prost_types::Timestamp) -> Self {
        Self(moment.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(moment.nanos)))
    }
}
