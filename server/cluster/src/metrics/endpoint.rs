//! Serves the metrics over HTTP/1.1, which suffices for Prometheus: one request per connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::warn;

/// Scrapers connect one at a time; more than a few clients are not scrapers.
const CONNECTIONS_MAX: usize = 16;
/// Longer than any request line and headers of a scraper.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// A slower scraper has gone.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl Endpoint {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the node stops.
    pub async fn serve(self, mut stop: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let mut is_failing = false;
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                // An error means that the node is gone: also a stop.
                _ = stop.wait_for(|stop| *stop) => return,
            };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) => {
                    is_failing = false;
                    if let Ok(place) = Arc::clone(&room).try_acquire_owned() {
                        connections.spawn(async move {
                            // A scraper that disconnects retries; nothing is lost.
                            let _ = tokio::time::timeout(TIMEOUT, answer(stream)).await;
                            drop(place);
                        });
                    }
                }
                Err(error) => {
                    // Once per series of failures.
                    if !is_failing {
                        warn!(%error, "cannot accept metrics connections; retrying");
                    }
                    is_failing = true;
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let head = read_head(&mut stream).await?;
    let response = respond(&head);
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(head)
}

pub(super) fn respond(head: &[u8]) -> String {
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET", "/metrics") => ("200 OK", super::text()),
        ("GET", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "metrics can only be read\n".to_owned()),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}
