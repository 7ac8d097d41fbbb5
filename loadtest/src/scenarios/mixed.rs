//! All kinds at once, in shares as a service might have them.

use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    Scenario, chain, children, continue_as_new, fan_out, lists, no_op, one_activity, queries, signals_to_many, timers,
    updates,
};
use crate::bench::Bench;
use crate::verify::scattered;

/// Out of a hundred operations.
type Share = u64;

pub(super) struct Mixed {
    parts: Vec<(Share, Box<dyn Scenario>)>,
}

pub(super) fn scenario() -> Mixed {
    let parts: Vec<(Share, Box<dyn Scenario>)> = vec![
        (10, Box::new(no_op::scenario())),
        (30, Box::new(one_activity::scenario())),
        (8, Box::new(chain::scenario(None))),
        (2, Box::new(fan_out::scenario(Some(20)))),
        (20, Box::new(signals_to_many::scenario(None))),
        (5, Box::new(timers::scenario(Some(3)))),
        (5, Box::new(children::scenario(None))),
        (5, Box::new(continue_as_new::scenario(None))),
        (8, Box::new(updates::scenario(None))),
        (5, Box::new(queries::scenario(None))),
        (2, Box::new(lists::scenario(None))),
    ];
    assert_eq!(parts.iter().map(|(share, _)| share).sum::<Share>(), 100, "the shares make up a whole");
    Mixed { parts }
}

impl Mixed {
    fn part(&self, n: u64) -> &dyn Scenario {
        let mut drawn = scattered(n) % 100;
        for (share, part) in &self.parts {
            if drawn < *share {
                return part.as_ref();
            }
            drawn -= share;
        }
        unreachable!("the shares make up a whole")
    }
}

impl Scenario for Mixed {
    fn prepare<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for (_, part) in &self.parts {
                part.prepare(bench).await?;
            }
            Ok(())
        })
    }

    fn operate<'a>(&'a self, bench: &'a Bench, n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>> {
        self.part(n).operate(bench, n, due_at)
    }

    fn finish<'a>(&'a self, bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for (_, part) in &self.parts {
                part.finish(bench).await?;
            }
            Ok(())
        })
    }
}
