//! Routes from path and verb to RPC, read from the `google.api.http` annotations of the public API. Pure.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, ReflectMessage as _};
use tonic::codegen::http::Method;
use tonic::codegen::http::uri::PathAndQuery;

const ANNOTATION: &str = "google.api.http";

/// Services exposed over HTTP, as in the reference.
const SERVICES: [&str; 2] =
    ["temporal.api.workflowservice.v1.WorkflowService", "temporal.api.operatorservice.v1.OperatorService"];

/// The fields of a rule that name a path, with their verbs.
const VERBS: [(&str, Method); 5] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("patch", Method::PATCH),
];

pub(super) struct RouteTable {
    routes: Vec<Arc<Route>>,
}

/// One binding of an RPC: most have two.
pub(super) struct Route {
    verb: Method,
    segments: Vec<Segment>,
    pub(super) body: RequestBody,
    pub(super) input: MessageDescriptor,
    pub(super) output: MessageDescriptor,
    /// The gRPC path.
    pub(super) rpc: PathAndQuery,
}

enum Segment {
    Literal(String),
    /// The path of a field of the request: `execution.workflow_id`.
    Field(String),
}

/// Content of a request's body.
pub(super) enum RequestBody {
    /// No body: fields come from path and query.
    Absent,
    /// The message, except fields in the path.
    Whole,
    /// One field of it; the query has the rest.
    Field(String),
}

/// A route, and the request fields in the path with their values.
pub(super) struct Found {
    pub(super) route: Arc<Route>,
    pub(super) fields: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotFound {
    /// No route has this path.
    Path,
    /// A route has this path, but not this verb.
    Verb,
}

impl RouteTable {
    /// # Panics
    ///
    /// If this build's annotations are not understood, which a test rules out.
    pub(super) fn new(pool: &DescriptorPool) -> Self {
        let services = SERVICES.map(|name| pool.get_service_by_name(name).expect("the public API has its services"));
        let mut routes = Vec::new();
        for method in services.iter().flat_map(|service| service.methods().collect::<Vec<_>>()) {
            let Some(rule) = annotation(pool, &method) else { continue };
            let additional = messages(&rule, "additional_bindings");
            routes.extend(std::iter::once(rule).chain(additional).map(|rule| Arc::new(Route::new(&method, &rule))));
        }
        Self { routes }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().map(Arc::as_ref)
    }

    /// The last one declared wins, as in the reference.
    pub(super) fn find(&self, verb: &Method, path: &str) -> Result<Found, NotFound> {
        let segments: Vec<&str> = path.strip_prefix('/').ok_or(NotFound::Path)?.split('/').collect();
        let mut not_found = NotFound::Path;
        for route in self.routes.iter().rev() {
            let Some(fields) = route.capture(&segments) else { continue };
            if route.verb == *verb {
                return Ok(Found { route: Arc::clone(route), fields });
            }
            not_found = NotFound::Verb;
        }
        Err(not_found)
    }
}

impl Route {
    fn new(method: &MethodDescriptor, rule: &DynamicMessage) -> Self {
        let path_of = |field: &str| Some(text(rule, field)).filter(|path| !path.is_empty());
        let (verb, path) = VERBS
            .iter()
            .find_map(|(field, verb)| path_of(field).map(|path| (verb.clone(), path)))
            .unwrap_or_else(|| panic!("{} has a path and a verb", method.full_name()));
        let rpc = format!("/{}/{}", method.parent_service().full_name(), method.name());
        Self {
            verb,
            segments: path.trim_start_matches('/').split('/').map(Segment::parse).collect(),
            body: match text(rule, "body").as_str() {
                "" => RequestBody::Absent,
                "*" => RequestBody::Whole,
                field => RequestBody::Field(field.to_owned()),
            },
            input: method.input(),
            output: method.output(),
            rpc: rpc.parse().expect("names of services and methods make a path"),
        }
    }

    pub(super) fn verb(&self) -> &Method {
        &self.verb
    }

    pub(super) fn rpc_name(&self) -> &str {
        self.rpc.path().rsplit('/').next().unwrap_or_default()
    }

    /// The path as it is declared, with fields in braces.
    pub(super) fn template(&self) -> String {
        let parts = self.segments.iter().map(|segment| match segment {
            Segment::Literal(literal) => format!("/{literal}"),
            Segment::Field(field) => format!("/{{{field}}}"),
        });
        parts.collect()
    }

    /// The request fields in the path.
    pub(super) fn path_fields(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(_) => None,
            Segment::Field(field) => Some(field.as_str()),
        })
    }

    /// The fields in the path, if it matches this route. Segments are decoded after the path is split, so that a
    /// workflow id may have a slash.
    fn capture(&self, segments: &[&str]) -> Option<Vec<(String, String)>> {
        if segments.len() != self.segments.len() {
            return None;
        }
        let mut fields = Vec::new();
        for (expected, given) in self.segments.iter().zip(segments) {
            let given = percent_decode_str(given).decode_utf8().ok()?;
            match expected {
                Segment::Literal(literal) if *literal != given => return None,
                Segment::Literal(_) => {}
                Segment::Field(field) => fields.push((field.clone(), given.into_owned())),
            }
        }
        Some(fields)
    }
}

impl Segment {
    fn parse(text: &str) -> Self {
        let Some(field) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            assert!(!text.contains(['{', '*', ':']), "{text} is a plain part of a path");
            return Self::Literal(text.to_owned());
        };
        let (name, pattern) = field.split_once('=').unwrap_or((field, "*"));
        assert_eq!(pattern, "*", "a field takes one part of a path");
        Self::Field(name.to_owned())
    }
}

fn annotation(pool: &DescriptorPool, method: &MethodDescriptor) -> Option<DynamicMessage> {
    let extension = pool.get_extension_by_name(ANNOTATION)?;
    let options = method.options();
    if !options.has_extension(&extension) {
        return None;
    }
    options.get_extension(&extension).as_message().cloned()
}

fn text(rule: &DynamicMessage, field: &str) -> String {
    let field = rule.descriptor().get_field_by_name(field).expect("rules have this field");
    rule.get_field(&field).as_str().unwrap_or_default().to_owned()
}

fn messages(rule: &DynamicMessage, field: &str) -> Vec<DynamicMessage> {
    let field = rule.descriptor().get_field_by_name(field).expect("rules have this field");
    let list = rule.get_field(&field);
    list.as_list().into_iter().flatten().filter_map(|item| item.as_message().cloned()).collect()
}

#[cfg(test)]
mod tests;
