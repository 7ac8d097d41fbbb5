//! Outstanding polls by the id that their caller gave them, so that they can be cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cluster::errors::ServiceError;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::sync::oneshot;

pub(super) struct Polls {
    outstanding: Mutex<Table>,
    limit: usize,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<String, Entry>,
    next_number: u64,
    is_stopped: bool,
}

struct Entry {
    /// Sets a poll apart from a later one of the same id.
    number: u64,
    /// Dropping it cancels the poll.
    _cancel: oneshot::Sender<()>,
}

/// A poll's entry, removed on drop.
pub(super) struct OutstandingPoll {
    polls: Arc<Polls>,
    id: String,
    number: u64,
    /// Resolves, with an error, when the poll is cancelled.
    pub(super) cancelled: oneshot::Receiver<()>,
}

impl Polls {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { outstanding: Mutex::default(), limit })
    }

    /// A poll begins. One of the same id is superseded: its caller has given up on it.
    pub(super) fn begin(self: &Arc<Self>, id: String) -> Result<OutstandingPoll, ServiceError> {
        let mut outstanding = self.outstanding();
        if outstanding.is_stopped {
            return Err(ServiceError::Unavailable("the matching service is shutting down".into()));
        }
        if outstanding.by_id.len() >= self.limit {
            return Err(ServiceError::ResourceExhausted {
                cause: ResourceExhaustedCause::ConcurrentLimit,
                scope: ResourceExhaustedScope::System,
                message: "too many outstanding polls".into(),
            });
        }
        let number = outstanding.next_number;
        outstanding.next_number += 1;
        let (cancel, cancelled) = oneshot::channel();
        outstanding.by_id.insert(id.clone(), Entry { number, _cancel: cancel });
        Ok(OutstandingPoll { polls: Arc::clone(self), id, number, cancelled })
    }

    pub(super) fn cancel(&self, id: &str) {
        self.outstanding().by_id.remove(id);
    }

    /// Cancels all polls and rejects new ones.
    pub(super) fn stop(&self) {
        let mut outstanding = self.outstanding();
        outstanding.is_stopped = true;
        outstanding.by_id.clear();
    }

    #[cfg(test)]
    pub(super) fn n_outstanding(&self) -> usize {
        self.outstanding().by_id.len()
    }

    fn outstanding(&self) -> MutexGuard<'_, Table> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutstandingPoll {
    pub(super) fn is_cancelled(&mut self) -> bool {
        matches!(self.cancelled.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }
}

impl Drop for OutstandingPoll {
    fn drop(&mut self) {
        let mut outstanding = self.polls.outstanding();
        if outstanding.by_id.get(&self.id).is_some_and(|entry| entry.number == self.number) {
            outstanding.by_id.remove(&self.id);
        }
    }
}
