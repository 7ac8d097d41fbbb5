//! Admission of web browsers' requests. There is no authorisation yet, so a browser on this machine bypasses the
//! loopback address: any page may send it requests, and one that points its own name here (DNS rebinding) reads the
//! responses too. Pure.

use std::net::IpAddr;

use tonic::Code;
use tonic::codegen::http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, VARY};
use tonic::codegen::http::request::Parts;
use tonic::codegen::http::uri::Authority;
use tonic::codegen::http::{HeaderMap, Method, StatusCode};

use crate::config::HttpConfig;

const ANY: &str = "*";
const ALLOW_ORIGIN: HeaderName = HeaderName::from_static("access-control-allow-origin");
const ALLOW_METHODS: HeaderName = HeaderName::from_static("access-control-allow-methods");
const ALLOW_HEADERS: HeaderName = HeaderName::from_static("access-control-allow-headers");
const REQUEST_METHOD: HeaderName = HeaderName::from_static("access-control-request-method");
/// Request headers that the API reads.
const READ_HEADERS: &str =
    "content-type, authorization, authorization-extras, grpc-timeout, client-name, client-version";

/// Allowed hosts and origins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Result of a passed check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Granted,
    /// For a page of another origin, which the response must name to the browser.
    ToOrigin(HeaderValue),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    Host,
    Origin,
    /// Any page can post a form without a preflight request; JSON it cannot.
    NotJson,
}

impl Access {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let lower =
            |names: &[String]| names.iter().map(|name| name.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { hosts: lower(&config.allowed_hosts), origins: lower(&config.allowed_origins) }
    }

    /// A request without a body needs no content type: it cannot be a form.
    pub(super) fn check(&self, parts: &Parts, has_body: bool) -> Result<Admission, Denied> {
        let host = host(parts).ok_or(Denied::Host)?;
        if let Some(host) = &host
            && !self.is_host(host)
        {
            return Err(Denied::Host);
        }
        let admission = self.check_origin(&parts.headers, host.as_ref())?;
        let only_reads = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if has_body && !only_reads && !is_json(&parts.headers) {
            return Err(Denied::NotJson);
        }
        Ok(admission)
    }

    fn check_origin(&self, headers: &HeaderMap, host: Option<&Authority>) -> Result<Admission, Denied> {
        let Some(origin) = headers.get(ORIGIN) else { return Ok(Admission::Granted) };
        let text = origin.to_str().map_err(|_| Denied::Origin)?.to_ascii_lowercase();
        let own = text.split_once("://").map(|(_, authority)| authority);
        if own.is_some() && own == host.map(|host| host.as_str().to_ascii_lowercase()).as_deref() {
            return Ok(Admission::Granted);
        }
        let is_listed = self.origins.iter().any(|allowed| allowed == ANY || *allowed == text);
        if is_listed { Ok(Admission::ToOrigin(origin.clone())) } else { Err(Denied::Origin) }
    }

    /// Any address passes: a name's owner can point it anywhere, an address is fixed.
    fn is_host(&self, host: &Authority) -> bool {
        let name = host.host().trim_end_matches('.').to_ascii_lowercase();
        let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let is_this_machine = name == "localhost" || name.ends_with(".localhost");
        is_address || is_this_machine || self.hosts.iter().any(|allowed| allowed == ANY || *allowed == name)
    }
}

impl Admission {
    /// Marks a response as readable by the page.
    pub(super) fn mark(self, headers: &mut HeaderMap) {
        if let Self::ToOrigin(origin) = self {
            headers.insert(ALLOW_ORIGIN, origin);
            headers.insert(VARY, HeaderValue::from_static("origin"));
        }
    }
}

impl Denied {
    pub(super) fn answer(&self) -> (StatusCode, Code, &'static str) {
        match self {
            Self::Host => (StatusCode::FORBIDDEN, Code::PermissionDenied, "Host not allowed"),
            Self::Origin => (StatusCode::FORBIDDEN, Code::PermissionDenied, "Origin not allowed"),
            Self::NotJson => {
                let message = "Content-Type must be application/json";
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument, message)
            }
        }
    }
}

/// Whether this is a browser's preflight request.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS && parts.headers.contains_key(ORIGIN) && parts.headers.contains_key(REQUEST_METHOD)
}

/// Response headers for it, besides the origin.
pub(super) fn answer_preflight(headers: &mut HeaderMap) {
    headers.insert(ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE"));
    headers.insert(ALLOW_HEADERS, HeaderValue::from_static(READ_HEADERS));
}

/// HTTP/2 has it in the request's URI. `Some(None)` if there is none, which only HTTP/1.0 allows and no browser sends.
/// `None` if it cannot be read.
fn host(parts: &Parts) -> Option<Option<Authority>> {
    if let Some(authority) = parts.uri.authority() {
        return Some(Some(authority.clone()));
    }
    let Some(host) = parts.headers.get(HOST) else { return Some(None) };
    Authority::try_from(host.as_bytes()).ok().map(Some)
}

/// `application/json`, and the forms of it that the API knows (`application/json+pretty`).
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).into_iter();
    let Some(Ok(only)) = types.next().map(HeaderValue::to_str) else { return false };
    let essence = only.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    types.next().is_none() && (essence == "application/json" || essence.starts_with("application/json+"))
}

#[cfg(test)]
mod tests;
