//! Encodes rows and static columns of tables as ordered keys.
//!
//! `table name · 00 · partition columns · tag · clustering columns`, or a static column's number after the other tag.
//! Bytes compare as the values do, and no column's bytes are a prefix of another's, so that a prefix of columns is a
//! prefix of bytes and a range of rows is one half-open span of keys. Knows nothing of what is stored there.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::engine::{Continuation, KeyRange, Order, Partition};
use crate::table::{Column, Kind, Table, Value};

/// Key of the format version. Table names are not empty, so no row has this key.
pub(super) const FORMAT: &[u8] = &[0x00, 0x00];
/// Unfinished range deletes, by number.
pub(super) const SWEEPS: &[u8] = &[0x00, 0x01];
/// The `journal::Note` of each commit.
pub(super) const JOURNAL: &[u8] = &[0x00, 0x02];
/// The id of the store, as in its marker.
pub(super) const STORE_ID: &[u8] = &[0x00, 0x03];

const STATICS: u8 = 0x01;
const ROWS: u8 = 0x02;

/// Inside text and blobs a zero byte is followed by `ESCAPED`; a zero byte followed by `END` ends them.
const END: u8 = 0x00;
const ESCAPED: u8 = 0xff;

/// Keys from `from`, included, to `to`, excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
}

pub(super) fn static_column(partition: &Partition, column: usize) -> Vec<u8> {
    let mut key = partition_prefix(partition, STATICS);
    key.push(u8::try_from(column).expect("a table has fewer than 256 static columns"));
    key
}

pub(super) fn row(partition: &Partition, clustering: &[Value]) -> Vec<u8> {
    let mut key = rows_prefix(partition);
    put_values(&mut key, clustering);
    key
}

/// The keys of a partition's rows in a range.
pub(super) fn span(partition: &Partition, range: &KeyRange) -> Span {
    let rows = rows_prefix(partition);
    let from = match &range.lower {
        Bound::Unbounded => rows.clone(),
        Bound::Included(prefix) => row(partition, prefix),
        Bound::Excluded(prefix) => after_prefix(row(partition, prefix)),
    };
    let to = match &range.upper {
        Bound::Unbounded => after_prefix(rows),
        Bound::Included(prefix) => after_prefix(row(partition, prefix)),
        Bound::Excluded(prefix) => row(partition, prefix),
    };
    Span { from, to }
}

/// Common prefix of the keys of a partition's rows.
pub(super) fn rows_prefix(partition: &Partition) -> Vec<u8> {
    partition_prefix(partition, ROWS)
}

/// The clustering columns of a row's key without its partition's prefix; `None` if they cannot be such columns.
pub(super) fn clustering(columns: &[Column], mut key: &[u8]) -> Option<Vec<Value>> {
    let values = columns.iter().map(|column| take_value(column.kind, &mut key)).collect::<Option<Vec<_>>>()?;
    key.is_empty().then_some(values)
}

/// Target of a table's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Static(usize),
    Row,
}

/// Parses a key of the table; `None` if it is not one.
pub(super) fn named(table: &Table, key: &[u8]) -> Option<Named> {
    let mut rest = key.strip_prefix(table.name.as_bytes())?.strip_prefix(&[0x00])?;
    for column in table.partition {
        take_value(column.kind, &mut rest)?;
    }
    match rest {
        [STATICS, column] if usize::from(*column) < table.statics.len() => Some(Named::Static((*column).into())),
        [ROWS, rest @ ..] => clustering(table.clustering, rest).map(|_| Named::Row),
        _ => None,
    }
}

impl Span {
    /// The rest of the span after a page that ended at `after`.
    pub(super) fn continued(mut self, partition: &Partition, after: &Continuation, order: Order) -> Self {
        let last = row(partition, &after.0);
        match order {
            Order::Ascending => self.from = self.from.max(after_prefix(last)),
            Order::Descending => self.to = self.to.min(last),
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && key < self.to.as_slice()
    }
}

fn partition_prefix(partition: &Partition, tag: u8) -> Vec<u8> {
    let name = partition.table.0.name;
    let mut key = Vec::with_capacity(name.len() + 64);
    key.extend_from_slice(name.as_bytes());
    key.push(0x00);
    put_values(&mut key, &partition.key);
    key.push(tag);
    key
}

/// The first key that is greater than all keys with this prefix.
fn after_prefix(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return prefix;
        }
    }
    unreachable!("a key begins with a table's name, which is not made of ff bytes")
}

fn put_values(key: &mut Vec<u8>, values: &[Value]) {
    for value in values {
        match value {
            // With its sign bit flipped, a number in two's complement compares as unsigned bytes.
            Value::Int(int) => key.extend_from_slice(&(int.cast_unsigned() ^ (1 << 31)).to_be_bytes()),
            Value::Bigint(bigint) => key.extend_from_slice(&(bigint.cast_unsigned() ^ (1 << 63)).to_be_bytes()),
            Value::Text(text) => put_escaped(key, text.as_bytes()),
            Value::Uuid(uuid) => key.extend_from_slice(uuid.as_bytes()),
            Value::Blob(blob) => put_escaped(key, blob),
        }
    }
}

fn put_escaped(key: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        key.push(byte);
        if byte == 0x00 {
            key.push(ESCAPED);
        }
    }
    key.extend_from_slice(&[0x00, END]);
}

fn take_value(kind: Kind, rest: &mut &[u8]) -> Option<Value> {
    Some(match kind {
        Kind::Int => Value::Int((u32::from_be_bytes(take_array(rest)?) ^ (1 << 31)).cast_signed()),
        Kind::Bigint => Value::Bigint((u64::from_be_bytes(take_array(rest)?) ^ (1 << 63)).cast_signed()),
        Kind::Text => Value::Text(Arc::from(String::from_utf8(take_escaped(rest)?).ok()?)),
        Kind::Uuid => Value::Uuid(Uuid::from_bytes(take_array(rest)?)),
        Kind::Blob => Value::Blob(Bytes::from(take_escaped(rest)?)),
    })
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn take_escaped(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let zero = rest.iter().position(|byte| *byte == 0x00)?;
        let (run, tail) = rest.split_at(zero);
        bytes.extend_from_slice(run);
        let [_, follower, tail @ ..] = tail else { return None };
        *rest = tail;
        match *follower {
            END => return Some(bytes),
            ESCAPED => bytes.push(0x00),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
