//! The service of the HTTP port: parses a request, calls gRPC in this process, and responds.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use cluster::errors::{self, ServiceError};
use cluster::version;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::Service;
use tonic::codegen::http::request::Parts;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Status, client::Grpc};

use super::access::{self, Access};
use super::answer::{self, HttpResponse};
use super::format::Format;
use super::routes::{NotFound, Route, RouteTable};
use super::shorthand::Payloads;
use super::transcoder::Transcoder;
use super::{openapi, request};
use crate::frontend::grpc_timeout;

/// The same as for gRPC messages.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Longer than any call waits by itself; the reference closes connections then.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Path of the OpenAPI description. JSON is valid YAML.
const DESCRIPTION_PATH: &str = "/openapi.yaml";

const TIMEOUT_HEADER: &str = "grpc-timeout";
/// Headers forwarded to gRPC under their own names.
const FORWARDED: [&str; 6] =
    [TIMEOUT_HEADER, "authorization", "authorization-extras", "x-forwarded-for", "client-name", "client-version"];
/// Headers with this prefix are forwarded without it.
const METADATA_PREFIX: &str = "grpc-metadata-";
/// Default `client-name`: the reference's own for its HTTP API.
const CLIENT_NAME: &str = "temporal-server-http";

#[derive(Clone)]
pub(crate) struct Gateway {
    api: Arc<LazyLock<Api>>,
    access: Arc<Access>,
    grpc: Routes,
    transcoder: Transcoder,
}

/// The API, read from its descriptors.
struct Api {
    pool: DescriptorPool,
    routes: RouteTable,
    /// The OpenAPI text, built on first use.
    description: OnceLock<Bytes>,
}

impl Api {
    fn read() -> Self {
        let pool = DescriptorPool::decode(proto::DESCRIPTORS).expect("our own descriptors are complete");
        Self { routes: RouteTable::new(&pool), pool, description: OnceLock::new() }
    }

    fn description(&self) -> Bytes {
        self.description.get_or_init(|| openapi::document(&self.routes).to_string().into()).clone()
    }
}

impl Gateway {
    /// Descriptors are read at the first request: they take more memory than all the rest of an idle server, and most
    /// servers never get one.
    ///
    /// # Panics
    ///
    /// Not here, but at the first request, if our own descriptors cannot be read, which a test rules out.
    pub(crate) fn new(grpc: Routes, access: Access) -> Self {
        Self { api: Arc::new(LazyLock::new(Api::read)), access: Arc::new(access), grpc, transcoder: Transcoder::new() }
    }

    /// Response to a call that did not reach the API.
    pub(crate) fn refusal(status: &Status) -> HttpResponse {
        answer::plain_failure(status)
    }

    async fn admit(self, request: Request<Body>) -> HttpResponse {
        let (parts, body) = request.into_parts();
        let admission = match self.access.check(&parts, !body.is_end_stream()) {
            Ok(admission) => admission,
            Err(denied) => return answer::denied(denied.answer()),
        };
        let mut response = if access::is_preflight(&parts) {
            let mut response = answer::no_content();
            access::answer_preflight(response.headers_mut());
            response
        } else {
            self.answer(parts, body).await
        };
        admission.mark(response.headers_mut());
        response
    }

    async fn answer(self, parts: Parts, body: Body) -> HttpResponse {
        if parts.method == Method::GET && parts.uri.path() == DESCRIPTION_PATH {
            return answer::description(self.api.description());
        }
        if request::broken_escape(parts.uri.path()).is_some() {
            return answer::unreadable_path();
        }
        let (inbound, outbound) = Format::of(&parts.headers, parts.uri.query().unwrap_or_default());
        let answered = self.call(&parts, body, (inbound.payloads, outbound)).await;
        answered.unwrap_or_else(|status| answer::failure(&status, &self.api.pool, outbound))
    }

    async fn call(
        &self,
        parts: &Parts,
        body: Body,
        (payloads, outbound): (Payloads, Format),
    ) -> Result<HttpResponse, Status> {
        let metadata = metadata(&parts.headers);
        let timeout = patience(&metadata)?;
        let found = self.api.routes.find(&parts.method, parts.uri.path()).map_err(|not_found| match not_found {
            NotFound::Path => errors::no_such_path(),
            NotFound::Verb => ServiceError::Unimplemented("Method Not Allowed".into()).into(),
        })?;
        let route = Arc::clone(&found.route);
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let whole = async {
            let body = read(body).await?;
            let converted = self.transcoder.convert(body.len() + query.len(), move || {
                request::message(&found, &query, &body, payloads).map(|message| Bytes::from(message.encode_to_vec()))
            });
            let message = converted.await?.map_err(ServiceError::InvalidArgument)?;
            let reply = self.ask(&route, metadata, message).await?;
            let converted =
                self.transcoder.convert(reply.len(), move || answer::success(&route.output, reply, outbound));
            Ok(converted.await?.map_err(ServiceError::for_client)?)
        };
        let late = |_| ServiceError::DeadlineExceeded("context deadline exceeded".into());
        tokio::time::timeout(timeout, whole).await.map_err(late)?
    }

    async fn ask(&self, route: &Route, metadata: MetadataMap, message: Bytes) -> Result<Bytes, Status> {
        let request = tonic::Request::from_parts(metadata, tonic::Extensions::default(), message);
        // Our services bound their own responses.
        let mut grpc = Grpc::new(self.grpc.clone()).max_decoding_message_size(usize::MAX);
        Ok(grpc.unary(request, route.rpc.clone(), Encoded).await?.into_inner())
    }
}

impl Service<Request<Body>> for Gateway {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let gateway = self.clone();
        Box::pin(async move { Ok(gateway.admit(request).await) })
    }
}

async fn read(body: Body) -> Result<Bytes, Status> {
    let collected = Limited::new(body, BODY_BYTES_MAX).collect().await;
    collected.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.downcast_ref::<LengthLimitError>().is_some() {
            return ServiceError::InvalidArgument("http: request body too large".into()).into();
        }
        errors::unreadable_body(error)
    })
}

fn metadata(headers: &HeaderMap) -> MetadataMap {
    let mut forwarded = HeaderMap::new();
    forwarded.insert("client-name", HeaderValue::from_static(CLIENT_NAME));
    forwarded.insert("client-version", HeaderValue::from_static(version::COMPATIBLE_SERVER));
    for (name, value) in headers {
        let name = match name.as_str() {
            name if FORWARDED.contains(&name) => name,
            name => name.strip_prefix(METADATA_PREFIX).unwrap_or_default(),
        };
        if let Ok(name) = HeaderName::try_from(name) {
            forwarded.insert(name, value.clone());
        }
    }
    MetadataMap::from_headers(forwarded)
}

/// The client's timeout, at most `TIMEOUT`.
fn patience(metadata: &MetadataMap) -> Result<Duration, ServiceError> {
    let Some(given) = metadata.get(TIMEOUT_HEADER) else { return Ok(TIMEOUT) };
    let wrong = || ServiceError::InvalidArgument(format!("invalid grpc-timeout: {}", given.to_str().unwrap_or("?")));
    grpc_timeout(metadata).map(|timeout| timeout.min(TIMEOUT)).ok_or_else(wrong)
}

/// Codec of already encoded messages.
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
