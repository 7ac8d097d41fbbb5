//! From a message or an error to an HTTP response. Pure.

use bytes::Bytes;
use cluster::errors::ServiceError;
use http_body_util::Full;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, SerializeOptions};
use proto::google::rpc;
use serde_json::{Value, json};
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderValue};
use tonic::codegen::http::{Response, StatusCode};
use tonic::{Code, Status};

use super::format::{Format, Layout, PLAIN};
use super::shorthand;

pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// Response with a message of our services.
///
/// # Errors
/// `Internal` if this build has no descriptor of a part of it.
pub(super) fn success(output: &MessageDescriptor, reply: Bytes, format: Format) -> Result<HttpResponse, ServiceError> {
    let message = DynamicMessage::decode(output.clone(), reply)
        .map_err(|error| ServiceError::Internal(format!("cannot read our own answer: {error}")))?;
    let unknown = || ServiceError::Internal("the answer has a part of an unknown type".into());
    let json = json_of(&message, format).ok_or_else(unknown)?;
    Ok(response(StatusCode::OK, &json, format))
}

/// Response to an unreadable path, in plain text: the request did not reach the API.
pub(super) fn unreadable_path() -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from_static(b"400 Bad Request")));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The OpenAPI description.
pub(super) fn description(document: Bytes) -> HttpResponse {
    let mut response = Response::new(Full::new(document));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/vnd.oai.openapi;version=3.0"));
    response
}

/// A `google.rpc.Status`, with the typed details that gRPC clients get.
pub(super) fn failure(status: &Status, pool: &DescriptorPool, format: Format) -> HttpResponse {
    let bare = || json!({ "code": i32::from(status.code()), "message": status.message() });
    let body = detailed(status, pool).and_then(|message| json_of(&message, format)).unwrap_or_else(bare);
    response(http_status(status.code()), &body, format)
}

/// The same without details, for requests refused before the API is read.
pub(super) fn plain_failure(status: &Status) -> HttpResponse {
    let body = json!({ "code": i32::from(status.code()), "message": status.message() });
    response(http_status(status.code()), &body, PLAIN.1)
}

/// Response to a denied request.
pub(super) fn denied((status, code, message): (StatusCode, Code, &str)) -> HttpResponse {
    response(status, &json!({ "code": i32::from(code), "message": message }), PLAIN.1)
}

/// Response to a preflight request.
pub(super) fn no_content() -> HttpResponse {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

fn detailed(status: &Status, pool: &DescriptorPool) -> Option<DynamicMessage> {
    let mut details: rpc::Status = prost::Message::decode(status.details()).ok()?;
    details.code = status.code().into();
    details.message = status.message().to_owned();
    let description = pool.get_message_by_name("google.rpc.Status")?;
    DynamicMessage::decode(description, details.encode_to_vec().as_slice()).ok()
}

fn json_of(message: &DynamicMessage, format: Format) -> Option<Value> {
    let options = SerializeOptions::new();
    let mut json = message.serialize_with_options(serde_json::value::Serializer, &options).ok()?;
    shorthand::shorten(&mut json, &message.descriptor(), format.payloads);
    Some(json)
}

fn response(status: StatusCode, body: &Value, format: Format) -> HttpResponse {
    let text = match format.layout {
        Layout::OneLine => body.to_string(),
        Layout::Indented => format!("{body:#}"),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}

/// The usual mapping of gRPC gateways.
fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        // Client closed request: not in any standard, but commonly used.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
