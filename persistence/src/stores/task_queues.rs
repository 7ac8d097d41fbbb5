//! Task queues: the backlog of each partition of a task queue, under a lease of its own, and the data that users
//! attach to a task queue.
//!
//! Everything in a queue's partition is written conditionally on the lease, deletes too: a plain delete carries the
//! clock of a client and might lose against an earlier conditional write.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use proto::everrow::record;
use workflow::NamespaceId;

use crate::engine::{Batch, Condition, Consistency, Engine, KeyRange, Outcome, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::stores::shards::{Claim, RangeId};
use crate::table::Value;
use crate::tables::{TASK_QUEUE_NAMES, TASK_QUEUE_USER_DATA, TASK_QUEUES};

/// Indexes of the static columns.
const RANGE_ID: usize = 0;
const QUEUE: usize = 1;

/// Attempts to take a lease before an error is returned.
const TRIES: usize = 5;

/// One partition of a task queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueKey {
    pub namespace_id: NamespaceId,
    pub name: Arc<str>,
    /// Workflow, activity or Nexus, by the number of the public enum.
    pub task_type: i32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskQueueLease {
    pub range_id: RangeId,
    pub record: record::TaskQueue,
}

/// A backlog task. Ids are never reused, not even under another lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BacklogTask {
    pub subqueue: i32,
    pub place: BacklogPlace,
    /// A `record::BacklogTask`, encoded.
    pub data: Bytes,
}

/// A task's position in its subqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BacklogPlace {
    pub pass: i64,
    pub task_id: i64,
}

