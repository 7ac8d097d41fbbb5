//! What of a shard is durable so far, and who waits for more. Whoever waits is woken once, by the commit that he waits for:
//! a commit that woke all would cost more, the more are waiting.

use std::sync::{Mutex, MutexGuard};

use cluster::env::Env;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use workflow::Timestamp;

use super::committer::{Closed, LEASE_AGE_MAX};

pub(super) struct Durability {
    progress: Mutex<Progress>,
    /// Set once, before those who wait are told.
    closed: watch::Sender<Option<Closed>>,
}

struct Progress {
    /// Submissions up to this one can no longer be lost.
    durable: u64,
    /// When what last showed that the lease holds was sent; `None` once it is being given up.
    lease_seen: Option<LeaseSeen>,
    waiting: Vec<Waiting>,
}

/// When a lease was seen to hold, by both clocks: the monotonic one stands still while a machine sleeps, and another node
/// may take the lease meanwhile; the other may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseSeen {
    at: Instant,
    time: Timestamp,
}

impl LeaseSeen {
    pub(super) fn now(env: &Env) -> Self {
        Self { at: Instant::now(), time: env.now() }
    }

    /// Nobody who took the lease since has committed anything.
    pub(super) fn is_fresh(self, env: &Env) -> bool {
        self.at.elapsed() <= LEASE_AGE_MAX && env.now().since(self.time) <= LEASE_AGE_MAX
    }
}

struct Waiting {
    submission: u64,
    told: oneshot::Sender<Result<(), Closed>>,
}

impl Durability {
    pub(super) fn new(lease_seen: LeaseSeen) -> Self {
        let progress = Progress { durable: 0, lease_seen: Some(lease_seen), waiting: Vec::new() };
        Self { progress: Mutex::new(progress), closed: watch::Sender::new(None) }
    }

    /// Returns once the submission, and all before it, can no longer be lost.
    pub(super) async fn reached(&self, submission: u64) -> Result<(), Closed> {
        let told = {
            let mut progress = self.lock();
            // What was durable before the end stays durable.
            if progress.durable >= submission {
                return Ok(());
            }
            // Looked at under the lock: whoever closes tells those that it then finds waiting.
            if let Some(closed) = self.closed() {
                return Err(closed);
            }
            let (teller, told) = oneshot::channel();
            progress.waiting.push(Waiting { submission, told: teller });
            told
        };
        told.await.unwrap_or(Err(Closed::Shutdown))
    }

    /// So many more submissions are durable, by a commit that began then.
    pub(super) fn advance(&self, n_submissions: u64, began: LeaseSeen) {
        let reached: Vec<Waiting> = {
            let mut progress = self.lock();
            progress.durable += n_submissions;
            progress.lease_seen = progress.lease_seen.map(|_| began);
            let durable = progress.durable;
            progress.waiting.extract_if(.., |waiting| waiting.submission <= durable).collect()
        };
        for waiting in reached {
            // Who waited may have gone.
            let _ = waiting.told.send(Ok(()));
        }
    }

    pub(super) fn lease_seen(&self) -> Option<LeaseSeen> {
        self.lock().lease_seen
    }

    /// Nothing is told on the lease's strength any more.
    pub(super) fn give_up_lease(&self) {
        self.lock().lease_seen = None;
    }

    pub(super) fn close(&self, closed: &Closed) {
        self.closed.send_replace(Some(closed.clone()));
        let waiting = std::mem::take(&mut self.lock().waiting);
        for waiting in waiting {
            let _ = waiting.told.send(Err(closed.clone()));
        }
    }

    /// Why nothing more becomes durable, if so.
    pub(super) fn closed(&self) -> Option<Closed> {
        self.closed.borrow().clone()
    }

    pub(super) fn is_open(&self) -> bool {
        self.closed.borrow().is_none()
    }

    /// Returns when nothing more becomes durable.
    pub(super) async fn ended(&self) -> Closed {
        let mut closed = self.closed.subscribe();
        let seen = closed.wait_for(Option::is_some).await;
        seen.ok().and_then(|closed| closed.clone()).unwrap_or(Closed::Shutdown)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("nobody panics while holding it")
    }
}

#[cfg(test)]
mod tests;
