//! Payloads that any SDK can read: JSON, plus the padding of the plan.

use std::collections::HashMap;

use bytes::Bytes;
use proto::temporal::api::common::v1::{Payload, Payloads};
use serde::de::DeserializeOwned;

const ENCODING: &str = "encoding";

pub(crate) fn json(value: impl Into<serde_json::Value>) -> Payloads {
    Payloads { payloads: vec![one(value)] }
}

/// The value, and the padding as a second payload.
pub(crate) fn padded(value: impl Into<serde_json::Value>, padding: &Bytes) -> Payloads {
    let mut payloads = json(value);
    if !padding.is_empty() {
        payloads.payloads.push(Payload {
            metadata: encoding("binary/plain"),
            data: padding.clone(),
            ..Payload::default()
        });
    }
    payloads
}

/// The first payload; `None` if it is missing or not of this type.
pub(crate) fn read<T: DeserializeOwned>(payloads: Option<&Payloads>) -> Option<T> {
    serde_json::from_slice(&payloads?.payloads.first()?.data).ok()
}

fn one(value: impl Into<serde_json::Value>) -> Payload {
    Payload { metadata: encoding("json/plain"), data: value.into().to_string().into(), ..Payload::default() }
}

fn encoding(name: &'static str) -> HashMap<String, Bytes> {
    HashMap::from([(ENCODING.to_owned(), Bytes::from_static(name.as_bytes()))])
}
