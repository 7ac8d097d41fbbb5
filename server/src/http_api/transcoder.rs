//! Conversion between JSON and messages: small inputs inline, large ones on blocking threads.

use std::sync::Arc;

use cluster::errors::ServiceError;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::sync::Semaphore;

/// Input size that is converted inline, in less than 1 ms.
const INLINE_BYTES: usize = 16 << 10;
/// Text bytes of concurrent large conversions; a larger one runs alone. A short payload of ten bytes takes 1 KB as a
/// JSON tree and a message, so this is some 50 MB.
const IN_FLIGHT_BYTES: usize = 512 << 10;
/// Input bytes of large conversions that run or wait; further ones are refused. A response is charged to its connection
/// only after its conversion, so without this bound any number of them could wait in memory.
const WAITING_BYTES: usize = 32 << 20;
/// Text bytes per permit.
const PERMIT_BYTES: usize = 4 << 10;
/// Values and keys of one JSON text. In memory each takes up to 600 bytes, whatever it takes as text.
pub(super) const VALUES_MAX: usize = 100_000;

#[derive(Clone)]
pub(super) struct Transcoder {
    /// Of conversions that run.
    running: Arc<Semaphore>,
    /// Of conversions that run or wait.
    waiting: Arc<Semaphore>,
}

impl Transcoder {
    pub(super) fn new() -> Self {
        let permits = |bytes: usize| Arc::new(Semaphore::new(bytes / PERMIT_BYTES));
        Self { running: permits(IN_FLIGHT_BYTES), waiting: permits(WAITING_BYTES) }
    }

    /// Runs a conversion whose input has `n_bytes`.
    ///
    /// # Errors
    /// `ResourceExhausted` if too many wait; `Internal` if it panics.
    pub(super) async fn convert<T: Send + 'static>(
        &self,
        n_bytes: usize,
        conversion: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        if n_bytes <= INLINE_BYTES {
            return Ok(conversion());
        }
        let permits = |bytes: usize| u32::try_from(n_bytes.min(bytes) / PERMIT_BYTES).unwrap_or(u32::MAX);
        let waiting = Arc::clone(&self.waiting).try_acquire_many_owned(permits(WAITING_BYTES));
        let waiting = waiting.map_err(|_| overloaded())?;
        let running = Arc::clone(&self.running).acquire_many_owned(permits(IN_FLIGHT_BYTES)).await;
        let running = running.expect("the semaphore is never closed");
        // The thread holds the permits: it continues if the caller leaves.
        let converted = tokio::task::spawn_blocking(move || {
            let _permits = (running, waiting);
            conversion()
        });
        converted.await.map_err(|error| ServiceError::Internal(format!("conversion of JSON failed: {error}")))
    }
}

fn overloaded() -> ServiceError {
    ServiceError::ResourceExhausted {
        cause: ResourceExhaustedCause::SystemOverloaded,
        scope: ResourceExhaustedScope::System,
        message: "too many large JSON conversions are waiting".into(),
    }
}

/// Upper bound of the values and keys of a JSON text, counted without allocation; also for a text that is not JSON.
pub(super) fn n_values(text: &[u8]) -> usize {
    let (mut n_values, mut is_in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b',' | b':' | b'[' | b'{' if !is_in_string => n_values += 1,
            _ => {}
        }
    }
    n_values
}

#[cfg(test)]
mod tests;
