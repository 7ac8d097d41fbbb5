//! The lease on one task-queue partition, and the statements under it.
//!
//! Task ids come from the lease: each lease has its own block, so no two owners ever write the same row.

use std::sync::Arc;

use bytes::Bytes;
use cluster::env::Env;
use persistence::error::StoreError;
use persistence::stores::shards::{Claim, RangeId};
use persistence::stores::task_queues::{self, BacklogPlace, BacklogTask, Completed, TaskQueueStore};
use proto::everrow::record::{self, Subqueue};
use proto::temporal::api::enums::v1::TaskQueueKind;

use super::backlog::Done;
use super::matcher::{Position, Priority, Rank};
use super::task::QueueKey;

/// Bits of a lease's id block: hours of one queue's writes, and 2^39 leases.
const BLOCK_BITS: u32 = 24;

/// Attempts of an append whose outcome is unknown.
const APPEND_TRIES: usize = 4;

pub(super) struct Lease {
    store: TaskQueueStore,
    queue: task_queues::QueueKey,
    owner: String,
    env: Env,
    held: Option<Held>,
}

/// A lease that this process took and, as far as it knows, still holds.
struct Held {
    range_id: RangeId,
    record: record::TaskQueue,
    next_task_id: i64,
}

/// Tasks of one level, in order.
pub(super) struct Page {
    pub(super) tasks: Vec<(Position, Bytes)>,
    pub(super) is_last: bool,
}

impl Lease {
    pub(super) fn new(key: &QueueKey, store: TaskQueueStore, owner: String, env: Env) -> Self {
        let (namespace_id, name) = (key.namespace_id, Arc::from(key.name.as_str()));
        let queue = task_queues::QueueKey { namespace_id, name, task_type: key.task_type.number() };
        Self { store, queue, owner, env, held: None }
    }

    /// Takes the lease from any owner, which fences that owner's writes. Returns the stored subqueues.
    pub(super) async fn take(&mut self) -> Result<Vec<Subqueue>, StoreError> {
        self.held = None;
        let claim = Claim { owner: self.owner.clone(), nonce: self.env.new_uuid() };
        let lease = self.store.lease(&self.queue, claim).await?;
        let subqueues = lease.record.subqueues.clone();
        self.held = Some(Held::new(lease.range_id, lease.record));
        Ok(subqueues)
    }

    /// The same, if the store has a record of this queue.
    pub(super) async fn take_if_used(&mut self) -> Result<Option<Vec<Subqueue>>, StoreError> {
        match self.store.load(&self.queue).await? {
            Some(_) => self.take().await.map(Some),
            None => Ok(None),
        }
    }

    /// Ensures that `n` task ids are left.
    pub(super) async fn reserve(&mut self, n: usize) -> Result<(), StoreError> {
        let Some(held) = &self.held else {
            // The store had nothing of the queue when it was loaded. If it has now, another owner has written since.
            let is_unused = self.take().await?.is_empty();
            return if is_unused { Ok(()) } else { Err(self.lost()) };
        };
        if held.has_ids(n) { Ok(()) } else { self.renew(held.range_id).await }
    }

    /// Rank of the next task, after all others of its level.
    pub(super) fn next_rank(&mut self, priority: Priority) -> Rank {
        let held = self.held.as_mut().expect("ids were reserved");
        let position = Position { pass: 0, task_id: held.next_task_id };
        held.next_task_id += 1;
        Rank { priority, position }
    }

    /// Writes all of the tasks, or none. If the outcome is unknown, writes the same rows again: that is idempotent and
    /// settles the first attempt.
    pub(super) async fn append(&self, rows: Vec<(Rank, Bytes)>, subqueues: Vec<Subqueue>) -> Result<(), StoreError> {
        let held = self.held.as_ref().expect("ids were reserved");
        let record = held.record(subqueues, &self.env);
        let tasks: Vec<BacklogTask> = rows.into_iter().map(|(rank, data)| backlog_task(rank, data)).collect();
        let mut outcome = Err(StoreError::Unavailable("not tried".into()));
        for _ in 0..APPEND_TRIES {
            outcome = self.store.append(&self.queue, held.range_id, tasks.clone(), &record).await;
            if !matches!(outcome, Err(StoreError::OutcomeUnknown(_))) {
                break;
            }
        }
        outcome
    }

    pub(super) async fn read(&self, priority: Priority, after: Position, limit: usize) -> Result<Page, StoreError> {
        let page = self.store.read(&self.queue, priority.key(), after.into(), limit).await?;
        let tasks = page.tasks.into_iter().map(|task| (task.place.into(), task.data)).collect();
        Ok(Page { tasks, is_last: !page.has_more })
    }

    /// Deletes done tasks and saves the ack levels.
    pub(super) async fn checkpoint(&self, done: &[Done], subqueues: Vec<Subqueue>) -> Result<(), StoreError> {
        let held = self.held.as_ref().ok_or_else(|| self.lost())?;
        let record = held.record(subqueues, &self.env);
        let completed: Vec<_> =
            done.iter().map(|done| Completed { subqueue: done.priority.key(), up_to: done.up_to.into() }).collect();
        self.store.save(&self.queue, held.range_id, &record, &completed).await
    }

    /// First and last id left.
    pub(super) fn ids_left(&self) -> Option<(i64, i64)> {
        self.held.as_ref().map(|held| (held.next_task_id, held.end_task_id() - 1))
    }

    /// Renews the held lease for a new block of ids.
    async fn renew(&mut self, held: RangeId) -> Result<(), StoreError> {
        self.take().await?;
        let is_ours = self.held.as_ref().is_some_and(|renewed| renewed.range_id == held.next());
        if is_ours { Ok(()) } else { Err(self.lost()) }
    }

    fn lost(&self) -> StoreError {
        StoreError::LeaseLost(format!("task queue {}", self.queue.name))
    }
}

impl Held {
    fn new(range_id: RangeId, record: record::TaskQueue) -> Self {
        Self { range_id, record, next_task_id: range_id.0 << BLOCK_BITS }
    }

    fn end_task_id(&self) -> i64 {
        (self.range_id.0 + 1) << BLOCK_BITS
    }

    fn has_ids(&self, n: usize) -> bool {
        let left = self.end_task_id() - self.next_task_id;
        i64::try_from(n).is_ok_and(|n| n <= left)
    }

    fn record(&self, subqueues: Vec<Subqueue>, env: &Env) -> record::TaskQueue {
        let (kind, updated_at) = (TaskQueueKind::Normal.into(), env.now().0);
        record::TaskQueue { kind, subqueues, updated_at, ..self.record.clone() }
    }
}

impl From<BacklogPlace> for Position {
    fn from(BacklogPlace { pass, task_id }: BacklogPlace) -> Self {
        Self { pass, task_id }
    }
}

impl From<Position> for BacklogPlace {
    fn from(Position { pass, task_id }: Position) -> Self {
        Self { pass, task_id }
    }
}

fn backlog_task(rank: Rank, data: Bytes) -> BacklogTask {
    let Rank { priority, position } = rank;
    BacklogTask { subqueue: priority.key(), place: position.into(), data }
}
