//! The tree of a history: forking branches, and deleting what no branch needs any more.
//!
//! A branch has the id of its run. The partition of a forked run's own id names the tree of its branch, so that it is
//! found even when the run's state is gone.

use std::ops::Bound;

use uuid::Uuid;
use workflow::{Branch, EventId, RunId};

use super::{HistoryStore, StoredNode, partition};
use crate::engine::{Batch, KeyRange, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows;
use crate::table::Value;
use crate::tables::HISTORY_TREE;

/// Rows of a tree per read: a history is reset a few times, not thousands of times.
const TREE_PAGE: usize = 256;

/// Nodes per read of a trim, and per batch that deletes them.
const TRIM_PAGE: usize = 64;

impl HistoryStore {
    /// Creates a run's branch that shares all events before `at` with its source. Idempotent.
    ///
    /// The tree is written only now: a history with one branch has none, and needs none to be deleted.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn fork(&self, source: &Branch, at: EventId, run_id: RunId) -> Result<Branch, StoreError> {
        let branch = source.fork(at, run_id);
        let mut place = Batch::new(tree_partition(run_id.0));
        place.puts.push(tree_row(&branch));
        self.engine.write(place).await?;
        let mut batch = Batch::new(tree_partition(source.tree_id));
        batch.puts.extend([tree_row(source), tree_row(&branch)]);
        self.engine.write(batch).await?;
        Ok(branch)
    }

    /// The branch of a run of which nothing else is known: it was forked from another one, or is a tree of its own.
    ///
    /// # Errors
    /// `Corrupt` if a row does not decode.
    pub async fn branch_of(&self, run_id: RunId) -> Result<Branch, StoreError> {
        let known = self.branches(run_id.0).await?;
        let own = known.into_iter().find(|branch| branch.branch_id == run_id.0);
        Ok(own.unwrap_or_else(|| Branch::root(run_id)))
    }

    /// All branches of a history that was forked; none if it never was.
    ///
    /// # Errors
    /// `Corrupt` if a row does not decode.
    pub async fn branches(&self, tree_id: Uuid) -> Result<Vec<Branch>, StoreError> {
        let mut slice = Slice::new(tree_partition(tree_id), KeyRange::all(), TREE_PAGE);
        let mut branches = Vec::new();
        loop {
            let page = self.engine.read(slice.clone()).await?;
            for row in page.rows {
                let decoded = rows::required(row.values.into_iter().next(), "data")
                    .and_then(rows::from_value)
                    .and_then(rows::branch::decode);
                branches.push(decoded.map_err(|bad| bad.at(format_args!("history tree {tree_id}")))?);
            }
            if page.next.is_none() {
                return Ok(branches);
            }
            slice.after = page.next;
        }
    }

    /// Deletes a branch, and the nodes that no other branch shares with it. Idempotent.
    ///
    /// # Errors
    /// If the store fails; some of it may then be deleted, and a retry deletes the rest.
    pub async fn delete(&self, branch: &Branch) -> Result<(), StoreError> {
        let mut others = self.branches(branch.tree_id).await?;
        let is_forked = !others.is_empty();
        others.retain(|other| other.branch_id != branch.branch_id);

        let mut nodes = Batch::new(partition(branch.tree_id));
        nodes.range_deletes = if others.is_empty() { vec![KeyRange::all()] } else { unshared(branch, &others) };
        if !nodes.range_deletes.is_empty() {
            self.engine.write(nodes).await?;
        }
        // Last, because without its row a retry would not find the nodes to delete.
        if is_forked {
            self.forget(branch.tree_id, branch.branch_id).await?;
        }
        if branch.tree_id != branch.branch_id {
            self.forget(branch.branch_id, branch.branch_id).await?;
        }
        Ok(())
    }

    async fn forget(&self, tree_id: Uuid, branch_id: Uuid) -> Result<(), StoreError> {
        let mut tree = Batch::new(tree_partition(tree_id));
        tree.deletes.push(vec![Value::Uuid(branch_id)]);
        self.engine.write(tree).await.map(|_| ())
    }

    /// Deletes orphans at the end of a branch: nodes that start at or after the committed next event id, and were
    /// written before this transaction, the first that the caller assigns. Returns their number.
    ///
    /// # Errors
    /// If the store fails; a retry does the rest.
    pub async fn trim(&self, branch: &Branch, next_event_id: EventId, before_txn_id: i64) -> Result<usize, StoreError> {
        let range = KeyRange {
            lower: Bound::Included(vec![Value::Uuid(branch.branch_id), Value::Bigint(next_event_id.0)]),
            upper: Bound::Included(vec![Value::Uuid(branch.branch_id)]),
        };
        let mut slice = Slice::new(partition(branch.tree_id), range, TRIM_PAGE);
        let mut n_deleted = 0;
        loop {
            let page = self.engine.read(slice.clone()).await?;
            let mut batch = Batch::new(partition(branch.tree_id));
            for row in page.rows {
                let key = row.key.clone();
                let place = format_args!("history {}, branch {}", branch.tree_id, branch.branch_id);
                let node = StoredNode::decode(row).map_err(|bad| bad.at(place))?;
                if node.txn_id < before_txn_id {
                    batch.deletes.push(key);
                }
            }
            if !batch.deletes.is_empty() {
                n_deleted += batch.deletes.len();
                self.engine.write(batch).await?;
            }
            if page.next.is_none() {
                return Ok(n_deleted);
            }
            slice.after = page.next;
        }
    }
}

/// Ranges of nodes that this branch shares with none of the others.
fn unshared(branch: &Branch, others: &[Branch]) -> Vec<KeyRange> {
    let ancestors = branch.ancestors.iter().map(|range| range.branch_id);
    ancestors.chain([branch.branch_id]).filter_map(|branch_id| unshared_on(branch_id, others)).collect()
}

/// Range of nodes on this branch that none of these branches needs.
fn unshared_on(branch_id: Uuid, needed_by: &[Branch]) -> Option<KeyRange> {
    if needed_by.iter().any(|branch| branch.branch_id == branch_id) {
        return None;
    }
    let ranges = needed_by.iter().flat_map(|branch| &branch.ancestors);
    let shared_end = ranges.filter(|range| range.branch_id == branch_id).map(|range| range.end).max();
    let all = vec![Value::Uuid(branch_id)];
    Some(match shared_end {
        None => KeyRange::prefix(all),
        Some(end) => KeyRange {
            lower: Bound::Included(vec![Value::Uuid(branch_id), Value::Bigint(end.0)]),
            upper: Bound::Included(all),
        },
    })
}

fn tree_row(branch: &Branch) -> Row {
    let values = vec![rows::to_value(&rows::branch::encode(branch))];
    Row { key: vec![Value::Uuid(branch.branch_id)], values }
}

fn tree_partition(tree_id: Uuid) -> Partition {
    Partition::new(&HISTORY_TREE, vec![Value::Uuid(tree_id)])
}
