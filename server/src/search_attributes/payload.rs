//! Search attributes as clients send them: a value in JSON, and beside it the name of its type.

use bytes::Bytes;
use persistence::stores::visibility::value::{Value, ValueType};
use proto::temporal::api::common::v1::Payload;

use super::attribute::{Attribute, Predefined};
use super::datetime;

/// Where a payload says of which type its value is.
const TYPE: &str = "type";

/// The value of an attribute; nothing if it is not set, or cannot be read.
#[must_use]
pub fn decode(name: &str, payload: &Payload) -> Option<Value> {
    let told =
        payload.metadata.get(TYPE).and_then(|told| std::str::from_utf8(told).ok()).and_then(ValueType::from_name);
    let value_type = told.or_else(|| Predefined::from_name(name).map(|predefined| predefined.value_type))?;
    of_json(value_type, serde_json::from_slice(&payload.data).ok()?)
}

/// A value as answers tell it.
#[must_use]
pub fn encode(attribute: &Attribute, value: &Value) -> Payload {
    let json = match value {
        Value::Keyword(text) | Value::Text(text) => serde_json::Value::from(text.as_str()),
        Value::KeywordList(keywords) => serde_json::Value::from(keywords.clone()),
        Value::Int(number) => serde_json::Value::from(*number),
        Value::Double(number) => serde_json::Value::from(*number),
        Value::Bool(flag) => serde_json::Value::from(*flag),
        Value::Datetime(moment) => serde_json::Value::from(prost_types::Timestamp::from(*moment).to_string()),
    };
    let metadata = [("encoding", "json/plain"), (TYPE, attribute.value_type().name())];
    Payload {
        metadata: metadata
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Bytes::from_static(value.as_bytes())))
            .collect(),
        data: json.to_string().into(),
        ..Payload::default()
    }
}

fn of_json(value_type: ValueType, json: serde_json::Value) -> Option<Value> {
    match value_type {
        ValueType::Keyword => Some(Value::Keyword(single(json)?.as_str()?.to_owned())),
        ValueType::Text => Some(Value::Text(single(json)?.as_str()?.to_owned())),
        ValueType::Int => Some(Value::Int(single(json)?.as_i64()?)),
        ValueType::Double => Some(Value::Double(single(json)?.as_f64()?)),
        ValueType::Bool => Some(Value::Bool(single(json)?.as_bool()?)),
        ValueType::Datetime => datetime::parse(single(json)?.as_str()?).map(Value::Datetime),
        ValueType::KeywordList => match json {
            serde_json::Value::String(keyword) => Some(Value::KeywordList(vec![keyword])),
            serde_json::Value::Array(keywords) => {
                let keywords = keywords.into_iter().map(|keyword| keyword.as_str().map(str::to_owned));
                keywords.collect::<Option<_>>().map(Value::KeywordList)
            }
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Object(_) => None,
        },
    }
}

/// Old SDKs send a list where a single value is meant.
fn single(json: serde_json::Value) -> Option<serde_json::Value> {
    match json {
        serde_json::Value::Array(mut values) if values.len() == 1 => values.pop(),
        serde_json::Value::Array(_) | serde_json::Value::Null => None,
        other @ (serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Object(_)) => Some(other),
    }
}
