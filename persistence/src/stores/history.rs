//! History: event batches as nodes of a tree of branches.
//!
//! Nodes are written by plain writes, before the commit that names them; so there are orphans, whose commit never came.
//! A node is real if it continues the chain: of several that start with the same event the highest transaction id
//! wins, one that starts inside another is an orphan, and what lies beyond the committed end was never real. Anything
//! else that does not fit is corrupt.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use proto::history::History;
use proto::temporal::api::history::v1::HistoryEvent;
use uuid::Uuid;
use workflow::{Branch, EventId};

use crate::engine::{Batch, Durable, Engine, KeyRange, Order, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;
use crate::tables::HISTORY_NODE;

mod reading;
mod tree;

/// The first byte of a node's data: how the rest is to be read. Compression will have numbers of its own.
const FORMAT_PLAIN: u8 = 1;

/// An event batch to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewNode<'a> {
    pub txn_id: i64,
    /// Of the node before; zero for the first one of a history.
    pub prev_txn_id: i64,
    pub events: &'a EventBatch,
}

/// Events that are stored together, encoded once: a tenth of what they take decoded.
#[derive(Debug, Clone)]
pub struct EventBatch {
    first_event_id: EventId,
    last_event_id: EventId,
    data: Bytes,
}

/// An event batch that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the batch starts, even if its first events were not asked for.
    pub first_event_id: EventId,
    pub txn_id: i64,
    pub prev_txn_id: i64,
    /// Ascending; only those that were asked for.
    pub events: Vec<HistoryEvent>,
}

/// A place between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The event after it.
    pub event_id: EventId,
    /// Transaction id of the node that ends right before it, if the reader knows: saves looking for that node.
    pub txn_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPage {
    /// In the order of reading.
    pub nodes: Vec<Node>,
    /// Where to read on; `None` at the end.
    pub next: Option<Cursor>,
}

#[derive(Clone)]
pub struct HistoryStore {
    engine: Arc<dyn Engine>,
}

impl HistoryStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Writes a node. Doing it again changes nothing, so an unknown outcome is simply tried again.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn append(&self, branch: &Branch, node: NewNode<'_>) -> Result<(), StoreError> {
        let NewNode { txn_id, prev_txn_id, events } = node;
        let mut batch = Batch::new(partition(branch.tree_id));
        // It counts once a commit names it.
        batch.durable = Durable::WithNext;
        batch.puts.push(Row {
            key: vec![Value::Uuid(branch.branch_id), Value::Bigint(events.first_event_id.0), Value::Bigint(txn_id)],
            values: vec![Value::Bigint(prev_txn_id), Value::Blob(events.data.clone())],
        });
        self.engine.write(batch).await?;
        Ok(())
    }

    /// The node that starts with this event.
    ///
    /// # Errors
    /// `Corrupt` if there is none.
    pub async fn read_node(&self, branch: &Branch, first_event_id: EventId) -> Result<Node, StoreError> {
        let branch_id = reading::branch_of(branch, first_event_id);
        let range = KeyRange::prefix(vec![Value::Uuid(branch_id), Value::Bigint(first_event_id.0)]);
        let mut slice = Slice::new(partition(branch.tree_id), range, 1);
        slice.order = Order::Descending;
        let row = self.engine.read(slice).await?.rows.into_iter().next();
        let place = format_args!("history {}, branch {branch_id}, event {first_event_id}", branch.tree_id);
        let row = rows::required(row, "node").map_err(|bad| bad.at(place))?;
        StoredNode::decode(row).and_then(StoredNode::open).map_err(|bad| bad.at(place))
    }
}

impl EventBatch {
    /// # Panics
    /// If there are none, or one is missing in between.
    #[must_use]
    pub fn encode(events: &[HistoryEvent]) -> Self {
        let first_event_id = events.first().map_or(EventId::FIRST, |event| EventId(event.event_id));
        check_events(first_event_id, events).expect("a new node has events, one after the other");
        let last_event_id = EventId(first_event_id.0 + events.len() as i64 - 1);
        Self { first_event_id, last_event_id, data: encode_events(events) }
    }

