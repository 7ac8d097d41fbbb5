//! A call as it comes in: the request, and how long its caller waits. Calls to our own services are repeated while a
//! shard moves, so that the caller sees latency and no error.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tracing::{error, warn};

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::metrics::CallUnderWay;

/// A public request, its caller's patience, and what is known of the caller.
pub(crate) struct Call<T> {
    pub(crate) request: T,
    pub(crate) deadline: Deadline,
    pub(crate) client: Client,
}

/// What a client says in the header `supported-features` if it knows that a run which completed, failed or timed out may name
/// the run that follows it. sdk-java, for one, does not say it.
const FOLLOWS_NEXT_RUN: &str = "follows-next-run-id";

/// Who calls, as far as it makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) kind: ClientKind,
    /// It goes on to the run that a close event names (`FOLLOWS_NEXT_RUN`).
    pub(crate) follows_next_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// The command line or the web page: a person looks at the answer.
    Viewer,
    /// A program: an SDK, or whatever else.
    Program,
}

/// When the caller stops waiting; `None` is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Instant>);

/// How long one of our services may be away, at most: a shard that moves is back well before.
const PATIENCE: Duration = Duration::from_secs(8);
/// Our own error reaches the caller this long before it gives up by itself.
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
    /// How long the caller still waits.
    pub(crate) fn remaining(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    #[cfg(test)]
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.map(|timeout| Instant::now() + timeout))
    }
}

/// Asks until the answer is one that would come again, or patience ends.
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

/// The end of a call: what the client gets. An error of ours ends here, so it is logged and counted here.
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
        (_, Some(hash)) => error!(method, %error, hash = format_args!("{hash:08x}"), "a call failed"),
        (ServiceError::Unavailable(_) | ServiceError::Store(_) | ServiceError::ShardOwnershipLost(_), None) => {
            warn!(method, %error, "a call failed")
        }
        // The rest is the client's own doing, and the client is told.
        (_, None) => {}
    }
    Err(error.for_client().into())
}

/// How long the caller waits, if it says so.
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
