//! Queues of messages and dead letters: numbered without gaps, read from any position, deleted from the front.
//!
//! All writes of a queue are conditional on its next message id, deletes too: see `task_queues` for why.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use proto::everrow::record;
use uuid::Uuid;
use workflow::Timestamp;

use crate::engine::{Batch, Condition, Consistency, Continuation, Engine, KeyRange, Outcome, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;
use crate::tables::{QUEUE_NAMES, QUEUES};

/// Indexes of the static columns.
const NEXT_MESSAGE_ID: usize = 0;
const QUEUE: usize = 1;

/// Type of the dead-letter queues, one per shard: queue tasks and queue rows that cannot be processed.
pub const DEAD_LETTERS: i32 = 1;

/// Id of the first message.
const FIRST_MESSAGE_ID: i64 = 1;

/// Attempts of a write that other writers overtake.
const TRIES: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QueueKey {
    /// Purpose of the messages; the caller defines the numbers.
    pub queue_type: i32,
    pub name: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Encoding of the payload; the queue's owner defines the numbers.
    pub encoding: i32,
    pub payload: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    pub message_id: i64,
    pub message: Message,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePage {
    pub messages: Vec<StoredMessage>,
    /// There may be more after the last message.
    pub has_more: bool,
}

/// Where a queue begins and ends: it holds messages `[first, next)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBounds {
    pub first_message_id: i64,
    pub next_message_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueNames {
    pub names: Vec<Arc<str>>,
    /// There may be more after the last name.
    pub has_more: bool,
}

#[derive(Clone)]
pub struct QueueStore {
    engine: Arc<dyn Engine>,
}

impl QueueStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Adds a queue to the names of its type. Idempotent.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn create(&self, queue: &QueueKey, at: Timestamp) -> Result<(), StoreError> {
        let mut batch = Batch::new(names_partition(queue.queue_type));
        let key = vec![Value::Text(Arc::clone(&queue.name))];
        batch.conditions.push(Condition::Absent { key: key.clone() });
        batch.puts.push(Row { key, values: vec![rows::to_value(&record::QueueName { created_at: at.0 })] });
        match self.engine.write(batch).await? {
            Outcome::Applied | Outcome::Refused(_) => Ok(()),
        }
    }

    /// Queues of a type that were created, by name.
    ///
    /// # Errors
    /// `Corrupt` if a row has no name.
    pub async fn list(&self, queue_type: i32, after: Option<&str>, limit: usize) -> Result<QueueNames, StoreError> {
        let mut slice = Slice::new(names_partition(queue_type), KeyRange::all(), limit);
        slice.after = after.map(|name| Continuation(vec![Value::from(name)]));
        let page = self.engine.read(slice).await?;
        let names = page.rows.into_iter().map(|row| match row.key.into_iter().next() {
            Some(Value::Text(name)) => Ok(name),
            other => Err(StoreError::Corrupt(format!("queues of type {queue_type}: the name {other:?}"))),
        });
        Ok(QueueNames { names: names.collect::<Result<_, _>>()?, has_more: page.next.is_some() })
    }

    /// Appends messages, all or none, and returns the id of the first; the others follow it.
    ///
    /// The nonce is new for each call: it identifies a message after an unknown outcome.
    ///
    /// # Errors
    /// `OutcomeUnknown` only if even another read cannot settle it.
    pub async fn enqueue(&self, queue: &QueueKey, nonce: Uuid, messages: &[Message]) -> Result<i64, StoreError> {
        assert!(!messages.is_empty(), "something is enqueued");
        let mut tried: Option<(i64, StoreError)> = None;
        for _ in 0..TRIES {
            let (stored, bounds) = self.stored(queue).await?;
            if let Some((first_id, unknown)) = tried.take()
                && bounds.next_message_id > first_id
            {
                match self.nonce_of(queue, first_id).await? {
                    Some(found) if found == rows::uuid_bytes(nonce) => return Ok(first_id),
                    Some(_) => {}
                    None => return Err(unknown),
                }
            }
            let first_id = bounds.next_message_id;
            let mut batch = unchanged(queue, stored);
            let next_id = first_id + i64::try_from(messages.len()).expect("a batch is bounded");
            batch.statics.push((NEXT_MESSAGE_ID, Value::Bigint(next_id)));
            batch.puts.extend((first_id..).zip(messages).map(|(id, message)| message_row(id, message, nonce)));
            match self.engine.write(batch).await {
                Ok(Outcome::Applied) => return Ok(first_id),
                Ok(Outcome::Refused(_)) => {}
                Err(error @ StoreError::OutcomeUnknown(_)) => tried = Some((first_id, error)),
                Err(error) => return Err(error),
            }
        }
        Err(tried.map_or_else(|| contended(queue), |(_, unknown)| unknown))
    }

    /// Messages after this one, in order.
    ///
    /// # Errors
    /// `Corrupt` if a row is not a message.
    pub async fn read(&self, queue: &QueueKey, after: i64, limit: usize) -> Result<MessagePage, StoreError> {
        let range = KeyRange { lower: Bound::Excluded(vec![Value::Bigint(after)]), upper: Bound::Unbounded };
        let page = self.engine.read(Slice::new(partition(queue), range, limit)).await?;
        let messages = page.rows.into_iter().map(|row| decode_message(row).map(|(message, _)| message));
        let messages = messages.collect::<Decoded<_>>().map_err(|bad| bad.at(queue))?;
        Ok(MessagePage { messages, has_more: page.next.is_some() })
    }

    /// Deletes messages up to this one. Idempotent.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn delete_up_to(&self, queue: &QueueKey, message_id: i64) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let (stored, bounds) = self.stored(queue).await?;
            let up_to = message_id.min(bounds.next_message_id - 1);
            if up_to < bounds.first_message_id {
                return Ok(());
            }
            let mut batch = unchanged(queue, stored);
            batch.statics.push((QUEUE, rows::to_value(&record::Queue { first_message_id: up_to + 1 })));
            batch.range_deletes.push(KeyRange {
                lower: Bound::Included(vec![Value::Bigint(bounds.first_message_id)]),
                upper: Bound::Included(vec![Value::Bigint(up_to)]),
            });
            if self.engine.write(batch).await? == Outcome::Applied {
                return Ok(());
            }
        }
        Err(contended(queue))
    }

    /// # Errors
    /// `Corrupt` if the queue's record does not decode.
    pub async fn bounds(&self, queue: &QueueKey) -> Result<QueueBounds, StoreError> {
        Ok(self.stored(queue).await?.1)
    }

    /// Deletes all messages and the queue's name. Ids continue if it is created again.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn delete(&self, queue: &QueueKey) -> Result<(), StoreError> {
        self.delete_up_to(queue, i64::MAX).await?;
        let key = vec![Value::Text(Arc::clone(&queue.name))];
        let mut slice = Slice::new(names_partition(queue.queue_type), KeyRange::prefix(key.clone()), 1);
        slice.consistency = Consistency::Serial;
        let Some(row) = self.engine.read(slice).await?.rows.into_iter().next() else { return Ok(()) };
        let mut batch = Batch::new(names_partition(queue.queue_type));
        let equals = rows::required(row.values.into_iter().next(), "data").map_err(|bad| bad.at(queue))?;
        batch.conditions.push(Condition::Value { key: key.clone(), column: 0, equals });
        batch.deletes.push(key);
        match self.engine.write(batch).await? {
            // Refused: another deleted it.
            Outcome::Applied | Outcome::Refused(_) => Ok(()),
        }
    }

    /// The stored next message id, for conditions, and the queue's bounds.
    async fn stored(&self, queue: &QueueKey) -> Result<(Option<Value>, QueueBounds), StoreError> {
        let statics = self.engine.statics(partition(queue), Consistency::Serial).await?;
        let mut statics = statics.into_iter();
        let (next, record) = (statics.next().flatten(), statics.next().flatten());
        let next_message_id = rows::optional_bigint(next.clone(), "next_message_id").map_err(|bad| bad.at(queue))?;
        let record = record.map(rows::from_value::<record::Queue>).transpose().map_err(|bad| bad.at(queue))?;
        let bounds = QueueBounds {
            first_message_id: record.map_or(FIRST_MESSAGE_ID, |record| record.first_message_id),
            next_message_id: next_message_id.unwrap_or(FIRST_MESSAGE_ID),
        };
        Ok((next, bounds))
    }

    /// The nonce of a message; `None` if it was deleted.
    async fn nonce_of(&self, queue: &QueueKey, message_id: i64) -> Result<Option<Bytes>, StoreError> {
        let range = KeyRange::prefix(vec![Value::Bigint(message_id)]);
        let row = self.engine.read(Slice::new(partition(queue), range, 1)).await?.rows.into_iter().next();
        let message = row.map(decode_message).transpose().map_err(|bad| bad.at(queue))?;
        Ok(message.map(|(_, nonce)| nonce))
    }
}

