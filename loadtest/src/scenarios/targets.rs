//! Workflows that live on while they are signalled, updated or queried. Each ends after a bounded number of
//! operations, because servers bound what one run may receive.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use tokio::sync::OnceCell;

use crate::bench::{Bench, Started};
use crate::script::{Script, Step};
use crate::verify::Gathered;

/// Which operation goes to which workflow.
pub(super) struct Targets {
    /// So many workflows take their turns.
    at_once: u64,
    /// After so many operations, another workflow takes a workflow's place.
    each: u64,
    all: Mutex<BTreeMap<u64, Arc<Target>>>,
}

/// One workflow, started by the first operation that needs it.
#[derive(Default)]
pub(super) struct Target {
    started: OnceCell<Started>,
    /// What was acknowledged: the sum of values, and how many of which kind.
    sum: AtomicU64,
    n_signals: AtomicU64,
    n_updates: AtomicU64,
}

impl Targets {
    pub(super) fn new(at_once: u32, each: u64) -> Self {
        assert!(at_once > 0 && each > 0, "somebody must be the target of something");
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
