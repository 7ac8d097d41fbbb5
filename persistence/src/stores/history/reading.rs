//! Reading a branch, forwards and backwards, across the branches that it was forked from.

use std::ops::Bound;

use uuid::Uuid;
use workflow::{Branch, BranchRange, EventId};

use super::{Cursor, EncodedEvents, HistoryPage, HistoryStore, Node, StoredNode, partition};
use crate::engine::{KeyRange, Order, PAGE_BYTES, Slice};
use crate::error::StoreError;
use crate::stores::rows::{Decoded, Malformed};
use crate::table::Value;

/// Nodes per read in the search for the one that holds an event. More than one, because of orphans.
const LOOK_BACK: usize = 8;

/// The part of a branch that lies on one branch of the tree: events `[begin, end)`.
struct Segment {
    tree_id: Uuid,
    branch_id: Uuid,
    begin: EventId,
    end: EventId,
}

impl HistoryStore {
    /// Reads events `[from, to)`, at most `limit` nodes. `to` is at most the committed next event id.
    ///
    /// # Errors
    /// `Corrupt` if an event of the range is missing.
    pub async fn read(
        &self,
        branch: &Branch,
        from: impl Into<Cursor>,
        to: EventId,
        limit: usize,
    ) -> Result<HistoryPage, StoreError> {
        let mut from = from.into();
        let mut page = PageInProgress::new(limit);
        for segment in segments(branch) {
            if page.is_full() {
                break;
            }
            let stop = segment.end.min(to);
            if from.event_id < stop {
                from = self.read_segment(&segment, from, stop, &mut page).await?;
            }
        }
        let next = (from.event_id < to).then_some(from);
        Ok(HistoryPage { nodes: page.nodes, next })
    }

    /// Reads events `[down_to, before)`, newest node first, at most `limit` nodes. The events of a node are ascending.
    ///
    /// # Errors
    /// `Corrupt` if an event of the range is missing.
    pub async fn read_reverse(
        &self,
        branch: &Branch,
        before: impl Into<Cursor>,
        down_to: EventId,
        limit: usize,
    ) -> Result<HistoryPage, StoreError> {
        let mut before = before.into();
        let mut page = PageInProgress::new(limit);
        for segment in segments(branch).into_iter().rev() {
            if page.is_full() {
                break;
            }
            if before.event_id > segment.begin.max(down_to) {
                before = self.read_segment_reverse(&segment, before, down_to, &mut page).await?;
            }
        }
        let next = (before.event_id > down_to).then_some(before);
        Ok(HistoryPage { nodes: page.nodes, next })
    }

    /// Reads `[from, stop)` on one branch until the page is full; returns where it ended.
    async fn read_segment(
        &self,
        segment: &Segment,
        from: Cursor,
        stop: EventId,
        page: &mut PageInProgress,
    ) -> Result<Cursor, StoreError> {
        let from = Cursor { event_id: from.event_id.max(segment.begin), ..from };
        let start = if from.event_id == segment.begin {
            // The first node of a branch is chained to another branch.
            Cursor::from(segment.begin)
        } else if from.txn_id.is_some() {
            from
        } else {
            Cursor::from(self.find_node(segment, from.event_id).await?.0)
        };
        let mut chain = Chain { place: start, wanted: from.event_id, stop };
        let range = KeyRange {
            lower: Bound::Included(vec![Value::Uuid(segment.branch_id), Value::Bigint(start.event_id.0)]),
            upper: Bound::Excluded(vec![Value::Uuid(segment.branch_id), Value::Bigint(stop.0)]),
        };
        let mut slice = Slice::new(partition(segment.tree_id), range, page.rows_wanted());
        let mut candidate: Option<StoredNode> = None;
        loop {
            let rows = self.engine.read(slice.clone()).await?;
            for row in rows.rows {
                let node = StoredNode::decode(row).map_err(|bad| segment.corrupt(bad))?;
                // Of one event's nodes the highest transaction comes last: only a later event shows that it was read.
                if let Some(best) = candidate.replace(node)
                    && Some(best.first_event_id) != candidate.as_ref().map(|node| node.first_event_id)
                {
                    chain.take(best, page).map_err(|bad| segment.corrupt(bad))?;
                }
                if page.is_full() {
                    return Ok(chain.place);
                }
            }
            if rows.next.is_none() {
                break;
            }
            slice.after = rows.next;
        }
        if let Some(best) = candidate {
            chain.take(best, page).map_err(|bad| segment.corrupt(bad))?;
        }
        chain.check_end(page).map_err(|bad| segment.corrupt(bad))?;
        Ok(chain.place)
    }

