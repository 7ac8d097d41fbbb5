//! Around a whole gRPC service: a panic in a handler is an answer and not the end of the process, and two answers that
//! the gRPC library makes by itself are put in the words that clients know.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use crate::errors;

#[derive(Clone)]
pub struct Guarded<S>(pub S);

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
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let uri = request.uri().clone();
        // What a handler shares with others is behind locks, and those are poisoned by a panic under them.
        let answer = AssertUnwindSafe(self.0.call(request)).catch_unwind();
        Box::pin(async move {
            let method = uri.path().rsplit('/').next().unwrap_or_default();
            let Ok(answer) = answer.await else {
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

#[cfg(test)]
mod tests;
