//! The servers of the public API, gRPC and HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::Either;
use http_body_util::Full;
use persistence::engine::Availability;
use proto::everrow::admin::admin_service_server::AdminServiceServer;
use proto::temporal::api::operatorservice::v1::operator_service_server::OperatorServiceServer;
use proto::temporal::api::workflowservice::v1::workflow_service_server::WorkflowServiceServer;
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::StartError;
use crate::config::HttpConfig;
use crate::frontend::{Admin, Frontend, Guarded};
use crate::http_api::{Access, Gateway, HttpResponse};
use accept::Protocol;
use connection::Api;
pub(super) use ledger::Ledger;

mod ledger;
mod bodies;
mod connection;
mod accept;

/// Names in health checks of load balancers and SDKs; the empty one is the whole server.
pub(super) const HEALTH_NAMES: [&str; 3] =
    ["", "temporal.api.workflowservice.v1.WorkflowService", "temporal.api.operatorservice.v1.OperatorService"];

/// The limit that clients expect. Larger payloads would not fit into the store's batches anyway.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Also returns the address: port 0 has become a real one.
pub(super) fn bind(address: SocketAddr) -> Result<(TcpIncoming, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address, error };
    let incoming = TcpIncoming::bind(address).map_err(failed)?;
    let bound = incoming.local_addr().map_err(failed)?;
    // Responses are small, and clients wait for them.
    Ok((incoming.with_nodelay(Some(true)).with_keepalive(Some(accept::KEEPALIVE_EVERY)), bound))
}

type Workflows = Guarded<WorkflowServiceServer<Frontend>>;

/// All services. Nearly all calls are for `workflows`, which is called without a route lookup: that took some 2 % of
/// the server's CPU time.
#[derive(Clone)]
pub(super) struct PublicApi {
    workflows: Workflows,
    all: Routes,
}

impl Service<http::Request<Body>> for PublicApi {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future =
        Either<<Workflows as Service<http::Request<Body>>>::Future, <Routes as Service<http::Request<Body>>>::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        std::task::ready!(self.workflows.poll_ready(context))?;
        Service::<http::Request<Body>>::poll_ready(&mut self.all, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = request.uri().path().split('/').nth(1);
        match service {
            Some(Workflows::NAME) => Either::Left(self.workflows.call(request)),
            _ => Either::Right(self.all.call(request)),
        }
    }
}

/// All services, and their health reporter.
pub(super) async fn public_api(
    frontend: Frontend,
    store: &watch::Receiver<Availability>,
) -> (HealthReporter, PublicApi) {
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in HEALTH_NAMES {
        health.set_service_status(service, ServingStatus::Serving).await;
    }
    let admin_service = AdminServiceServer::new(Admin(frontend.clone())).accept_compressed(CompressionEncoding::Gzip);
    let workflow_service = WorkflowServiceServer::new(frontend.clone())
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .accept_compressed(CompressionEncoding::Gzip);
    let operator_service = OperatorServiceServer::new(frontend)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .accept_compressed(CompressionEncoding::Gzip);
    let reflection =
        || tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(proto::DESCRIPTORS);
    let reflection_v1 = reflection().build_v1().expect("our own descriptors are complete");
    let reflection_v1alpha = reflection().build_v1alpha().expect("our own descriptors are complete");
    let workflows = Guarded::new(workflow_service, store.clone());
    // Some clients compress whatever they send.
    let all = Routes::new(workflows.clone())
        .add_service(Guarded::new(operator_service, store.clone()))
        .add_service(Guarded::new(admin_service, store.clone()))
        .add_service(health_service.accept_compressed(CompressionEncoding::Gzip))
        .add_service(reflection_v1.accept_compressed(CompressionEncoding::Gzip))
        .add_service(reflection_v1alpha.accept_compressed(CompressionEncoding::Gzip));
    (health, PublicApi { workflows, all: all.prepare() })
}

impl Api for PublicApi {
    type Body = Body;

    fn refusal(status: Status) -> http::Response<Body> {
        status.into_http()
    }
}

impl Api for Gateway {
    type Body = Full<Bytes>;

    fn refusal(status: Status) -> HttpResponse {
        Self::refusal(&status)
    }
}

/// The JSON gateway to the same services.
pub(super) fn gateway(api: &PublicApi, config: &HttpConfig) -> Gateway {
    Gateway::new(api.all.clone(), Access::new(config))
}

pub(super) async fn serve_grpc(
    api: PublicApi,
    incoming: TcpIncoming,
    ledger: Arc<Ledger>,
    stop: watch::Receiver<bool>,
) {
    accept::serve(api, incoming, Protocol::Http2, ledger, stop).await;
}

/// The same services, for JSON over HTTP/1 and HTTP/2.
pub(super) async fn serve_http(
    gateway: Gateway,
    incoming: TcpIncoming,
    ledger: Arc<Ledger>,
    stop: watch::Receiver<bool>,
) {
    accept::serve(gateway, incoming, Protocol::Http1And2, ledger, stop).await;
}

/// Health follows the store until the node stops; the status set at shutdown stays.
pub(super) async fn follow_store(
    health: HealthReporter,
    mut store: watch::Receiver<Availability>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            changed = store.changed() => if changed.is_err() { return },
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let status = match *store.borrow_and_update() {
            Availability::Up => ServingStatus::Serving,
            Availability::Down(_) => ServingStatus::NotServing,
        };
        for service in HEALTH_NAMES {
            if !*stop.borrow() {
                health.set_service_status(service, status).await;
            }
        }
    }
}
