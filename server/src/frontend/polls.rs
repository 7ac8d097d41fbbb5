//! Waiting polls, so that a shutdown of their worker or of this node releases them at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, watch};
use workflow::{NamespaceId, Timestamp};

use super::left_workers::LeftWorkers;

/// All polls that wait on this node. Matching limits their number.
#[derive(Clone)]
pub(crate) struct OutstandingPolls {
    open: Arc<Mutex<OpenPolls>>,
    /// Set at node shutdown: no poll waits any more.
    is_closed: watch::Sender<bool>,
}

#[derive(Default)]
struct OpenPolls {
    polls: HashMap<u64, (Poller, Arc<Notify>)>,
    n_begun: u64,
    left: LeftWorkers,
}

/// Worker and queue of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Poller {
    pub(crate) namespace_id: NamespaceId,
    pub(crate) task_queue: String,
    /// Key of the worker process; empty if its SDK sends none.
    pub(crate) worker_instance_key: String,
}

/// Registration of a waiting poll, removed on drop.
pub(crate) struct Ticket {
    number: u64,
    released: Arc<Notify>,
    polls: OutstandingPolls,
}

impl OutstandingPolls {
    /// `None` if the poll must not wait: its worker has left, or the node is shutting down.
    pub(crate) fn begin(&self, poller: Poller, now: Timestamp) -> Option<Ticket> {
        let released = Arc::new(Notify::new());
        let mut open = self.open();
        let has_left = open.left.contains(poller.namespace_id, &poller.worker_instance_key, now);
        if has_left || *self.is_closed.borrow() {
            return None;
        }
        open.n_begun += 1;
        let number = open.n_begun;
        open.polls.insert(number, (poller, Arc::clone(&released)));
        drop(open);
        Some(Ticket { number, released, polls: self.clone() })
    }

    /// Releases the polls of a worker that shuts down, including those still in flight.
    pub(crate) fn leave(&self, leaving: &Poller, now: Timestamp) {
        let mut open = self.open();
        open.left.insert(leaving.namespace_id, &leaving.worker_instance_key, now);
        open.release(|poller| leaving.is_same_worker(poller));
    }

    /// Whether a worker has recently announced its shutdown.
    pub(crate) fn has_left(&self, namespace_id: NamespaceId, worker_instance_key: &str, now: Timestamp) -> bool {
        self.open().left.contains(namespace_id, worker_instance_key, now)
    }

    /// Releases all polls and admits no more.
    pub(crate) fn close(&self) {
        // Under the lock, so that no poll registers between the two.
        let open = self.open();
        self.is_closed.send_replace(true);
        open.release(|_| true);
    }

    /// Waits for `close`.
    pub(crate) async fn closed(&self) {
        let mut is_closed = self.is_closed.subscribe();
        // `self` holds the sender, so this ends with the close and not with an error.
        let _ = is_closed.wait_for(|is_closed| *is_closed).await;
    }

    fn open(&self) -> MutexGuard<'_, OpenPolls> {
        self.open.lock().expect("no panic while holding the open")
    }
}

impl OpenPolls {
    fn release(&self, is_meant: impl Fn(&Poller) -> bool) {
        for (_, released) in self.polls.values().filter(|(poller, _)| is_meant(poller)) {
            released.notify_one();
        }
    }
}

impl Poller {
    /// By instance key, or by sticky queue, which belongs to one worker.
    fn is_same_worker(&self, other: &Self) -> bool {
        let is_same = |mine: &str, others: &str| !mine.is_empty() && mine == others;
        let has_its_key = is_same(&self.worker_instance_key, &other.worker_instance_key);
        let has_its_queue = is_same(&self.task_queue, &other.task_queue);
        self.namespace_id == other.namespace_id && (has_its_key || has_its_queue)
    }
}

impl Default for OutstandingPolls {
    fn default() -> Self {
        Self { open: Arc::default(), is_closed: watch::Sender::new(false) }
    }
}

impl Ticket {
    /// Waits until the poll is released.
    pub(crate) async fn released(&self) {
        self.released.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.polls.open().polls.remove(&self.number);
    }
}
