//! Workflows from their start to their end: an operation is one workflow.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use crate::bench::Bench;
use crate::script::{Script, Step};

pub(super) struct Whole {
    script: Script,
}

impl Whole {
    pub(super) fn of(steps: Vec<Step>) -> Self {
        Self { script: Script::of(steps) }
    }
}

impl Scenario for Whole {
    fn operate<'a>(&'a self, bench: &'a Bench, _n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(run(bench, self.script.clone(), due_at))
    }
}

/// Starts a workflow and waits for its end; returns the time that took, less the duration of its timers.
pub(super) async fn run(bench: &Bench, script: Script, due_at: Instant) -> Result<Duration> {
    let (expected, waits) = (script.expected(), script.waits());
    let started = bench.start(script).await?;
    let finished = bench.outcome(&started, expected).await?;
    let took = due_at.elapsed().saturating_sub(waits);
    bench.sample.see(finished);
    Ok(took)
}
