//! One connection: from the socket to the calls on it, and its end.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cluster::errors::ServiceError;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};

use super::bodies::{Answer, Upload};
use super::ledger::{Account, CallCharge};
use crate::frontend::parse_timeout;

/// The service behind a listener.
pub(super) trait Api:
    Service<Request<Body>, Response = Response<Self::Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
    type Body: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send + Unpin>
        + Send
        + Unpin
        + 'static;

    /// A refusal in this API's format.
    fn refusal(status: Status) -> Response<Self::Body>;
}

/// Serves the connection until it ends, its account closes it, or the node stops and its calls are done.
pub(super) async fn serve<A: Api>(
    api: A,
    stream: TcpStream,
    account: Arc<Account>,
    builder: Arc<Builder<TokioExecutor>>,
    mut stop: watch::Receiver<bool>,
) {
    let _open = Open(Arc::clone(&account));
    let service = {
        let account = Arc::clone(&account);
        service_fn(move |request| answer(api.clone(), Arc::clone(&account), request))
    };
    let io = TokioIo::new(Watched { stream, account: Arc::clone(&account) });
    let mut connection = pin!(builder.serve_connection(io, service));
    tokio::select! {
        // A connection error only concerns the client.
        _ = &mut connection => return,
        () = account.closed() => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    if !account.has_shaken_hands() {
        return;
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = &mut connection => {}
        () = account.closed() => {}
    }
}

/// Removes the connection from the ledger, whatever ends it.
struct Open(Arc<Account>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.end();
    }
}

async fn answer<A: Api>(
    mut api: A,
    account: Arc<Account>,
    request: Request<Incoming>,
) -> Result<Response<Answer<A::Body>>, Infallible> {
    let refused = |error: ServiceError| Ok(A::refusal(error.into()).map(Answer::uncharged));
    let charge = match CallCharge::new(account, head_bytes(&request)) {
        Ok(charge) => Arc::new(charge),
        Err(full) => return refused(full.into()),
    };
    let timeout = request.headers().get("grpc-timeout").and_then(|given| parse_timeout(given.to_str().ok()?));
    let request = request.map(|body| Body::new(Upload::new(body, Arc::clone(&charge))));
    std::future::poll_fn(|context| api.poll_ready(context)).await?;
    let called = api.call(request);
    let response = match timeout {
        Some(timeout) => match tokio::time::timeout(timeout, called).await {
            Ok(response) => response?,
            Err(_) => return refused(ServiceError::DeadlineExceeded("context deadline exceeded".into())),
        },
        None => called.await?,
    };
    charge.answered();
    let (head, body) = response.into_parts();
    match Answer::charged(body, charge) {
        Ok(body) => Ok(Response::from_parts(head, body)),
        Err(full) => refused(full.into()),
    }
}

/// As HTTP/2 counts them.
fn head_bytes<B>(request: &Request<B>) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32);
    request.uri().path().len() + headers.sum::<usize>()
}

/// A socket that reports received bytes to its account.
struct Watched {
    stream: TcpStream,
    account: Arc<Account>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.account.received(buffer.filled().len() - before);
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
