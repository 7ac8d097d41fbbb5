//! The engine in memory: the contract in its simplest form, and the faults that a real store has.
//!
//! Without faults it serves `--in-memory`. With them it is the store of the simulation: its behaviour is determined by
//! the calls, their order and a seed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::engine::{Batch, Consistency, Engine, Outcome, Page, Partition, Row, Slice, Statics};
use crate::error::StoreError;
use faults::Dice;
use partition::Dead;
use state::State;

pub use faults::{Fault, Faults, Writes};
pub use state::Scanned;

mod faults;
mod partition;
mod state;
mod versions;

/// The engine in memory.
pub struct Model {
    state: Mutex<State>,
}

impl Model {
    /// Without faults.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(None)) })
    }

    /// With faults from the first call on.
    #[must_use]
    pub fn with_faults(faults: Faults) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(Some(Dice::new(faults)))) })
    }

    /// Replaces the random faults; the new ones are drawn from their own seed.
    pub fn set_faults(&self, faults: Faults) {
        self.state().dice = Some(Dice::new(faults));
    }

    /// Stops random faults and latency. Writes in flight stay so until they are settled, and injected faults still
    /// strike.
    pub fn stop_faults(&self) {
        self.state().dice = None;
    }

    /// The next write meets this fault.
    pub fn inject(&self, fault: Fault) {
        self.inject_when(fault, |_| true);
    }

    /// The `n`th write from now, counted from 1, meets this fault.
    pub fn inject_nth(&self, n: usize, fault: Fault) {
        assert!(n > 0, "writes are counted from 1");
        let mut seen = 0;
        self.inject_when(fault, move |_| {
            seen += 1;
            seen == n
        });
    }

    /// The first write that fits meets this fault, once.
    pub fn inject_when(&self, fault: Fault, fits: impl FnMut(&Batch) -> bool + Send + 'static) {
        self.state().injected.push((Box::new(fits), fault));
    }

    /// Number of late writes: `AppliedLater` to a versioned table, and not arrived.
    #[must_use]
    pub fn n_late(&self) -> usize {
        self.state().n_late()
    }

    /// Delivers all late writes, after everything written since.
    pub fn deliver_late(&self) {
        self.state().deliver_all();
    }

    /// Starts to keep tombstones, so that `scanned` counts those that reads step over. Costs memory for each.
    pub fn remember_dead_rows(&self) {
        self.state().dead = Dead::Remembered;
    }

    /// Rows and tombstones scanned by all reads so far.
    #[must_use]
    pub fn scanned(&self) -> Scanned {
        self.state().scanned
    }

    /// Every row of a partition and its static columns, without writes in flight: for tests of the end result.
    #[must_use]
    pub fn dump(&self, partition: &Partition) -> (Statics, Vec<Row>) {
        self.state().dump(partition)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under this lock is a failed test assertion: the state is consistent, and other callers may go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for the latency to the store, or back.
    async fn travel(&self) {
        let latency = self.state().dice.as_mut().map_or(Duration::ZERO, Dice::latency);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
    }
}

impl Engine for Model {
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>> {
        Box::pin(async move {
            self.travel().await;
            let statics = self.state().statics(&partition, consistency);
            self.travel().await;
            statics
        })
    }

    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            slice.check();
            if slice.is_beyond_keys() {
                return Ok(Page::default());
            }
            self.travel().await;
            let page = self.state().read(&slice);
            self.travel().await;
            page
        })
    }

    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            batch.check();
            batch.check_size()?;
            self.travel().await;
            let outcome = self.state().write(batch);
            self.travel().await;
            outcome
        })
    }
}
