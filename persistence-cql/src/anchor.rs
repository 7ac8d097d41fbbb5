//! The anchor: a key-only row that sorts before all others in every partition with a lease. No read returns it.
//!
//! A condition on static columns, or a read of them, makes Cassandra scan to the first live row, past all tombstones
//! before it. Behind 60 000 tombstones a commit took 20 times as long; behind 100 000 it would fail
//! (`tombstone_failure_threshold`). With the anchor, the first row is always live and small.
//!
//! It also bounds the delete of all rows: an unbounded one would be a partition delete and remove the static columns.

use std::ops::Bound;

use bytes::Bytes;
use persistence::engine::KeyRange;
use persistence::table::{Column, Kind, Table, Value};
use uuid::Uuid;

/// The lowest possible key. No store writes it: kinds, versions and ids are not negative, ids are not nil.
pub(crate) fn key(table: &Table) -> Vec<Value> {
    let least = |column: &Column| match column.kind {
        Kind::Int => i32::MIN.into(),
        Kind::Bigint => i64::MIN.into(),
        Kind::Text => "".into(),
        Kind::Uuid => Uuid::nil().into(),
        Kind::Blob => Bytes::new().into(),
    };
    table.clustering.iter().map(least).collect()
}

pub(crate) fn is_anchor(table: &Table, row: &[Value]) -> bool {
    !table.statics.is_empty() && row == key(table)
}

/// The range without the anchor.
pub(crate) fn without(table: &Table, range: &KeyRange) -> KeyRange {
    let anchor = key(table);
    if is_anchor(table, &anchor) && range.contains(&anchor) {
        KeyRange { lower: Bound::Excluded(anchor), upper: range.upper.clone() }
    } else {
        range.clone()
    }
}
