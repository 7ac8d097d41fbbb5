//! The engine on one machine: wide rows in an embedded, ordered store, durable by group commit.
//!
//! One thread writes (`writer`): all waiting batches become one group (`group`), one append and one sync (`disk`).
//! Readers take a view; they wait only for a very large range delete. `keys` and `cells` are the format on disk.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::engine::{Availability, Batch, Consistency, Engine, Outcome, Page, Partition, Slice, Statics};
use crate::error::StoreError;
use disk::Disk;
use writer::{Request, Writer};

mod keys;
mod cells;
mod journal;
mod marker;
mod layout;
mod disk;
mod group;
mod sweep;
mod reopening;
mod writer;
mod reading;
pub mod upkeep;

/// Batches queued for the writer; further callers wait for room.
const QUEUE: usize = 1024;
/// Pages that are being read, or read and not yet taken by their callers. A page may hold megabytes, and reading
/// threads outrun the callers: without this bound, pages pile up between the two.
const PAGES_IN_FLIGHT: usize = 16;

/// The engine on one machine. A directory has one at a time, in one process.
///
/// Dropping it answers queued requests, syncs, and joins the writer.
pub struct Embedded {
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    requests: Option<mpsc::Sender<Request>>,
    writer: Option<JoinHandle<()>>,
    /// One permit per page in flight.
    pages: Arc<Semaphore>,
}

/// State shared by readers and the writer.
struct Shared {
    directory: PathBuf,
    options: Options,
    /// `None` while the store is closed after a failure.
    disk: RwLock<Option<Arc<Disk>>>,
    availability: watch::Sender<Availability>,
}

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub durability: Durability,
    /// Block cache size; allocated as blocks are read, not in advance.
    pub cache_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged means on the disk: survives the loss of power.
    Fsync,
    /// Acknowledged means with the operating system: survives the end of the process, not the loss of power.
    None,
}

impl Default for Options {
    fn default() -> Self {
        Self { durability: Durability::Fsync, cache_bytes: 16 << 20 }
    }
}

impl Embedded {
    /// Opens the directory, or makes it.
    ///
    /// # Errors
    /// `Unavailable` if it is in use or cannot be read, `Corrupt` if it holds something else.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Arc<Self>, StoreError> {
        let disk = Arc::new(Disk::open(directory.as_ref(), options)?);
        sweep::resume(&disk)?;
        let shared = Arc::new(Shared {
            directory: directory.as_ref().to_owned(),
            options,
            disk: RwLock::new(Some(disk)),
            availability: watch::channel(Availability::Up).0,
        });
        let (requests, waiting) = mpsc::channel(QUEUE);
        let writer = Writer::new(Arc::clone(&shared), waiting);
        let writer = std::thread::Builder::new()
            .name("embedded-writer".into())
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Unavailable(format!("cannot start the writer: {error}")))?;
        let pages = Arc::new(Semaphore::new(PAGES_IN_FLIGHT));
        Ok(Arc::new(Self { shared, requests: Some(requests), writer: Some(writer), pages }))
    }

    /// Sends the batch to the writer, which writes it even if the caller is cancelled.
    async fn submit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let stopped = || "the writer of the embedded store has stopped".to_owned();
        let (reply, answer) = oneshot::channel();
        let requests = self.requests.as_ref().expect("an engine that is being dropped has no callers");
        requests.send(Request { batch, reply }).await.map_err(|_| StoreError::Unavailable(stopped()))?;
        answer.await.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown(stopped())))
    }

    /// An empty batch is answered after all earlier ones, even those whose callers were cancelled.
    async fn settle(&self, partition: &Partition, consistency: Consistency) -> Result<(), StoreError> {
        match consistency {
            Consistency::Quorum => Ok(()),
            Consistency::Serial => self.submit(Batch::new(partition.clone())).await.map(|_| ()),
        }
    }
}

impl Engine for Embedded {
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>> {
        Box::pin(async move {
            self.settle(&partition, consistency).await?;
            reading::statics(&self.shared.disk()?.view(), &partition)
        })
    }

    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            slice.check();
            if slice.is_beyond_keys() {
                return Ok(Page::default());
            }
            self.settle(&slice.partition, slice.consistency).await?;
            if let Some(key) = reading::single_key(&slice) {
                return reading::single_row(&self.shared.disk()?.view(), &slice.partition, key);
            }
            let permit = Arc::clone(&self.pages).acquire_owned().await.expect("the semaphore is never closed");
            let view = self.shared.disk()?.view();
            // The permit travels with the page: it is released when the caller takes the page, or drops the read.
            let read = tokio::task::spawn_blocking(move || (reading::page(&view, &slice), permit)).await;
            let (page, _permit) = read.map_err(|error| StoreError::Unavailable(format!("cannot read: {error}")))?;
            page
        })
    }

    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            batch.check();
            batch.check_size()?;
            self.submit(batch).await
        })
    }

    fn availability(&self) -> watch::Receiver<Availability> {
        self.shared.availability.subscribe()
    }
}

impl Shared {
    /// # Errors
    /// `Unavailable`, with the reason, while the store is closed.
    fn disk(&self) -> Result<Arc<Disk>, StoreError> {
        let disk = self.disk.read().unwrap_or_else(PoisonError::into_inner);
        disk.as_ref().map(Arc::clone).ok_or_else(|| self.closed())
    }

    fn close(&self, reason: &'static str) {
        // The reason first: callers that find no disk read it.
        self.availability.send_replace(Availability::Down(reason));
        *self.disk.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn open(&self, disk: Disk) {
        *self.disk.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(disk));
        self.availability.send_replace(Availability::Up);
    }

    fn closed(&self) -> StoreError {
        let reason = match *self.availability.borrow() {
            Availability::Down(reason) => reason,
            Availability::Up => "it is being opened",
        };
        StoreError::Unavailable(reason.into())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the embedded store panicked");
        }
    }
}
