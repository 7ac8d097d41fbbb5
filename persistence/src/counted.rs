//! Counts reads and writes of an engine, for tests and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::engine::{Availability, Batch, Consistency, Engine, Outcome, Page, Partition, Slice, Statics};
use crate::error::StoreError;

/// An engine with counters in front of it.
pub struct Counted {
    engine: Arc<dyn Engine>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
pub struct Counts {
    pub reads: AtomicU64,
    pub plain_writes: AtomicU64,
    pub conditional_writes: AtomicU64,
    /// Rows put or deleted, by whichever kind of write.
    pub rows_written: AtomicU64,
    /// Rows returned by reads.
    pub rows_read: AtomicU64,
}

impl Counted {
    #[expect(clippy::new_ret_no_self, reason = "the engine is used through the contract, the counters beside it")]
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> (Arc<dyn Engine>, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        (Arc::new(Self { engine, counts: Arc::clone(&counts) }), counts)
    }
}

impl Counts {
    /// Every statement that was sent, of any kind.
    #[must_use]
    pub fn statements(&self) -> u64 {
        [&self.reads, &self.plain_writes, &self.conditional_writes]
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }
}

impl Engine for Counted {
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.engine.statics(partition, consistency)
    }

    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let page = self.engine.read(slice).await?;
            self.counts.rows_read.fetch_add(page.rows.len() as u64, Ordering::Relaxed);
            Ok(page)
        })
    }

    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        let count = if batch.is_conditional() { &self.counts.conditional_writes } else { &self.counts.plain_writes };
        count.fetch_add(1, Ordering::Relaxed);
        let rows = batch.all_puts().count() + batch.all_deletes().count();
        self.counts.rows_written.fetch_add(rows as u64, Ordering::Relaxed);
        self.engine.write(batch)
    }

    fn availability(&self) -> watch::Receiver<Availability> {
        self.engine.availability()
    }
}
