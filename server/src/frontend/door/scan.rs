//! Walks an encoded message with the tables of its type before it is decoded. Linear in the bytes, no allocation. Pure.
//!
//! Refuses what is too long, too deep, too numerous or not the wire format. prost may still refuse an admitted message
//! (text that is not UTF-8, a number where a text belongs), but never for its depth.

use super::rules::{DECODED_BYTES_MAX, MAP_ENTRIES_MAX, UNKNOWN_BYTES_MAX};
use super::tables::{Rule, TableId, Tables};

/// Reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A text or a token; `field` of `table` names it.
    TooLong {
        table: TableId,
        field: u32,
        bytes: usize,
        bytes_max: usize,
    },
    TooManyEntries {
        table: TableId,
        field: u32,
    },
    TooDeep,
    /// Decoded, it would take more memory than one request may.
    TooLarge,
    /// Too many bytes in fields that this server does not know.
    TooMuchUnknown,
    /// Not the wire format.
    Malformed,
    /// An entry of a map with another wire type. prost does not check that type: it would decode bytes as the entry that
    /// this walk takes for other fields.
    NotAnEntry,
}

/// State and depth limit of one walk.
pub(super) struct Scan<'a> {
    tables: &'a Tables,
    depth_max: usize,
    decoded_bytes: usize,
    unknown_bytes: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(tables: &'a Tables, depth_max: usize) -> Self {
        Self { tables, depth_max, decoded_bytes: 0, unknown_bytes: 0 }
    }

    /// Walks a message at this depth; the request itself is at 0.
    pub(super) fn message(&mut self, table: TableId, encoded: &[u8], depth: usize) -> Result<(), Refusal> {
        if depth > self.depth_max {
            return Err(Refusal::TooDeep);
        }
        let mut rest = encoded;
        let mut n_entries = 0;
        while !rest.is_empty() {
            let (field, wire_type) = key(&mut rest)?;
            let rule = self.tables.rule(table, field);
            if wire_type != LENGTH_DELIMITED {
                if let Rule::Entry(_) = rule {
                    return Err(Refusal::NotAnEntry);
                }
                let before = rest.len();
                self.skip(field, wire_type, &mut rest, depth)?;
                if matches!(rule, Rule::Unknown) {
                    self.unknown(before - rest.len())?;
                }
                continue;
            }
            let value = delimited(&mut rest)?;
            if let Rule::Entry(_) = rule {
                n_entries += 1;
                if n_entries > MAP_ENTRIES_MAX {
                    return Err(Refusal::TooManyEntries { table, field });
                }
            }
            match rule {
                Rule::Unknown => self.unknown(value.len())?,
                Rule::Plain => {}
                Rule::Packed => self.weigh(value.len().saturating_mul(PACKED_ITEM_BYTES))?,
                Rule::Text { bytes_max, is_list } => {
                    let bytes_max = bytes_max as usize;
                    if value.len() > bytes_max {
                        return Err(Refusal::TooLong { table, field, bytes: value.len(), bytes_max });
                    }
                    self.weigh(if is_list { TEXT_ITEM_BYTES } else { 0 })?;
                }
                Rule::Message(inner) => self.message(inner, value, depth + 1)?,
                Rule::Item(inner) | Rule::Entry(inner) => {
                    self.weigh(self.tables.item_bytes(inner))?;
                    self.message(inner, value, depth + 1)?;
                }
                Rule::Packaged => self.packaged(value, depth + 1)?,
            }
        }
        Ok(())
    }

    /// Walks a `google.protobuf.Any`, and the message packed in it if its type is one that we unpack.
    fn packaged(&mut self, encoded: &[u8], depth: usize) -> Result<(), Refusal> {
        self.message(self.tables.any(), encoded, depth)?;
        let (mut inner, mut value) = (None, [].as_slice());
        let mut rest = encoded;
        while !rest.is_empty() {
            match key(&mut rest)? {
                (1, LENGTH_DELIMITED) => inner = self.tables.packed_in(delimited(&mut rest)?),
                (2, LENGTH_DELIMITED) => value = delimited(&mut rest)?,
                (field, wire_type) => self.skip(field, wire_type, &mut rest, depth)?,
            }
        }
        inner.map_or(Ok(()), |inner| self.message(inner, value, depth + 1))
    }

    /// Skips a field's value. Groups nest, and prost counts them as messages.
    fn skip(&self, field: u32, wire_type: u8, rest: &mut &[u8], depth: usize) -> Result<(), Refusal> {
        match wire_type {
            VARINT => varint(rest).map(|_| ()),
            FIXED_64 => take(rest, 8).map(|_| ()),
            FIXED_32 => take(rest, 4).map(|_| ()),
            LENGTH_DELIMITED => delimited(rest).map(|_| ()),
            START_GROUP if depth >= self.depth_max => Err(Refusal::TooDeep),
            START_GROUP => loop {
                let (inner, wire_type) = key(rest)?;
                match wire_type {
                    END_GROUP if inner == field => return Ok(()),
                    _ => self.skip(inner, wire_type, rest, depth + 1)?,
                }
            },
            _ => Err(Refusal::Malformed),
        }
    }

    fn weigh(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.decoded_bytes = self.decoded_bytes.saturating_add(bytes);
        if self.decoded_bytes > DECODED_BYTES_MAX { Err(Refusal::TooLarge) } else { Ok(()) }
    }

    fn unknown(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.unknown_bytes = self.unknown_bytes.saturating_add(bytes);
        if self.unknown_bytes > UNKNOWN_BYTES_MAX { Err(Refusal::TooMuchUnknown) } else { Ok(()) }
    }
}

/// Decoded bytes per encoded byte of packed numbers, at most.
const PACKED_ITEM_BYTES: usize = 8;
/// Decoded size of a text in a list: the `String` and the smallest allocation.
const TEXT_ITEM_BYTES: usize = 40;

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED_32: u8 = 5;

fn key(rest: &mut &[u8]) -> Result<(u32, u8), Refusal> {
    let key = u32::try_from(varint(rest)?).map_err(|_| Refusal::Malformed)?;
    let (field, wire_type) = (key >> 3, (key & 7) as u8);
    if field == 0 { Err(Refusal::Malformed) } else { Ok((field, wire_type)) }
}

fn delimited<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Refusal> {
    let length = usize::try_from(varint(rest)?).map_err(|_| Refusal::Malformed)?;
    take(rest, length)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Refusal> {
    let (taken, after) = rest.split_at_checked(length).ok_or(Refusal::Malformed)?;
    *rest = after;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Refusal> {
    const BYTES_MAX: usize = 10;
    let mut value = 0;
    for (at, &byte) in rest.iter().take(BYTES_MAX).enumerate() {
        // The tenth byte has room for one bit.
        if at == BYTES_MAX - 1 && byte > 1 {
            return Err(Refusal::Malformed);
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *rest = &rest[at + 1..];
            return Ok(value);
        }
    }
    Err(Refusal::Malformed)
}
