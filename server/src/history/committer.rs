//! The group committer: one per shard, at most one conditional batch in flight. Later submissions join the next batch.
//! The only caller of the store's `commit`.
//!
//! A batch is atomic: either all of it is durable, or the shard is given up with everything in memory, so no change
//! builds on one that was lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::env::Env;
use persistence::error::StoreError;
use persistence::stores::Stores;
use persistence::stores::executions::{
    CurrentWrite, DamagedRow, JobWrite, QueuedTask, QueuedTimer, RunWrite, ScheduleWrite, ShardCommit, TimerKey,
};
use persistence::stores::shards::{Acquired, Claim, RangeId, ShardId};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::warn;
use workflow::{ExecutionKey, NamespaceId, Task};

use super::cache::{CurrentSlot, ScheduleSlot, Slot};
use super::config::HistoryConfig;
use super::durability::{Durability, LeaseSeen};
use super::identity::IdClock;
use super::queues::{Occasion, Queues, shared_moment};
use super::size::SUBMISSION_BYTES_MAX;
use super::tally::{StatusChange, Tally};
use super::updates::UpdateProgress;
use super::waiters::Waiters;

/// Attempts of a write that certainly failed, or of a lease renewal, before the shard is given up.
const TRIES_MAX: u32 = 12;
/// Yields per batch before it is sent, so that more submissions join it.
const YIELDS_MAX: u32 = 4;
const BACKOFF_FIRST: Duration = Duration::from_millis(10);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// A lease confirmed within this time needs no check before a read: a node that takes over an unreleased lease waits
/// longer than this before its first commit.
pub(crate) const LEASE_AGE_MAX: Duration = Duration::from_secs(1);

/// The changes of one caller, with one run or two that change together; empty to confirm the lease.
#[derive(Default)]
pub(crate) struct Submission {
    pub(crate) runs: Vec<RunCommit>,
    pub(crate) current: Option<CurrentCommit>,
    pub(crate) deleted: Option<DeletedRun>,
    /// Rows to delete, of a run that is ended because of them or of a queue.
    pub(crate) damaged: Vec<DamagedRow>,
    pub(crate) schedule: Option<ScheduleCommit>,
    pub(crate) job: Option<JobWrite>,
    pub(crate) left: Option<LeftNamespace>,
}

/// A namespace that is being removed, and has no runs in the shard any more.
pub(crate) struct LeftNamespace {
    pub(crate) namespace_id: NamespaceId,
    /// Timer rows that its deleted runs left behind.
    pub(crate) timers: Vec<TimerKey>,
}

/// A run whose rows are all deleted.
pub(crate) struct DeletedRun {
    /// Held like the slot of a changed run.
    pub(crate) slot: Arc<Slot>,
    pub(crate) key: ExecutionKey,
    pub(crate) status: StatusChange,
}

pub(crate) struct RunCommit {
    /// Held until the commit is durable, so that the run is not loaded from a store that lacks the change.
    pub(crate) slot: Arc<Slot>,
    pub(crate) write: RunWrite,
    pub(crate) tasks: Vec<Task>,
    pub(crate) status: StatusChange,
    /// Write of the history nodes that this state names: started with the submission, durable before the batch is sent.
    pub(crate) append: Option<JoinHandle<Result<(), StoreError>>>,
    /// Notifications to waiters for updates of this run.
    pub(crate) update_progress: Vec<UpdateProgress>,
    pub(crate) bytes: usize,
}

/// A changed or deleted schedule.
pub(crate) struct ScheduleCommit {
    /// Held like a run's slot.
    pub(crate) slot: Arc<ScheduleSlot>,
    pub(crate) write: ScheduleWrite,
    /// The key of its queue tasks.
    pub(crate) key: ExecutionKey,
    pub(crate) tasks: Vec<Task>,
    pub(crate) bytes: usize,
}

