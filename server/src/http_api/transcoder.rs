//! Conversion between JSON and messages: small inputs inline, large ones on blocking threads.

use std::sync::Arc;

use cluster::errors::ServiceError;
use tokio::sync::Semaphore;

/// Input size that is converted inline, in less than 1 ms.
const INLINE_BYTES: usize = 16 << 10;
/// Text bytes of concurrent large conversions; a larger one runs alone. A short payload of ten bytes takes 1 KB as a
/// JSON tree and a message, so this is some 50 MB.
const IN_FLIGHT_BYTES: usize = 512 << 10;
/// Text bytes per permit.
const PERMIT_BYTES: usize = 4 << 10;
/// Values and keys of one JSON text. In memory each takes up to 600 bytes, whatever it takes as text.
pub(super) const VALUES_MAX: usize = 100_000;

#[derive(Clone)]
pub(super) struct Transcoder {
    permits: Arc<Semaphore>,
}

impl Transcoder {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(IN_FLIGHT_BYTES / PERMIT_BYTES)) }
    }

    /// Runs a conversion whose input has `n_bytes`.
    ///
    /// # Errors
    /// `Internal` if it panics.
    pub(super) async fn convert<T: Send + 'static>(
        &self,
        n_bytes: usize,
        conversion: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        if n_bytes <= INLINE_BYTES {
            return Ok(conversion());
        }
        let n_permits = u32::try_from(n_bytes.min(IN_FLIGHT_BYTES) / PERMIT_BYTES).unwrap_or(u32::MAX);
        let permits = Arc::clone(&self.permits).acquire_many_owned(n_permits).await;
        let permits = permits.expect("the semaphore is never closed");
        // The thread holds the permits: it continues if the caller leaves.
        let converted = tokio::task::spawn_blocking(move || {
            let _permits = permits;
            conversion()
        });
        converted.await.map_err(|error| ServiceError::Internal(format!("conversion of JSON failed: {error}")))
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
