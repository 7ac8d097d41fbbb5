//! Limits what clients hold in this process: connections, and bytes of requests and responses. All memory that a client
//! can make grow is charged here, to its connection and to all of them together.
//!
//! A connection over its share gets no more. If all together are over the limit, the worst hoarder is closed: the
//! connection with the most waiting bytes times waiting time. A client that finishes its requests and reads its
//! responses has no waiting bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cluster::errors::ServiceError;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

#[cfg(test)]
mod tests;

/// Charge of an open call besides headers and messages: its task, HTTP/2 stream and handler. A response up to this size
/// needs no charge of its own, because the call's is kept until the response is sent.
pub(super) const CALL_BYTES: usize = 4 << 10;
/// Messages up to this size may use the last quarter of the bytes: a flood of large ones does not keep small ones out.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// From connecting to the end of the HTTP/2 preface, or of the first request's head. A client sends both at once.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Waiting bytes have not moved for this long: the client is gone, or does not read.
const STALL_MAX: Duration = Duration::from_secs(60);
/// A client may pause for this long before its connection counts as a hoarder: a round trip and a GC pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A preface (24 bytes) and the head of its first frame (9). A shorter HTTP/1 request is answered first.
const HANDSHAKE_BYTES: usize = 33;

/// Ledger of the whole process.
pub(crate) struct Ledger {
    bytes_max: usize,
    connections_max: usize,
    held: AtomicUsize,
    began: Instant,
    connections: Mutex<Connections>,
}

#[derive(Default)]
struct Connections {
    open: HashMap<u64, Arc<Account>>,
    n_opened: u64,
    /// Idle connections closed for new ones.
    n_made_room: u64,
}

/// Account of one connection.
pub(super) struct Account {
    number: u64,
    ledger: Arc<Ledger>,
    /// All charged bytes.
    held: AtomicUsize,
    /// Bytes that wait for the client: of incomplete requests, and of unread responses.
    waiting: AtomicUsize,
    n_calls: AtomicUsize,
    received: AtomicUsize,
    /// When the client last finished sending or reading something, in milliseconds since `Ledger::began`.
    moved_at: AtomicU64,
    is_closing: AtomicBool,
    closing: Notify,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Connection,
    Server,
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    NoHandshake,
    Stalled,
}

impl Ledger {
    pub(crate) fn new(bytes_max: usize, connections_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            connections_max,
            held: AtomicUsize::new(0),
            began: Instant::now(),
            connections: Mutex::default(),
        })
    }

    pub(super) fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// Opens a connection. At the limit it closes an idle one, without a handshake or else longest idle; `None` if all
    /// have calls under way.
    pub(super) fn open(self: &Arc<Self>) -> Option<Arc<Account>> {
        let mut connections = self.connections();
        if connections.open.len() >= self.connections_max {
            let idle = connections.longest_idle()?;
            connections.open.remove(&idle.number);
            idle.close();
            connections.n_made_room += 1;
            // The first time, and then at powers of two.
            if connections.n_made_room.is_power_of_two() {
                let (connections_max, n_closed) = (self.connections_max, connections.n_made_room);
                warn!(connections_max, n_closed, "connection limit reached; closed an idle connection");
            }
        }
        connections.n_opened += 1;
        let account = Arc::new(Account {
            number: connections.n_opened,
            ledger: Arc::clone(self),
            held: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            n_calls: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
            moved_at: AtomicU64::new(self.now()),
            is_closing: AtomicBool::new(false),
            closing: Notify::new(),
        });
        connections.open.insert(account.number, Arc::clone(&account));
        Some(account)
    }

    /// Closes an idle connection, because the system is out of descriptors.
    pub(super) fn close_one_idle(&self) {
        let mut connections = self.connections();
        if let Some(idle) = connections.longest_idle() {
            connections.open.remove(&idle.number);
            idle.close();
        }
    }

    /// Closes connections without a handshake, and those with stalled clients. Returns the number of each.
    pub(super) fn sweep(&self) -> (usize, usize) {
        let now = self.now();
        let (mut n_silent, mut n_stalled) = (0, 0);
        for account in self.connections().open.values() {
            match account.overdue(now) {
                Some(Reason::NoHandshake) => n_silent += 1,
                Some(Reason::Stalled) => n_stalled += 1,
                None => continue,
            }
            account.close();
        }
        (n_silent, n_stalled)
    }

    fn take(&self, account: &Account, bytes: usize, size: usize) -> Result<(), Full> {
        // Half of all: one connection cannot take everything, and two hoarders stand out from the others.
        if account.held.load(Relaxed) + bytes > self.bytes_max / 2 {
            return Err(Full::Connection);
        }
        let limit = if size <= SMALL_BYTES_MAX { self.bytes_max } else { self.bytes_max / 4 * 3 };
        let held = self.held.fetch_add(bytes, Relaxed) + bytes;
        // The hoarder frees at least `bytes`, only a moment later.
        if held > limit && !self.close_hoarder(bytes) {
            self.held.fetch_sub(bytes, Relaxed);
            return Err(Full::Server);
        }
        account.held.fetch_add(bytes, Relaxed);
        Ok(())
    }

    fn close_hoarder(&self, bytes: usize) -> bool {
        let now = self.now();
        let connections = self.connections();
        let hoarders = connections.open.values().filter_map(|account| Some((account.hoarded(bytes, now)?, account)));
        let Some((_, worst)) = hoarders.max_by_key(|(hoarded, _)| *hoarded) else { return false };
        let waiting_bytes = worst.waiting.load(Relaxed);
        warn!(
            waiting_bytes,
            "connection closed: its client neither reads nor finishes sending, and others need the room"
        );
        worst.close();
        true
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("no panic while holding the list of connections")
    }
}

