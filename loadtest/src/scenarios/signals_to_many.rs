//! Signals to many workflows, each in its turn. An operation is one signal, acknowledged.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use super::targets::Targets;
use crate::bench::Bench;

const MANY: u32 = 64;
const EACH: u64 = 1000;

pub(super) struct Signals {
    targets: Targets,
}

pub(super) fn scenario(size: Option<u32>) -> Signals {
    Signals::new(size.unwrap_or(MANY), EACH)
}

impl Signals {
    pub(super) fn new(at_once: u32, each: u64) -> Self {
        Self { targets: Targets::new(at_once, each) }
    }
}

impl Scenario for Signals {
    fn operate<'a>(&'a self, bench: &'a Bench, n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            let target = self.targets.of(n);
            bench.add(target.started(bench).await?, n).await?;
            target.signalled(n);
            Ok(due_at.elapsed())
        })
    }

    fn finish<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.targets.finish(bench))
    }
}
