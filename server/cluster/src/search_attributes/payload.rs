//! Search attributes as payloads: JSON, with the type in the metadata, decoded into the values that visibility indexes.

use bytes::Bytes;
use persistence::stores::visibility::value::{Value, ValueType};
use proto::temporal::api::common::v1::{Payload, SearchAttributes};
use serde_json::Value as Json;

use super::attribute::{Attribute, Predefined};
use super::custom::CustomAttributes;
use super::datetime;

/// The metadata that names the type.
const TYPE: &str = "type";
const ENCODING: &str = "encoding";

/// The payload has no value of the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongType;

/// The value of a payload. `None` if it removes the attribute: a null, or an empty list.
pub fn decode_as(payload: &Payload, value_type: ValueType) -> Result<Option<Value>, WrongType> {
    let json = match encoding(payload) {
        b"binary/null" => return Ok(None),
        b"json/plain" => serde_json::from_slice::<Json>(&payload.data).map_err(|_| WrongType)?,
        _ => return Err(WrongType),
    };
    if value_type == ValueType::KeywordList {
        return keyword_list(json);
    }
    match json {
        Json::Null => Ok(None),
        // Old clients wrap values in a list. More than one would be a list of keywords.
        Json::Array(mut items) if items.len() <= 1 => items.pop().map(|item| single(item, value_type)).transpose(),
        json @ (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_)) => {
            single(json, value_type).map(Some)
        }
    }
}

fn encoding(payload: &Payload) -> &[u8] {
    payload.metadata.get(ENCODING).map_or(&[], |encoding| encoding)
}

fn keyword_list(json: Json) -> Result<Option<Value>, WrongType> {
    let Json::Array(items) = json else { return if json.is_null() { Ok(None) } else { Err(WrongType) } };
    // A null among keywords is ignored, and was always accepted.
    let keywords = items.into_iter().filter(|item| !item.is_null()).map(|item| match item {
        Json::String(keyword) => Ok(keyword),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => Err(WrongType),
    });
    let keywords = keywords.collect::<Result<Vec<_>, _>>()?;
    Ok((!keywords.is_empty()).then_some(Value::KeywordList(keywords)))
}

fn single(json: Json, value_type: ValueType) -> Result<Value, WrongType> {
    match (value_type, json) {
        (ValueType::Keyword, Json::String(text)) => Ok(Value::Keyword(text)),
        (ValueType::Text, Json::String(text)) => Ok(Value::Text(text)),
        (ValueType::Bool, Json::Bool(flag)) => Ok(Value::Bool(flag)),
        (ValueType::Int, Json::Number(number)) => number.as_i64().map(Value::Int).ok_or(WrongType),
        (ValueType::Double, Json::Number(number)) => number.as_f64().map(Value::Double).ok_or(WrongType),
        (ValueType::Datetime, Json::String(text)) => datetime::parse(&text).map(Value::Datetime).ok_or(WrongType),
        _ => Err(WrongType),
    }
}

/// The value of an admitted attribute, whose metadata has its type; `None` if it is not set, or cannot be read.
#[must_use]
pub fn decode(name: &str, payload: &Payload) -> Option<Value> {
    let told = payload.metadata.get(TYPE).and_then(|told| std::str::from_utf8(told).ok());
    let predefined = || Predefined::from_name(name).map(|attribute| attribute.value_type);
    decode_as(payload, told.and_then(ValueType::from_name).or_else(predefined)?).ok()?
}

/// A value for responses.
#[must_use]
pub fn encode(attribute: &Attribute, value: &Value) -> Payload {
    let json = match value {
        Value::Keyword(text) | Value::Text(text) => Json::from(text.as_str()),
        Value::KeywordList(keywords) => Json::from(keywords.clone()),
        Value::Int(number) => Json::from(*number),
        Value::Double(number) => Json::from(*number),
        Value::Bool(flag) => Json::from(*flag),
        Value::Datetime(moment) => Json::from(prost_types::Timestamp::from(*moment).to_string()),
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

/// Writes the type beside each value, over the client's own: runs are indexed by it.
pub fn write_types(attributes: &mut SearchAttributes, custom: &CustomAttributes) {
    for (name, payload) in &mut attributes.indexed_fields {
        if let Some(value_type) = type_of(name, custom) {
            payload.metadata.insert(TYPE.to_owned(), Bytes::from_static(value_type.name().as_bytes()));
        }
    }
}

/// Type of an attribute that clients may set, or the server sets for them.
pub(super) fn type_of(name: &str, custom: &CustomAttributes) -> Option<ValueType> {
    Predefined::from_name(name).map(|attribute| attribute.value_type).or_else(|| custom.value_type(name))
}

/// A value for error messages: numbers, lists and objects as the reference prints them.
pub(super) fn shown(payload: &Payload) -> String {
    const SHOWN_MAX: usize = 200;
    let raw = || format!("value from <data:{:?}>", String::from_utf8_lossy(&payload.data));
    let text = match encoding(payload) {
        b"json/plain" => serde_json::from_slice::<Json>(&payload.data).map_or_else(|_| raw(), |json| shown_json(&json)),
        b"binary/plain" => format!("{:?}", payload.data.as_ref()).replace(',', ""),
        _ => raw(),
    };
    text.chars().take(SHOWN_MAX).collect()
}

fn shown_json(json: &Json) -> String {
    match json {
        Json::Null => "<nil>".to_owned(),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(number) => number.as_f64().map_or_else(|| number.to_string(), shown_number),
        Json::String(text) => text.clone(),
        Json::Array(items) => format!("[{}]", items.iter().map(shown_json).collect::<Vec<_>>().join(" ")),
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let shown: Vec<_> = fields.iter().map(|(name, value)| format!("{name}:{}", shown_json(value))).collect();
            format!("map[{}]", shown.join(" "))
        }
    }
}

/// Plain up to six digits, then with an exponent of two digits or more.
fn shown_number(number: f64) -> String {
    const PLAIN_DIGITS_MAX: i32 = 6;
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..PLAIN_DIGITS_MAX).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests;
