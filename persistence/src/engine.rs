//! The wide-row contract: what an engine offers on one partition of one table.
//!
//! Every engine passes the suite in `conformance`; what is not asserted there may not be relied on.

use std::ops::Bound;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::error::StoreError;
use crate::table::{Column, Table, Value};

/// A page ends with the row that brings it to this many bytes of values, whatever its limit. The size of the largest
/// row (2 MiB), because many pages are in memory at once: a visibility query merges a page of each status and segment.
pub const PAGE_BYTES: usize = 2 << 20;

/// Approximate size limit of a batch: Cassandra rejects what is larger than half a commit log segment.
pub const BATCH_BYTES: usize = 16 << 20;

/// Size limit of a row's whole key. Engines allow 64 KiB, some after escaping every byte.
pub const KEY_BYTES: usize = 16 << 10;

/// A store of wide rows. Calls are IO, so the virtual dispatch costs nothing and no type parameter leaks upwards.
pub trait Engine: Send + Sync + 'static {
    /// The static columns of a partition, in the table's order; `None` is unset.
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>>;

    /// At most `slice.limit` rows of a clustering range, in order. None if the slice is beyond all keys.
    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Applies all of the batch or nothing of it.
    ///
    /// `Err(Unavailable)` means certainly not applied, now or later; `Err(OutcomeUnknown)` that it may have been, or
    /// may still be until the next conditional write to this partition (to a versioned table: at any later time).
    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>>;

    /// Whether the engine serves at all. The default, without a sender, is for engines that never close as a whole.
    fn availability(&self) -> watch::Receiver<Availability> {
        watch::channel(Availability::Up).1
    }
}

/// Whether an engine serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Up,
    /// Every call fails until the engine recovers, which it does by itself. Holds the reason, in words for clients.
    Down(&'static str),
}

pub type Statics = Vec<Option<Value>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partition {
    pub table: TableRef,
    pub key: Vec<Value>,
}

/// A table compares by its name: there is one description of each.
#[derive(Debug, Clone, Copy)]
pub struct TableRef(pub &'static Table);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Sees every acknowledged write. May miss a conditional write whose outcome is unknown.
    Quorum,
    /// Also settles conditional writes in flight before it answers.
    Serial,
}

#[derive(Debug, Clone)]
pub struct Slice {
    pub partition: Partition,
    pub range: KeyRange,
    pub order: Order,
    pub limit: usize,
    /// Where the page before this one ended; rows up to it, in `order`, are left out.
    pub after: Option<Continuation>,
    pub consistency: Consistency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// A range of clustering keys. A bound may be a prefix, and then stands for all keys that begin with it: an included
/// prefix includes them all, an excluded one excludes them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub lower: Bound<Vec<Value>>,
    pub upper: Bound<Vec<Value>>,
}

/// The clustering key of the last row of a page: it means the same to every engine and survives a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation(pub Vec<Value>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// All clustering columns.
    pub key: Vec<Value>,
    /// All value columns.
    pub values: Vec<Value>,
}

#[derive(Debug, Clone, Default)]
pub struct Page {
    pub rows: Vec<Row>,
    /// Present when the limit, or `PAGE_BYTES`, cut the page short; the next page may still turn out empty. Only its
    /// absence says that there is no more: a page may have fewer rows than the limit.
    pub next: Option<Continuation>,
}

/// Changes to one partition. A row is named at most once, and no range delete covers a row that is put: CQL gives all
/// statements of a batch one timestamp, so they would have no order. `check` asserts both.
#[derive(Debug, Clone)]
pub struct Batch {
    pub partition: Partition,
    /// All must hold, or nothing is applied. Empty: a plain write.
    pub conditions: Vec<Condition>,
    /// Static columns to set, by index in the table.
    pub statics: Vec<(usize, Value)>,
    pub puts: Vec<Row>,
    pub deletes: Vec<Vec<Value>>,
    pub range_deletes: Vec<KeyRange>,
    /// The only changes of a versioned table; empty for any other.
    pub versioned: Vec<Versioned>,
    pub durable: Durable,
}

/// A change to a versioned table. The change of a row with the highest version wins, in whatever order changes arrive:
/// an older one neither overwrites a put nor brings back a deleted row. At equal versions a deletion wins over a put;
/// two puts with the same version are identical.
///
/// Tombstones are kept for a time (`gc_grace_seconds`) or up to a number, longer than any write is in flight. An engine
/// with a single writing process may use arrival order instead: no other process can write late, and the writer sends
/// the versions of a row in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Not negative, and near the current time in µs: CQL uses it as the write timestamp, by which it skips files, and
    /// ScyllaDB refuses one more than three days ahead.
    pub version: i64,
    pub change: RowChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    Put(Row),
    Delete(Vec<Value>),
    DeleteRange(KeyRange),
}

