//! Classifies failed writes: certainly not applied, or of unknown outcome. In doubt it is unknown, which costs the
//! caller a read; the opposite mistake would lose a write.

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
        // Holds for earlier attempts too: `RetryRefused` retries only what was certainly not applied.
        ExecutionError::LastAttemptError(error) => is_attempt_not_applied(error, write),
        // The request may still be in flight.
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
        // The server reported an unknown statement, so it did not execute it.
        RequestAttemptError::RepreparedIdChanged { .. } | RequestAttemptError::RepreparedIdMissingInBatch => true,
        RequestAttemptError::DbError(error, message) => is_refused_by_database(error, message, write),
        RequestAttemptError::BrokenConnectionError(_) => false,
        // A response that does not parse may have been a success.
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
        // A conditional write counts the live replicas twice: before Paxos, for the serial level, and before the
        // commit, for the other level. The second refusal comes after the proposal was accepted.
        DbError::Unavailable { consistency, .. } => match write {
            Write::Plain => true,
            Write::Conditional => is_serial(*consistency),
        },
        // Rejected on admission, unless there are too many hints for a dead replica: hints are written last.
        DbError::Overloaded => !message.contains("hints"),
        DbError::RateLimitReached { rejected_by_coordinator, .. } => *rejected_by_coordinator,
        // A read that times out within a conditional write may have completed this write's own proposal.
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

/// Retries a plain write on the next node if this one certainly did not apply it. The driver reports only the last
/// attempt, so a retry after an unknown outcome could hide it.
#[derive(Debug)]
pub(crate) struct RetryRefused;

/// The first node and two more: the usual number of replicas.
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
