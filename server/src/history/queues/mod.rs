//! A shard's queues after the commit: tasks go to their executors from memory; the store is read only when the shard
//! was just taken over or memory overflowed. Ack levels are written with later commits.

mod cursor;
mod timers;
mod closed_runs;
mod pool;
mod dead_letters;
mod runner;
mod transfer;
mod visibility;
mod start_child;
mod external;
mod closed;
pub(super) mod schedule;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use persistence::stores::executions::{QueuedTask, ShardCommit, TimerKey};
use persistence::stores::shards::ShardRecord;
use tokio::sync::Notify;
use workflow::{RunId, TimerTask, Timestamp, TransferTask, VisibilityTask};

use self::closed_runs::ClosedRuns;
use self::cursor::Cursor;
use self::timers::Timers;

pub(crate) use self::pool::Pool;
pub(crate) use self::runner::{run_timers, run_transfer};
pub(crate) use self::timers::shared_moment;
pub(crate) use self::visibility::{Removal, run_visibility};

/// A checkpoint is added to a commit once this many tasks were done since the last one.
const CHECKPOINT_TASKS: u64 = 256;
/// A commit writes the shard's time if the stored one is this old. The next owner continues from there, so after a
/// crash, with the wall clock set back too, timers may be late by this.
const STORED_TIME_AGE_MAX: Duration = Duration::from_secs(10);
/// With nothing else to commit, the last checkpoint is written this long after the last task, and then no more.
const CHECKPOINT_IDLE: Duration = Duration::from_secs(5);

/// The commit that carries a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// One with other changes.
    Busy,
    /// One of its own, after an idle period.
    Idle,
    /// The last one, which releases the lease.
    Release,
}

pub(crate) type Transfer = QueuedTask<TransferTask>;
pub(crate) type Timer = QueuedTask<TimerTask>;
pub(crate) type Visibility = QueuedTask<VisibilityTask>;

pub(crate) struct Queues {
    in_memory_max: usize,
    transfer: Mutex<ImmediateQueue<TransferTask>>,
    visibility: Mutex<ImmediateQueue<VisibilityTask>>,
    /// Visibility records to delete.
    removals: Mutex<Vec<Removal>>,
    timers: Mutex<Timers<Timer>>,
    closed_runs: Mutex<ClosedRuns>,
    checkpoints: Mutex<Checkpoints>,
    transfer_wake: Notify,
    visibility_wake: Notify,
    timers_wake: Notify,
    idle_wake: Notify,
}

/// A queue whose tasks are due at once.
struct ImmediateQueue<T> {
    cursor: Cursor,
    ready: VecDeque<QueuedTask<T>>,
    /// Tasks up to this one came from the store, and may have been tried by an earlier owner.
    stored_up_to: i64,
}

impl<T> ImmediateQueue<T> {
    fn new(acked: i64) -> Self {
        Self { cursor: Cursor::new(acked), ready: VecDeque::new(), stored_up_to: acked }
    }

    /// Newly committed tasks.
    fn offer(&mut self, tasks: Vec<QueuedTask<T>>, in_memory_max: usize) {
        let ids: Vec<i64> = tasks.iter().map(|task| task.task_id).collect();
        let taken = self.cursor.offer(&ids, in_memory_max);
        let first_taken = taken.first().copied().unwrap_or(i64::MAX);
        self.ready.extend(tasks.into_iter().filter(|task| task.task_id >= first_taken));
    }
}

/// The ack levels last written, and the tasks done since.
struct Checkpoints {
    written: ShardRecord,
    n_done: u64,
    /// The checkpoint of the commit in flight.
    in_flight: Option<ShardRecord>,
}

impl Queues {
    pub(crate) fn new(record: &ShardRecord, closed_runs: Vec<RunId>, in_memory_max: usize) -> Self {
        Self {
            in_memory_max,
            transfer: Mutex::new(ImmediateQueue::new(record.transfer_acked)),
            visibility: Mutex::new(ImmediateQueue::new(record.visibility_acked)),
            removals: Mutex::default(),
            timers: Mutex::new(Timers::new(record.timer_acked, in_memory_max)),
            closed_runs: Mutex::new(ClosedRuns::of(closed_runs)),
            checkpoints: Mutex::new(Checkpoints { written: record.clone(), n_done: 0, in_flight: None }),
            transfer_wake: Notify::new(),
            visibility_wake: Notify::new(),
            timers_wake: Notify::new(),
            idle_wake: Notify::new(),
        }
    }