impl fmt::Display for QueueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}/{}", self.queue_type, self.name)
    }
}

/// A batch that is applied only if nothing was appended since.
fn unchanged(queue: &QueueKey, next_message_id: Option<Value>) -> Batch {
    let mut batch = Batch::new(partition(queue));
    batch.conditions.push(Condition::Static { column: NEXT_MESSAGE_ID, equals: next_message_id });
    batch
}

fn message_row(message_id: i64, message: &Message, nonce: Uuid) -> Row {
    let Message { encoding, payload } = message;
    let record = record::QueueMessage { encoding: *encoding, payload: payload.clone(), nonce: rows::uuid_bytes(nonce) };
    Row { key: vec![Value::Bigint(message_id)], values: vec![rows::to_value(&record)] }
}

fn decode_message(row: Row) -> Decoded<(StoredMessage, Bytes)> {
    let (key, values) = (<[Value; 1]>::try_from(row.key), <[Value; 1]>::try_from(row.values));
    let (Ok([message_id]), Ok([data])) = (key, values) else {
        return Err(Malformed::new("a message without all columns"));
    };
    let message_id = rows::bigint(&message_id, "message_id")?;
    let record::QueueMessage { encoding, payload, nonce } = rows::from_value(data)?;
    Ok((StoredMessage { message_id, message: Message { encoding, payload } }, nonce))
}

fn contended(queue: &QueueKey) -> StoreError {
    StoreError::Unavailable(format!("{queue} is being written by others; try again"))
}

fn partition(queue: &QueueKey) -> Partition {
    Partition::new(&QUEUES, vec![Value::Int(queue.queue_type), Value::Text(Arc::clone(&queue.name))])
}

fn names_partition(queue_type: i32) -> Partition {
    Partition::new(&QUEUE_NAMES, vec![Value::Int(queue_type)])
}
