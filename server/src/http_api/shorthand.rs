//! JSON shorthand and its expansion: payloads that hold JSON are written as that JSON, and enum values may omit their
//! prefix. From JSON to JSON, by the message's descriptor. Pure.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost_reflect::{EnumDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::transcoder::{VALUES_MAX, n_values};

/// How payloads are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payloads {
    /// As plain JSON where possible.
    Short,
    /// Always metadata and data.
    InFull,
}

const PAYLOAD: &str = "temporal.api.common.v1.Payload";
const PAYLOADS: &str = "temporal.api.common.v1.Payloads";
const ANY: &str = "google.protobuf.Any";
/// These types have their own JSON forms, whose keys are not field names.
const WELL_KNOWN: &str = "google.protobuf.";

const NULL: &str = "binary/null";
const JSON: &str = "json/plain";
const PROTOBUF: &str = "json/protobuf";
/// Key beside the fields of a message in a payload: the message's type.
const MESSAGE_TYPE: &str = "_protoMessageType";

const BASE64: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, BASE64);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, BASE64);

/// Expands the shorthand of a request.
pub(super) fn expand(value: &mut Value, message: &MessageDescriptor, payloads: Payloads) {
    walk(value, &Kind::Message(message.clone()), &|value, kind| {
        if let Kind::Enum(values) = kind {
            expand_enum(value, values);
        }
        let full = match (payloads, message_name(kind)) {
            (Payloads::Short, Some(PAYLOAD)) => Some(payload_in_full(value.take())),
            (Payloads::Short, Some(PAYLOADS)) => payloads_in_full(value),
            _ => None,
        };
        replace(value, full)
    });
}

/// Shortens a response's payloads, and sorts map keys.
pub(super) fn shorten(value: &mut Value, message: &MessageDescriptor, payloads: Payloads) {
    walk(value, &Kind::Message(message.clone()), &|value, kind| {
        let short = match (payloads, message_name(kind)) {
            (Payloads::Short, Some(PAYLOAD)) => payload_in_short(value),
            (Payloads::Short, Some(PAYLOADS)) => payloads_in_short(value),
            _ => None,
        };
        replace(value, short)
    });
}

fn message_name(kind: &Kind) -> Option<&str> {
    if let Kind::Message(message) = kind { Some(message.full_name()) } else { None }
}

/// The walk does not descend into a replacement.
fn replace(value: &mut Value, other: Option<Value>) -> Descent {
    let Some(other) = other else { return Descent::GoesOn };
    *value = other;
    Descent::Ends
}

enum Descent {
    GoesOn,
    Ends,
}

/// Visits every value with its kind, from the top. Recursion is as deep as the JSON, which the parser bounds.
fn walk(value: &mut Value, kind: &Kind, change: &impl Fn(&mut Value, &Kind) -> Descent) {
    if let Descent::Ends = change(value, kind) {
        return;
    }
    let Kind::Message(message) = kind else { return };
    let Value::Object(object) = value else { return };
    let inner = inner_message(object, message);
    let message = inner.as_ref().unwrap_or(message);
    if message.full_name().starts_with(WELL_KNOWN) {
        return;
    }
    for (name, value) in object {
        let field = message.get_field_by_json_name(name).or_else(|| message.get_field_by_name(name));
        let Some(field) = field else { continue };
        let kind = field.kind();
        if field.is_list() {
            value.as_array_mut().into_iter().flatten().for_each(|item| walk(item, &kind, change));
        } else if field.is_map() {
            let (Some(entries), Kind::Message(entry)) = (value.as_object_mut(), kind) else { continue };
            let kind = entry.map_entry_value_field().kind();
            entries.sort_keys();
            entries.values_mut().for_each(|value| walk(value, &kind, change));
        } else if !value.is_null() {
            walk(value, &kind, change);
        }
    }
}

/// The message type that an `Any` declares.
fn inner_message(object: &Map<String, Value>, message: &MessageDescriptor) -> Option<MessageDescriptor> {
    if message.full_name() != ANY {
        return None;
    }
    let name = object.get("@type")?.as_str()?.rsplit('/').next()?;
    message.parent_pool().get_message_by_name(name)
}

