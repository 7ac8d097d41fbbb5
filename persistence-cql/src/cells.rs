//! Values to and from the wire.

use std::sync::Arc;

use bytes::Bytes;
use persistence::engine::{Row, Statics};
use persistence::error::StoreError;
use persistence::table::{Column, Kind, Table, Value};
use scylla::cluster::metadata::ColumnType;
use scylla::errors::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};
use scylla::value::CqlValue;

/// A value to be bound by the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound(pub(crate) Value);

impl SerializeValue for Bound {
    fn serialize<'b>(
        &self,
        kind: &ColumnType<'_>,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        match &self.0 {
            Value::Int(value) => value.serialize(kind, writer),
            Value::Bigint(value) => value.serialize(kind, writer),
            Value::Text(value) => (**value).serialize(kind, writer),
            Value::Uuid(value) => value.serialize(kind, writer),
            Value::Blob(value) => value.serialize(kind, writer),
        }
    }
}

/// A row of `SELECT` clustering and value columns. `None`: the partition has static columns and no rows, which CQL
/// answers with one row of nulls.
pub(crate) fn read_row(table: &Table, columns: Vec<Option<CqlValue>>) -> Result<Option<Row>, StoreError> {
    if columns.first().is_some_and(Option::is_none) {
        return Ok(None);
    }
    let mut columns = columns.into_iter();
    let mut take = |expected: &[Column]| -> Result<Vec<Value>, StoreError> {
        let read = |column| required(table, column, columns.next().flatten());
        expected.iter().map(read).collect()
    };
    Ok(Some(Row { key: take(table.clustering)?, values: take(table.values)? }))
}

pub(crate) fn read_statics(table: &Table, columns: Vec<Option<CqlValue>>) -> Result<Statics, StoreError> {
    let pairs = table.statics.iter().zip(columns);
    pairs.map(|(column, cell)| cell.map(|cell| required(table, column, Some(cell))).transpose()).collect()
}

fn required(table: &Table, column: &Column, cell: Option<CqlValue>) -> Result<Value, StoreError> {
    let value = cell.and_then(|cell| value(column.kind, cell));
    value.ok_or_else(|| StoreError::Corrupt(format!("{}.{} has no value of its kind", table.name, column.name)))
}

fn value(kind: Kind, cell: CqlValue) -> Option<Value> {
    match kind {
        Kind::Int => cell.as_int().map(Value::Int),
        Kind::Bigint => cell.as_bigint().map(Value::Bigint),
        Kind::Text => cell.into_string().map(|text| Value::Text(Arc::from(text))),
        Kind::Uuid => cell.as_uuid().map(Value::Uuid),
        Kind::Blob => cell.into_blob().map(|blob| Value::Blob(Bytes::from(blob))),
    }
}
