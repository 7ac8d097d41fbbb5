//! Accepts connections from a listener: up to the limit, and with backoff while the system is out of resources.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tracing::{info, warn};

use super::connection::{self, Api};
use super::ledger::Ledger;

/// A client that vanished silently is detected after this.
pub(super) const KEEPALIVE_EVERY: Duration = Duration::from_secs(60);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// A worker's polls share one connection: the library's default of 200 would make them wait for each other.
const STREAMS_PER_CONNECTION: u32 = 10_000;
/// Streams reset before they were accepted; the library's default of 20 ends the connection, with every poll on it,
/// when a worker cancels a burst of calls. A client may cancel all that it may have open at once, no more: a flood of
/// resets that outruns accepting ends its connection with `ENHANCE_YOUR_CALM`.
const CANCELLED_BEFORE_ACCEPTED: usize = STREAMS_PER_CONNECTION as usize;
/// Room for a payload in flight, so that a large request does not wait for a round trip every 64 KiB.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Room for tokens in authorization headers.
const HEADER_BYTES_MAX: u32 = 64 << 10;
/// HTTP/1 idle timeout, from one request to the head of the next; browsers keep connections open.
const HTTP1_IDLE_MAX: Duration = Duration::from_secs(30);
/// Interval of the sweep for overdue connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Backoff while accepting fails.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// HTTP versions of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http2,
    Http1And2,
}

/// Serves until the node stops, and then until the connections are done.
pub(super) async fn serve<A: Api>(
    api: A,
    incoming: TcpIncoming,
    protocol: Protocol,
    ledger: Arc<Ledger>,
    mut stop: watch::Receiver<bool>,
) {
    let (builder, stopped) = (Arc::new(builder(protocol)), stop.clone());
    let mut connections = JoinSet::new();
    let mut door = Door { incoming, ledger: Arc::clone(&ledger), trouble: Trouble::default() };
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            stream = door.next() => {
                let Some(stream) = stream else { break };
                match ledger.open() {
                    Some(account) => {
                        let served = connection::serve(api.clone(), stream, account, Arc::clone(&builder), stopped.clone());
                        connections.spawn(served);
                    }
                    None => door.trouble.refused(ledger.connections_max()),
                }
            }
            Some(_) = connections.join_next() => {}
            _ = sweep.tick(), if !connections.is_empty() => report(ledger.sweep()),
            // An error means that the node is gone: also a stop.
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    // Frees the port: a client that connects now must try another node, and not wait for this one.
    drop(door);
    while connections.join_next().await.is_some() {}
}

fn report((n_silent, n_stalled): (usize, usize)) {
    if n_silent > 0 {
        info!(n_silent, "connections closed: no request or HTTP/2 preface came in time");
    }
    if n_stalled > 0 {
        warn!(n_stalled, "connections closed: their clients neither read their answers nor finish their requests");
    }
}

fn builder(protocol: Protocol) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    if protocol == Protocol::Http2 {
        builder = builder.http2_only();
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .max_pending_accept_reset_streams(CANCELLED_BEFORE_ACCEPTED)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEADER_BYTES_MAX);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HTTP1_IDLE_MAX);
    builder
}

/// A listener that retries with backoff.
struct Door {
    incoming: TcpIncoming,
    ledger: Arc<Ledger>,
    trouble: Trouble,
}

impl Door {
    /// `None` if the listener has ended, which it does not by itself. Cancel safe.
    async fn next(&mut self) -> Option<TcpStream> {
        loop {
            if let Some(until) = self.trouble.waits_until {
                tokio::time::sleep_until(until).await;
                self.trouble.waits_until = None;
            }
            match self.incoming.next().await? {
                Ok(stream) => {
                    self.trouble.is_over();
                    return Some(stream);
                }
                // The client disconnected before it was accepted.
                Err(error) if is_clients_own(&error) => {}
                Err(error) => {
                    self.ledger.close_one_idle();
                    self.trouble.met(&error);
                }
            }
        }
    }
}

fn is_clients_own(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Failed accepts, logged when they begin and end, and refused connections.
#[derive(Default)]
struct Trouble {
    n_failed: u32,
    pause: Duration,
    waits_until: Option<tokio::time::Instant>,
    n_refused: u64,
}

impl Trouble {
    fn met(&mut self, error: &io::Error) {
        if self.n_failed == 0 {
            warn!(%error, "cannot accept connections; retrying with backoff");
        }
        self.n_failed += 1;
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.waits_until = Some(tokio::time::Instant::now() + self.pause);
    }

    fn is_over(&mut self) {
        if self.n_failed > 0 {
            info!(n_failed = self.n_failed, "accepting connections again");
        }
        self.n_failed = 0;
        self.pause = Duration::ZERO;
    }

    /// All connections have calls under way, so none can be closed for a new one.
    fn refused(&mut self, connections_max: usize) {
        if self.n_refused.is_power_of_two() || self.n_refused == 0 {
            warn!(connections_max, n_refused = self.n_refused + 1, "connection refused: limit reached, none is idle");
        }
        self.n_refused += 1;
    }
}