/// `Running` for `WORKFLOW_EXECUTION_STATUS_RUNNING`.
fn expand_enum(value: &mut Value, values: &EnumDescriptor) {
    let Value::String(name) = value else { return };
    if values.get_value_by_name(name).is_none() {
        let full = screaming_snake_case(&format!("{}_{name}", values.name()));
        if values.get_value_by_name(&full).is_some() {
            *value = Value::String(full);
        }
    }
}

fn screaming_snake_case(text: &str) -> String {
    let mut snake = String::with_capacity(text.len() + 8);
    let mut previous = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let after_small = previous.is_some_and(|previous: char| previous.is_lowercase() || previous.is_ascii_digit());
        let ends_acronym =
            previous.is_some_and(char::is_uppercase) && characters.peek().copied().is_some_and(char::is_lowercase);
        if character.is_uppercase() && (after_small || ends_acronym) {
            snake.push('_');
        }
        snake.push(character.to_ascii_uppercase());
        previous = Some(character);
    }
    snake
}

/// `None` if they are in full, though each item may be in short.
fn payloads_in_full(value: &mut Value) -> Option<Value> {
    let items = std::mem::take(value.as_array_mut()?);
    let payloads: Vec<Value> = items.into_iter().map(payload_in_full).collect();
    Some(json!({ "payloads": payloads }))
}

fn payload_in_full(mut value: Value) -> Value {
    if value.is_null() {
        return null_payload();
    }
    let mut metadata = json!({ "encoding": encode(JSON) });
    if let Value::Object(object) = &mut value {
        if is_in_full(object) {
            return value;
        }
        if let Some(message_type) = object.get(MESSAGE_TYPE).and_then(Value::as_str) {
            metadata = json!({ "encoding": encode(PROTOBUF), "messageType": encode(message_type) });
            object.shift_remove(MESSAGE_TYPE);
        }
    }
    json!({ "metadata": metadata, "data": encode(value.to_string()) })
}

fn null_payload() -> Value {
    json!({ "metadata": { "encoding": encode(NULL) } })
}

/// Metadata with an encoding, data, and nothing else; any other object is plain JSON.
fn is_in_full(object: &Map<String, Value>) -> bool {
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else { return false };
    let Some(encoding) = metadata.get("encoding") else { return false };
    if object.len() == 1 {
        return decode(encoding).as_deref() == Some(NULL.as_bytes());
    }
    object.len() == 2
        && object.get("data").is_some_and(|data| decode(data).is_some())
        && metadata.values().all(|value| decode(value).is_some())
}

fn payloads_in_short(value: &Value) -> Option<Value> {
    let Some(payloads) = value.get("payloads") else { return Some(json!([])) };
    // All or none: an item's form must not be ambiguous.
    payloads.as_array()?.iter().map(payload_in_short).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// `None` if it holds no JSON, has more than JSON can express, or would take too much memory as a tree.
fn payload_in_short(payload: &Value) -> Option<Value> {
    let metadata = payload.get("metadata")?.as_object()?;
    let encoding = decode(metadata.get("encoding")?)?;
    if encoding == NULL.as_bytes() {
        return Some(null_payload());
    }
    let data = decode(payload.get("data")?)?;
    if n_values(&data) > VALUES_MAX {
        return None;
    }
    if encoding == JSON.as_bytes() && metadata.len() == 1 {
        let value: Value = serde_json::from_slice(&data).ok()?;
        return Some(if value.is_null() { null_payload() } else { value });
    }
    if encoding == PROTOBUF.as_bytes() && metadata.len() == 2 {
        let message_type = String::from_utf8(decode(metadata.get("messageType")?)?).ok()?;
        let mut message: Map<String, Value> = serde_json::from_slice(&data).ok()?;
        message.insert(MESSAGE_TYPE.to_owned(), message_type.into());
        return Some(Value::Object(message));
    }
    None
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn decode(value: &Value) -> Option<Vec<u8>> {
    let text = value.as_str()?;
    let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    engine.decode(text).ok()
}

#[cfg(test)]
mod tests;
