//! An incoming call: the request and its deadline. Calls to our own services are retried while a shard moves, so that
//! the caller sees latency and no error.

use std::future::Future;
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::metrics::CallUnderWay;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tracing::{error, warn};

/// A public request, its deadline, and its client's properties.
pub(crate) struct Call<T> {
    pub(crate) request: T,
    pub(crate) deadline: Deadline,
    pub(crate) client: Client,
}

/// Value of the header `supported-features` by which a client declares that it follows the next run, which a completed,
/// failed or timed-out run may name. sdk-java, for one, does not send it.
const FOLLOWS_NEXT_RUN: &str = "follows-next-run-id";

/// Client properties that affect the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) kind: ClientKind,
    /// Follows the next run that a close event names (`FOLLOWS_NEXT_RUN`).
    pub(crate) follows_next_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// The CLI or the web UI: a person reads the response.
    Viewer,
    /// An SDK or any other program.
    Program,
}

/// The caller's deadline; `None` if it set none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Instant>);

/// Longest retry of an unavailable service; a shard move takes much less.
const PATIENCE: Duration = Duration::from_secs(8);
/// Margin before the caller's deadline, so that it gets our error and not a timeout.
const TAIL_ROOM: Duration = Duration::from_millis(200);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl<T> From<tonic::Request<T>> for Call<T> {
    fn from(request: tonic::Request<T>) -> Self {
        let timeout = grpc_timeout(request.metadata());
        let deadline = Deadline(timeout.and_then(|timeout| Instant::now().checked_add(timeout)));
        let client = Client::of(request.metadata());
        Self { request: request.into_inner(), deadline, client }
    }
}

fn supports(metadata: &MetadataMap, feature: &str) -> bool {
    let named = metadata.get("supported-features").and_then(|value| value.to_str().ok());
    named.is_some_and(|named| named.split(',').any(|named| named == feature))
}

impl Client {
    fn of(metadata: &MetadataMap) -> Self {
        let kind = match metadata.get("client-name").map(AsRef::as_ref) {
            Some(b"temporal-cli" | b"temporal-ui") => ClientKind::Viewer,
            Some(_) | None => ClientKind::Program,
        };
        Self { kind, follows_next_run: supports(metadata, FOLLOWS_NEXT_RUN) }
    }
}

impl Deadline {
    /// Time left until the deadline.
    pub(crate) fn remaining(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    #[cfg(test)]
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.map(|timeout| Instant::now() + timeout))
    }
}

/// Retries transient errors with backoff, for at most `PATIENCE` and until `TAIL_ROOM` before the caller's deadline.
pub(crate) async fn patiently<T, F>(
    env: &Env,
    deadline: Deadline,
    mut ask: impl FnMut() -> F,
) -> Result<T, ServiceError>
where
    F: Future<Output = Result<T, ServiceError>>,
{
    let patience = deadline.remaining().map_or(PATIENCE, |left| left.saturating_sub(TAIL_ROOM).min(PATIENCE));
    let ends_at = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        // Boxed: the services' own futures are large, and this one is moved about inside others.
        let error = match Box::pin(ask()).await {
            Err(
                error @ (ServiceError::Unavailable(_) | ServiceError::Store(_) | ServiceError::ShardOwnershipLost(_)),
            ) if error.is_transient() => error,
            answer => return answer,
        };
        let next_at = Instant::now() + env.jittered(pause);
        if next_at >= ends_at {
            return Err(error);
        }
        tokio::time::sleep_until(next_at).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Completes a call. Errors end here, so they are counted here, and logged if they are the server's.
pub(crate) async fn answer<T>(
    method: &'static str,
    reply: impl Future<Output = Result<T, ServiceError>>,
) -> Result<tonic::Response<T>, tonic::Status> {
    let call = CallUnderWay::begin(method);
    let error = match reply.await {
        Ok(reply) => return Ok(tonic::Response::new(reply)),
        Err(error) => error,
    };
    call.failed(&error);
    match (&error, error.hidden_hash()) {
        (_, Some(hash)) => error!(method, ?error, hash = format_args!("{hash:08x}"), "call failed"),
        (ServiceError::Unavailable(_) | ServiceError::Store(_) | ServiceError::ShardOwnershipLost(_), None) => {
            warn!(method, %error, "call failed")
        }
        // Client errors are only returned to the client.
        (_, None) => {}
    }
    Err(error.for_client().into())
}

/// The caller's timeout, if it sends one.
pub(crate) fn grpc_timeout(metadata: &MetadataMap) -> Option<Duration> {
    parse_timeout(metadata.get("grpc-timeout")?.to_str().ok()?)
}

/// `grpc-timeout`, as the gRPC specification spells it: up to eight digits and a unit.
pub(crate) fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 60 * 60)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