/// Tasks of a subqueue up to here are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    pub subqueue: i32,
    pub up_to: BacklogPlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BacklogPage {
    pub tasks: Vec<BacklogTask>,
    /// There may be more after the last task.
    pub has_more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserData {
    /// Counts its changes, from 1.
    pub version: i64,
    pub data: Bytes,
}

#[derive(Clone)]
pub struct TaskQueueStore {
    engine: Arc<dyn Engine>,
}

impl TaskQueueStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Loads a queue without taking its lease; `None` if it was never leased.
    ///
    /// # Errors
    /// `Corrupt` if its record does not decode.
    pub async fn load(&self, queue: &QueueKey) -> Result<Option<TaskQueueLease>, StoreError> {
        let statics = self.engine.statics(partition(queue), Consistency::Serial).await?;
        decode_lease(statics).map_err(|bad| bad.at(queue))
    }

    /// Takes the lease from any holder, and returns the stored record of the queue.
    ///
    /// # Errors
    /// `Refused` if others kept taking it first. After any error the lease may have been taken, but is not used.
    pub async fn lease(&self, queue: &QueueKey, claim: Claim) -> Result<TaskQueueLease, StoreError> {
        let mut tried = None;
        let mut failure = None;
        for _ in 0..TRIES {
            let stored = self.load(queue).await?;
            let held = stored.as_ref().map(|lease| lease.range_id);
            let mut record = stored.map(|lease| lease.record).unwrap_or_default();
            let nonce = rows::uuid_bytes(claim.nonce);
            if let Some(range_id) = tried.filter(|_| held == tried && record.nonce == nonce) {
                return Ok(TaskQueueLease { range_id, record });
            }
            record.owner.clone_from(&claim.owner);
            record.nonce = nonce;
            if held.is_none() {
                // First, so that the deletion of a namespace finds every queue.
                match self.put_name(queue).await {
                    Ok(()) => {}
                    Err(error @ StoreError::OutcomeUnknown(_)) => {
                        failure = Some(error);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            let range_id = held.map_or(RangeId(1), RangeId::next);
            let mut batch = leased(queue, held);
            batch.statics.push((RANGE_ID, Value::Bigint(range_id.0)));
            batch.statics.push((QUEUE, rows::to_value(&record)));
            match self.engine.write(batch).await {
                Ok(Outcome::Applied) => return Ok(TaskQueueLease { range_id, record }),
                Ok(Outcome::Refused(_)) => failure = Some(StoreError::Refused(format!("{queue} was taken"))),
                Err(error @ StoreError::OutcomeUnknown(_)) => failure = Some(error),
                Err(error) => return Err(error),
            }
            tried = Some(range_id);
        }
        Err(failure.unwrap_or_else(|| StoreError::LeaseLost(queue.to_string())))
    }

    /// Writes tasks, and the queue's record with them. Idempotent, so an unknown outcome is simply retried.
    ///
    /// # Errors
    /// `LeaseLost` if another owner has the queue.
    pub async fn append(
        &self,
        queue: &QueueKey,
        range_id: RangeId,
        tasks: Vec<BacklogTask>,
        record: &record::TaskQueue,
    ) -> Result<(), StoreError> {
        let mut batch = leased(queue, Some(range_id));
        batch.statics.push((QUEUE, rows::to_value(record)));
        batch.puts.extend(
            tasks
                .into_iter()
                .map(|task| Row { key: task_key(task.subqueue, task.place), values: vec![Value::Blob(task.data)] }),
        );
        self.write_leased(queue, batch).await
    }

    /// Writes the queue's record, and deletes the tasks that it says are done.
    ///
    /// # Errors
    /// `LeaseLost` if another owner has the queue. An unknown outcome is simply retried.
    pub async fn save(
        &self,
        queue: &QueueKey,
        range_id: RangeId,
        record: &record::TaskQueue,
        completed: &[Completed],
    ) -> Result<(), StoreError> {
        let mut batch = leased(queue, Some(range_id));
        batch.statics.push((QUEUE, rows::to_value(record)));
        batch.range_deletes.extend(completed.iter().map(|Completed { subqueue, up_to }| KeyRange {
            lower: Bound::Included(vec![Value::Int(*subqueue)]),
            upper: Bound::Included(task_key(*subqueue, *up_to)),
        }));
        self.write_leased(queue, batch).await
    }

    /// Deletes all tasks of a queue and empties its record. The range id stays: task ids are derived from it, and must
    /// not be reused.
    ///
    /// # Errors
    /// `LeaseLost` if another owner has the queue. An unknown outcome is simply retried.
    pub async fn delete(&self, queue: &QueueKey, range_id: RangeId) -> Result<(), StoreError> {
        let mut batch = leased(queue, Some(range_id));
        batch.statics.push((QUEUE, rows::to_value(&record::TaskQueue::default())));
        batch.range_deletes.push(KeyRange::all());
        self.write_leased(queue, batch).await
    }

    /// At most `limit` queues of a namespace that were ever leased.
    ///
    /// # Errors
    /// `Corrupt` if a row does not name a queue.
    pub async fn queues(&self, namespace_id: NamespaceId, limit: usize) -> Result<Vec<QueueKey>, StoreError> {
        let page = self.engine.read(Slice::new(names_partition(namespace_id), KeyRange::all(), limit)).await?;
        let queues = page.rows.into_iter().map(|row| match row.key.as_slice() {
            [Value::Text(name), Value::Int(task_type)] => {
                Ok(QueueKey { namespace_id, name: Arc::clone(name), task_type: *task_type })
            }
            key => Err(Malformed::new(format!("a row with the key {key:?}"))),
        });
        queues.collect::<Decoded<_>>().map_err(|bad| bad.at(format_args!("task queues of {namespace_id}")))
    }

    /// Deletes the name row of a queue that has no tasks any more, and will have none.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn forget_name(&self, queue: &QueueKey) -> Result<(), StoreError> {
        let mut batch = Batch::new(names_partition(queue.namespace_id));
        batch.deletes.push(name_key(queue));
        self.engine.write(batch).await.map(|_| ())
    }

    async fn put_name(&self, queue: &QueueKey) -> Result<(), StoreError> {
        let mut batch = Batch::new(names_partition(queue.namespace_id));
        batch.puts.push(Row { key: name_key(queue), values: vec![Value::Blob(Bytes::new())] });
        self.engine.write(batch).await.map(|_| ())
    }

    /// Tasks of a subqueue after a position, in order.
    ///
    /// # Errors
    /// `Corrupt` if a row is not a task.
    pub async fn read(
        &self,
        queue: &QueueKey,
        subqueue: i32,
        after: BacklogPlace,
        limit: usize,
    ) -> Result<BacklogPage, StoreError> {
        let range = KeyRange {
            lower: Bound::Excluded(task_key(subqueue, after)),
            upper: Bound::Included(vec![Value::Int(subqueue)]),
        };
        let page = self.engine.read(Slice::new(partition(queue), range, limit)).await?;
        let tasks = page.rows.into_iter().map(decode_task).collect::<Decoded<_>>();
        Ok(BacklogPage { tasks: tasks.map_err(|bad| bad.at(queue))?, has_more: page.next.is_some() })
    }

    /// User data of a task queue.
    ///
    /// # Errors
    /// `Corrupt` if the row is not readable.
    pub async fn user_data(&self, namespace_id: NamespaceId, name: &str) -> Result<Option<UserData>, StoreError> {
        let range = KeyRange::prefix(vec![Value::from(name)]);
        let page = self.engine.read(Slice::new(user_data_partition(namespace_id), range, 1)).await?;
        let row = page.rows.into_iter().next();
        row.map(decode_user_data).transpose().map_err(|bad| bad.at(format_args!("user data of {namespace_id}/{name}")))
    }

    /// Replaces the user data of a task queue, and returns its new version.
    ///
    /// # Errors
    /// `Refused` if it is no longer at this version; with `None`, if there is any.
    pub async fn update_user_data(
        &self,
        namespace_id: NamespaceId,
        name: &str,
        version: Option<i64>,
        data: Bytes,
    ) -> Result<i64, StoreError> {
        let key = vec![Value::from(name)];
        let next = version.unwrap_or(0) + 1;
        let mut batch = Batch::new(user_data_partition(namespace_id));
        batch.conditions.push(match version {
            Some(version) => Condition::Value { key: key.clone(), column: 0, equals: Value::Bigint(version) },
            None => Condition::Absent { key: key.clone() },
        });
        batch.puts.push(Row { key, values: vec![Value::Bigint(next), Value::Blob(data)] });
        match self.engine.write(batch).await? {
            Outcome::Applied => Ok(next),
            Outcome::Refused(_) => Err(StoreError::Refused(format!("user data of {namespace_id}/{name} changed"))),
        }
    }

    async fn write_leased(&self, queue: &QueueKey, batch: Batch) -> Result<(), StoreError> {
        match self.engine.write(batch).await? {
            Outcome::Applied => Ok(()),
            Outcome::Refused(_) => Err(StoreError::LeaseLost(queue.to_string())),
        }
    }
}

impl fmt::Display for QueueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task queue {}/{}/{}", self.namespace_id, self.name, self.task_type)
    }
}

