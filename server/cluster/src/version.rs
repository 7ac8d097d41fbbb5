//! Version numbers.

/// Everrow's own.
pub const EVERROW: &str = env!("CARGO_PKG_VERSION");

/// The Temporal server release whose public behaviour this one has. Clients decide by it which features they use, so it
/// is Temporal's number and not ours.
pub const COMPATIBLE_SERVER: &str = "1.32.0";

/// Output of `--version`.
pub const LONG: &str =
    concat!(env!("CARGO_PKG_VERSION"), "\npublic API: temporal.api v1, as of Temporal server 1.32.0");