pub(crate) struct CurrentCommit {
    /// Held like a run's slot.
    pub(crate) slot: Arc<CurrentSlot>,
    pub(crate) write: CurrentWrite,
}

impl Submission {
    fn bytes(&self) -> usize {
        let runs: usize = self.runs.iter().map(|run| run.bytes).sum();
        let job = self.job.as_ref().map_or(0, JobWrite::size_estimate);
        runs + job + self.schedule.as_ref().map_or(0, |schedule| schedule.bytes)
    }

    fn keys(&self) -> impl Iterator<Item = &ExecutionKey> {
        let changed = self.runs.iter().map(|run| &run.write.state.key);
        changed.chain(self.deleted.as_ref().map(|deleted| &deleted.key))
    }
}

/// Why a shard stopped committing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Closed {
    #[error("the shard moved to another owner")]
    LeaseLost,
    /// No pending submission is durable.
    #[error("the shard was given up: {0}")]
    GivenUp(String),
    /// The batch in flight may be durable.
    #[error("the shard was given up with a commit of unknown outcome: {0}")]
    Unresolved(String),
    #[error("the shard is shutting down")]
    Shutdown,
}

/// Handle to the commit loop.
pub(crate) struct Committer {
    sender: mpsc::Sender<Submission>,
    /// Last submission number. Also orders the sends: numbers follow the channel.
    submitted: Mutex<u64>,
    durability: Arc<Durability>,
    /// False: this process is the store's only user, so the lease cannot be lost.
    is_store_shared: bool,
    env: Env,
}

/// A channel slot, reserved before a decision so that the decision is submitted without waiting.
pub(crate) type Permit<'a> = mpsc::Permit<'a, Submission>;

impl Committer {
    pub(crate) async fn reserve(&self) -> Result<Permit<'_>, Closed> {
        self.sender.reserve().await.map_err(|_| self.closed())
    }

    /// Never waits. Returns the submission's number, for `durable`.
    pub(crate) fn submit(&self, permit: Permit<'_>, submission: Submission) -> u64 {
        let mut submitted = self.submitted.lock().expect("no holder of this lock can panic");
        *submitted += 1;
        permit.send(submission);
        *submitted
    }

    /// Returns once the submission and all before it are durable.
    pub(crate) async fn durable(&self, submission: u64) -> Result<(), Closed> {
        self.durability.reached(submission).await
    }

    /// As `durable`, for a reply without a commit of its own: an owner that lost its lease unnoticed must not refuse
    /// what its successor would grant. On a shared store, costs an empty submission in the next commit.
    pub(crate) async fn confirmed(&self) -> Result<(), Closed> {
        if !self.is_store_shared {
            let submitted = *self.submitted.lock().expect("no holder of this lock can panic");
            return self.durable(submitted).await;
        }
        let permit = self.reserve().await?;
        // Once this is durable, so are all earlier submissions.
        let nothing = self.submit(permit, Submission::default());
        self.durable(nothing).await
    }

    /// As `durable`, for a plain read: a lease no older than `LEASE_AGE_MAX` still excludes other writers.
    pub(crate) async fn confirmed_lately(&self, submission: u64) -> Result<(), Closed> {
        self.durable(submission).await?;
        if let Some(closed) = self.durability.closed() {
            return Err(closed);
        }
        let is_fresh = self.durability.lease_seen().is_some_and(|seen| seen.is_fresh(&self.env));
        if is_fresh || !self.is_store_shared { Ok(()) } else { self.confirmed().await }
    }

    /// Returns when the shard has stopped committing.
    pub(crate) async fn ended(&self) -> Closed {
        self.durability.ended().await
    }

    pub(crate) fn is_open(&self) -> bool {
        self.durability.is_open()
    }

    fn closed(&self) -> Closed {
        self.durability.closed().unwrap_or(Closed::Shutdown)
    }
}

