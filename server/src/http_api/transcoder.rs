//! Where JSON and messages are converted into one another: small ones at once, large ones on threads that may block.

use std::sync::Arc;

use tokio::sync::Semaphore;

use cluster::errors::ServiceError;

/// Converted in less than a millisecond.
const INLINE_BYTES: usize = 16 << 10;
/// Large conversions at once. Each holds a tree of JSON and a message of up to `VALUES_MAX` values beside the text.
const CONVERSIONS: usize = 2;
/// Values and keys of one JSON text. In memory each takes some 200 bytes, whatever it takes as text.
pub(super) const VALUES_MAX: usize = 250_000;

#[derive(Clone)]
pub(super) struct Transcoder {
    permits: Arc<Semaphore>,
}

impl Transcoder {
    pub(super) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(CONVERSIONS)) }
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
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
        // The thread holds the permit: it goes on if the caller leaves.
        let converted = tokio::task::spawn_blocking(move || {
            let _permit = permit;
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