    /// Reads events before `before` on one branch until the page is full; returns where it ended.
    async fn read_segment_reverse(
        &self,
        segment: &Segment,
        before: Cursor,
        down_to: EventId,
        page: &mut PageInProgress,
    ) -> Result<Cursor, StoreError> {
        let txn_id = match before.txn_id {
            Some(txn_id) => txn_id,
            None => self.find_node(segment, EventId(before.event_id.0 - 1)).await?.1,
        };
        let mut chain = ReverseChain { before: before.event_id, txn_id, down_to };
        let bottom = segment.begin.max(down_to);
        let range = KeyRange {
            lower: Bound::Included(vec![Value::Uuid(segment.branch_id), Value::Bigint(segment.begin.0)]),
            upper: Bound::Excluded(vec![Value::Uuid(segment.branch_id), Value::Bigint(before.event_id.0)]),
        };
        let mut slice = Slice::new(partition(segment.tree_id), range, page.rows_wanted());
        slice.order = Order::Descending;
        loop {
            let rows = self.engine.read(slice.clone()).await?;
            for row in rows.rows {
                let node = StoredNode::decode(row).map_err(|bad| segment.corrupt(bad))?;
                chain.take(node, page).map_err(|bad| segment.corrupt(bad))?;
                if chain.before <= bottom || page.is_full() {
                    // The node before the first one of a branch is on another branch.
                    let txn_id = (chain.before > segment.begin).then_some(chain.txn_id);
                    return Ok(Cursor { event_id: chain.before, txn_id });
                }
            }
            if rows.next.is_none() {
                let missing = Malformed::new(format!("transaction {} before event {}", chain.txn_id, chain.before));
                return Err(segment.corrupt(missing));
            }
            slice.after = rows.next;
        }
    }

    /// The real node that holds this event: where it starts, and its transaction id.
    async fn find_node(&self, segment: &Segment, at: EventId) -> Result<(EventId, i64), StoreError> {
        let range = KeyRange {
            lower: Bound::Included(vec![Value::Uuid(segment.branch_id), Value::Bigint(segment.begin.0)]),
            upper: Bound::Included(vec![Value::Uuid(segment.branch_id), Value::Bigint(at.0)]),
        };
        let mut slice = Slice::new(partition(segment.tree_id), range, LOOK_BACK);
        slice.order = Order::Descending;
        let mut descending = Vec::new();
        loop {
            let rows = self.engine.read(slice.clone()).await?;
            for row in rows.rows {
                descending.push(StoredNode::decode(row).map_err(|bad| segment.corrupt(bad))?);
            }
            if let Some(node) = holder(&descending, at).map_err(|bad| segment.corrupt(bad))? {
                return Ok(node);
            }
            if rows.next.is_none() {
                return Err(segment.corrupt(Malformed::new(format!("no node holds event {at}"))));
            }
            slice.after = rows.next;
        }
    }
}

impl Segment {
    fn corrupt(&self, bad: Malformed) -> StoreError {
        bad.at(format_args!("history {}, branch {}", self.tree_id, self.branch_id))
    }
}

/// Nodes read so far, and the limits of the page.
struct PageInProgress {
    nodes: Vec<Node>,
    limit: usize,
    bytes: usize,
}

