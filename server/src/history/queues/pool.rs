//! The task pool: queue tasks of all shards run here, a bounded number at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits are granted in FIFO order, and each queue's loop requests one at a time: a busy shard cannot starve another.
#[derive(Clone)]
pub(crate) struct Pool {
    places: Arc<Semaphore>,
}

impl Pool {
    pub(crate) fn new(size: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(size)) }
    }

    /// A permit to run a task; released on drop. A task in backoff holds none.
    pub(crate) async fn place(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("the pool is never closed")
    }
}
