//! Store errors, named by what the caller does next.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Certainly not applied: try again, or give up.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Certainly not applied, and a retry cannot help: it exceeds an engine's size limit.
    #[error("too large to be stored: {0}")]
    TooLarge(String),
    /// Neither success nor failure: settle it before anything depends on it.
    #[error("the outcome of a write is unknown: {0}")]
    OutcomeUnknown(String),
    /// Another owner holds the lease: stop acting as its holder.
    #[error("the lease on {0} was lost to another owner")]
    LeaseLost(String),
    /// Another writer changed the record first: read it again.
    #[error("refused: {0}")]
    Refused(String),
    /// What was read cannot have been written by us: leave it alone and notify the operator.
    #[error("corrupt: {0}")]
    Corrupt(String),
}
