//! The task pool: queue tasks of all shards run here, a bounded number at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places are given in the order of asking, and each shard asks for one at a time: a busy shard cannot starve another.
#[derive(Clone)]
pub(crate) struct Pool {
    places: Arc<Semaphore>,
}

impl Pool {
    pub(crate) fn new(size: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(size)) }
    }

    /// A place to work; given back when dropped. A task that waits for its next try holds none.
    pub(crate) async fn place(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("the pool is never closed")
    }
}