/// The commit loop: the only writer of the shard's partition under its lease.
pub(crate) struct CommitLoop {
    pub(crate) shard_id: ShardId,
    pub(crate) range_id: RangeId,
    pub(crate) claim: Claim,
    pub(crate) env: Env,
    pub(crate) stores: Stores,
    pub(crate) ids: Arc<IdClock>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) config: Arc<HistoryConfig>,
    pub(crate) is_store_shared: bool,
    /// When the lease was requested.
    pub(crate) lease_asked: LeaseSeen,
}

/// Slots that a commit keeps in memory until it is durable.
type Held = (Vec<Arc<Slot>>, Option<Arc<CurrentSlot>>, Option<Arc<ScheduleSlot>>);

/// Notifications to send after a commit.
#[derive(Default)]
struct Committed {
    /// Runs that changed.
    runs: Vec<ExecutionKey>,
    update_progress: Vec<UpdateProgress>,
}

/// Submissions that go into one batch.
struct Gathered {
    submissions: Vec<Submission>,
    /// The channel is drained: the shard is closing.
    is_last: bool,
}

impl CommitLoop {
    /// Runs until the shard is closed: by `stop`, or because the lease or the store is lost.
    pub(crate) fn spawn(self, stop: watch::Receiver<bool>) -> (Committer, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(self.config.waiting_transitions);
        let durability = Arc::new(Durability::new(self.lease_asked));
        let (is_store_shared, env) = (self.is_store_shared, self.env.clone());
        let task = tokio::spawn(self.run(receiver, Arc::clone(&durability), stop));
        (Committer { sender, submitted: Mutex::new(0), durability, is_store_shared, env }, task)
    }

    async fn run(
        mut self,
        mut receiver: mpsc::Receiver<Submission>,
        durability: Arc<Durability>,
        mut stop: watch::Receiver<bool>,
    ) {
        let waiters = Arc::clone(&self.waiters);
        let mut ending = Ending { durability: Arc::clone(&durability), waiters, closed: None };
        let mut held_over = None;
        let closed = loop {
            let gathered = self.gather(&mut receiver, &mut stop, &mut held_over).await;
            let is_last = gathered.is_last;
            let count = gathered.submissions.len() as u64;
            // Read before the commit is sent: a takeover can only follow the applied commit.
            let began = LeaseSeen::now(&self.env);
            if is_last {
                // The next owner does not wait for a released lease, so reads must not rely on it any more.
                durability.give_up_lease();
            }
            match self.commit(gathered).await {
                // Without submissions there may have been no write to confirm the lease.
                Ok(_) if count == 0 => {}
                Ok(Committed { runs, update_progress }) => {
                    durability.advance(count, began);
                    runs.iter().for_each(|key| self.waiters.wake(key));
                    update_progress.into_iter().for_each(UpdateProgress::publish);
                }
                Err(closed) => break closed,
            }
            if is_last {
                break Closed::Shutdown;
            }
        };
        receiver.close();
        ending.closed = Some(closed);
    }

    /// Waits for one submission and adds the queued ones, up to the batch limits. One that would make the batch too
    /// large for a store is held over for the next batch.
    async fn gather(
        &self,
        receiver: &mut mpsc::Receiver<Submission>,
        stop: &mut watch::Receiver<bool>,
        held_over: &mut Option<Submission>,
    ) -> Gathered {
        let mut submissions = Vec::new();
        let mut bytes = 0;
        let first = tokio::select! {
            biased;
            () = std::future::ready(()), if held_over.is_some() => held_over.take(),
            submission = receiver.recv() => submission,
            () = self.queues.checkpoint_wanted() => return Gathered { submissions, is_last: false },
            () = stopped(stop) => {
                receiver.close();
                receiver.recv().await
            }
        };
        // The channel is closed and empty, and no permit is outstanding.
        let is_last = first.is_none();
        let mut next = first;
        let mut n_yields = 0;
        while let Some(submission) = next.take() {
            let size = submission.bytes();
            if !submissions.is_empty() && bytes + size > SUBMISSION_BYTES_MAX {
                *held_over = Some(submission);
                break;
            }
            bytes += size;
            submissions.push(submission);
            if submissions.len() >= self.config.batch_transitions || bytes >= self.config.batch_bytes {
                break;
            }
            next = receiver.try_recv().ok();
            // Yields to callers that are about to submit: a commit costs more than a yield.
            while next.is_none() && n_yields < YIELDS_MAX {
                n_yields += 1;
                tokio::task::yield_now().await;
                next = receiver.try_recv().ok();
            }
        }
        Gathered { submissions, is_last }
    }