impl PageInProgress {
    fn new(limit: usize) -> Self {
        assert!(limit > 0, "a page has room for a node");
        Self { nodes: Vec::new(), limit, bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.nodes.len() >= self.limit || self.bytes >= PAGE_BYTES
    }

    /// One more than there is room for: the next node shows that the last one is complete.
    fn rows_wanted(&self) -> usize {
        self.limit - self.nodes.len() + 1
    }
}

/// Position of a forward reader.
struct Chain {
    place: Cursor,
    /// The first requested event: the first node may start before it.
    wanted: EventId,
    stop: EventId,
}

impl Chain {
    fn take(&mut self, stored: StoredNode, page: &mut PageInProgress) -> Decoded<()> {
        if stored.first_event_id < self.place.event_id {
            return Ok(());
        }
        if stored.first_event_id > self.place.event_id {
            let (expected, found) = (self.place.event_id, stored.first_event_id);
            return Err(Malformed::new(format!("events from {expected} on are missing, the next node is {found}")));
        }
        if let Some(txn_id) = self.place.txn_id
            && txn_id != stored.prev_txn_id
        {
            let (node, prev) = (stored.first_event_id, stored.prev_txn_id);
            return Err(Malformed::new(format!("node {node} follows transaction {prev}, not {txn_id}")));
        }
        page.bytes += stored.data.len();
        let node = stored.open()?;
        self.place = Cursor { event_id: node.end().min(self.stop), txn_id: Some(node.txn_id) };
        page.nodes.push(node.trimmed(self.wanted, self.stop)?);
        Ok(())
    }

    fn check_end(&self, page: &PageInProgress) -> Decoded<()> {
        if self.place.event_id == self.stop || page.is_full() {
            return Ok(());
        }
        Err(Malformed::new(format!("events {} to {} are missing", self.place.event_id, self.stop.0 - 1)))
    }
}

/// Position of a backward reader: next comes the node of `txn_id`, which holds the event before `before`.
struct ReverseChain {
    before: EventId,
    txn_id: i64,
    down_to: EventId,
}

impl ReverseChain {
    fn take(&mut self, stored: StoredNode, page: &mut PageInProgress) -> Decoded<()> {
        if stored.txn_id != self.txn_id || stored.first_event_id >= self.before {
            return Ok(());
        }
        page.bytes += stored.data.len();
        let node = stored.open()?;
        if node.end() < self.before {
            let (end, before) = (node.end(), self.before.0 - 1);
            return Err(Malformed::new(format!("events {end} to {before} are missing")));
        }
        let before = std::mem::replace(&mut self.before, node.first_event_id);
        self.txn_id = node.prev_txn_id;
        page.nodes.push(node.trimmed(self.down_to, before)?);
        Ok(())
    }
}

/// The branch on which an event lies.
pub(super) fn branch_of(branch: &Branch, event_id: EventId) -> Uuid {
    let ancestor = branch.ancestors.iter().find(|range| event_id < range.end);
    ancestor.map_or(branch.branch_id, |range| range.branch_id)
}

fn segments(branch: &Branch) -> Vec<Segment> {
    let begin = branch.ancestors.last().map_or(EventId::FIRST, |range| range.end);
    let own = BranchRange { branch_id: branch.branch_id, begin, end: EventId(i64::MAX) };
    let ranges = branch.ancestors.iter().cloned().chain([own]);
    ranges
        .map(|BranchRange { branch_id, begin, end }| Segment { tree_id: branch.tree_id, branch_id, begin, end })
        .collect()
}

/// The real node among these that holds the event; they are descending, and none starts after it.
///
/// An orphan was written before the node that replaced it: so a node is an orphan if one that starts at the same event
/// or before it has a higher transaction id.
fn holder(descending: &[StoredNode], at: EventId) -> Decoded<Option<(EventId, i64)>> {
    let mut last: Option<&StoredNode> = None;
    for node in descending.iter().rev() {
        if last.is_none_or(|last| node.txn_id > last.txn_id) {
            last = Some(node);
        }
    }
    let Some(node) = last else { return Ok(None) };
    let events = EncodedEvents::of_node(node.first_event_id, &node.data)?;
    Ok((at <= events.last_event_id()).then_some((node.first_event_id, node.txn_id)))
}
