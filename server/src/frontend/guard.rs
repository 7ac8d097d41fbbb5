//! Around a whole gRPC service: a panic in a handler is an answer and not the end of the process, calls fail at once while
//! the store is down, and two answers that the gRPC library makes by itself are put in the words that clients know.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use persistence::engine::Availability;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use cluster::errors;

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
        // What a handler shares with others is behind locks, and those are poisoned by a panic under them.
        let answer = AssertUnwindSafe(self.service.call(request)).catch_unwind();
        let store = self.store.clone();
        Box::pin(async move {
            let method = uri.path().rsplit('/').next().unwrap_or_default();
            // Also calls under way: what they wait for comes after their deadline, if at all. It is as if their callers had
            // gone away, which every handler survives.
            let answered = tokio::select! {
                biased;
                reason = down(store) => return Ok(errors::store_down(reason).into_http()),
                answered = answer => answered,
            };
            let Ok(answer) = answered else {
                // The panic hook has told where and why.
                tracing::error!(method, "a handler panicked");
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
    // An engine that never closes as a whole.
    std::future::pending().await
}

#[cfg(test)]
mod tests;
