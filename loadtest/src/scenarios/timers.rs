//! Workflows of timers that all fire in the same second, whenever they were started: the herd that a timer queue fears.
//! Latency is what came on top of the time that was waited on purpose.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Scenario, whole};
use crate::bench::Bench;
use crate::script::{Script, Step};

const TIMERS: u32 = 10;
/// Moments at which timers fire are so far apart. Long enough for a crowd to gather, short enough to wait for.
const PERIOD: Duration = Duration::from_secs(5);
/// A timer that is started later than this before its moment waits for the next one.
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

/// From this moment until the next one at which timers fire, in whole milliseconds.
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
