//! What can go wrong in a store, named by what its receiver will do.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Certainly not applied: try again, or give up.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Certainly not applied, and never will be: it is more than an engine takes at once.
    #[error("too large to be stored: {0}")]
    TooLarge(String),
    /// Neither success nor failure: find out before anything is built on it.
    #[error("the outcome of a write is unknown: {0}")]
    OutcomeUnknown(String),
    /// Another owner holds the lease: stop acting as its holder.
    #[error("the lease on {0} was lost to another owner")]
    LeaseLost(String),
    /// Somebody else changed the record first: read it again.
    #[error("refused: {0}")]
    Refused(String),
    /// What was read cannot have been written by us: leave it alone and tell the operator.
    #[error("corrupt: {0}")]
    Corrupt(String),
}
