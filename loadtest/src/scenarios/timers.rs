//! Workflows of timers that all fire at the same moment, whenever they were started: a thundering herd for the timer
//! queue. Latency excludes the duration of the timers.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Scenario, whole};
use crate::bench::Bench;
use crate::script::{Script, Step};

const TIMERS: u32 = 10;
/// Interval between the moments at which timers fire: long enough for many to gather, short enough to wait for.
const PERIOD: Duration = Duration::from_secs(5);
/// Shortest timer: one that starts later than this before a moment fires at the next one.
const NOTICE: Duration = Duration::from_secs(1);

pub(super) struct Timers {
    n: u32,
    began_at: Instant,
}

pub(super) fn scenario(size: Option<u32>) -> Timers {
    Timers { n: size.unwrap_or(TIMERS), began_at: Instant::now() }
}

impl Scenario for Timers {
    fn operate<'a>(&'a self, bench: &'a Bench, _n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        let script = Script::of(vec![Step::Timers { n: self.n, after: until_next(self.began_at.elapsed()) }]);
        Box::pin(whole::run(bench, script, due_at))
    }
}

/// Time from `now` until the next moment at which timers fire, in whole milliseconds.
fn until_next(now: Duration) -> Duration {
    let period = PERIOD.as_millis();
    let earliest = (now + NOTICE).as_millis();
    let next = earliest.div_ceil(period) * period;
    Duration::from_millis(u64::try_from(next - now.as_millis()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    //! All moments of a period lead to the same second.

    use super::*;

    #[test]
    fn timers_started_at_different_moments_fire_at_the_same_one() {
        for now in [0, 1, 1500, 3999, 4000] {
            let now = Duration::from_millis(now);
            assert_eq!(now + until_next(now), PERIOD);
        }
        assert_eq!(until_next(Duration::from_millis(4001)), Duration::from_millis(5999));
    }
}
