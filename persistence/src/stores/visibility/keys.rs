//! Clustering keys of visibility rows, encoded and decoded in one place.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use uuid::Uuid;
use workflow::{NamespaceId, RunId, Timestamp};

use super::record::{Record, Term};
use crate::engine::{KeyRange, Partition};
use crate::stores::rows::{Decoded, Malformed};
use crate::table::Value;
use crate::tables::VISIBILITY;

/// Kind of a row: the first clustering column. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A segment of the namespace; in segment 0.
    Segment = 1,
    /// A run, in the segment it started in.
    Started = 2,
    /// A second row of an open run.
    Open = 3,
    /// A second row of a closed run, in the segment it closed in; by status, the latest closed first.
    Closed = 4,
    /// A run by a term, in the segment it started in. Has no record.
    Term = 5,
}

/// The segment that names all others.
pub(super) const DIRECTORY: i64 = 0;

/// A sign bit, flipped so that unsigned bytes compare as signed numbers do.
const SIGN: u64 = 1 << 63;

pub(super) fn partition(namespace_id: NamespaceId, segment: i64) -> Partition {
    Partition::new(&VISIBILITY, vec![Value::Uuid(namespace_id.0), Value::Bigint(segment)])
}

/// The newest segment comes first.
pub(super) fn segment(id: i64) -> Vec<Value> {
    row(RowKind::Segment, "", &[], !id, Uuid::nil())
}

pub(super) fn segments() -> KeyRange {
    KeyRange::prefix(vec![Value::Int(RowKind::Segment as i32)])
}

pub(super) fn started(record: &Record) -> Vec<Value> {
    by_start(RowKind::Started, record.started_at, record.run_id)
}

pub(super) fn open(record: &Record) -> Vec<Value> {
    by_start(RowKind::Open, record.started_at, record.run_id)
}

pub(super) fn by_start(kind: RowKind, started_at: Timestamp, run_id: RunId) -> Vec<Value> {
    row(kind, "", &[], !started_at.0, run_id.0)
}

/// `None` for a run that is open.
pub(super) fn closed(record: &Record) -> Option<Vec<Value>> {
    let value = closed_value(record.status, record.closed?.at);
    Some(row(RowKind::Closed, "", &value, !record.started_at.0, record.run_id.0))
}

pub(super) fn term(record: &Record, term: &Term) -> Vec<Value> {
    row(RowKind::Term, &term.index, &term.key, !record.started_at.0, record.run_id.0)
}

/// Runs that started within these bounds, the newest first.
pub(super) fn started_range(kind: RowKind, from: Bound<Timestamp>, to: Bound<Timestamp>) -> KeyRange {
    let prefix = prefix(kind, "", &[]);
    let bound = |moment: Bound<Timestamp>| match moment {
        Bound::Unbounded => Bound::Included(prefix.clone()),
        Bound::Included(at) => Bound::Included(with(&prefix, Value::Bigint(!at.0))),
        Bound::Excluded(at) => Bound::Excluded(with(&prefix, Value::Bigint(!at.0))),
    };
    KeyRange { lower: bound(to), upper: bound(from) }
}

/// Runs of a status that closed within these bounds, the latest first.
pub(super) fn closed_range(status: WorkflowExecutionStatus, from: Bound<Timestamp>, to: Bound<Timestamp>) -> KeyRange {
    let prefix = vec![Value::Int(RowKind::Closed as i32), Value::Text(Arc::from(""))];
    let blob = |at: Timestamp| with(&prefix, Value::Blob(Bytes::from(closed_value(status, at))));
    let bound = |moment: Bound<Timestamp>, unbounded: Timestamp| match moment {
        Bound::Unbounded => Bound::Included(blob(unbounded)),
        Bound::Included(at) => Bound::Included(blob(at)),
        Bound::Excluded(at) => Bound::Excluded(blob(at)),
    };
    KeyRange { lower: bound(to, Timestamp(i64::MAX)), upper: bound(from, Timestamp(i64::MIN)) }
}

/// Runs by a range of terms.
pub(super) fn term_range(index: &str, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> KeyRange {
    let prefix = vec![Value::Int(RowKind::Term as i32), Value::Text(Arc::from(index))];
    let bound = |key: &Bound<Vec<u8>>| match key {
        Bound::Unbounded => Bound::Included(prefix.clone()),
        Bound::Included(key) => Bound::Included(with(&prefix, Value::Blob(Bytes::copy_from_slice(key)))),
        Bound::Excluded(key) => Bound::Excluded(with(&prefix, Value::Blob(Bytes::copy_from_slice(key)))),
    };
    KeyRange { lower: bound(from), upper: bound(to) }
}

/// Fields of a row's key.
pub(super) struct Named {
    pub(super) value: Bytes,
    pub(super) started_at: Timestamp,
    pub(super) run_id: RunId,
}

pub(super) fn named(key: &[Value]) -> Decoded<Named> {
    match key {
        [_, _, Value::Blob(value), Value::Bigint(started), Value::Uuid(run_id)] => {
            Ok(Named { value: value.clone(), started_at: Timestamp(!started), run_id: RunId(*run_id) })
        }
        key => Err(Malformed::new(format!("a row with the key {key:?}"))),
    }
}

fn closed_value(status: WorkflowExecutionStatus, at: Timestamp) -> Vec<u8> {
    let mut value = vec![u8::try_from(status as i32).expect("statuses are few")];
    value.extend(((!at.0).cast_unsigned() ^ SIGN).to_be_bytes());
    value
}

fn row(kind: RowKind, name: &str, value: &[u8], started: i64, run_id: Uuid) -> Vec<Value> {
    let mut key = prefix(kind, name, value);
    key.extend([Value::Bigint(started), Value::Uuid(run_id)]);
    key
}

fn prefix(kind: RowKind, name: &str, value: &[u8]) -> Vec<Value> {
    let mut key = Vec::with_capacity(5);
    key.extend([Value::Int(kind as i32), Value::Text(Arc::from(name)), Value::Blob(Bytes::copy_from_slice(value))]);
    key
}

fn with(prefix: &[Value], last: Value) -> Vec<Value> {
    let mut key = prefix.to_vec();
    key.push(last);
    key
}
