//! Which versions this is.

/// Ours.
pub const EVERROW: &str = env!("CARGO_PKG_VERSION");

/// The release of Temporal's server whose public behaviour this one has. Clients compare this number to decide what
/// they may ask for, so it is theirs and not ours.
pub const COMPATIBLE_SERVER: &str = "1.32.0";

/// What `--version` tells.
pub const LONG: &str =
    concat!(env!("CARGO_PKG_VERSION"), "\npublic API: temporal.api v1, as of Temporal server 1.32.0");
