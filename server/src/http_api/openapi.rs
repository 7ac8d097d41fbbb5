//! The OpenAPI 3 description of the HTTP API, built from the same annotations as the routes. Pure.

use std::collections::BTreeMap;

use cluster::version;
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::routes::{RequestBody, Route, RouteTable};

/// Depth of nested fields that are query parameters: `execution.runId` has 2.
const PARAMETER_DEPTH: usize = 2;

/// Location of message schemas.
const SCHEMAS: &str = "#/components/schemas";

pub(super) fn document(routes: &RouteTable) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: Map<String, Value> = Map::new();
    let mut n_ways: BTreeMap<&str, usize> = BTreeMap::new();
    for route in routes.iter() {
        let n = n_ways.entry(route.rpc_name()).and_modify(|n| *n += 1).or_insert(1);
        // Most calls have two paths, and each needs a unique id.
        let name = if *n == 1 { route.rpc_name().to_owned() } else { format!("{}{n}", route.rpc_name()) };
        let path = paths.entry(route.template()).or_insert_with(|| json!({}));
        path[route.verb().as_str().to_lowercase()] = operation(route, name, &mut schemas);
    }
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Everrow: Temporal's API over HTTP", "version": version::COMPATIBLE_SERVER },
        "paths": paths,
        "components": { "schemas": schemas.described },
    })
}

fn operation(route: &Route, name: String, schemas: &mut Schemas) -> Value {
    let answer = json!({ "application/json": { "schema": schemas.of_message(&route.output) } });
    let mut parameters: Vec<Value> = route.path_fields().map(path_parameter).collect();
    if !matches!(route.body, RequestBody::Whole) {
        let in_path: Vec<&str> = route.path_fields().collect();
        let query = query_fields(&route.input, PARAMETER_DEPTH);
        let query = query.into_iter().filter(|(name, _, _)| !in_path.contains(&name.as_str()));
        parameters.extend(
            query.map(|(_, name, field)| json!({ "name": name, "in": "query", "schema": schemas.of_field(&field) })),
        );
    }
    let mut operation = json!({
        "operationId": name,
        "parameters": parameters,
        "responses": { "200": { "description": "the answer", "content": answer } },
    });
    if let Some(body) = body_of(route, schemas) {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": body } } });
    }
    operation
}

fn path_parameter(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

fn body_of(route: &Route, schemas: &mut Schemas) -> Option<Value> {
    match &route.body {
        RequestBody::Absent => None,
        RequestBody::Whole => Some(schemas.of_message(&route.input)),
        RequestBody::Field(name) => route.input.get_field_by_name(name).map(|field| schemas.of_field(&field)),
    }
}

/// Fields of a message that a query may set: path in the API's own names, path in JSON names, and the field.
fn query_fields(message: &MessageDescriptor, depth: usize) -> Vec<(String, String, FieldDescriptor)> {
    let mut found = Vec::new();
    for field in message.fields() {
        let kind = field.kind();
        let Some(inner) = kind.as_message().filter(|inner| well_known(inner).is_none()) else {
            found.push((field.name().to_owned(), field.json_name().to_owned(), field));
            continue;
        };
        if field.is_list() || field.is_map() || depth == 1 {
            continue;
        }
        let inner = query_fields(inner, depth - 1).into_iter();
        let (name, json_name) = (field.name(), field.json_name());
        found.extend(
            inner.map(|(own, in_json, field)| (format!("{name}.{own}"), format!("{json_name}.{in_json}"), field)),
        );
    }
    found
}

/// The messages and enums that are described, by their full names.
#[derive(Default)]
struct Schemas {
    described: BTreeMap<String, Value>,
}

impl Schemas {
    fn of_message(&mut self, message: &MessageDescriptor) -> Value {
        if let Some(schema) = well_known(message) {
            return schema;
        }
        let name = message.full_name();
        if !self.described.contains_key(name) {
            // Inserted before its fields are visited: messages may be recursive.
            self.described.insert(name.to_owned(), Value::Null);
            let fields = message.fields().map(|field| (field.json_name().to_owned(), self.of_field(&field)));
            let properties: Map<String, Value> = fields.collect();
            self.described.insert(name.to_owned(), json!({ "type": "object", "properties": properties }));
        }
        json!({ "$ref": format!("{SCHEMAS}/{name}") })
    }

    fn of_field(&mut self, field: &FieldDescriptor) -> Value {
        let kind = field.kind();
        if let Some(entry) = kind.as_message().filter(|_| field.is_map()) {
            let value = self.of_kind(&entry.map_entry_value_field().kind());
            return json!({ "type": "object", "additionalProperties": value });
        }
        let schema = self.of_kind(&kind);
        if field.is_list() { json!({ "type": "array", "items": schema }) } else { schema }
    }

    fn of_kind(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Message(message) => self.of_message(message),
            Kind::Enum(values) => self.of_enum(values),
            Kind::String => json!({ "type": "string" }),
            Kind::Bytes => json!({ "type": "string", "format": "byte" }),
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!({ "type": "integer", "format": "int32" }),
            Kind::Uint32 | Kind::Fixed32 => json!({ "type": "integer", "format": "int64" }),
            // JSON numbers are too small for 64 bits.
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!({ "type": "string", "format": "int64" }),
            Kind::Uint64 | Kind::Fixed64 => json!({ "type": "string", "format": "uint64" }),
            Kind::Float => json!({ "type": "number", "format": "float" }),
            Kind::Double => json!({ "type": "number", "format": "double" }),
        }
    }

    fn of_enum(&mut self, values: &EnumDescriptor) -> Value {
        let name = values.full_name();
        let describe = || {
            let names: Vec<String> = values.values().map(|value| value.name().to_owned()).collect();
            json!({ "type": "string", "enum": names })
        };
        self.described.entry(name.to_owned()).or_insert_with(describe);
        json!({ "$ref": format!("{SCHEMAS}/{name}") })
    }
}

/// Messages with their own JSON forms.
fn well_known(message: &MessageDescriptor) -> Option<Value> {
    match message.full_name() {
        "google.protobuf.Timestamp" => Some(json!({ "type": "string", "format": "date-time" })),
        "google.protobuf.Duration" => Some(json!({ "type": "string", "example": "1.5s" })),
        "google.protobuf.FieldMask" => Some(json!({ "type": "string" })),
        "google.protobuf.Any" => Some(json!({ "type": "object", "additionalProperties": true })),
        // The plain value, or the payload in full.
        "temporal.api.common.v1.Payload" => Some(json!({ "description": "any JSON, or a payload in full" })),
        "temporal.api.common.v1.Payloads" => Some(json!({ "description": "a list of any JSON, or payloads in full" })),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
