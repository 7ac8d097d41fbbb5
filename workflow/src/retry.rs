//! Backoff arithmetic.
