//! The visibility service as its peers see it: writes changes of runs, and answers lists and counts.

use std::sync::{Arc, Mutex, PoisonError};

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::segments::Segments;
use persistence::stores::visibility::{Change, VisibilityStore};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use workflow::NamespaceId;

use super::housekeeping::Housekeeping;
use super::writer::Writer;
use crate::peers::Peers;

/// Lists and counts that read at once. Each merges a page of rows of every status and segment; further callers wait.
const READS_AT_ONCE: usize = 16;

pub struct Service {
    env: Env,
    pub(super) store: VisibilityStore,
    pub(super) peers: Peers,
    pub(super) segments: Segments,
    pub(super) housekeeping: Arc<Housekeeping>,
    writer: Arc<Writer>,
    reads: Semaphore,
    running: Mutex<JoinSet<()>>,
}

/// What the service is built from.
pub struct Parts {
    pub env: Env,
    pub store: VisibilityStore,
    pub segments: Segments,
    pub peers: Peers,
}

impl Service {
    #[must_use]
    pub fn start(parts: Parts) -> Arc<Self> {
        let housekeeping = Housekeeping::new(parts.env.clone(), parts.store.clone());
        let writer = Writer::new(parts.store.clone(), parts.segments.clone(), Arc::clone(&housekeeping));
        let mut running = JoinSet::new();
        running.spawn(Arc::clone(&writer).run());
        running.spawn(Arc::clone(&housekeeping).run());
        let running = Mutex::new(running);
        let Parts { env, store, segments, peers } = parts;
        let reads = Semaphore::new(READS_AT_ONCE);
        Arc::new(Self { env, store, peers, segments, housekeeping, writer, reads, running })
    }

    /// Held by a list or a count while it reads.
    pub(super) async fn permit(&self) -> SemaphorePermit<'_> {
        self.reads.acquire().await.expect("the semaphore is never closed")
    }

    /// Writes nothing more, and fails the writes that wait. Shards have ended by then.
    pub async fn shutdown(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }

    /// Returns at the start of the next round of visibility writes.
    pub async fn next_round(&self) {
        self.writer.next_round().await;
    }

    /// Deletes the visibility rows of a namespace whose runs are deleted.
    pub async fn remove_namespace(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        Ok(self.store.remove_namespace(namespace_id, self.env.now()).await?)
    }

    /// Returns once the changes are visible to lists. Idempotent.
    pub async fn write(&self, changes: Vec<Change>) -> Result<(), ServiceError> {
        self.writer.write(changes).await
    }
}
