//! Workflows of one activity that are all started before the first worker polls. The clock starts with the workers: an
//! operation is a workflow's end, its latency the time since then.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;

use super::Scenario;
use crate::bench::{Bench, Started};
use crate::plan::{Extent, Plan};
use crate::script::{Script, Step};

/// Workflows started if the plan has a duration and no count.
const MANY: u64 = 1000;
/// Starts in flight.
const STARTING_MAX: usize = 64;

pub(super) struct Backlog {
    n: u64,
    waiting: Mutex<Vec<Started>>,
    opened_at: OnceLock<Instant>,
}

pub(super) fn scenario(plan: &Plan) -> Backlog {
    let n = match plan.extent {
        Extent::Count(n) => n,
        Extent::Duration(_) => MANY,
    };
    // Warm-up operations are taken from the backlog, too.
    Backlog { n: n + plan.warm_up, waiting: Mutex::default(), opened_at: OnceLock::new() }
}

impl Scenario for Backlog {
    fn prepare<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            bench.gate.send_replace(false);
            let script = Script::of(vec![Step::Activities(1)]);
            let starts = stream::iter(0..self.n).map(|_| bench.start(script.clone())).buffer_unordered(STARTING_MAX);
            let mut started: Vec<Started> = starts.try_collect().await?;
            started.reverse();
            *self.waiting.lock().expect("nobody panics while holding it") = started;
            self.opened_at.get_or_init(Instant::now);
            bench.gate.send_replace(true);
            Ok(())
        })
    }

    fn operate<'a>(&'a self, bench: &'a Bench, _n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        Box::pin(async move {
            let next = self.waiting.lock().expect("nobody panics while holding it").pop();
            let started = next.context("the backlog is used up; give a --count")?;
            let finished = bench.outcome(&started, started.script.expected()).await?;
            bench.sample.see(finished);
            Ok(self.opened_at.get().unwrap_or(&due_at).elapsed())
        })
    }
}
