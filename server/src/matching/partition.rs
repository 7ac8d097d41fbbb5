//! One task-queue partition: its matcher, its backlog, its waiting callers. A queue has one partition for now.
//!
//! Callers enter here; the partition's keeper (`keeper.rs`), which they wake, accesses the store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use workflow::Timestamp;

use super::dispatch::{Delivery, Verdict};
use super::matcher::{PollerKey, Rank};
use super::pollers::{Poller, PollerHistory};
use super::queries::Query;
use super::queues::Queues;
use super::state::{Offered, Phase, State};
use super::task::{Kind, QueueKey, Task};

/// A sticky queue without a poll for this long has lost its worker. Twice the time after which history reschedules the
/// task anyway.
const STICKY_WORKER_GONE_AFTER: Duration = Duration::from_secs(10);

/// Base and maximum of the exponential backoff after a start could not be recorded.
const DELAY_FIRST: Duration = Duration::from_millis(100);
const DELAY_LONGEST: Duration = Duration::from_secs(10);

/// Failures in a row after which a task moves to the end of the backlog, where it no longer holds the ack level.
const RESPOOL_AFTER: u32 = 6;

pub(super) struct Partition {
    key: QueueKey,
    env: Env,
    state: Mutex<State>,
    /// Wakes the keeper when it may have work.
    wake: Notify,
    /// Notifies callers that wait for the load.
    loaded: Notify,
    /// The node's queues, which own this one: they take tasks that a sticky queue cannot keep.
    queues: Weak<Queues>,
}

/// Outcome of adding a task.
#[derive(Debug)]
pub(super) enum Added {
    /// A poller got it, and its start is settled.
    Matched,
    /// It waits in the backlog.
    Spooled,
    /// Not added: this partition is unloaded, or unloading, and must be loaded again.
    Closed(Task),
}

/// Outcome of submitting a query.
pub(super) enum QueryPlacement {
    /// A poller has it, or will.
    Waiting,
    /// No worker polls this sticky queue.
    NoWorker(Query),
    /// This partition is unloaded, or unloading, and must be loaded again.
    Closed(Query),
}

/// How a poll ended.
pub(super) enum Polled {
    Found(Delivery),
    /// The deadline passed, the poll was cancelled, or the worker is to poll elsewhere.
    Empty,
    /// This partition is unloaded, or unloading: load it again.
    Closed,
}

impl Partition {
    pub(super) fn new(key: QueueKey, queues: &Arc<Queues>) -> Arc<Self> {
        let env = queues.env().clone();
        let pollers = PollerHistory::new(queues.poller_memory());
        let state = Mutex::new(State::new(key.kind, queues.config(), pollers, env.monotonic()));
        let (wake, loaded, queues) = (Notify::new(), Notify::new(), Arc::downgrade(queues));
        Arc::new(Self { key, env, state, wake, loaded, queues })
    }

    pub(super) fn key(&self) -> &QueueKey {
        &self.key
    }

