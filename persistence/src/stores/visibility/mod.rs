//! Visibility: a record of every run, in the orders that queries need, and index terms.
//!
//! A namespace's rows are in segments, one partition each: a run's rows are in its node's newest segment at its start,
//! the row by close in the newest one at its close. So a batch of many runs is a batch of one partition, and a
//! partition is bounded. See docs/decisions/0009-visibility-on-wide-rows.md.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use proto::everrow::record as stored;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use tracing::error;
use workflow::{NamespaceId, RunId, Timestamp};

use self::keys::RowKind;
use self::record::{Place, Record, Term};
use self::versions::{FOR_EVER, Stage, micros};
use crate::engine::{
    Batch, Continuation, Durable, Engine, KeyRange, Order, Partition, Row, RowChange, Slice, Versioned,
};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded};
use crate::table::Value;

mod keys;
mod versions;
pub mod record;
pub mod value;

/// Rows and bytes of one batch, so that the first of many runs need not wait for the last. A row is a few hundred
/// bytes, unless its memo is large.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 512 << 10;
/// Segments per read; a namespace with more is very large.
const SEGMENT_PAGE: usize = 1000;

/// A change of visibility.
#[derive(Debug, Clone)]
pub enum Change {
    /// A run is new or changed.
    Put(Box<Put>),
    /// A run is deleted, with all its rows.
    Remove(Box<Removal>),
}

#[derive(Debug, Clone)]
pub struct Put {
    pub record: Record,
    /// Index terms to add, besides those that every run has.
    pub terms: Vec<Term>,
    /// Index terms to remove.
    pub stale: Vec<Term>,
    pub known: Known,
}

/// Whether visibility has rows of a run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Never,
    /// Unknown: the write of its start may have been interrupted.
    Perhaps,
    Surely,
}

#[derive(Debug, Clone)]
pub struct Removal {
    pub record: Record,
    pub terms: Vec<Term>,
}

/// A part of a namespace's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub id: i64,
    /// When it began; later if announced again, after it may have been deleted. Versions of all stages count from here.
    pub announced_at: Timestamp,
    /// No run that starts or closes later is in it. Unset: not known.
    pub sealed_at: Option<Timestamp>,
    /// None of its runs is open.
    pub is_settled: bool,
}

/// Rows of one segment, in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    /// All runs that started here, by start; the newest first.
    Started(Bound<Timestamp>, Bound<Timestamp>),
    /// The same rows read the other way: the oldest first.
    OldestStarted(Bound<Timestamp>, Bound<Timestamp>),
    /// The open ones among these, the newest first.
    Open(Bound<Timestamp>, Bound<Timestamp>),
    /// Runs that closed here with this status, by close; the latest first.
    Closed(WorkflowExecutionStatus, Bound<Timestamp>, Bound<Timestamp>),
    /// Runs by the keys of an index, the newest first under each key. Without records.
    Terms { index: Arc<str>, from: Bound<Vec<u8>>, to: Bound<Vec<u8>> },
}

/// A run that a row names.
#[derive(Debug, Clone)]
pub struct Found {
    pub started_at: Timestamp,
    pub run_id: RunId,
    /// `None` if it was found by a term.
    pub record: Option<Record>,
    /// The term, if it was found by one.
    pub key: Vec<u8>,
}

#[derive(Debug)]
pub struct FoundPage {
    pub runs: Vec<Found>,
    /// Continuation; `None` on the last page.
    pub next: Option<Continuation>,
}

#[derive(Clone)]
pub struct VisibilityStore {
    engine: Arc<dyn Engine>,
}