    #[must_use]
    pub fn decode(&self) -> Vec<HistoryEvent> {
        decode_events(&self.data).expect("what was encoded decodes")
    }

    #[must_use]
    pub fn first_event_id(&self) -> EventId {
        self.first_event_id
    }

    #[must_use]
    pub fn last_event_id(&self) -> EventId {
        self.last_event_id
    }

    /// In bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.len()
    }
}

impl From<EventId> for Cursor {
    fn from(event_id: EventId) -> Self {
        Self { event_id, txn_id: None }
    }
}

/// A node whose events are still encoded.
struct StoredNode {
    first_event_id: EventId,
    txn_id: i64,
    prev_txn_id: i64,
    data: Bytes,
}

impl StoredNode {
    fn decode(row: Row) -> Decoded<Self> {
        let (key, values) = (<[Value; 3]>::try_from(row.key), <[Value; 2]>::try_from(row.values));
        let (Ok([_, node_id, txn_id]), Ok([prev_txn_id, data])) = (key, values) else {
            return Err(Malformed::new("a node without all columns"));
        };
        Ok(Self {
            first_event_id: EventId(rows::bigint(&node_id, "node_id")?),
            txn_id: rows::bigint(&txn_id, "txn_id")?,
            prev_txn_id: rows::bigint(&prev_txn_id, "prev_txn_id")?,
            data: rows::blob(data)?,
        })
    }

    fn open(self) -> Decoded<Node> {
        let Self { first_event_id, txn_id, prev_txn_id, data } = self;
        let events = decode_events(&data)?;
        check_events(first_event_id, &events)?;
        Ok(Node { first_event_id, txn_id, prev_txn_id, events })
    }
}

impl Node {
    /// The event after its last one.
    fn end(&self) -> EventId {
        self.events.last().map_or(self.first_event_id, |event| EventId(event.event_id + 1))
    }

    /// Keeps only events of `[from, to)`.
    fn trimmed(mut self, from: EventId, to: EventId) -> Self {
        self.events.retain(|event| (from.0..to.0).contains(&event.event_id));
        self
    }
}

fn encode_events(events: &[HistoryEvent]) -> Bytes {
    /// Of `events` in the message `History`.
    const EVENTS: u32 = 1;
    let length: usize = events.iter().map(|event| prost::encoding::message::encoded_len(EVENTS, event)).sum();
    let mut data = BytesMut::with_capacity(1 + length);
    data.put_u8(FORMAT_PLAIN);
    // As `History` would encode, without first cloning every event into one.
    for event in events {
        prost::encoding::message::encode(EVENTS, event, &mut data);
    }
    data.freeze()
}

fn decode_events(data: &Bytes) -> Decoded<Vec<HistoryEvent>> {
    match data.first() {
        Some(&FORMAT_PLAIN) => History::decode(data.slice(1..))
            .map(|history| history.events)
            .map_err(|error| Malformed::new(format!("events do not decode: {error}"))),
        other => Err(Malformed::new(format!("node of unknown format {other:?}"))),
    }
}

fn check_events(first_event_id: EventId, events: &[HistoryEvent]) -> Decoded<()> {
    let ids = (first_event_id.0..).zip(events);
    if events.is_empty() {
        return Err(Malformed::new(format!("node {first_event_id} has no events")));
    }
    for (expected, event) in ids {
        if event.event_id != expected {
            let found = event.event_id;
            return Err(Malformed::new(format!("node {first_event_id} has event {found} in place of {expected}")));
        }
    }
    Ok(())
}

fn partition(tree_id: Uuid) -> Partition {
    Partition::new(&HISTORY_NODE, vec![Value::Uuid(tree_id)])
}
