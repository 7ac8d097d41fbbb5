//! A shard's queues after the commit: tasks go to their executors from memory; the store is read only when the shard
//! was just taken over or memory overflowed. Ack levels ride along with later commits.

mod cursor;
mod timers;
mod pool;
mod runner;
mod transfer;
mod start_child;
mod external;
mod closed;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use persistence::stores::executions::{QueuedTask, ShardCommit, TimerKey};
use persistence::stores::shards::ShardRecord;
use tokio::sync::Notify;
use workflow::{TimerTask, Timestamp, TransferTask};

use self::cursor::Cursor;
use self::timers::Timers;

pub(crate) use self::pool::Pool;
pub(crate) use self::runner::{run_timers, run_transfer};

/// A checkpoint is added to a commit once this many tasks were done since the last one.
const CHECKPOINT_TASKS: u64 = 256;
/// With nothing else to commit, the last checkpoint is written this long after the last task, and then no more.
const CHECKPOINT_IDLE: Duration = Duration::from_secs(5);

/// What a checkpoint is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Other changes.
    Busy,
    /// Nothing else: there was nothing to commit for a while.
    Idle,
    /// The last commit: the lease is given up with it.
    Release,
}

pub(crate) type Transfer = QueuedTask<TransferTask>;
pub(crate) type Timer = QueuedTask<TimerTask>;

pub(crate) struct Queues {
    in_memory_max: usize,
    transfer: Mutex<TransferQueue>,
    timers: Mutex<Timers<Timer>>,
    checkpoints: Mutex<Checkpoints>,
    transfer_wake: Notify,
    timers_wake: Notify,
    idle_wake: Notify,
}

struct TransferQueue {
    cursor: Cursor,
    ready: VecDeque<Transfer>,
}

/// What was written of the ack levels, and how much was done since.
struct Checkpoints {
    written: ShardRecord,
    n_done: u64,
    /// The commit in flight carries one.
    in_flight: Option<ShardRecord>,
}

impl Queues {
    pub(crate) fn new(record: &ShardRecord, in_memory_max: usize) -> Self {
        Self {
            in_memory_max,
            transfer: Mutex::new(TransferQueue { cursor: Cursor::new(record.transfer_acked), ready: VecDeque::new() }),
            timers: Mutex::new(Timers::new(record.timer_acked, in_memory_max)),
            checkpoints: Mutex::new(Checkpoints { written: record.clone(), n_done: 0, in_flight: None }),
            transfer_wake: Notify::new(),
            timers_wake: Notify::new(),
            idle_wake: Notify::new(),
        }
    }

    /// The commit is durable: its tasks may run.
    pub(crate) fn committed(&self, commit: ShardCommit) {
        if !commit.transfer.is_empty() {
            let ids: Vec<i64> = commit.transfer.iter().map(|task| task.task_id).collect();
            let mut transfer = lock(&self.transfer);
            let taken = transfer.cursor.offer(&ids, self.in_memory_max);
            let first_taken = taken.first().copied().unwrap_or(i64::MAX);
            transfer.ready.extend(commit.transfer.into_iter().filter(|task| task.task_id >= first_taken));
            self.transfer_wake.notify_one();
        }
        if !commit.timers.is_empty() {
            let mut timers = lock(&self.timers);
            for timer in commit.timers {
                timers.add(timer.timer_key(), timer.queued);
            }
            self.timers_wake.notify_one();
        }
        let mut checkpoints = lock(&self.checkpoints);
        if let Some(written) = checkpoints.in_flight.take() {
            checkpoints.written = written;
        }
    }

    /// No new timer may be put below it.
    pub(crate) fn timer_floor(&self) -> Timestamp {
        lock(&self.timers).acked().fires_at
    }

    /// Adds the ack levels and the deletion of what is done, if enough was done to be worth it, or the shard is idle.
    pub(crate) fn add_checkpoint(&self, commit: &mut ShardCommit, now: Timestamp, occasion: Occasion) {
        let mut checkpoints = lock(&self.checkpoints);
        let n_done_min = match occasion {
            Occasion::Busy => CHECKPOINT_TASKS,
            Occasion::Idle => 1,
            Occasion::Release => 0,
        };
        if checkpoints.n_done < n_done_min {
            return;
        }
        let transfer_acked = lock(&self.transfer).cursor.acked();
        let timer_acked = lock(&self.timers).ack(now);
        let written = &checkpoints.written;
        commit.completed_transfer = Some(written.transfer_acked..=transfer_acked);
        commit.completed_timers = Some(written.timer_acked..=timer_acked);
        let owner = if occasion == Occasion::Release { String::new() } else { written.owner.clone() };
        let record = ShardRecord { owner, transfer_acked, timer_acked, updated_at: now, ..written.clone() };
        commit.shard_record = Some(record.clone());
        checkpoints.in_flight = Some(record);
        checkpoints.n_done = 0;
    }

    /// Returns once a checkpoint is worth a commit of its own: tasks were done, and then nothing came for a while.
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

    fn timer_done(&self, key: TimerKey) {
        lock(&self.timers).done(key);
        self.one_done();
    }

    fn one_done(&self) {
        lock(&self.checkpoints).n_done += 1;
        self.idle_wake.notify_one();
    }
}

/// How long to wait before a task is tried for the n-th time again.
pub(crate) fn backoff(tries: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(50);
    const MAX: Duration = Duration::from_secs(30);
    FIRST.saturating_mul(1 << tries.min(12)).min(MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}