/// A batch that only the holder of this lease can write.
fn leased(queue: &QueueKey, held: Option<RangeId>) -> Batch {
    let mut batch = Batch::new(partition(queue));
    let equals = held.map(|RangeId(id)| Value::Bigint(id));
    batch.conditions.push(Condition::Static { column: RANGE_ID, equals });
    batch
}

fn decode_lease(statics: Vec<Option<Value>>) -> Decoded<Option<TaskQueueLease>> {
    let mut statics = statics.into_iter();
    let range_id = rows::optional_bigint(statics.next().flatten(), "range_id")?;
    let Some(range_id) = range_id else { return Ok(None) };
    let record = rows::from_value(rows::required(statics.next().flatten(), "queue")?)?;
    Ok(Some(TaskQueueLease { range_id: RangeId(range_id), record }))
}

fn decode_task(row: Row) -> Decoded<BacklogTask> {
    let (key, values) = (<[Value; 3]>::try_from(row.key), <[Value; 1]>::try_from(row.values));
    let (Ok([Value::Int(subqueue), pass, task_id]), Ok([data])) = (key, values) else {
        return Err(Malformed::new("a task without all columns"));
    };
    let place = BacklogPlace { pass: rows::bigint(&pass, "pass")?, task_id: rows::bigint(&task_id, "task_id")? };
    Ok(BacklogTask { subqueue, place, data: rows::blob(data)? })
}

fn decode_user_data(row: Row) -> Decoded<UserData> {
    let (version, data) = rows::versioned(row.values)?;
    Ok(UserData { version, data: rows::blob(data)? })
}

fn task_key(subqueue: i32, place: BacklogPlace) -> Vec<Value> {
    vec![Value::Int(subqueue), Value::Bigint(place.pass), Value::Bigint(place.task_id)]
}

fn partition(queue: &QueueKey) -> Partition {
    let name = Value::Text(Arc::clone(&queue.name));
    Partition::new(&TASK_QUEUES, vec![Value::Uuid(queue.namespace_id.0), name, Value::Int(queue.task_type)])
}

fn names_partition(namespace_id: NamespaceId) -> Partition {
    Partition::new(&TASK_QUEUE_NAMES, vec![Value::Uuid(namespace_id.0)])
}

fn name_key(queue: &QueueKey) -> Vec<Value> {
    vec![Value::Text(Arc::clone(&queue.name)), Value::Int(queue.task_type)]
}

fn user_data_partition(namespace_id: NamespaceId) -> Partition {
    Partition::new(&TASK_QUEUE_USER_DATA, vec![Value::Uuid(namespace_id.0)])
}
