//! Coalesces small writes into requests, per node.
//!
//! A request costs the database and this process more than the row in it. So a write is sent at once if no request to
//! its node is in flight; otherwise it waits until those are answered or its group is full. An idle lane adds no
//! latency, and groups grow with load. Pure: `shared` sends them.

use std::collections::HashMap;

use persistence::engine::{Batch, Durable};
use persistence::error::StoreError;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A node of the database, by its host id.
pub(crate) type NodeId = Uuid;

/// Cassandra logs a warning about an unlogged batch of more partitions
/// (`unlogged_batch_across_partitions_warn_threshold`).
const PARTITIONS_MAX: usize = 10;
/// The same threshold in bytes, for a batch of several partitions (`batch_size_warn_threshold`).
const BYTES_MAX: usize = 5 << 10;
/// Bounds a batch of one partition, which those thresholds do not cover. Keeps the search for duplicate rows short.
const ROWS_MAX: usize = 64;
/// Bytes that Cassandra counts per row besides its values: write and deletion times of its cells and of the row.
const ROW_OVERHEAD: usize = 100;

/// A one-row write, and the channel for its result.
pub(crate) struct SmallWrite {
    pub(crate) batch: Batch,
    pub(crate) told: oneshot::Sender<Result<(), StoreError>>,
}

/// Writes of one request.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) writes: Vec<SmallWrite>,
    n_partitions: usize,
    bytes: usize,
}

/// Requests in flight to one node, and the writes waiting for the next.
#[derive(Default)]
struct Lane {
    n_requests: usize,
    waiting: Group,
}

/// One lane per node with a request in flight.
#[derive(Default)]
pub(crate) struct Lanes {
    lanes: HashMap<NodeId, Lane>,
}

/// Whether it may share a request: one small unconditional row that takes effect once a later batch names it.
pub(crate) fn may_share(batch: &Batch) -> bool {
    let is_one_row = batch.puts.len() == 1
        && batch.statics.is_empty()
        && batch.deletes.is_empty()
        && batch.range_deletes.is_empty()
        && batch.versioned.is_empty();
    is_one_row && batch.durable == Durable::WithNext && !batch.is_conditional() && cost(batch) <= BYTES_MAX
}

impl Lanes {
    /// Returns a group to send now, if any; `finished` must be called when its request ends.
    pub(crate) fn add(&mut self, node: NodeId, write: SmallWrite) -> Option<Group> {
        let lane = self.lanes.entry(node).or_default();
        let full = if lane.waiting.takes(&write.batch) { None } else { Some(lane.leave()) };
        lane.waiting.push(write);
        // A write that did not fit waits behind the full group.
        if full.is_none() && (lane.n_requests == 0 || lane.waiting.is_full()) {
            return Some(lane.leave());
        }
        full
    }

    /// The next group to send, if any.
    pub(crate) fn finished(&mut self, node: NodeId) -> Option<Group> {
        let lane = self.lanes.get_mut(&node)?;
        lane.n_requests -= 1;
        if lane.n_requests > 0 {
            return None;
        }
        if lane.waiting.writes.is_empty() {
            self.lanes.remove(&node);
            return None;
        }
        Some(lane.leave())
    }
}

impl Lane {
    fn leave(&mut self) -> Group {
        self.n_requests += 1;
        std::mem::take(&mut self.waiting)
    }
}

impl Group {
    fn takes(&self, batch: &Batch) -> bool {
        let n_partitions = self.n_partitions + usize::from(self.is_new(batch));
        // All statements of a request have one write timestamp: two writes of a row would have no order.
        let is_named = self.same_partition(batch).any(|other| other.puts[0].key == batch.puts[0].key);
        let fits = n_partitions <= PARTITIONS_MAX && self.bytes + cost(batch) <= BYTES_MAX;
        !is_named && (n_partitions == 1 || fits)
    }

    fn push(&mut self, write: SmallWrite) {
        self.n_partitions += usize::from(self.is_new(&write.batch));
        self.bytes += cost(&write.batch);
        self.writes.push(write);
    }

    fn is_full(&self) -> bool {
        self.n_partitions == PARTITIONS_MAX || self.writes.len() == ROWS_MAX
    }

    fn is_new(&self, batch: &Batch) -> bool {
        self.same_partition(batch).next().is_none()
    }

    fn same_partition(&self, batch: &Batch) -> impl Iterator<Item = &Batch> {
        let batches = self.writes.iter().map(|write| &write.batch);
        batches.filter(|other| other.partition == batch.partition)
    }
}

fn cost(batch: &Batch) -> usize {
    batch.size() + ROW_OVERHEAD
}

#[cfg(test)]
mod tests;
