//! Where JSON and messages are converted into one another: small ones at once, large ones on threads that may block.

use std::sync::Arc;

use tokio::sync::Semaphore;

use cluster::errors::ServiceError;

/// Converted in less than a millisecond.
const INLINE_BYTES: usize = 16 << 10;
/// Text of large conversions at once; a larger one is converted alone. A short payload of ten bytes takes a kilobyte as a
/// tree of JSON and a message, so this is some 50 MB.
const IN_FLIGHT_BYTES: usize = 512 << 10;
/// What a permit stands for.
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

    /// A conversion whose input has this many bytes.
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
        // The thread holds the permits: it goes on if the caller leaves.
        let converted = tokio::task::spawn_blocking(move || {
            let _permits = permits;
            conversion()
        });
        converted.await.map_err(|error| ServiceError::Internal(format!("conversion of JSON failed: {error}")))
    }
}

/// The values and keys of a JSON text, or more: counted without keeping anything. A text that is not JSON has some number,
/// too.
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
