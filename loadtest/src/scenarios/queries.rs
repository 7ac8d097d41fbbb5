//! Queries of many workflows, round robin. An operation is one query, which must return the workflow's sum.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use super::targets::Targets;
use crate::bench::Bench;

const MANY: u32 = 64;
/// Queries leave no trace, so a workflow need never be replaced.
const EACH: u64 = u32::MAX as u64;

pub(super) struct Queries {
    targets: Targets,
    many: u32,
}

pub(super) fn scenario(size: Option<u32>) -> Queries {
    let many = size.unwrap_or(MANY);
    Queries { targets: Targets::new(many, EACH), many }
}

impl Scenario for Queries {
    /// Signals to each workflow the number that its queries must return.
    fn prepare<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for n in 0..u64::from(self.many) {
                let target = self.targets.of(n);
                bench.add(target.started(bench).await?, n).await?;
                target.signalled(n);
            }
            Ok(())
        })
    }

    fn operate<'a>(&'a self, bench: &'a Bench, n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            let known = n % u64::from(self.many);
            let told = bench.query(self.targets.of(n).started(bench).await?).await?;
            ensure!(told == known, "a query was answered {told} instead of {known}");
            Ok(due_at.elapsed())
        })
    }

    fn finish<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.targets.finish(bench))
    }
}
