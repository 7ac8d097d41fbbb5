//! From a path, a query and a body to a message. All three are merged into one JSON tree, which is then read as the
//! message. Pure.

use std::collections::HashMap;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use cluster::spans;
use percent_encoding::percent_decode_str;
use prost_reflect::{DeserializeOptions, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::routes::{Found, RequestBody};
use super::shorthand::{self, Payloads};
use super::transcoder::{VALUES_MAX, n_values};

/// Error of a request, for the client.
pub(super) type Wrong = String;

/// Nesting depth that the parser accepts.
const JSON_DEPTH: usize = 128;

pub(super) fn message(found: &Found, query: &str, body: &[u8], payloads: Payloads) -> Result<DynamicMessage, Wrong> {
    let input = &found.route.input;
    let mut tree = Map::new();
    match &found.route.body {
        RequestBody::Absent => {}
        RequestBody::Whole => tree = parse(body)?,
        RequestBody::Field(field) => {
            tree.insert(field.clone(), Value::Object(parse(body)?));
        }
    }
    let mut tree = Value::Object(tree);
    shorthand::expand(&mut tree, input, payloads);
    let mut tree = Tree { root: tree, message: input };
    for (path, value) in &found.fields {
        tree.set(path, &[value])?;
    }
    if !matches!(found.route.body, RequestBody::Whole) {
        for (key, values) in parameters(query)? {
            tree.set_parameter(&key, &values, found)?;
        }
    }
    DynamicMessage::deserialize_with_options(input.clone(), tree.root, &DeserializeOptions::new())
        .map_err(|error| error.to_string())
}

fn parse(body: &[u8]) -> Result<Map<String, Value>, Wrong> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    if n_values(body) > VALUES_MAX {
        return Err(format!("the body has more than {VALUES_MAX} values"));
    }
    serde_json::from_slice(body).map_err(|error| {
        // The only error that is about the parser and not about the text.
        let is_too_deep = error.to_string().starts_with("recursion limit exceeded");
        if is_too_deep { format!("the body is nested more than {JSON_DEPTH} levels deep") } else { error.to_string() }
    })
}

/// The parameters of a query by name, in order of first occurrence.
fn parameters(query: &str) -> Result<Vec<(String, Vec<String>)>, Wrong> {
    let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decode(key)?, decode(value)?);
        let place = *places.entry(key).or_insert_with_key(|key| {
            parameters.push((key.clone(), Vec::new()));
            parameters.len() - 1
        });
        parameters[place].1.push(value);
    }
    Ok(parameters)
}

fn decode(text: &str) -> Result<String, Wrong> {
    if let Some(escape) = broken_escape(text) {
        return Err(format!("invalid URL escape {escape:?}"));
    }
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().map_err(|_| format!("invalid URL escape in {text:?}"))?;
    Ok(decoded.into_owned())
}

/// The first `%` that two hexadecimal digits do not follow, with the next two characters.
pub(super) fn broken_escape(text: &str) -> Option<&str> {
    let is_broken = |at: &usize| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let at = text.match_indices('%').map(|(at, _)| at).find(is_broken)?;
    Some(text.get(at..at + 3).unwrap_or(&text[at..]))
}

/// A message as JSON, and its descriptor.
struct Tree<'a> {
    root: Value,
    message: &'a MessageDescriptor,
}

impl Tree<'_> {
    /// Sets a query parameter, unless it names no field or the path has it already.
    fn set_parameter(&mut self, key: &str, values: &[String], found: &Found) -> Result<(), Wrong> {
        let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut path = key;
        if let Some((map, entry)) = key.strip_suffix(']').and_then(|key| key.split_once('[')) {
            path = map;
            values.insert(0, entry);
        }
        let fields = fields_of(self.message, path)?;
        let Some(last) = fields.last() else { return Ok(()) };
        let names: Vec<&str> = fields.iter().map(FieldDescriptor::name).collect();
        let is_in_path = found.fields.iter().any(|(path, _)| names.join(".") == *path);
        if is_in_path || (last.is_map() && values.len() != 2) {
            return Ok(());
        }
        self.set(path, &values)
    }

    fn set(&mut self, path: &str, values: &[impl AsRef<str>]) -> Result<(), Wrong> {
        let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
        let fields = fields_of(self.message, path)?;
        let Some((last, parents)) = fields.split_last() else { return Ok(()) };
        let mut parent = &mut self.root;
        for field in parents {
            parent = place(parent, field)?;
        }
        let place = place(parent, last)?;
        if last.is_list() {
            let items: Result<Vec<_>, _> = values.iter().map(|text| value_of(last, &last.kind(), text)).collect();
            *place = Value::Array(items?);
        } else if last.is_map() {
            let Kind::Message(entry) = last.kind() else { return Ok(()) };
            let value = value_of(last, &entry.map_entry_value_field().kind(), values[1])?;
            object_in(place, last)?.insert(values[0].to_owned(), value);
        } else if let [text] = values[..] {
            *place = value_of(last, &last.kind(), text)?;
        } else {
            return Err(format!("too many values for field {:?}: {}", last.name(), values.join(", ")));
        }
        Ok(())
    }
}

