//! What clients may hold of this process: connections, and bytes of their requests and answers. Everything that a client's
//! behaviour can make grow is charged here, to its connection and to all of them together.
//!
//! A connection that has more than its share gets no more. If all together have too much, the connection that hoards most
//! is closed: the one whose bytes have waited longest for its client. A client that sends what it began to send, and reads
//! what it asked for, has nothing that waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

use cluster::errors::ServiceError;

#[cfg(test)]
mod tests;

/// What an open call takes besides its headers and messages: its task, its HTTP/2 stream, its handler. An answer up to this
/// size needs no charge of its own, because the call's is kept until the answer is sent.
pub(super) const CALL_BYTES: usize = 4 << 10;
/// Requests up to this size may use the last quarter of the bytes: a flood of large messages does not keep small ones out.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// From connecting to the end of the HTTP/2 preface, or of the first request's head. A client sends both at once.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Nothing that waits for the client has moved for this long: it is gone, or does not mean to read.
const STALL_MAX: Duration = Duration::from_secs(60);
/// A client may pause for this long before its connection counts as a hoarder; a round trip and a collector's pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A preface (24 bytes) and the head of its first frame (9). No shorter HTTP/1 request gets here without an answer.
const HANDSHAKE_BYTES: usize = 33;

/// Of the whole process.
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
    /// Idle ones that were closed for others.
    n_made_room: u64,
}

/// Of one connection.
pub(super) struct Account {
    number: u64,
    ledger: Arc<Ledger>,
    /// All that is charged to it.
    held: AtomicUsize,
    /// The part that waits for the client: requests that it has begun to send, and answers that it has not read.
    waiting: AtomicUsize,
    n_calls: AtomicUsize,
    received: AtomicUsize,
    /// When it last finished sending or reading something, in milliseconds of the ledger's life.
    moved_at: AtomicU64,
    is_closing: AtomicBool,
    closing: Notify,
}

/// Why no more bytes are to be had.
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

    /// A new connection. If there are as many as there may be, the one that has been idle for longest makes room; `None`
    /// if all of them have calls under way.
    pub(super) fn open(self: &Arc<Self>) -> Option<Arc<Account>> {
        let mut connections = self.connections();
        if connections.open.len() >= self.connections_max {
            let idle = connections.longest_idle()?;
            connections.open.remove(&idle.number);
            idle.close();
            connections.n_made_room += 1;
            // The first time, and then ever more rarely.
            if connections.n_made_room.is_power_of_two() {
                let (connections_max, n_closed) = (self.connections_max, connections.n_made_room);
                warn!(connections_max, n_closed, "idle connection closed: another client needs its place");
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

    /// Closes a connection that does nothing, because the system has no descriptor for another one.
    pub(super) fn close_one_idle(&self) {
        let mut connections = self.connections();
        if let Some(idle) = connections.longest_idle() {
            connections.open.remove(&idle.number);
            idle.close();
        }
    }

    /// Closes connections that never became one, and those whose client no longer reads or sends. Says how many for each
    /// reason.
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
        // Half of all: one connection cannot take everything, and two that hoard are told apart from those that do not.
        if account.held.load(Relaxed) + bytes > self.bytes_max / 2 {
            return Err(Full::Connection);
        }
        let limit = if size <= SMALL_BYTES_MAX { self.bytes_max } else { self.bytes_max / 4 * 3 };
        let held = self.held.fetch_add(bytes, Relaxed) + bytes;
        // What a hoarder gives back is at least what is taken here, only a moment later.
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
        self.connections.lock().expect("nobody panics while holding the list of connections")
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
        // Enough is enough: a connection that has shaken hands need not count.
        if !self.has_shaken_hands() {
            self.received.fetch_add(bytes, Relaxed);
        }
    }

    pub(super) fn has_shaken_hands(&self) -> bool {
        self.received.load(Relaxed) >= HANDSHAKE_BYTES
    }

    /// It is no longer open.
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

    /// Bytes that wait for the client, times how long; `None` if closing this connection would not be fair, or no help.
    fn hoarded(&self, wanted: usize, now: u64) -> Option<u128> {
        let (waiting, quiet) = (self.waiting.load(Relaxed), now.saturating_sub(self.moved_at.load(Relaxed)));
        let is_hoarder = waiting >= wanted && u128::from(quiet) >= PAUSE_MAX.as_millis() && !self.is_closing();
        is_hoarder.then(|| waiting as u128 * u128::from(quiet))
    }

    fn moved(&self) {
        self.moved_at.store(self.ledger.now(), Relaxed);
    }
}

/// What one call has been charged: for being open, and for its request. Given back when it is dropped.
pub(super) struct CallCharge {
    account: Arc<Account>,
    /// For being open.
    own: usize,
    /// For what has come of its body.
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

    /// More of the request has come.
    pub(super) fn received(&self, bytes: usize) -> Result<(), Full> {
        let size = self.body.load(Relaxed) + bytes;
        self.account.ledger.take(&self.account, bytes, size)?;
        self.body.store(size, Relaxed);
        self.account.waiting.fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// The request is complete or no longer wanted, or the client has taken the last part of the answer: nothing waits.
    pub(super) fn arrived(&self) {
        if self.is_waiting.swap(false, Relaxed) {
            self.account.waiting.fetch_sub(self.own + self.body.load(Relaxed), Relaxed);
            self.account.moved();
        }
    }

    /// The request is worked off.
    pub(super) fn answered(&self) {
        self.arrived();
        let body = self.body.swap(0, Relaxed);
        self.account.ledger.held.fetch_sub(body, Relaxed);
        self.account.held.fetch_sub(body, Relaxed);
    }

    /// A part of the answer waits for the client, until it has `arrived`. A large one is charged until it is dropped.
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

/// What an answer has been charged until the client has read it.
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