    /// Makes the submissions durable and hands their tasks to the queues.
    async fn commit(&mut self, gathered: Gathered) -> Result<Committed, Closed> {
        let Gathered { mut submissions, is_last } = gathered;
        if self.ids.is_running_out(self.range_id) {
            self.renew_lease().await?;
        }
        for run in submissions.iter_mut().flat_map(|submission| &mut submission.runs) {
            let Some(append) = run.append.take() else { continue };
            let appended = append.await.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())));
            appended.map_err(|error| Closed::GivenUp(error.to_string()))?;
        }
        let runs = submissions.iter().flat_map(Submission::keys).cloned().collect();
        let mut committed = Committed { runs, update_progress: Vec::new() };
        for run in submissions.iter_mut().flat_map(|submission| &mut submission.runs) {
            committed.update_progress.append(&mut run.update_progress);
        }
        let is_asked_for = !submissions.is_empty();
        let (mut commit, held) = self.prepare(submissions, is_last);
        if commit.is_empty() && !is_asked_for {
            return Ok(committed);
        }
        self.write(&mut commit).await?;
        self.queues.committed(commit);
        drop(held);
        Ok(committed)
    }

    /// Merges submissions into one batch. Assigns queue task ids here, so that they follow the commit order.
    fn prepare(&self, submissions: Vec<Submission>, is_last: bool) -> (ShardCommit, Vec<Held>) {
        let mut held = Vec::new();
        let mut commit = ShardCommit::new(self.shard_id, self.range_id, self.ids.take(1));
        // First, so that no timer of this commit lies below the ack level that it writes.
        let occasion = match (is_last, submissions.is_empty()) {
            (true, _) => Occasion::Release,
            (false, true) => Occasion::Idle,
            (false, false) => Occasion::Busy,
        };
        self.queues.add_checkpoint(&mut commit, self.env.now(), occasion);
        for submission in submissions {
            let current = submission.current.map(|current| {
                commit.current.push(current.write);
                current.slot
            });
            let mut slots = Vec::with_capacity(submission.runs.len() + 1);
            for run in submission.runs {
                for task in run.tasks {
                    self.enqueue(&mut commit, &run.write.state.key, task);
                }
                self.count(&mut commit, run.write.state.key.namespace_id, run.status);
                commit.runs.push(run.write);
                slots.push(run.slot);
            }
            commit.damaged_rows.extend(submission.damaged);
            if let Some(deleted) = submission.deleted {
                self.count(&mut commit, deleted.key.namespace_id, deleted.status);
                commit.deleted_runs.push(deleted.key);
                slots.push(deleted.slot);
            }
            let schedule = submission.schedule.map(|schedule| {
                for task in schedule.tasks {
                    self.enqueue(&mut commit, &schedule.key, task);
                }
                commit.schedules.push(schedule.write);
                schedule.slot
            });
            commit.jobs.extend(submission.job);
            if let Some(left) = submission.left {
                commit.left_timers.extend(left.timers);
                commit.left_namespaces.extend(self.tally.forget(left.namespace_id).then_some(left.namespace_id));
            }
            held.push((slots, current, schedule));
        }
        (commit, held)
    }

    fn count(&self, commit: &mut ShardCommit, namespace_id: NamespaceId, change: StatusChange) {
        let Some(counts) = self.tally.change(namespace_id, change) else { return };
        match commit.counts.iter_mut().find(|(counted, _)| *counted == namespace_id) {
            Some((_, earlier)) => *earlier = counts,
            None => commit.counts.push((namespace_id, counts)),
        }
    }

    fn enqueue(&self, commit: &mut ShardCommit, key: &ExecutionKey, task: Task) {
        let (task_id, key) = (self.ids.take(1), key.clone());
        match task {
            Task::Transfer(task) => commit.transfer.push(QueuedTask { task_id, key, task }),
            Task::Visibility(task) => commit.visibility.push(QueuedTask { task_id, key, task }),
            Task::Timer { fires_at, task } => {
                let fires_at = shared_moment(fires_at, self.env.now(), &task);
                // A timer below the ack level of a checkpoint would not be found.
                let fires_at = fires_at.max(self.queues.timer_floor());
                commit.timers.push(QueuedTimer { fires_at, queued: QueuedTask { task_id, key, task } });
            }
        }
    }

    /// Retries until the outcome is known.
    async fn write(&mut self, commit: &mut ShardCommit) -> Result<(), Closed> {
        let mut tries = Tries::default();
        loop {
            let error = match self.stores.executions.commit(commit).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match error {
                StoreError::LeaseLost(_) => return Err(Closed::LeaseLost),
                StoreError::Unavailable(_) => tries.wait(&self.env, &error).await?,
                StoreError::OutcomeUnknown(_) => {
                    warn!(shard = self.shard_id.0, %error, "commit outcome unknown; renewing the lease to resolve it");
                    // The new lease fences the write in flight; with one batch at a time, the stored commit id shows
                    // whether that write was applied.
                    let acquired = self.renew_lease().await.map_err(unresolved)?;
                    if acquired.commit_id == commit.commit_id {
                        return Ok(());
                    }
                    commit.range_id = self.range_id;
                }
                StoreError::Refused(_) | StoreError::Corrupt(_) | StoreError::TooLarge(_) => {
                    return Err(Closed::GivenUp(error.to_string()));
                }
            }
        }
    }

    async fn renew_lease(&mut self) -> Result<Acquired, Closed> {
        let mut tries = Tries::default();
        loop {
            match self.stores.shards.reacquire(self.shard_id, self.range_id, self.claim.clone()).await {
                Ok(acquired) => {
                    self.range_id = acquired.range_id;
                    self.ids.advance_to(acquired.range_id);
                    return Ok(acquired);
                }
                Err(StoreError::LeaseLost(_)) => return Err(Closed::LeaseLost),
                Err(error) => tries.wait(&self.env, &error).await?,
            }
        }
    }
}

/// Notifies all waiters when the loop ends, also by a panic, so that no caller waits forever.
struct Ending {
    durability: Arc<Durability>,
    waiters: Arc<Waiters>,
    closed: Option<Closed>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let broken = || Closed::Unresolved("the committer broke off".into());
        let closed = self.closed.take().unwrap_or_else(broken);
        self.durability.close(&closed);
        self.waiters.wake_all();
    }
}

/// Returns once `stop` is set.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender counts as a stop.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The lease was not renewed with a batch in flight: only the next owner can see whether it was applied.
fn unresolved(closed: Closed) -> Closed {
    Closed::Unresolved(closed.to_string())
}

/// Bounded retries with exponential backoff.
#[derive(Default)]
struct Tries {
    made: u32,
}

impl Tries {
    async fn wait(&mut self, env: &Env, error: &StoreError) -> Result<(), Closed> {
        self.made += 1;
        if self.made >= TRIES_MAX {
            return Err(Closed::GivenUp(error.to_string()));
        }
        let pause = BACKOFF_FIRST.saturating_mul(1 << self.made).min(BACKOFF_MAX);
        tokio::time::sleep(env.jittered(pause)).await;
        Ok(())
    }
}
