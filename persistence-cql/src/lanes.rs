//! Which small writes share a request.
//!
//! A request costs the database and this process more than the row in it. So a write that can wait a little shares one
//! with others on the way to the same node: it leaves at once while nothing else is on the way there, otherwise with the
//! answer to what is, or as soon as a request is full. Nobody waits on an idle lane, and the busier it is, the fuller are its
//! requests. Pure: `shared` sends them.

use std::collections::HashMap;

use persistence::engine::{Batch, Durable};
use persistence::error::StoreError;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A node of the database, by its host id.
pub(crate) type NodeId = Uuid;

/// Cassandra logs a warning about an unlogged batch of more partitions (`unlogged_batch_across_partitions_warn_threshold`).
const PARTITIONS_MAX: usize = 10;
/// The same, in bytes of a batch of several partitions (`batch_size_warn_threshold`).
const BYTES_MAX: usize = 5 << 10;
/// Nothing of that is about a batch of one partition. Keeps the search for a row named twice short.
const ROWS_MAX: usize = 64;
/// What Cassandra counts for a row beside its values: times of writing and deletion, and the row's own.
const ROW_OVERHEAD: usize = 100;

/// A row for whose writing somebody waits.
pub(crate) struct SmallWrite {
    pub(crate) batch: Batch,
    pub(crate) told: oneshot::Sender<Result<(), StoreError>>,
}

/// Writes that go into one request.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) writes: Vec<SmallWrite>,
    n_partitions: usize,
    bytes: usize,
}

/// What is on the way to one node, and what waits to be.
#[derive(Default)]
struct Lane {
    n_requests: usize,
    waiting: Group,
}

/// As many as there are nodes to which something is on the way.
#[derive(Default)]
pub(crate) struct Lanes {
    lanes: HashMap<NodeId, Lane>,
}

/// Whether it may share a request: one row, without conditions, that counts only once a later batch names it.
pub(crate) fn may_share(batch: &Batch) -> bool {
    let is_one_row = batch.puts.len() == 1
        && batch.statics.is_empty()
        && batch.deletes.is_empty()
        && batch.range_deletes.is_empty()
        && batch.versioned.is_empty();
    is_one_row && batch.durable == Durable::WithNext && !batch.is_conditional() && cost(batch) <= BYTES_MAX
}

impl Lanes {
    /// The group is to be sent now, and its end told to `finished`.
    pub(crate) fn add(&mut self, node: NodeId, write: SmallWrite) -> Option<Group> {
        let lane = self.lanes.entry(node).or_default();
        let full = if lane.waiting.takes(&write.batch) { None } else { Some(lane.leave()) };
        lane.waiting.push(write);
        // Whoever did not fit in waits behind those who leave.
        if full.is_none() && (lane.n_requests == 0 || lane.waiting.is_full()) {
            return Some(lane.leave());
        }
        full
    }

    /// What is to be sent next.
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
        // All statements of a request have one time of writing: of a row named twice, neither would be the later.
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
