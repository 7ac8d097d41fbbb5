//! Workflows that stay open while they are signalled, updated, queried or listed. Each takes a bounded number of
//! operations, because servers bound what one run may receive.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use tokio::sync::OnceCell;

use crate::bench::{Bench, Started};
use crate::script::{Script, Step};
use crate::verify::Gathered;

/// Assigns operations to workflows.
pub(super) struct Targets {
    /// Workflows used round robin.
    at_once: u64,
    /// Operations per workflow; then another takes its place.
    each: u64,
    all: Mutex<BTreeMap<u64, Arc<Target>>>,
}

/// One workflow, started by the first operation that needs it.
#[derive(Default)]
pub(super) struct Target {
    started: OnceCell<Started>,
    /// Acknowledged operations: the sum of their values, and the number of each kind.
    sum: AtomicU64,
    n_signals: AtomicU64,
    n_updates: AtomicU64,
}

impl Targets {
    pub(super) fn new(at_once: u32, each: u64) -> Self {
        assert!(at_once > 0 && each > 0, "there is a target, and an operation for it");
        Self { at_once: at_once.into(), each, all: Mutex::default() }
    }

    /// The target of the `n`-th operation.
    pub(super) fn of(&self, n: u64) -> Arc<Target> {
        let generation = n / (self.at_once * self.each);
        let index = generation * self.at_once + n % self.at_once;
        let mut all = self.all.lock().expect("nobody panics while holding it");
        Arc::clone(all.entry(index).or_default())
    }

    /// Ends all workflows, and checks that each has the sum of what was acknowledged.
    pub(super) async fn finish(&self, bench: &Bench) -> Result<()> {
        let all = std::mem::take(&mut *self.all.lock().expect("nobody panics while holding it"));
        for target in all.into_values() {
            let Some(started) = target.started.get() else { continue };
            bench.end(started).await?;
            let mut finished = bench.outcome(started, target.sum.load(Ordering::Relaxed)).await?;
            finished.gathered = Some(Gathered {
                n_signals: target.n_signals.load(Ordering::Relaxed),
                n_updates: target.n_updates.load(Ordering::Relaxed),
            });
            bench.sample.see(finished);
        }
        Ok(())
    }
}

impl Target {
    pub(super) async fn started(&self, bench: &Bench) -> Result<&Started> {
        self.started.get_or_try_init(|| bench.start(Script::of(vec![Step::Gather]))).await
    }

    pub(super) fn signalled(&self, value: u64) {
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.n_signals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn updated(&self, value: u64) {
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.n_updates.fetch_add(1, Ordering::Relaxed);
    }
}