impl VisibilityStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Writes changes. Idempotent, so an unknown outcome is simply retried.
    ///
    /// # Errors
    /// If the store cannot be written; some changes may have been.
    pub async fn write(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut first = Batches::default();
        // A run that closes in another segment than it started in is put there before its open row is deleted: a query
        // may find it twice, and deduplicates, but never misses it.
        let mut second = Batches::default();
        for change in changes {
            match change {
                Change::Put(put) => add_put(put, &mut first, &mut second),
                Change::Remove(removal) => add_removal(removal, &mut first),
            }
        }
        for batches in [first, second] {
            futures_util::future::try_join_all(batches.into_batches().map(|batch| self.engine.write(batch))).await?;
        }
        Ok(())
    }

    /// All segments, the newest first.
    ///
    /// # Errors
    /// `Corrupt` if a row does not decode.
    pub async fn segments(&self, namespace_id: NamespaceId) -> Result<Vec<Segment>, StoreError> {
        let partition = keys::partition(namespace_id, keys::DIRECTORY);
        let mut slice = Slice::new(partition, keys::segments(), SEGMENT_PAGE);
        let mut segments = Vec::new();
        loop {
            let page = self.engine.read(slice.clone()).await?;
            for row in page.rows {
                segments.push(decode_segment(row).map_err(|bad| bad.at(format_args!("segments of {namespace_id}")))?);
            }
            if page.next.is_none() {
                return Ok(segments);
            }
            slice.after = page.next;
        }
    }

    /// Writes a segment's directory row: a new one, or its next stage.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn put_segment(&self, namespace_id: NamespaceId, segment: Segment) -> Result<(), StoreError> {
        let record = stored::Segment { sealed_at: segment.sealed_at.map(|at| at.0), is_settled: segment.is_settled };
        let version = Stage::new(segment.sealed_at, segment.is_settled).version(segment.announced_at);
        let values = vec![Value::Bigint(version), rows::to_value(&record)];
        let put = RowChange::Put(Row { key: keys::segment(segment.id), values });
        self.change(keys::partition(namespace_id, keys::DIRECTORY), version, put).await
    }

    /// Deletes the directory row of a segment that has no rows any more.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn remove_segment(&self, namespace_id: NamespaceId, segment: Segment) -> Result<(), StoreError> {
        let delete = RowChange::Delete(keys::segment(segment.id));
        let version = Stage::Removed.version(segment.announced_at);
        self.change(keys::partition(namespace_id, keys::DIRECTORY), version, delete).await
    }

    /// Deletes all rows of a namespace, and those still in flight to it: its id is never reused.
    ///
    /// # Errors
    /// If the store cannot be written; some rows may be deleted.
    pub async fn remove_namespace(&self, namespace_id: NamespaceId, now: Timestamp) -> Result<(), StoreError> {
        let version = micros(now) + FOR_EVER;
        for segment in self.segments(namespace_id).await? {
            let all = RowChange::DeleteRange(KeyRange::all());
            self.change(keys::partition(namespace_id, segment.id), version, all).await?;
        }
        let segments = RowChange::DeleteRange(keys::segments());
        self.change(keys::partition(namespace_id, keys::DIRECTORY), version, segments).await
    }

    async fn change(&self, partition: Partition, version: i64, change: RowChange) -> Result<(), StoreError> {
        let batch = Batch { versioned: vec![Versioned { version, change }], ..Batch::new(partition) };
        self.engine.write(batch).await.map(|_| ())
    }

    /// A page of a segment's rows. A damaged one is left out, or it would hide all other runs.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn scan(
        &self,
        (namespace_id, segment): (NamespaceId, i64),
        index: &Index,
        after: Option<Continuation>,
        limit: usize,
    ) -> Result<FoundPage, StoreError> {
        let all = Slice::new(keys::partition(namespace_id, segment), index.range(), limit);
        let slice = Slice { after, order: index.order(), ..all };
        let page = self.engine.read(slice).await?;
        let log = |problem: &rows::Malformed| {
            error!(%namespace_id, segment, ?index, %problem, "visibility row does not decode; results omit it");
        };
        let runs = page.rows.into_iter().filter_map(|row| decode_found(namespace_id, row).inspect_err(log).ok());
        Ok(FoundPage { runs: runs.collect(), next: page.next })
    }

    /// The record of a run found by a term; `None` if it was deleted since.
    ///
    /// # Errors
    /// `Corrupt` if the row does not decode.
    pub async fn find(
        &self,
        (namespace_id, segment): (NamespaceId, i64),
        started_at: Timestamp,
        run_id: RunId,
    ) -> Result<Option<Record>, StoreError> {
        let range = KeyRange::prefix(keys::by_start(RowKind::Started, started_at, run_id));
        let page = self.engine.read(Slice::new(keys::partition(namespace_id, segment), range, 1)).await?;
        let found = page.rows.into_iter().next().map(|row| decode_found(namespace_id, row)).transpose();
        let found = found.map_err(|bad| bad.at(format_args!("run {run_id} in segment {segment} of {namespace_id}")))?;
        Ok(found.and_then(|found| found.record))
    }
}

impl Index {
    fn order(&self) -> Order {
        match self {
            Self::OldestStarted(..) => Order::Descending,
            Self::Started(..) | Self::Open(..) | Self::Closed(..) | Self::Terms { .. } => Order::Ascending,
        }
    }

    fn range(&self) -> KeyRange {
        match self {
            Self::Started(from, to) | Self::OldestStarted(from, to) => {
                keys::started_range(RowKind::Started, *from, *to)
            }
            Self::Open(from, to) => keys::started_range(RowKind::Open, *from, *to),
            Self::Closed(status, from, to) => keys::closed_range(*status, *from, *to),
            Self::Terms { index, from, to } => keys::term_range(index, from, to),
        }
    }
}

/// Row changes by partition and key; of each row the one with the highest version.
#[derive(Default)]
struct Batches {
    partitions: BTreeMap<(NamespaceId, i64), BTreeMap<Vec<Value>, Changed>>,
}

/// Without values the row is deleted.
struct Changed {
    version: i64,
    values: Option<Vec<Value>>,
}

