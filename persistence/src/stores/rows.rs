//! Conversion of records to values and back, shared by all mappings.
//!
//! Whatever cannot be decoded is `Malformed`, which says what is wrong; the store that read it adds where it was.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use uuid::Uuid;

use crate::error::StoreError;
use crate::table::Value;

pub(crate) mod run;
pub(crate) mod started;
pub(crate) mod items;
pub(crate) mod tasks;
pub(crate) mod branch;
pub(crate) mod closed_runs;

/// Why a record does not decode.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(String);

pub(crate) type Decoded<T> = Result<T, Malformed>;

impl Malformed {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    pub(crate) fn at(self, place: impl fmt::Display) -> StoreError {
        StoreError::Corrupt(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) fn to_value(record: &impl Message) -> Value {
    Value::Blob(record.encode_to_vec().into())
}

pub(crate) fn from_value<M: Message + Default>(value: Value) -> Decoded<M> {
    M::decode(blob(value)?).map_err(|error| Malformed(format!("record does not decode: {error}")))
}

pub(crate) fn blob(value: Value) -> Decoded<Bytes> {
    match value {
        Value::Blob(bytes) => Ok(bytes),
        Value::Int(_) | Value::Bigint(_) | Value::Text(_) | Value::Uuid(_) => {
            Err(Malformed(format!("{value:?} is not a blob")))
        }
    }
}

pub(crate) fn bigint(value: &Value, name: &str) -> Decoded<i64> {
    match value {
        Value::Bigint(number) => Ok(*number),
        Value::Int(_) | Value::Text(_) | Value::Uuid(_) | Value::Blob(_) => {
            Err(Malformed(format!("{name} is {value:?}, not a bigint")))
        }
    }
}

pub(crate) fn optional_bigint(value: Option<Value>, name: &str) -> Decoded<Option<i64>> {
    value.map(|value| bigint(&value, name)).transpose()
}

/// The two value columns that most tables have.
pub(crate) fn versioned(values: Vec<Value>) -> Decoded<(i64, Value)> {
    let [version, data] =
        <[Value; 2]>::try_from(values).map_err(|values| Malformed(format!("{} values, not 2", values.len())))?;
    Ok((bigint(&version, "the number beside the record")?, data))
}

pub(crate) fn required<T>(field: Option<T>, name: &str) -> Decoded<T> {
    field.ok_or_else(|| Malformed(format!("{name} is missing")))
}

pub(crate) fn uuid_bytes(id: Uuid) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

pub(crate) fn uuid(bytes: &[u8], name: &str) -> Decoded<Uuid> {
    Uuid::from_slice(bytes).map_err(|_| Malformed(format!("{name} is {} bytes, not a UUID", bytes.len())))
}

/// Empty bytes stand for none.
pub(crate) fn optional_uuid(bytes: &[u8], name: &str) -> Decoded<Option<Uuid>> {
    if bytes.is_empty() { Ok(None) } else { uuid(bytes, name).map(Some) }
}

/// Saturates: a span of more than 10^11 years is one that never ends.
pub(crate) fn span(span: Duration) -> prost_types::Duration {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let nanos = i32::try_from(span.subsec_nanos()).expect("fewer than 10^9 nanoseconds fit");
    prost_types::Duration { seconds, nanos }
}

pub(crate) fn optional_span(field: Option<prost_types::Duration>, name: &str) -> Decoded<Option<Duration>> {
    field
        .map(|field| match (u64::try_from(field.seconds), u32::try_from(field.nanos)) {
            (Ok(seconds), Ok(nanos)) if nanos < 1_000_000_000 => Ok(Duration::new(seconds, nanos)),
            _ => Err(Malformed(format!("{name} is {field:?}, not a span"))),
        })
        .transpose()
}

pub(crate) fn required_span(field: Option<prost_types::Duration>, name: &str) -> Decoded<Duration> {
    required(optional_span(field, name)?, name)
}