impl Connections {
    fn longest_idle(&self) -> Option<Arc<Account>> {
        let idle = self.open.values().filter(|account| account.n_calls.load(Relaxed) == 0 && !account.is_closing());
        idle.min_by_key(|account| (account.has_shaken_hands(), account.moved_at.load(Relaxed))).cloned()
    }
}

impl Account {
    /// Waits until the connection is to be closed.
    pub(super) async fn closed(&self) {
        self.closing.notified().await;
    }

    pub(super) fn received(&self, bytes: usize) {
        // Not counted after the handshake.
        if !self.has_shaken_hands() {
            self.received.fetch_add(bytes, Relaxed);
        }
    }

    pub(super) fn has_shaken_hands(&self) -> bool {
        self.received.load(Relaxed) >= HANDSHAKE_BYTES
    }

    /// Removes the closed connection.
    pub(super) fn end(&self) {
        self.ledger.connections().open.remove(&self.number);
    }

    fn close(&self) {
        if !self.is_closing.swap(true, Relaxed) {
            self.closing.notify_one();
        }
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Relaxed)
    }

    fn overdue(&self, now: u64) -> Option<Reason> {
        let quiet = Duration::from_millis(now.saturating_sub(self.moved_at.load(Relaxed)));
        if !self.has_shaken_hands() && self.n_calls.load(Relaxed) == 0 && quiet >= HANDSHAKE_TIMEOUT {
            return Some(Reason::NoHandshake);
        }
        (self.waiting.load(Relaxed) > 0 && quiet >= STALL_MAX).then_some(Reason::Stalled)
    }

    /// Waiting bytes times milliseconds; `None` if closing this connection would be unfair, or would not free enough.
    fn hoarded(&self, wanted: usize, now: u64) -> Option<u128> {
        let (waiting, quiet) = (self.waiting.load(Relaxed), now.saturating_sub(self.moved_at.load(Relaxed)));
        let is_hoarder = waiting >= wanted && u128::from(quiet) >= PAUSE_MAX.as_millis() && !self.is_closing();
        is_hoarder.then(|| waiting as u128 * u128::from(quiet))
    }

    fn moved(&self) {
        self.moved_at.store(self.ledger.now(), Relaxed);
    }
}

/// Charge of one call: for being open, and for its request. Released on drop.
pub(super) struct CallCharge {
    account: Arc<Account>,
    /// For being open.
    own: usize,
    /// For the received part of its body.
    body: AtomicUsize,
    is_waiting: AtomicBool,
}

impl CallCharge {
    pub(super) fn new(account: Arc<Account>, header_bytes: usize) -> Result<Self, Full> {
        let own = CALL_BYTES + header_bytes;
        account.ledger.take(&account, own, header_bytes)?;
        account.waiting.fetch_add(own, Relaxed);
        account.n_calls.fetch_add(1, Relaxed);
        Ok(Self { account, own, body: AtomicUsize::new(0), is_waiting: AtomicBool::new(true) })
    }

    /// Charges more of the request.
    pub(super) fn received(&self, bytes: usize) -> Result<(), Full> {
        let size = self.body.load(Relaxed) + bytes;
        self.account.ledger.take(&self.account, bytes, size)?;
        self.body.store(size, Relaxed);
        self.account.waiting.fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// Nothing waits: the request is complete or unwanted, or the client has taken the last part of the response.
    pub(super) fn arrived(&self) {
        if self.is_waiting.swap(false, Relaxed) {
            self.account.waiting.fetch_sub(self.own + self.body.load(Relaxed), Relaxed);
            self.account.moved();
        }
    }

    /// The handler is done: releases the request.
    pub(super) fn answered(&self) {
        self.arrived();
        let body = self.body.swap(0, Relaxed);
        self.account.ledger.held.fetch_sub(body, Relaxed);
        self.account.held.fetch_sub(body, Relaxed);
    }

    /// A part of the response waits for the client until `arrived`. A large one is charged until the result drops.
    pub(super) fn send(&self, bytes: usize) -> Result<Option<AnswerCharge>, Full> {
        if bytes > CALL_BYTES {
            self.account.ledger.take(&self.account, bytes, bytes)?;
            self.account.waiting.fetch_add(bytes, Relaxed);
            return Ok(Some(AnswerCharge { account: Arc::clone(&self.account), bytes }));
        }
        if !self.is_waiting.swap(true, Relaxed) {
            self.account.waiting.fetch_add(self.own + self.body.load(Relaxed), Relaxed);
        }
        Ok(None)
    }
}

impl Drop for CallCharge {
    fn drop(&mut self) {
        self.arrived();
        let bytes = self.own + self.body.load(Relaxed);
        self.account.ledger.held.fetch_sub(bytes, Relaxed);
        self.account.held.fetch_sub(bytes, Relaxed);
        self.account.n_calls.fetch_sub(1, Relaxed);
    }
}

/// Charge of a response until the client has read it.
pub(super) struct AnswerCharge {
    account: Arc<Account>,
    bytes: usize,
}

impl Drop for AnswerCharge {
    fn drop(&mut self) {
        self.account.waiting.fetch_sub(self.bytes, Relaxed);
        self.account.held.fetch_sub(self.bytes, Relaxed);
        self.account.ledger.held.fetch_sub(self.bytes, Relaxed);
        self.account.moved();
    }
}

impl From<Full> for ServiceError {
    fn from(full: Full) -> Self {
        let message = match full {
            Full::Connection => "this connection has too many bytes of requests and answers under way",
            Full::Server => "the server has too many bytes of requests and answers under way",
        };
        Self::ResourceExhausted {
            cause: ResourceExhaustedCause::SystemOverloaded,
            scope: ResourceExhaustedScope::System,
            message: message.into(),
        }
    }
}