impl Batches {
    fn put(&mut self, place: (NamespaceId, i64), key: Vec<Value>, version: i64, values: Vec<Value>) {
        self.change(place, key, Changed { version, values: Some(values) });
    }

    fn delete(&mut self, place: (NamespaceId, i64), key: Vec<Value>, version: i64) {
        self.change(place, key, Changed { version, values: None });
    }

    fn change(&mut self, place: (NamespaceId, i64), key: Vec<Value>, changed: Changed) {
        match self.partitions.entry(place).or_default().entry(key) {
            Entry::Vacant(row) => {
                row.insert(changed);
            }
            Entry::Occupied(mut row) if row.get().version <= changed.version => {
                row.insert(changed);
            }
            Entry::Occupied(_) => {}
        }
    }

    fn into_batches(self) -> impl Iterator<Item = Batch> {
        self.partitions.into_iter().flat_map(|((namespace_id, segment), rows)| {
            // The visibility queue acknowledges its tasks only by a later commit.
            let new = || Batch { durable: Durable::WithNext, ..Batch::new(keys::partition(namespace_id, segment)) };
            let mut batches = vec![new()];
            let (mut n_rows, mut n_bytes) = (0, 0);
            for (key, Changed { version, values }) in rows {
                let bytes: usize = key.iter().chain(values.iter().flatten()).map(Value::size).sum();
                if n_rows > 0 && (n_rows == BATCH_ROWS || n_bytes + bytes > BATCH_BYTES) {
                    batches.push(new());
                    (n_rows, n_bytes) = (0, 0);
                }
                n_rows += 1;
                n_bytes += bytes;
                let batch = batches.last_mut().expect("there is one to begin with");
                let change = match values {
                    Some(values) => RowChange::Put(Row { key, values }),
                    None => RowChange::Delete(key),
                };
                batch.versioned.push(Versioned { version, change });
            }
            batches
        })
    }
}

fn add_put(put: &Put, first: &mut Batches, second: &mut Batches) {
    let Put { record, terms, stale, known } = put;
    let home = (record.namespace_id, record.listing.started_in);
    let version = record.row_version();
    let with_record = || vec![Value::Bigint(record.version), rows::to_value(&record.encode())];
    let nothing = || vec![Value::Bigint(record.version), Value::Blob(bytes::Bytes::new())];
    let own_terms = if *known == Known::Surely { Vec::new() } else { record.own_terms() };
    for term in stale.iter().filter(|term| !terms.contains(term)) {
        first.delete(home, keys::term(record, term), version);
    }
    for term in own_terms.iter().chain(terms) {
        first.put(home, keys::term(record, term), version, nothing());
    }
    let closed_in = (record.namespace_id, record.listing.closed_in.unwrap_or(record.listing.started_in));
    let Some(closed) = keys::closed(record) else {
        first.put(home, keys::started(record), version, with_record());
        first.put(home, keys::open(record), version, with_record());
        return;
    };
    first.put(closed_in, closed, version, with_record());
    let then = if closed_in == home { first } else { second };
    then.put(home, keys::started(record), version, with_record());
    // A run that never had an open row leaves no tombstone among open ones.
    if *known != Known::Never {
        then.delete(home, keys::open(record), version);
    }
}

fn add_removal(removal: &Removal, batches: &mut Batches) {
    let Removal { record, terms } = removal;
    let home = (record.namespace_id, record.listing.started_in);
    let version = record.removed_version();
    for term in record.own_terms().iter().chain(terms) {
        batches.delete(home, keys::term(record, term), version);
    }
    batches.delete(home, keys::started(record), version);
    batches.delete(home, keys::open(record), version);
    if let (Some(closed), Some(segment)) = (keys::closed(record), record.listing.closed_in) {
        batches.delete((record.namespace_id, segment), closed, version);
    }
}

fn decode_found(namespace_id: NamespaceId, row: Row) -> Decoded<Found> {
    let named = keys::named(&row.key)?;
    let (version, data) = rows::versioned(row.values)?;
    let place = Place { namespace_id, started_at: named.started_at, run_id: named.run_id };
    let data = rows::blob(data)?;
    let record =
        if data.is_empty() { None } else { Some(Record::decode(place, version, rows::from_value(Value::Blob(data))?)) };
    Ok(Found { started_at: named.started_at, run_id: named.run_id, record, key: named.value.to_vec() })
}

fn decode_segment(row: Row) -> Decoded<Segment> {
    let named = keys::named(&row.key)?;
    let (version, data) = rows::versioned(row.values)?;
    let record: stored::Segment = rows::from_value(data)?;
    let (sealed_at, is_settled) = (record.sealed_at.map(Timestamp), record.is_settled);
    let announced_at = Stage::new(sealed_at, is_settled).announced_at(version);
    Ok(Segment { id: named.started_at.0, announced_at, sealed_at, is_settled })
}
