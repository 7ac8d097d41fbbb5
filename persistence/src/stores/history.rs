//! History: event batches as nodes of a tree of branches.
//!
//! Nodes are written by plain writes, before the commit that names them; so there are orphans, whose commit never came.
//! A node is real if it continues the chain: of several that start with the same event the highest transaction id
//! wins, one that starts inside another is an orphan, and what lies beyond the committed end was never real. Anything
//! else that does not fit is corrupt.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;
use workflow::{Branch, EventId};

use crate::engine::{Batch, Durable, Engine, KeyRange, Order, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;
use crate::tables::HISTORY_NODE;

mod reading;
mod events;
mod frames;
mod tree;

pub use events::{EncodedEvents, EventBatch};

/// An event batch to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewNode<'a> {
    pub txn_id: i64,
    /// Of the previous node; zero for the first one of a history.
    pub prev_txn_id: i64,
    pub events: &'a EventBatch,
}

/// An event batch that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// First event of the batch, even if it was not requested.
    pub first_event_id: EventId,
    pub txn_id: i64,
    pub prev_txn_id: i64,
    /// Only requested events.
    pub events: EncodedEvents,
}

/// A position between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The event after it.
    pub event_id: EventId,
    /// Transaction id of the node that ends right before it, if known: saves a search for that node.
    pub txn_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPage {
    /// In read order.
    pub nodes: Vec<Node>,
    /// Continuation; `None` at the end.
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

    /// Writes a node. Idempotent, so an unknown outcome is simply retried.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn append(&self, branch: &Branch, node: NewNode<'_>) -> Result<(), StoreError> {
        let NewNode { txn_id, prev_txn_id, events } = node;
        let first_event_id = events.events().first_event_id();
        let mut batch = Batch::new(partition(branch.tree_id));
        // It takes effect once a commit names it.
        batch.durable = Durable::WithNext;
        batch.puts.push(Row {
            key: vec![Value::Uuid(branch.branch_id), Value::Bigint(first_event_id.0), Value::Bigint(txn_id)],
            values: vec![Value::Bigint(prev_txn_id), Value::Blob(events.data())],
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
        let events = EncodedEvents::of_node(first_event_id, &data)?;
        Ok(Node { first_event_id, txn_id, prev_txn_id, events })
    }
}

impl Node {
    /// The event after its last one.
    fn end(&self) -> EventId {
        self.events.last_event_id().next()
    }

    /// Keeps only events of `[from, to)`.
    fn trimmed(self, from: EventId, to: EventId) -> Decoded<Self> {
        let node = self.first_event_id;
        let events = self.events.within(from, to);
        let events = events.ok_or_else(|| Malformed::new(format!("node {node} has none of events {from} to {to}")))?;
        Ok(Self { events, ..self })
    }
}

fn partition(tree_id: Uuid) -> Partition {
    Partition::new(&HISTORY_NODE, vec![Value::Uuid(tree_id)])
}
