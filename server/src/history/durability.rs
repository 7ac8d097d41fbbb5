//! The durable watermark of a shard, and its waiters. Each waiter is woken once, by the commit that it waits for:
//! waking all of them on every commit would cost more with every waiter.

use std::sync::{Mutex, MutexGuard};

use cluster::env::Env;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use workflow::Timestamp;

use super::committer::{Closed, LEASE_AGE_MAX};

pub(super) struct Durability {
    progress: Mutex<Progress>,
    /// Set once, before the waiters are notified.
    closed: watch::Sender<Option<Closed>>,
}

struct Progress {
    /// Watermark: submissions up to this one are durable.
    durable: u64,
    /// Send time of the last write that confirmed the lease; `None` once the lease is being released.
    lease_seen: Option<LeaseSeen>,
    waiting: Vec<Waiting>,
}

/// Time of a lease confirmation, by both clocks: the monotonic clock stops while the machine sleeps, and another node
/// may take the lease then; the wall clock may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseSeen {
    at: Instant,
    time: Timestamp,
}

impl LeaseSeen {
    pub(super) fn now(env: &Env) -> Self {
        Self { at: Instant::now(), time: env.now() }
    }

    /// True: no later holder of the lease has committed anything.
    pub(super) fn is_fresh(self, env: &Env) -> bool {
        self.at.elapsed() <= LEASE_AGE_MAX && env.now().since(self.time) <= LEASE_AGE_MAX
    }
}

struct Waiting {
    submission: u64,
    notify: oneshot::Sender<Result<(), Closed>>,
}

impl Durability {
    pub(super) fn new(lease_seen: LeaseSeen) -> Self {
        let progress = Progress { durable: 0, lease_seen: Some(lease_seen), waiting: Vec::new() };
        Self { progress: Mutex::new(progress), closed: watch::Sender::new(None) }
    }

    /// Returns once the submission and all before it are durable.
    pub(super) async fn reached(&self, submission: u64) -> Result<(), Closed> {
        let reached = {
            let mut progress = self.lock();
            // Submissions durable before the close stay durable.
            if progress.durable >= submission {
                return Ok(());
            }
            // Checked under the lock: `close` sets `closed` first and then notifies all waiters.
            if let Some(closed) = self.closed() {
                return Err(closed);
            }
            let (sender, reached) = oneshot::channel();
            progress.waiting.push(Waiting { submission, notify: sender });
            reached
        };
        reached.await.unwrap_or(Err(Closed::Shutdown))
    }

    /// `n_submissions` more are durable, by a commit that was sent after `began`.
    pub(super) fn advance(&self, n_submissions: u64, began: LeaseSeen) {
        let reached: Vec<Waiting> = {
            let mut progress = self.lock();
            progress.durable += n_submissions;
            progress.lease_seen = progress.lease_seen.map(|_| began);
            let durable = progress.durable;
            progress.waiting.extract_if(.., |waiting| waiting.submission <= durable).collect()
        };
        for waiting in reached {
            // The waiter may be gone.
            let _ = waiting.notify.send(Ok(()));
        }
    }

    pub(super) fn lease_seen(&self) -> Option<LeaseSeen> {
        self.lock().lease_seen
    }

    /// From now on no read relies on the age of the lease.
    pub(super) fn give_up_lease(&self) {
        self.lock().lease_seen = None;
    }

    pub(super) fn close(&self, closed: &Closed) {
        self.closed.send_replace(Some(closed.clone()));
        let waiting = std::mem::take(&mut self.lock().waiting);
        for waiting in waiting {
            let _ = waiting.notify.send(Err(closed.clone()));
        }
    }

    /// Why the shard stopped committing, if it did.
    pub(super) fn closed(&self) -> Option<Closed> {
        self.closed.borrow().clone()
    }

    pub(super) fn is_open(&self) -> bool {
        self.closed.borrow().is_none()
    }

    /// Returns when the shard has stopped committing.
    pub(super) async fn ended(&self) -> Closed {
        let mut closed = self.closed.subscribe();
        let seen = closed.wait_for(Option::is_some).await;
        seen.ok().and_then(|closed| closed.clone()).unwrap_or(Closed::Shutdown)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("no holder of this lock can panic")
    }
}

#[cfg(test)]
mod tests;