    /// Monotonic time, for rates and waits. Stored or shown times are by `env().now()`.
    pub(super) fn now(&self) -> Timestamp {
        self.env.monotonic()
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// Gives the task to a poller, or keeps it. Returns once it cannot be lost.
    pub(super) async fn add(self: &Arc<Self>, mut task: Task) -> Result<Added, ServiceError> {
        self.state().rates.added.count(self.now());
        loop {
            match self.offer(task)? {
                Offered::Handed(verdict) => match verdict.await {
                    Ok(Verdict::Settled) => return Ok(Added::Matched),
                    Ok(Verdict::Failed(error)) => return Err(error),
                    Ok(Verdict::Returned(returned)) => task = returned,
                    Err(_) => return Err(lost_touch()),
                },
                Offered::Kept => return Ok(Added::Spooled),
                Offered::Waiting(written) => {
                    return written.await.unwrap_or_else(|_| Err(lost_touch())).map(|()| Added::Spooled);
                }
                Offered::Closed(returned) => return Ok(Added::Closed(returned)),
            }
        }
    }

    /// Waits for a task or query until the deadline, or until cancelled.
    pub(super) async fn poll(
        self: &Arc<Self>,
        poller: &Poller,
        deadline: Instant,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Polled {
        let (sender, mut receiver) = oneshot::channel();
        let Some(key) = self.state().add_poller(sender, poller, self.now()) else { return Polled::Closed };
        let ended = |delivery: Option<Delivery>| delivery.map_or(Polled::Empty, Polled::Found);
        let mut waiting = WaitingPoller { partition: self, key, poller, end: PollEnd::CallerGone };
        self.match_all();
        let (end, polled) = tokio::select! {
            biased;
            found = &mut receiver => (PollEnd::Answered, found.map_or(Polled::Closed, ended)),
            () = tokio::time::sleep_until(deadline) => {
                // Closed first: takes a task that was sent concurrently, none can follow.
                receiver.close();
                (PollEnd::Answered, receiver.try_recv().map_or(Polled::Empty, ended))
            }
            // A task that was sent concurrently is dropped with the channel, which returns it.
            _ = cancelled => (PollEnd::WorkerLeft, Polled::Empty),
        };
        waiting.end = end;
        polled
    }

    /// The worker of this sticky queue has left: moves the waiting tasks to its normal queue, rather than let them time
    /// out.
    pub(super) fn release(self: &Arc<Self>) {
        let tasks = self.state().release();
        self.wake.notify_one();
        self.move_to_normal_queue(tasks);
    }

    /// In the background: no caller waits. A task that cannot be moved is rescheduled by history's timer.
    fn move_to_normal_queue(self: &Arc<Self>, tasks: Vec<Task>) {
        let normal_queue = self.state().normal_queue().map(str::to_owned);
        let (Some(name), Some(queues)) = (normal_queue, self.queues.upgrade()) else { return };
        let time = self.env.now();
        let tasks: Vec<Task> =
            tasks.into_iter().filter(|task| !task.is_expired(time)).map(Task::without_expiry).collect();
        if tasks.is_empty() {
            return;
        }
        let key = QueueKey { name, kind: Kind::Normal, ..self.key.clone() };
        tokio::spawn(async move { queues.add_all(&key, tasks).await });
    }

    /// Gives the query to a poller, or queues it for one.
    pub(super) fn ask(self: &Arc<Self>, query: Query) -> QueryPlacement {
        let now = self.now();
        let mut state = self.state();
        if self.key.kind == Kind::Sticky {
            if !state.is_open() || !state.is_polled_within(STICKY_WORKER_GONE_AFTER, now) {
                return QueryPlacement::NoWorker(query);
            }
        } else if !state.is_open() {
            return QueryPlacement::Closed(query);
        }
        state.ask(self, query, now);
        QueryPlacement::Waiting
    }

    /// Removes a query whose caller is gone.
    pub(super) fn withdraw_query(&self, query: u64) {
        self.state().withdraw_query(query);
    }

    /// Whether the query still waits for a poller.
    pub(super) fn is_asked(&self, query: u64) -> bool {
        self.state().is_asked(query)
    }

    pub(super) fn was_polled_within(&self, span: Duration) -> bool {
        self.state().was_polled_within(span, self.now())
    }

    /// Dispatches what can be dispatched now.
    pub(super) fn match_all(self: &Arc<Self>) {
        let now = self.now();
        let mut state = self.state();
        state.match_all(self, now);
        self.wake_if_wanted(&state, now);
    }

    /// Finishes a backlog task.
    pub(super) fn finish(&self, rank: Rank) {
        let now = self.now();
        let mut state = self.state();
        state.finish(rank, now);
        self.wake_if_wanted(&state, now);
    }

    /// Returns a task whose poller went away.
    pub(super) fn give_back(self: &Arc<Self>, rank: Rank, task: Task) {
        let orphan = self.state().give_back(rank, task);
        self.wake.notify_one();
        self.move_to_normal_queue(orphan.into_iter().collect());
    }

    /// Backs off a task whose start could not be recorded.
    pub(super) fn delay(self: &Arc<Self>, rank: Rank, mut task: Task) {
        task.n_failures += 1;
        let mut state = self.state();
        if state.phase() == Phase::Closed {
            drop(state);
            return self.move_to_normal_queue(vec![task]);
        }
        if task.n_failures >= RESPOOL_AFTER && self.key.kind == Kind::Normal {
            task.n_failures = 0;
            state.respool(rank, task);
        } else {
            let backoff = DELAY_FIRST.saturating_mul(1 << task.n_failures.min(10)).min(DELAY_LONGEST);
            state.delay(rank, task, self.now() + self.env.jittered(backoff));
        }
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn unused_token(&self) {
        self.state().rates.limit.give_back();
    }

    pub(super) fn dispatched(&self) {
        self.state().rates.dispatched.count(self.now());
    }

    pub(super) fn backlog_count_hint(&self) -> i64 {
        let now = self.now();
        let mut state = self.state();
        let hint = state.backlog_count_hint(self.env.now(), now);
        self.wake_if_wanted(&state, now);
        hint
    }

    /// Closes it if nothing waits in it and it was not used lately.
    pub(super) fn close_if_unused(&self, now: Timestamp) -> bool {
        let mut state = self.state();
        let is_unused = state.is_unused_for(STICKY_WORKER_GONE_AFTER, now);
        if is_unused {
            state.close();
            self.wake.notify_one();
        }
        is_unused
    }

    /// Accepts nothing more; the keeper writes waiting tasks and ends.
    pub(super) fn drain(&self) {
        self.state().drain();
        self.wake.notify_one();
    }

    /// Resolves once the partition has left the loading phase.
    pub(super) async fn loaded(&self) {
        let loaded = self.loaded.notified();
        if self.state().phase() == Phase::Loading {
            loaded.await;
        }
    }

    pub(super) fn notify_loaded(&self) {
        self.loaded.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().phase() == Phase::Closed
    }

    /// Resolves when there may be work for the keeper.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic in there is a failed assertion in one call; poisoning must not fail the others' polls.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_if_wanted(&self, state: &State, now: Timestamp) {
        if state.wants_keeper(now) {
            self.wake.notify_one();
        }
    }

    fn offer(self: &Arc<Self>, task: Task) -> Result<Offered, ServiceError> {
        let now = self.now();
        let mut state = self.state();
        if !state.is_open() {
            return Ok(Offered::Closed(task));
        }
        if self.key.kind == Kind::Sticky && !state.is_polled_within(STICKY_WORKER_GONE_AFTER, now) {
            return Err(ServiceError::StickyWorkerUnavailable);
        }
        let offered = state.offer(self, task, now)?;
        if state.has_spooled() || state.rates.is_throttled() {
            self.wake.notify_one();
        }
        Ok(offered)
    }
}

/// A poll's entry in the matcher, removed on drop.
struct WaitingPoller<'a> {
    partition: &'a Partition,
    key: PollerKey,
    poller: &'a Poller,
    end: PollEnd,
}

#[derive(Clone, Copy)]
enum PollEnd {
    /// With a task, or empty: its worker will poll again.
    Answered,
    /// Cancelled: its worker shuts down.
    WorkerLeft,
    /// The caller aborted the call. It may have left, so this does not count as a poll.
    CallerGone,
}

impl Drop for WaitingPoller<'_> {
    fn drop(&mut self) {
        let mut state = self.partition.state();
        state.remove_poller(self.key, self.partition.now());
        match self.end {
            PollEnd::Answered => state.pollers.saw(self.poller, self.partition.now()),
            PollEnd::WorkerLeft => state.pollers.left(&self.poller.identity),
            PollEnd::CallerGone => {}
        }
    }
}

fn lost_touch() -> ServiceError {
    ServiceError::Unavailable("the task queue was unloaded".into())
}
