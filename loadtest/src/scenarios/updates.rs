//! Updates of many workflows, each in its turn. An operation is one update, completed.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use super::targets::Targets;
use crate::bench::Bench;
use crate::updates::returned;

const MANY: u32 = 64;
/// Half of what the reference server lets one run receive.
const EACH: u64 = 1000;

pub(super) struct Updates {
    targets: Targets,
}

pub(super) fn scenario(size: Option<u32>) -> Updates {
    Updates { targets: Targets::new(size.unwrap_or(MANY), EACH) }
}

impl Scenario for Updates {
    fn operate<'a>(&'a self, bench: &'a Bench, n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            let target = self.targets.of(n);
            let told = bench.update(target.started(bench).await?, n).await?;
            target.updated(n);
            ensure!(told == returned(n), "an update returned {told} instead of {}", returned(n));
            Ok(due_at.elapsed())
        })
    }

    fn finish<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.targets.finish(bench))
    }
}
