//! Lists, filtered to one of many open workflows. An operation is one list, which must return exactly that run.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use super::targets::Targets;
use crate::bench::Bench;

const MANY: u32 = 64;
/// Lists leave no trace, so a workflow need never be replaced.
const EACH: u64 = u32::MAX as u64;
/// Upper bound of the visibility lag.
const LISTED_WITHIN: Duration = Duration::from_secs(30);
const ASKED_EVERY: Duration = Duration::from_millis(20);

pub(super) struct Lists {
    targets: Targets,
    many: u32,
}

pub(super) fn scenario(size: Option<u32>) -> Lists {
    let many = size.unwrap_or(MANY);
    Lists { targets: Targets::new(many, EACH), many }
}

impl Lists {
    async fn list(&self, bench: &Bench, n: u64) -> Result<bool> {
        let target = self.targets.of(n);
        let started = target.started(bench).await?;
        let query = format!("WorkflowId = '{}' AND ExecutionStatus = 'Running'", started.workflow_id);
        let runs = bench.list(&started.namespace, query).await?;
        match runs.as_slice() {
            [] => Ok(false),
            [run_id] if *run_id == started.run_id => Ok(true),
            others => bail!("asked for the run of {}, a list told of {others:?}", started.workflow_id),
        }
    }
}

impl Scenario for Lists {
    /// Starts all workflows, and waits until they are listed.
    fn prepare<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for n in 0..u64::from(self.many) {
                self.targets.of(n).started(bench).await?;
            }
            let deadline = Instant::now() + LISTED_WITHIN;
            for n in 0..u64::from(self.many) {
                while !self.list(bench, n).await? {
                    ensure!(Instant::now() < deadline, "a run is not listed after {LISTED_WITHIN:?}");
                    tokio::time::sleep(ASKED_EVERY).await;
                }
            }
            Ok(())
        })
    }

    fn operate<'a>(&'a self, bench: &'a Bench, n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            ensure!(self.list(bench, n).await?, "a run that was listed is not listed any more");
            Ok(due_at.elapsed())
        })
    }

    fn finish<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.targets.finish(bench))
    }
}
