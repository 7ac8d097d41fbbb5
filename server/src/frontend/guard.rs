//! Wraps a whole gRPC service: a handler's panic becomes an error response and does not end the process, calls fail at
//! once while the store is down, and errors of the gRPC library are put in the words that clients know.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll};

use cluster::errors;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use persistence::engine::Availability;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

#[derive(Clone)]
pub struct Guarded<S> {
    service: S,
    store: watch::Receiver<Availability>,
}

impl<S> Guarded<S> {
    #[must_use]
    pub fn new(service: S, store: watch::Receiver<Availability>) -> Self {
        Self { service, store }
    }
}

impl<S: NamedService> NamedService for Guarded<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Guarded<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let uri = request.uri().clone();
        // Unwind safe: handlers share state behind locks, which a panic poisons.
        let answer = AssertUnwindSafe(self.service.call(request)).catch_unwind();
        let store = self.store.clone();
        Box::pin(async move {
            let method = uri.path().rsplit('/').next().unwrap_or_default();
            // Also ends calls under way: the store would answer after their deadline, if at all. A handler survives
            // this like a disconnect of its caller.
            let answered = tokio::select! {
                biased;
                reason = down(store) => return Ok(errors::store_down(reason).into_http()),
                answered = answer => answered,
            };
            let Ok(answer) = answered else {
                // The panic hook has logged the location and the reason.
                tracing::error!(method, "handler panicked; returning an internal error");
                return Ok(errors::panicked().into_http());
            };
            answer.map(|response| match errors::restated(response.headers(), method) {
                Some(status) => status.into_http(),
                None => response,
            })
        })
    }
}

/// Returns when the store is down, with the reason.
async fn down(mut store: watch::Receiver<Availability>) -> &'static str {
    if let Ok(availability) = store.wait_for(|availability| *availability != Availability::Up).await
        && let Availability::Down(reason) = *availability
    {
        return reason;
    }
    // This engine is never down as a whole.
    std::future::pending().await
}

#[cfg(test)]
mod tests;
