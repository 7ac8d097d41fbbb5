//! Checks of Nexus endpoints. All issues are reported at once.

use cluster::errors::ServiceError;
use proto::temporal::api::nexus::v1::endpoint_target::Variant;
use proto::temporal::api::nexus::v1::{EndpointSpec, EndpointTarget, endpoint_target};
use tonic::codegen::http::Uri;
use uuid::Uuid;

use super::{invalid, task_queue};

const NAME_BYTES_MAX: usize = 200;
const URL_BYTES_MAX: usize = 4 << 10;
const DESCRIPTION_BYTES_MAX: usize = 20_000;
/// As quoted in the error.
const NAME_PATTERN: &str = r"^[a-zA-Z][a-zA-Z0-9\-]*[a-zA-Z0-9]$";

const PAGE: usize = 100;
const PAGE_MAX: usize = 1000;

/// Issues of a request, in order.
#[derive(Default)]
struct Issues(Vec<String>);

impl Issues {
    fn add(&mut self, issue: impl Into<String>) {
        self.0.push(issue.into());
    }

    fn into_result(self) -> Result<(), ServiceError> {
        if self.0.is_empty() { Ok(()) } else { Err(invalid(self.0.join(", "))) }
    }
}

/// Checks an endpoint's spec. `found` checks that its target namespace exists.
pub(crate) fn spec(
    spec: Option<&EndpointSpec>,
    found: impl FnOnce(&str) -> Result<(), ServiceError>,
) -> Result<(), ServiceError> {
    let spec = spec.cloned().unwrap_or_default();
    let mut issues = Issues::default();
    name(&spec.name, &mut issues);
    let Some(EndpointTarget { variant: Some(variant) }) = &spec.target else {
        issues.add("empty target variant");
        return issues.into_result();
    };
    match variant {
        Variant::Worker(endpoint_target::Worker { namespace, task_queue: queue }) => {
            if namespace.is_empty() {
                issues.add("target namespace not set");
            } else {
                found(namespace)?;
            }
            if let Err(error) = task_queue::named(queue) {
                issues.add(format!("invalid target task queue: {:?}", error.to_string()));
            }
        }
        Variant::External(endpoint_target::External { url: address }) => url(address, &mut issues),
    }
    if spec.description.as_ref().map_or(0, prost::Message::encoded_len) > DESCRIPTION_BYTES_MAX {
        issues.add(format!("description size exceeds limit of {DESCRIPTION_BYTES_MAX}"));
    }
    issues.into_result()
}

/// Checks a deletion; returns the endpoint's id.
pub(crate) fn deleted(id: &str, version: i64) -> Result<Uuid, ServiceError> {
    let mut issues = Issues::default();
    let parsed = endpoint_id(id, &mut issues);
    if version <= 0 {
        issues.add("endpoint version is non-positive");
    }
    issues.into_result()?;
    Ok(parsed)
}

/// Checks and returns an endpoint's id.
pub(crate) fn asked_for(id: &str) -> Result<Uuid, ServiceError> {
    let mut issues = Issues::default();
    let parsed = endpoint_id(id, &mut issues);
    issues.into_result()?;
    Ok(parsed)
}

pub(crate) fn page_size(size: i32) -> Result<usize, ServiceError> {
    match usize::try_from(size) {
        Err(_) => Err(invalid("page_size is negative")),
        Ok(0) => Ok(PAGE),
        Ok(size) if size > PAGE_MAX => Err(invalid(format!("page_size exceeds limit of {PAGE_MAX}"))),
        Ok(size) => Ok(size),
    }
}

fn endpoint_id(id: &str, issues: &mut Issues) -> Uuid {
    if id.is_empty() {
        issues.add("endpoint ID not set");
        return Uuid::nil();
    }
    Uuid::try_parse(id).unwrap_or_else(|_| {
        let reason = match id.len() {
            36 => "invalid UUID format".to_owned(),
            length => format!("invalid UUID length: {length}"),
        };
        issues.add(format!("malformed endpoint ID: {reason:?}"));
        Uuid::nil()
    })
}

fn name(name: &str, issues: &mut Issues) {
    if name.is_empty() {
        return issues.add("endpoint name not set");
    }
    if name.len() > NAME_BYTES_MAX {
        issues.add(format!("endpoint name exceeds length limit of {NAME_BYTES_MAX}"));
    }
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let ends = name.len() > 1 && name.ends_with(|last: char| last.is_ascii_alphanumeric());
    if !begins || !ends || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        issues.add(format!("endpoint name must match the regex: {NAME_PATTERN:?}"));
    }
}

fn url(url: &str, issues: &mut Issues) {
    if url.is_empty() {
        return issues.add("empty target URL");
    }
    if url.len() > URL_BYTES_MAX {
        return issues.add(format!("target URL length exceeds limit of {URL_BYTES_MAX}"));
    }
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !matches!(scheme, "http" | "https") {
        return issues.add(format!("invalid target URL scheme: {scheme:?}, expected http or https"));
    }
    if let Err(error) = url.parse::<Uri>() {
        let host = url.split("://").nth(1).unwrap_or_default().split(['/', '?', '#']).next().unwrap_or_default();
        let is_wrong = |character: &char| character.is_ascii_whitespace() || "<>\"".contains(*character);
        let reason = match host.chars().find(is_wrong) {
            Some(wrong) => format!("invalid character \"{wrong}\" in host name"),
            None => error.to_string(),
        };
        issues.add(format!("invalid target URL: parse {url:?}: {reason}"));
    }
}
