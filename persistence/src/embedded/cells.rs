//! Encoding of values: a row's value columns one after the other, or one static column.
//!
//! Numbers and UUIDs have a fixed width; text and blobs are length-prefixed. The bytes need not sort.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::table::{Column, Kind, Value};

pub(super) fn encode(values: &[Value]) -> Vec<u8> {
    let size: usize = values.iter().map(|value| value.size() + LENGTH).sum();
    let mut bytes = Vec::with_capacity(size);
    for value in values {
        match value {
            Value::Int(int) => bytes.extend_from_slice(&int.to_be_bytes()),
            Value::Bigint(bigint) => bytes.extend_from_slice(&bigint.to_be_bytes()),
            Value::Text(text) => put_sized(&mut bytes, text.as_bytes()),
            Value::Uuid(uuid) => bytes.extend_from_slice(uuid.as_bytes()),
            Value::Blob(blob) => put_sized(&mut bytes, blob),
        }
    }
    bytes
}

/// `None` if these are not the bytes of such columns.
pub(super) fn decode(columns: &[Column], mut bytes: &[u8]) -> Option<Vec<Value>> {
    let values = columns.iter().map(|column| take(column.kind, &mut bytes)).collect::<Option<Vec<_>>>()?;
    bytes.is_empty().then_some(values)
}

/// Bytes of a length prefix.
const LENGTH: usize = size_of::<u32>();

fn put_sized(bytes: &mut Vec<u8>, value: &[u8]) {
    let length = u32::try_from(value.len()).expect("a batch, and so a value, is far smaller than 4 GiB");
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(value);
}

fn take(kind: Kind, bytes: &mut &[u8]) -> Option<Value> {
    Some(match kind {
        Kind::Int => Value::Int(i32::from_be_bytes(take_array(bytes)?)),
        Kind::Bigint => Value::Bigint(i64::from_be_bytes(take_array(bytes)?)),
        Kind::Text => Value::Text(Arc::from(std::str::from_utf8(take_sized(bytes)?).ok()?)),
        Kind::Uuid => Value::Uuid(Uuid::from_bytes(take_array(bytes)?)),
        // Copied: a slice of a cached block would keep the whole block in memory as long as the value lives.
        Kind::Blob => Value::Blob(Bytes::copy_from_slice(take_sized(bytes)?)),
    })
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk()?;
    *bytes = tail;
    Some(*head)
}

fn take_sized<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u32::from_be_bytes(take_array(bytes)?)).ok()?;
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    Some(head)
}

#[cfg(test)]
mod tests;
