//! Calls of the public API, over a few connections. Transient errors are retried, and counted.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::record::Recorder;

/// Timeout of a call that is no long poll; then it is retried.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a long poll. Servers end one after a minute at the latest; later, they count as unresponsive.
pub(crate) const POLL_TIMEOUT: Duration = Duration::from_secs(70);
/// Retry deadline of a call.
const PATIENCE: Duration = Duration::from_secs(60);
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP/2 closes a connection on which small messages arrive faster than they are read, relative to its window: with
/// the default window, a hundred responses at once are too many, and their tasks are lost until they time out.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// A history page may have as many bytes as a server is willing to send.
const MESSAGE_BYTES_MAX: usize = 128 << 20;

pub(crate) type Service = WorkflowServiceClient<Channel>;

#[derive(Clone)]
pub(crate) struct Client {
    services: Arc<[Service]>,
    next: Arc<AtomicUsize>,
    recorder: Arc<Recorder>,
}

impl Client {
    pub(crate) async fn connect(address: &str, n_connections: usize, recorder: Arc<Recorder>) -> Result<Self> {
        let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let mut services = Vec::new();
        for _ in 0..n_connections.max(1) {
            let endpoint = Endpoint::from_shared(url.clone())
                .with_context(|| format!("{address} is no address"))?
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
            let channel = endpoint.connect().await.with_context(|| format!("cannot connect to {address}"))?;
            services.push(Service::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX));
        }
        Ok(Self { services: services.into(), next: Arc::default(), recorder })
    }

    /// The next connection, round robin.
    fn service(&self) -> Service {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.services[turn % self.services.len()].clone()
    }

    /// A call that is no long poll. Its request is idempotent, so that retries do no harm.
    pub(crate) async fn call<Q, A, F>(&self, message: &Q, send: impl Fn(Service, Request<Q>) -> F) -> Result<A, Status>
    where
        Q: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.call_within(CALL_TIMEOUT, message, send).await
    }

    pub(crate) async fn call_within<Q, A, F>(
        &self,
        timeout: Duration,
        message: &Q,
        send: impl Fn(Service, Request<Q>) -> F,
    ) -> Result<A, Status>
    where
        Q: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let deadline = Instant::now() + PATIENCE.max(timeout);
        let mut backoff = BACKOFF_FIRST;
        loop {
            let mut request = Request::new(message.clone());
            request.set_timeout(timeout);
            let status = match send(self.service(), request).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) => status,
            };
            self.recorder.error(status.code());
            if !is_passing(status.code()) || Instant::now() + backoff > deadline {
                return Err(status);
            }
            tokio::time::sleep(backoff).await;
            backoff = (2 * backoff).min(BACKOFF_MAX);
        }
    }
}

/// Whether a retry may succeed: the codes that SDKs retry as well.
fn is_passing(code: Code) -> bool {
    match code {
        Code::Unavailable
        | Code::ResourceExhausted
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Cancelled
        | Code::Internal
        | Code::Unknown
        | Code::DataLoss => true,
        Code::Ok
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => false,
    }
}
