//! Visibility latency: an operation is the time from the start of a workflow, or from its end, to the first list that
//! returns it. Operations poll lists in a loop, so few at once measure best.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::Scenario;
use crate::bench::Bench;
use crate::script::Script;

/// Upper bound of the visibility lag.
const LISTED_WITHIN: Duration = Duration::from_secs(30);
const ASKED_EVERY: Duration = Duration::from_millis(5);

/// Start of the measured time.
pub(super) enum Since {
    Start,
    End,
}

pub(super) struct Listed {
    since: Since,
}

pub(super) fn scenario(since: Since) -> Listed {
    Listed { since }
}

impl Scenario for Listed {
    fn operate<'a>(&'a self, bench: &'a Bench, _n: u64, _due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            let script = Script::of(Vec::new());
            let expected = script.expected();
            let started = bench.start(script).await?;
            let mut since = Instant::now();
            let mut query = format!("WorkflowId = '{}'", started.workflow_id);
            if matches!(self.since, Since::End) {
                bench.sample.see(bench.outcome(&started, expected).await?);
                since = Instant::now();
                query += " AND ExecutionStatus = 'Completed'";
            }
            while bench.list(&started.namespace, query.clone()).await? != [started.run_id.as_str()] {
                ensure!(since.elapsed() < LISTED_WITHIN, "a run is not listed after {LISTED_WITHIN:?}");
                tokio::time::sleep(ASKED_EVERY).await;
            }
            let listed_after = since.elapsed();
            if matches!(self.since, Since::Start) {
                bench.sample.see(bench.outcome(&started, expected).await?);
            }
            Ok(listed_after)
        })
    }
}
