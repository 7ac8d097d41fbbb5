//! Store access of a partition, one statement at a time: load, append, read, checkpoint.
//!
//! One keeper per partition, so tasks that arrive during a statement go into the next one (group commit). An idle
//! keeper sends no statements. The lease is taken when the store has a record of the queue, or when the first task is
//! written: a queue that only sees pollers and sync matches is never leased.

use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::error::StoreError;
use persistence::stores::task_queues::TaskQueueStore;
use tracing::{error, info, warn};
use workflow::Timestamp;

use super::backlog::{Done, Placement};
use super::lease::Lease;
use super::matcher::{Position, Priority, Rank};
use super::partition::Partition;
use super::state::{Phase, State, Unwritten, Waiter};
use super::task::Task;

/// Base and maximum of the exponential backoff after a failed statement.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// Retry delay of a task whose move to the end of the backlog failed; it keeps its rank.
const RESPOOL_RETRY: Duration = Duration::from_secs(10);

pub(super) struct Keeper {
    partition: Arc<Partition>,
    lease: Lease,
    is_loaded: bool,
    /// Earliest time of the next statement; appends do not wait, because callers do.
    retry_at: Timestamp,
    n_failures: u32,
}

enum Work {
    Load,
    Append(Vec<Unwritten>),
    Read { priority: Priority, after: Position },
    Checkpoint(Vec<Done>),
    Sleep(Duration),
    End,
}

impl Keeper {
    pub(super) fn new(partition: Arc<Partition>, store: TaskQueueStore, owner: String) -> Self {
        let lease = Lease::new(partition.key(), store, owner, partition.env().clone());
        let retry_at = partition.now();
        Self { partition, lease, is_loaded: false, retry_at, n_failures: 0 }
    }

    /// Runs until the partition is idle, drained, or lost to another owner.
    pub(super) async fn run(mut self) {
        loop {
            match self.next_work() {
                Work::Load => self.load().await,
                Work::Append(batch) => self.append(batch).await,
                Work::Read { priority, after } => self.read(priority, after).await,
                Work::Checkpoint(done) => self.checkpoint(done).await,
                Work::Sleep(span) => {
                    // Whichever comes first; `next_work` checks everything anyway.
                    let _ = tokio::time::timeout(span, self.partition.woken()).await;
                }
                Work::End => return,
            }
        }
    }

    fn next_work(&mut self) -> Work {
        let now = self.partition.now();
        let mut state = self.partition.state();
        state.keeper_wakes();
        state.resume_delayed(now);
        state.match_all(&self.partition, now);
        match state.phase() {
            Phase::Loading if self.retry_at <= now => Work::Load,
            Phase::Loading => Work::Sleep(self.retry_at.since(now)),
            Phase::Open => self.open_work(&mut state, now),
            Phase::Draining => self.last_work(&mut state),
            Phase::Closed => Work::End,
        }
    }

    /// Reads come before appends: else a stream of new tasks would keep stored ones from the pollers.
    fn open_work(&self, state: &mut State, now: Timestamp) -> Work {
        let is_idle = state.is_idle(now);
        if self.retry_at <= now {
            if let Some((priority, after)) = state.backlog.next_read() {
                return Work::Read { priority, after };
            }
            let done = state.backlog.done();
            if !done.is_empty() && (is_idle || state.is_checkpoint_due(now)) {
                return Work::Checkpoint(done);
            }
        }
        if state.has_spooled() {
            return Work::Append(state.take_spooled());
        }
        if is_idle {
            state.close();
            return Work::End;
        }
        Work::Sleep(state.keeper_sleeps(now, self.retry_at).since(now))
    }

    /// Writes waiting tasks, then one checkpoint, and ends.
    fn last_work(&self, state: &mut State) -> Work {
        if self.is_loaded && state.has_spooled() {
            return Work::Append(state.take_spooled());
        }
        let done = state.backlog.done();
        if done.is_empty() || self.n_failures > 0 { Work::End } else { Work::Checkpoint(done) }
    }

    /// Loads the queue's record.
    async fn load(&mut self) {
        let must_write = self.partition.state().has_spooled();
        let found = if must_write { self.lease.take().await.map(Some) } else { self.lease.take_if_used().await };
        match found {
            Ok(subqueues) => {
                self.n_failures = 0;
                self.is_loaded = true;
                self.partition.state().loaded(&subqueues.unwrap_or_default());
                self.partition.notify_loaded();
            }
            Err(error) => {
                let waiting = self.partition.state().take_all_spooled();
                self.refuse(waiting, &error);
                self.later(&error);
            }
        }
    }