/// The fields along a path of proto or JSON names; empty if a name does not exist.
fn fields_of(message: &MessageDescriptor, path: &str) -> Result<Vec<FieldDescriptor>, Wrong> {
    let mut fields: Vec<FieldDescriptor> = Vec::new();
    for name in path.split('.') {
        let message = match fields.last().map(|field| (field.kind(), field.is_list() || field.is_map())) {
            None => message.clone(),
            Some((Kind::Message(message), false)) => message,
            Some(_) => {
                let name = fields.last().map(|field| field.name().to_owned()).unwrap_or_default();
                return Err(format!("invalid path: {name:?} is not a message"));
            }
        };
        let field = message.get_field_by_name(name).or_else(|| message.get_field_by_json_name(name));
        let Some(field) = field else { return Ok(Vec::new()) };
        fields.push(field);
    }
    Ok(fields)
}

/// The JSON value of a message's field. The body may have it under either name.
fn place<'a>(parent: &'a mut Value, field: &FieldDescriptor) -> Result<&'a mut Value, Wrong> {
    let object = object_in(parent, field)?;
    if field.name() != field.json_name()
        && let Some(value) = object.shift_remove(field.name())
    {
        object.insert(field.json_name().to_owned(), value);
    }
    Ok(object.entry(field.json_name()).or_insert(Value::Null))
}

fn object_in<'a>(value: &'a mut Value, field: &FieldDescriptor) -> Result<&'a mut Map<String, Value>, Wrong> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let not_a_message = || format!("invalid path: {:?} is not in a message", field.name());
    value.as_object_mut().ok_or_else(not_a_message)
}

/// The JSON of a text in a path or a query.
fn value_of(field: &FieldDescriptor, kind: &Kind, text: &str) -> Result<Value, Wrong> {
    let wrong = |why: &str| format!("parsing field {:?}: {why}", field.name());
    let not_parsed = |function: &str, why: &str| wrong(&format!("strconv.{function}: parsing {text:?}: {why}"));
    let json = Value::String(text.to_owned());
    match kind {
        Kind::String => Ok(json),
        Kind::Bytes => match first_not_base64(text) {
            Some(at) => Err(wrong(&format!("illegal base64 data at input byte {at}"))),
            None => Ok(json),
        },
        Kind::Bool => bool_of(text).map(Value::Bool).ok_or_else(|| not_parsed("ParseBool", INVALID)),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => whole::<i32>(text).map_err(|why| not_parsed("ParseInt", why)),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => whole::<i64>(text).map_err(|why| not_parsed("ParseInt", why)),
        Kind::Uint32 | Kind::Fixed32 => whole::<u32>(text).map_err(|why| not_parsed("ParseUint", why)),
        Kind::Uint64 | Kind::Fixed64 => whole::<u64>(text).map_err(|why| not_parsed("ParseUint", why)),
        Kind::Float | Kind::Double => text.parse::<f64>().map(|_| json).map_err(|_| not_parsed("ParseFloat", INVALID)),
        Kind::Enum(values) => enum_of(values, text).ok_or_else(|| wrong(&format!("{text:?} is not a valid value"))),
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.Timestamp" => Ok(json),
            "google.protobuf.Duration" => spans::parse(text).map(seconds).ok_or_else(|| wrong("invalid duration")),
            name => Err(wrong(&format!("unsupported message type: {name:?}"))),
        },
    }
}

const INVALID: &str = "invalid syntax";

/// Parses an integer.
fn whole<T: FromStr<Err = ParseIntError> + Into<Value>>(text: &str) -> Result<Value, &'static str> {
    text.parse::<T>().map(Into::into).map_err(|error| {
        let is_too_far = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
        if is_too_far { "value out of range" } else { INVALID }
    })
}

/// First byte that is not base64, in either alphabet.
fn first_not_base64(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches('=');
    digits.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)))
}

fn bool_of(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn enum_of(values: &EnumDescriptor, text: &str) -> Option<Value> {
    let by_number = || text.parse().ok().and_then(|number| values.get_value(number));
    let value = values.get_value_by_name(text).or_else(by_number)?;
    Some(value.name().into())
}

fn seconds(nanos: i64) -> Value {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:09}s", nanos / 1_000_000_000, nanos % 1_000_000_000).into()
}

#[cfg(test)]
mod tests;