/// When a batch becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// At its acknowledgement.
    AtOnce,
    /// At the acknowledgement of the next `AtOnce` batch: only that one makes this one take effect. Saves a sync in an
    /// engine with one log, and lets a networked engine coalesce small batches.
    WithNext,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A static column has this value; `None`: is unset.
    Static { column: usize, equals: Option<Value> },
    /// There is no such row. The batch must put it.
    Absent { key: Vec<Value> },
    /// The row exists and its value column has this value.
    Value { key: Vec<Value>, column: usize, equals: Value },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Applied,
    /// Nothing was applied. One entry per condition: its target, as read right after the refusal.
    Refused(Vec<Current>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Current {
    Static(Option<Value>),
    Row(Option<Row>),
}

impl Partition {
    #[must_use]
    pub fn new(table: &'static Table, key: Vec<Value>) -> Self {
        assert_kinds(table, table.partition, &key);
        Self { table: TableRef(table), key }
    }
}

impl KeyRange {
    #[must_use]
    pub fn all() -> Self {
        Self { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// All keys that begin with these values.
    #[must_use]
    pub fn prefix(prefix: Vec<Value>) -> Self {
        Self { lower: Bound::Included(prefix.clone()), upper: Bound::Included(prefix) }
    }

    #[must_use]
    pub fn contains(&self, key: &[Value]) -> bool {
        let above = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => &key[..lower.len()] >= lower.as_slice(),
            Bound::Excluded(lower) => &key[..lower.len()] > lower.as_slice(),
        };
        let below = match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => &key[..upper.len()] <= upper.as_slice(),
            Bound::Excluded(upper) => &key[..upper.len()] < upper.as_slice(),
        };
        above && below
    }

    fn check(&self, table: &Table) {
        for bound in [&self.lower, &self.upper] {
            if let Bound::Included(prefix) | Bound::Excluded(prefix) = bound {
                assert!(prefix.len() <= table.clustering.len(), "{}: bound {prefix:?} is too long", table.name);
                assert_kinds(table, &table.clustering[..prefix.len()], prefix);
            }
        }
    }
}

impl Slice {
    /// The first page of a range, ascending.
    #[must_use]
    pub fn new(partition: Partition, range: KeyRange, limit: usize) -> Self {
        assert!(limit > 0, "a page has room for a row");
        let (order, consistency) = (Order::Ascending, Consistency::Quorum);
        Self { partition, range, order, limit, after: None, consistency }
    }

    /// Asserts what only our own code can break; each engine calls it before it reads.
    pub fn check(&self) {
        let table = self.partition.table.0;
        assert!(self.limit > 0, "{}: a page has room for a row", table.name);
        self.range.check(table);
        if let Some(Continuation(key)) = &self.after {
            assert_kinds(table, table.clustering, key);
        }
    }

    /// Whether it names a key over `KEY_BYTES`: such a key is never written, and engines cannot read one either. Each
    /// engine checks this before it reads.
    #[must_use]
    pub fn is_beyond_keys(&self) -> bool {
        let bound = |bound: &Bound<Vec<Value>>| match bound {
            Bound::Included(prefix) | Bound::Excluded(prefix) => size(prefix),
            Bound::Unbounded => 0,
        };
        let after = self.after.as_ref().map_or(0, |Continuation(key)| size(key));
        let longest = bound(&self.range.lower).max(bound(&self.range.upper)).max(after);
        size(&self.partition.key) + longest > KEY_BYTES
    }
}

impl Condition {
    /// Whether the condition holds for the current value of its target.
    #[must_use]
    pub fn holds(&self, current: &Current) -> bool {
        match (self, current) {
            (Self::Static { equals, .. }, Current::Static(value)) => value == equals,
            (Self::Absent { .. }, Current::Row(row)) => row.is_none(),
            (Self::Value { column, equals, .. }, Current::Row(row)) => {
                row.as_ref().is_some_and(|row| &row.values[*column] == equals)
            }
            (Self::Static { .. }, Current::Row(_)) | (Self::Absent { .. } | Self::Value { .. }, Current::Static(_)) => {
                unreachable!("{self:?} does not ask for {current:?}")
            }
        }
    }

    fn check(&self, batch: &Batch) {
        let table = batch.partition.table.0;
        match self {
            Self::Static { column, equals } => {
                if let Some(value) = equals {
                    assert_kinds(table, &table.statics[*column..=*column], std::slice::from_ref(value));
                }
            }
            Self::Absent { key } => {
                assert!(batch.puts.iter().any(|row| &row.key == key), "{}: absent row is not put", table.name);
            }
            Self::Value { key, column, equals } => {
                assert_kinds(table, table.clustering, key);
                assert_kinds(table, &table.values[*column..=*column], std::slice::from_ref(equals));
            }
        }
    }
}

impl Batch {
    /// An empty, unconditional batch.
    #[must_use]
    pub fn new(partition: Partition) -> Self {
        Self {
            partition,
            conditions: Vec::new(),
            statics: Vec::new(),
            puts: Vec::new(),
            deletes: Vec::new(),
            range_deletes: Vec::new(),
            versioned: Vec::new(),
            durable: Durable::AtOnce,
        }
    }

    #[must_use]
    pub fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Every row that is put, with a version or without.
    pub fn all_puts(&self) -> impl Iterator<Item = &Row> {
        let versioned = self.versioned.iter().filter_map(|versioned| match &versioned.change {
            RowChange::Put(row) => Some(row),
            RowChange::Delete(_) | RowChange::DeleteRange(_) => None,
        });
        self.puts.iter().chain(versioned)
    }

    /// The key of every row that is deleted by itself, with a version or without.
    pub fn all_deletes(&self) -> impl Iterator<Item = &Vec<Value>> {
        let versioned = self.versioned.iter().filter_map(|versioned| match &versioned.change {
            RowChange::Delete(key) => Some(key),
            RowChange::Put(_) | RowChange::DeleteRange(_) => None,
        });
        self.deletes.iter().chain(versioned)
    }

    /// Every range that is deleted, with a version or without.
    pub fn all_range_deletes(&self) -> impl Iterator<Item = &KeyRange> {
        let versioned = self.versioned.iter().filter_map(|versioned| match &versioned.change {
            RowChange::DeleteRange(range) => Some(range),
            RowChange::Put(_) | RowChange::Delete(_) => None,
        });
        self.range_deletes.iter().chain(versioned)
    }

    /// Asserts what only our own code can break; each engine calls it before it writes.
    pub fn check(&self) {
        let table = self.partition.table.0;
        self.check_versions();
        let range_deletes: Vec<&KeyRange> = self.all_range_deletes().collect();
        for row in self.all_puts() {
            assert_kinds(table, table.clustering, &row.key);
            assert_kinds(table, table.values, &row.values);
            let covered = range_deletes.iter().any(|range| range.contains(&row.key));
            assert!(!covered, "{}: row {:?} put and range-deleted in one batch", table.name, row.key);
        }
        for key in self.all_deletes() {
            assert_kinds(table, table.clustering, key);
        }
        // Most batches are sorted, or a few sorted parts: the sort costs little more than one comparison per key.
        let mut named: Vec<&Vec<Value>> = self.all_puts().map(|row| &row.key).chain(self.all_deletes()).collect();
        named.sort();
        for keys in named.windows(2) {
            assert!(keys[0] != keys[1], "{}: row {:?} named twice in a batch", table.name, keys[0]);
        }
        for range in range_deletes {
            range.check(table);
        }
        let mut set = std::collections::BTreeSet::new();
        for (column, value) in &self.statics {
            assert_kinds(table, &table.statics[*column..=*column], std::slice::from_ref(value));
            assert!(set.insert(column), "{}: static column {column} set twice in a batch", table.name);
        }
        for condition in &self.conditions {
            condition.check(self);
        }
    }

    /// A versioned table takes only versioned changes without conditions; any other table takes none.
    fn check_versions(&self) {
        let name = self.partition.table.0.name;
        if !self.partition.table.0.is_versioned {
            assert!(self.versioned.is_empty(), "{name}: the table has no versions");
            return;
        }
        let is_plain = self.conditions.is_empty() && self.statics.is_empty();
        assert!(is_plain, "{name}: versions go with neither conditions nor static columns");
        let is_unversioned = self.puts.is_empty() && self.deletes.is_empty() && self.range_deletes.is_empty();
        assert!(is_unversioned, "{name}: a change without a version");
        assert!(self.versioned.iter().all(|change| change.version >= 0), "{name}: a negative version");
    }

    /// Approximate size of its keys and values in bytes, to bound a batch.
    #[must_use]
    pub fn size(&self) -> usize {
        let statics: usize = self.statics.iter().map(|(_, value)| value.size()).sum();
        let puts: usize = self.all_puts().map(|row| size(&row.key) + size(&row.values)).sum();
        let deletes: usize = self.all_deletes().map(|key| size(key)).sum();
        size(&self.partition.key) + statics + puts + deletes
    }

    /// Rejects what is too large for some engine, so that it is too large for all.
    ///
    /// # Errors
    /// `TooLarge`: nothing was applied, and trying again will not help.
    pub fn check_size(&self) -> Result<(), StoreError> {
        let name = self.partition.table.0.name;
        let partition_bytes = size(&self.partition.key);
        let keys = self.all_puts().map(|row| &row.key).chain(self.all_deletes());
        let key_bytes = partition_bytes + keys.map(|key| size(key)).max().unwrap_or(0);
        if key_bytes > KEY_BYTES {
            return Err(StoreError::TooLarge(format!("{name}: a key of {key_bytes} bytes exceeds {KEY_BYTES}")));
        }
        let bytes = self.size();
        if bytes > BATCH_BYTES {
            return Err(StoreError::TooLarge(format!("{name}: a batch of {bytes} bytes exceeds {BATCH_BYTES}")));
        }
        Ok(())
    }
}

impl PartialEq for TableRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for TableRef {}

impl std::hash::Hash for TableRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

fn size(values: &[Value]) -> usize {
    values.iter().map(Value::size).sum()
}

fn assert_kinds(table: &Table, columns: &[Column], values: &[Value]) {
    assert_eq!(columns.len(), values.len(), "{}: wrong number of columns in {values:?}", table.name);
    for (column, value) in columns.iter().zip(values) {
        assert_eq!(column.kind, value.kind(), "{}.{}: wrong kind of value", table.name, column.name);
    }
}
