//! What a failure says about a write: certainly not applied, or unknown. When in doubt it is unknown, which costs the
//! caller a look; the other mistake would cost a write.

use std::fmt::Display;

use persistence::error::StoreError;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::policies::retry::{RequestInfo, RetryDecision, RetryPolicy, RetrySession};
use scylla::statement::Consistency;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Plain,
    Conditional,
}

/// A read changes nothing, so its failure leaves no doubt.
pub(crate) fn failed_read(error: impl Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Nothing is sent before its statements are prepared.
pub(crate) fn failed_prepare(error: &PrepareError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

pub(crate) fn failed_write(error: &ExecutionError, write: Write) -> StoreError {
    if is_certainly_not_applied(error, write) {
        StoreError::Unavailable(error.to_string())
    } else {
        StoreError::OutcomeUnknown(error.to_string())
    }
}

fn is_certainly_not_applied(error: &ExecutionError, write: Write) -> bool {
    match error {
        ExecutionError::BadQuery(_)
        | ExecutionError::EmptyPlan
        | ExecutionError::PrepareError(_)
        | ExecutionError::ConnectionPoolError(_)
        | ExecutionError::UseKeyspaceError(_) => true,
        // True of the earlier attempts too: `RetryRefused` repeats only what was certainly not applied.
        ExecutionError::LastAttemptError(error) => is_attempt_not_applied(error, write),
        // The request may be on its way still.
        ExecutionError::RequestTimeout(_) => false,
        // These follow a change of the schema that succeeded.
        ExecutionError::SchemaAgreementError(_) | ExecutionError::MetadataError(_) => false,
        _ => false,
    }
}

fn is_attempt_not_applied(error: &RequestAttemptError, write: Write) -> bool {
    match error {
        RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_)
        | RequestAttemptError::UnableToAllocStreamId => true,
        // The server said that it did not know the statement, so it did not run it.
        RequestAttemptError::RepreparedIdChanged { .. } | RequestAttemptError::RepreparedIdMissingInBatch => true,
        RequestAttemptError::DbError(error, message) => is_refused_by_database(error, message, write),
        RequestAttemptError::BrokenConnectionError(_) => false,
        // An answer that we cannot read may have been a yes.
        RequestAttemptError::BodyExtensionsParseError(_)
        | RequestAttemptError::CqlResultParseError(_)
        | RequestAttemptError::CqlErrorParseError(_)
        | RequestAttemptError::UnexpectedResponse(_)
        | RequestAttemptError::NonfinishedPagingState => false,
        _ => false,
    }
}

fn is_refused_by_database(error: &DbError, message: &str, write: Write) -> bool {
    match error {
        DbError::SyntaxError
        | DbError::Invalid
        | DbError::AlreadyExists { .. }
        | DbError::FunctionFailure { .. }
        | DbError::AuthenticationError
        | DbError::Unauthorized
        | DbError::ConfigError
        | DbError::IsBootstrapping
        | DbError::Unprepared { .. } => true,
        // A conditional write counts the live replicas twice: before Paxos, for the serial level, and before it commits
        // what was agreed upon, for the other level. The second refusal comes too late to be one.
        DbError::Unavailable { consistency, .. } => match write {
            Write::Plain => true,
            Write::Conditional => is_serial(*consistency),
        },
        // Turned away at the door, unless it is the hints for a dead replica that are too many: those are written last.
        DbError::Overloaded => !message.contains("hints"),
        DbError::RateLimitReached { rejected_by_coordinator, .. } => *rejected_by_coordinator,
        // A read that times out within a conditional write may have finished the proposal of this very write.
        DbError::WriteTimeout { .. }
        | DbError::WriteFailure { .. }
        | DbError::ReadTimeout { .. }
        | DbError::ReadFailure { .. }
        | DbError::TruncateError
        | DbError::ServerError
        | DbError::ProtocolError
        | DbError::Other(_) => false,
        _ => false,
    }
}

fn is_serial(consistency: Consistency) -> bool {
    matches!(consistency, Consistency::Serial | Consistency::LocalSerial)
}

/// Sends a plain write to the next node when this one certainly did not apply it. The driver reports only the last
/// attempt, so a repeat after a doubtful one could hide the doubt.
#[derive(Debug)]
pub(crate) struct RetryRefused;

/// The first node and two more: as many as hold a copy in the usual set-up.
const MAX_ATTEMPTS: usize = 3;

struct Attempts {
    n_failed: usize,
}

impl RetryPolicy for RetryRefused {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(Attempts { n_failed: 0 })
    }
}

impl RetrySession for Attempts {
    fn decide_should_retry(&mut self, request: RequestInfo<'_>) -> RetryDecision {
        self.n_failed += 1;
        let may_repeat = request.is_idempotent && self.n_failed < MAX_ATTEMPTS;
        if may_repeat && may_another_node_help(request.error) && is_attempt_not_applied(request.error, Write::Plain) {
            RetryDecision::RetryNextTarget(None)
        } else {
            RetryDecision::DontRetry
        }
    }

    fn reset(&mut self) {
        self.n_failed = 0;
    }
}

fn may_another_node_help(error: &RequestAttemptError) -> bool {
    let refused =
        |error: &DbError| matches!(error, DbError::IsBootstrapping | DbError::Overloaded | DbError::Unavailable { .. });
    let no_stream = matches!(error, RequestAttemptError::UnableToAllocStreamId);
    no_stream || matches!(error, RequestAttemptError::DbError(error, _) if refused(error))
}

#[cfg(test)]
mod tests;
