//! The wide-row contract: what an engine offers on one partition of one table.
//!
//! Every engine passes the suite in `conformance`; what is not asserted there may not be relied on.

use std::ops::Bound;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::error::StoreError;
use crate::table::{Column, Table, Value};

/// A page ends with the row that brings it to this many bytes of values, whatever its limit. It is the largest row (a
/// value of 2 MiB), because many pages are in memory at once: one list merges a page of each status and segment.
pub const PAGE_BYTES: usize = 2 << 20;

/// The most that a batch may hold, near enough: Cassandra turns away what is larger than half a commit log segment.
pub const BATCH_BYTES: usize = 16 << 20;

/// The most that a row's whole key may take. Engines stop at 64 KiB, some after escaping every byte.
pub const KEY_BYTES: usize = 16 << 10;

/// A store of wide rows. Calls are IO, so the virtual dispatch costs nothing and no type parameter leaks upwards.
pub trait Engine: Send + Sync + 'static {
    /// The static columns of a partition, in the table's order; `None` is unset.
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>>;

    /// The rows of a clustering range, in order, at most `slice.limit` of them. None if the slice is beyond all keys.
    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Applies all of the batch or nothing of it.
    ///
    /// `Err(Unavailable)` means certainly not applied, now or later; `Err(OutcomeUnknown)` that it may have been, or may
    /// still be until the next conditional write to this partition (to a versioned table: at any later time).
    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>>;

    /// Whether the engine serves at all. One that never closes as a whole keeps this default, whose sender is gone.
    fn availability(&self) -> watch::Receiver<Availability> {
        watch::channel(Availability::Up).1
    }
}

/// Whether an engine serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    Up,
    /// Every call fails until it is up again, which happens by itself; why, in words for clients.
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
/// statements of a batch one timestamp, so their order could not be told. `check` asserts both.
#[derive(Debug, Clone)]
pub struct Batch {
    pub partition: Partition,
    /// All must hold, or nothing is applied. Empty: a plain write.
    pub conditions: Vec<Condition>,
    /// Static columns to set, by their place in the table.
    pub statics: Vec<(usize, Value)>,
    pub puts: Vec<Row>,
    pub deletes: Vec<Vec<Value>>,
    pub range_deletes: Vec<KeyRange>,
    /// All that a batch of a versioned table has; nothing in any other.
    pub versioned: Vec<Versioned>,
    pub durable: Durable,
}

/// A change to a versioned table. Of all changes of a row the one with the highest version counts, in whatever order they
/// arrive: what is older than a put does not change the row, and what is older than its deletion does not bring it back. Of
/// a put and a deletion with the same version the deletion counts; two puts with the same version say the same.
///
/// Deletions are remembered for a time (`gc_grace_seconds`) or up to a number, which is longer than any write is on its way.
/// An engine that a single process writes to may go by the order of arrival instead: nothing comes late there from another
/// one, and whoever writes sends the versions of a row in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Not negative, and like a moment of about now in µs: CQL takes it for the time of writing, by which its files are
    /// sorted out, and ScyllaDB refuses what is more than three days ahead.
    pub version: i64,
    pub change: RowChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    Put(Row),
    Delete(Vec<Value>),
    DeleteRange(KeyRange),
}

/// From when on a batch must not be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// From its acknowledgement on.
    AtOnce,
    /// From the acknowledgement of the next batch that is durable at once: only that one makes this one count. Spares an
    /// engine with one log a sync, and lets one with a network send a small one together with others.
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
    /// Nothing was applied. One entry per condition: what it names, as read right after the refusal.
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

    /// It names a place that no row has, because a key of such a size is never written; engines stop at reading one, too.
    /// Each engine asks before it reads.
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
    /// Whether what it names, being so, lets the batch pass.
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
        // Most batches come sorted, or in a few sorted parts: this is hardly more than one look at each key.
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

    /// A table changes by versions or without them, and a change with a version has no conditions.
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

    /// How many bytes its keys and values take, near enough to bound a batch.
    #[must_use]
    pub fn size(&self) -> usize {
        let statics: usize = self.statics.iter().map(|(_, value)| value.size()).sum();
        let puts: usize = self.all_puts().map(|row| size(&row.key) + size(&row.values)).sum();
        let deletes: usize = self.all_deletes().map(|key| size(key)).sum();
        size(&self.partition.key) + statics + puts + deletes
    }

    /// Turns away what is too large for some engine, so that it is too large for all.
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
