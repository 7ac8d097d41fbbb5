//! The cost of many open workflows, each waiting for a timer that is far away. An operation ends when the workflow
//! answers a query, so when its timer is set. They stay open after the driver ends, until their namespace is deleted.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use crate::bench::Bench;
use crate::script::{Script, Step};

/// Longer than any measurement.
const FAR_AWAY: Duration = Duration::from_secs(24 * 3600);

pub(super) struct OpenRuns {
    timers: u32,
}

pub(super) fn scenario(size: Option<u32>) -> OpenRuns {
    OpenRuns { timers: size.unwrap_or(1) }
}

impl Scenario for OpenRuns {
    fn operate<'a>(&'a self, bench: &'a Bench, _n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            let started = bench.start(Script::of(vec![Step::Timers { n: self.timers, after: FAR_AWAY }])).await?;
            let told = bench.query(&started).await?;
            ensure!(told == 0, "a timer fired early: {told}");
            Ok(due_at.elapsed())
        })
    }
}