    /// The commit is durable: its tasks may run.
    pub(crate) fn committed(&self, commit: ShardCommit) {
        if !commit.transfer.is_empty() {
            lock(&self.transfer).offer(commit.transfer, self.in_memory_max);
            self.transfer_wake.notify_one();
        }
        if !commit.visibility.is_empty() {
            lock(&self.visibility).offer(commit.visibility, self.in_memory_max);
            self.visibility_wake.notify_one();
        }
        if !commit.timers.is_empty() {
            let mut timers = lock(&self.timers);
            for timer in commit.timers {
                timers.add(timer.timer_key(), timer.queued);
            }
            self.timers_wake.notify_one();
        }
        let mut closed_runs = lock(&self.closed_runs);
        for run in commit.runs.iter().filter(|run| !run.state.is_running()) {
            closed_runs.add(run.state.key.run_id);
        }
        drop(closed_runs);
        let mut checkpoints = lock(&self.checkpoints);
        if let Some(written) = checkpoints.in_flight.take() {
            checkpoints.written = written;
        }
    }

    /// No new timer may fire before this.
    pub(crate) fn timer_floor(&self) -> Timestamp {
        lock(&self.timers).acked().fires_at
    }

    /// Whether visibility tasks may be only in the store.
    pub(crate) fn is_listing_behind(&self) -> bool {
        lock(&self.visibility).cursor.is_behind()
    }

    /// Adds the ack levels and the deletion of done tasks, if enough are done, or the shard is idle or released.
    pub(crate) fn add_checkpoint(&self, commit: &mut ShardCommit, now: Timestamp, occasion: Occasion) {
        let mut checkpoints = lock(&self.checkpoints);
        let n_done_min = match occasion {
            Occasion::Busy => CHECKPOINT_TASKS,
            Occasion::Idle => 1,
            Occasion::Release => 0,
        };
        if checkpoints.n_done < n_done_min {
            if now.since(checkpoints.written.updated_at) >= STORED_TIME_AGE_MAX {
                let record = ShardRecord { updated_at: now, ..checkpoints.written.clone() };
                commit.shard_record = Some(record.clone());
                checkpoints.in_flight = Some(record);
            }
            return;
        }
        let transfer_acked = lock(&self.transfer).cursor.acked();
        let visibility_acked = lock(&self.visibility).cursor.acked();
        let timer_acked = lock(&self.timers).ack(now);
        let written = &checkpoints.written;
        commit.completed_transfer = Some(written.transfer_acked..=transfer_acked);
        commit.completed_visibility = Some(written.visibility_acked..=visibility_acked);
        commit.completed_timers = Some(written.timer_acked..=timer_acked);
        let mut owner = written.owner.clone();
        if occasion == Occasion::Release {
            owner.clear();
            commit.closed_runs = lock(&self.closed_runs).all();
        }
        let record =
            ShardRecord { owner, transfer_acked, visibility_acked, timer_acked, updated_at: now, ..written.clone() };
        commit.shard_record = Some(record.clone());
        checkpoints.in_flight = Some(record);
        checkpoints.n_done = 0;
    }

    /// Returns once a checkpoint is worth its own commit: tasks were done, then nothing was committed for a while.
    pub(crate) async fn checkpoint_wanted(&self) {
        loop {
            while lock(&self.checkpoints).n_done == 0 {
                self.idle_wake.notified().await;
            }
            // The committer drops this future whenever it has something to commit, so this is time without a commit.
            tokio::time::sleep(CHECKPOINT_IDLE).await;
            if lock(&self.checkpoints).n_done > 0 {
                return;
            }
        }
    }

    fn transfer_done(&self, task_id: i64) {
        lock(&self.transfer).cursor.done(task_id);
        self.one_done();
    }

    fn visibility_done(&self, task_id: i64) {
        lock(&self.visibility).cursor.done(task_id);
        self.one_done();
    }

    /// Takes out the due timers and completes the obsolete ones.
    fn due_timers(&self, now: Timestamp) -> Vec<(TimerKey, Timer)> {
        let due = lock(&self.timers).due(now);
        let closed_runs = lock(&self.closed_runs);
        let (obsolete, due): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|(_, timer)| closed_runs.is_obsolete(timer.key.run_id, &timer.task));
        drop(closed_runs);
        obsolete.into_iter().for_each(|(key, _)| self.timer_done(key));
        due
    }

    fn timer_done(&self, key: TimerKey) {
        lock(&self.timers).done(key);
        self.one_done();
    }

    fn one_done(&self) {
        lock(&self.checkpoints).n_done += 1;
        self.idle_wake.notify_one();
    }
}

/// Exponential backoff before the n-th retry.
pub(crate) fn backoff(tries: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(50);
    const MAX: Duration = Duration::from_secs(30);
    FIRST.saturating_mul(1 << tries.min(12)).min(MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}