    async fn append(&mut self, batch: Vec<Unwritten>) {
        if let Err(error) = self.lease.reserve(batch.len()).await {
            self.refuse(batch, &error);
            return self.failed(&error);
        }
        let batch: Vec<(Rank, Unwritten)> =
            batch.into_iter().map(|unwritten| (self.lease.next_rank(unwritten.task.level()), unwritten)).collect();
        let subqueues = self.partition.state().backlog.subqueues_with(batch.iter().map(|(rank, _)| rank.priority));
        let rows = batch.iter().map(|(rank, unwritten)| (*rank, unwritten.task.encode())).collect();
        match self.lease.append(rows, subqueues).await {
            Ok(()) => {
                self.n_failures = 0;
                self.written(batch);
            }
            Err(error) => {
                self.refuse(batch.into_iter().map(|(_, unwritten)| unwritten).collect(), &error);
                self.failed(&error);
            }
        }
    }

    async fn read(&mut self, priority: Priority, after: Position) {
        let limit = self.partition.state().backlog.page();
        match self.lease.read(priority, after, limit).await {
            Ok(page) => {
                self.n_failures = 0;
                self.place(priority, page.tasks, page.is_last);
            }
            Err(error) => self.later(&error),
        }
    }

    async fn checkpoint(&mut self, done: Vec<Done>) {
        let subqueues = self.partition.state().backlog.subqueues();
        match self.lease.checkpoint(&done, subqueues).await {
            Ok(()) => {
                self.n_failures = 0;
                self.partition.state().backlog.deleted(&done);
            }
            // A checkpoint is idempotent, so it is retried.
            Err(error @ StoreError::OutcomeUnknown(_)) => self.later(&error),
            Err(error) => self.failed(&error),
        }
    }

    /// The tasks are durable: acknowledges them to their adders.
    fn written(&self, batch: Vec<(Rank, Unwritten)>) {
        let now = self.partition.now();
        let mut state = self.partition.state();
        state.backlog.ids_left = self.lease.ids_left();
        for (rank, Unwritten { task, waiter }) in batch {
            match state.backlog.append(rank) {
                Placement::Memory => state.place(rank, task),
                Placement::Store => {}
            }
            match waiter {
                Waiter::Adder(adder) => drop(adder.send(Ok(()))),
                Waiter::Respooled(previous) => state.finish(previous, now),
            }
        }
    }

    /// The batch may have been written all the same. It is then not read before the next load, and history, which adds
    /// the tasks again, rejects the second start.
    fn refuse(&self, batch: Vec<Unwritten>, error: &StoreError) {
        let until = self.partition.now() + RESPOOL_RETRY;
        let mut state = self.partition.state();
        for Unwritten { task, waiter } in batch {
            match waiter {
                Waiter::Adder(adder) => drop(adder.send(Err(ServiceError::from(error.clone())))),
                Waiter::Respooled(rank) => state.delay(rank, task, until),
            }
        }
    }

    fn place(&self, priority: Priority, rows: Vec<(Position, bytes::Bytes)>, is_last: bool) {
        let now = self.partition.now();
        let mut state = self.partition.state();
        state.backlog.load(priority, rows.iter().map(|(position, _)| *position), is_last);
        for (position, data) in rows {
            let rank = Rank { priority, position };
            match Task::decode(&data) {
                Some(task) => state.place(rank, task),
                None => {
                    error!(queue = %self.partition.key().name, ?rank, "backlog task does not decode; dropped");
                    state.finish(rank, now);
                }
            }
        }
    }

    fn failed(&mut self, error: &StoreError) {
        match error {
            // The lease's owner, possibly this node again, reads from the store all that is in memory here.
            StoreError::LeaseLost(_) | StoreError::OutcomeUnknown(_) | StoreError::Refused(_) => {
                info!(queue = %self.partition.key().name, %error, "task queue lease may be lost; unloading");
                self.partition.state().close();
            }
            StoreError::Unavailable(_) | StoreError::TooLarge(_) | StoreError::Corrupt(_) => self.later(error),
        }
    }

    fn later(&mut self, error: &StoreError) {
        self.n_failures = self.n_failures.saturating_add(1);
        let backoff = RETRY_FIRST.saturating_mul(1 << self.n_failures.min(10)).min(RETRY_LONGEST);
        warn!(queue = %self.partition.key().name, %error, "task queue statement failed; backing off");
        self.retry_at = self.partition.now() + self.partition.env().jittered(backoff);
    }
}

/// However the keeper ends, even by a panic, no caller keeps waiting for it.
impl Drop for Keeper {
    fn drop(&mut self) {
        self.partition.state().close();
        self.partition.notify_loaded();
    }
}
