//! The anchor: a row before all others, in every partition with a lease. It is nothing but a key, and is never shown.
//!
//! Whatever looks at static columns alone (a condition on the lease, a read of it) makes Cassandra read the first live row
//! as well, past all that were deleted before it. Behind 60 000 deleted rows a commit took 20 times as long, and behind
//! 100 000 it would fail (`tombstone_failure_threshold`). With the anchor, the first row is always live and always small.
//!
//! It also makes the deletion of all rows a deletion of rows: without a bound it would be one of the partition, and take
//! the static columns along.

use std::ops::Bound;

use bytes::Bytes;
use persistence::engine::KeyRange;
use persistence::table::{Column, Kind, Table, Value};
use uuid::Uuid;

/// The least key there can be. Stores have no use for it: kinds, versions and ids are not negative, ids are not nil.
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

/// The same range, of the rows that are shown.
pub(crate) fn without(table: &Table, range: &KeyRange) -> KeyRange {
    let anchor = key(table);
    if is_anchor(table, &anchor) && range.contains(&anchor) {
        KeyRange { lower: Bound::Excluded(anchor), upper: range.upper.clone() }
    } else {
        range.clone()
    }
}
