//! Polls that wait: so that a worker that shuts down, or this node, can have them answered at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, watch};
use workflow::NamespaceId;

/// All polls that wait on this node. There are as many as matching lets wait.
#[derive(Clone)]
pub(crate) struct OutstandingPolls {
    board: Arc<Mutex<Board>>,
    /// The node shuts down: nobody waits any more.
    is_closed: watch::Sender<bool>,
}

#[derive(Default)]
struct Board {
    polls: HashMap<u64, (Poller, Arc<Notify>)>,
    n_begun: u64,
}

/// Who polls for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Poller {
    pub(crate) namespace_id: NamespaceId,
    pub(crate) task_queue: String,
    /// Of the worker process; empty if its SDK does not say.
    pub(crate) worker_instance_key: String,
}

/// One waiting poll. Dropping it ends the wait.
pub(crate) struct Ticket {
    number: u64,
    released: Arc<Notify>,
    polls: OutstandingPolls,
}

impl OutstandingPolls {
    /// `None` if nobody may wait any more.
    pub(crate) fn begin(&self, poller: Poller) -> Option<Ticket> {
        let released = Arc::new(Notify::new());
        let mut board = self.board();
        if *self.is_closed.borrow() {
            return None;
        }
        board.n_begun += 1;
        let number = board.n_begun;
        board.polls.insert(number, (poller, Arc::clone(&released)));
        drop(board);
        Some(Ticket { number, released, polls: self.clone() })
    }

    /// Releases the polls of a worker that shuts down, and says how many there were.
    pub(crate) fn release(&self, is_of_worker: impl Fn(&Poller) -> bool) -> usize {
        let board = self.board();
        let released = board.polls.values().filter(|(poller, _)| is_of_worker(poller));
        released.map(|(_, released)| released.notify_one()).count()
    }

    /// Releases all, and lets nobody in any more.
    pub(crate) fn close(&self) {
        // Under the lock, so that no poll begins unseen between the two.
        let board = self.board();
        self.is_closed.send_replace(true);
        drop(board);
        self.release(|_| true);
    }

    /// Waits until nobody may wait any more.
    pub(crate) async fn closed(&self) {
        let mut is_closed = self.is_closed.subscribe();
        // The sender is ours, so this ends with the close and not with an error.
        let _ = is_closed.wait_for(|is_closed| *is_closed).await;
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().expect("nobody panics while holding the board")
    }
}

impl Default for OutstandingPolls {
    fn default() -> Self {
        Self { board: Arc::default(), is_closed: watch::Sender::new(false) }
    }
}

impl Ticket {
    /// Waits until the poll is to be answered without a task.
    pub(crate) async fn released(&self) {
        self.released.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.polls.board().polls.remove(&self.number);
    }
}
