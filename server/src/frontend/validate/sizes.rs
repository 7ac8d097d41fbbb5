//! Sizes of user payloads. Some RPCs refuse an oversized payload; a worker's response is turned into a failure instead,
//! because the worker could only repeat it.

use cluster::errors::ServiceError;
use prost::Message;
use proto::temporal::api::common::v1::Memo;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure, ServerFailureInfo};

use super::invalid;

/// Payloads of one event.
pub(crate) const BLOB_BYTES_MAX: usize = 2 << 20;
pub(crate) const MEMO_BYTES_MAX: usize = 2 << 20;

/// Bytes kept of an oversized failure.
const TRUNCATED_FAILURE_BYTES: usize = 512 << 10;
/// Nested causes kept of it.
const TRUNCATED_FAILURE_DEPTH: usize = 20;

pub(crate) const RESULT_TOO_LARGE: &str = "Complete result exceeds size limit.";
pub(crate) const FAILURE_TOO_LARGE: &str = "Failure exceeds size limit.";
pub(crate) const CANCEL_DETAILS_TOO_LARGE: &str = "Cancel details exceed size limit.";
pub(crate) const HEARTBEAT_TOO_LARGE: &str = "Heartbeat details exceed size limit.";

pub(crate) fn is_too_large(blob: Option<&impl Message>) -> bool {
    blob.is_some_and(|blob| blob.encoded_len() > BLOB_BYTES_MAX)
}

pub(crate) fn blob(blob: Option<&impl Message>) -> Result<(), ServiceError> {
    if is_too_large(blob) {
        return Err(invalid("Blob data size exceeds limit."));
    }
    Ok(())
}

pub(crate) fn memo(memo: Option<&Memo>) -> Result<(), ServiceError> {
    if memo.is_some_and(|memo| memo.encoded_len() > MEMO_BYTES_MAX) {
        return Err(invalid("Memo size exceeds limit."));
    }
    Ok(())
}

/// The server's failure in place of a refused payload.
pub(crate) fn server_failure(message: &str) -> Failure {
    let info = ServerFailureInfo { non_retryable: true };
    Failure { message: message.into(), failure_info: Some(FailureInfo::ServerFailureInfo(info)), ..Failure::default() }
}

/// The replacement of an oversized failure.
pub(crate) fn replacement(failure: Option<&Failure>) -> Option<Failure> {
    let failure = failure.filter(|failure| is_too_large(Some(*failure)))?;
    let mut room = TRUNCATED_FAILURE_BYTES;
    let cause = truncated(failure, &mut room, TRUNCATED_FAILURE_DEPTH);
    Some(Failure { cause: Some(Box::new(cause)), ..server_failure(FAILURE_TOO_LARGE) })
}

/// Fields get room in the order of their value to a reader; details are dropped.
fn truncated(failure: &Failure, room: &mut usize, depth: usize) -> Failure {
    let failure_info = match &failure.failure_info {
        Some(FailureInfo::ApplicationFailureInfo(info)) => {
            Some(FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo {
                r#type: cut(&info.r#type, room),
                non_retryable: info.non_retryable,
                ..ApplicationFailureInfo::default()
            }))
        }
        Some(FailureInfo::ServerFailureInfo(info)) => Some(FailureInfo::ServerFailureInfo(*info)),
        Some(
            FailureInfo::TimeoutFailureInfo(_)
            | FailureInfo::CanceledFailureInfo(_)
            | FailureInfo::TerminatedFailureInfo(_)
            | FailureInfo::ResetWorkflowFailureInfo(_)
            | FailureInfo::ActivityFailureInfo(_)
            | FailureInfo::ChildWorkflowExecutionFailureInfo(_)
            | FailureInfo::NexusOperationExecutionFailureInfo(_)
            | FailureInfo::NexusHandlerFailureInfo(_),
        )
        | None => None,
    };
    let source = cut(&failure.source, room);
    let message = cut(&failure.message, room);
    let stack_trace = cut(&failure.stack_trace, room);
    let cause = failure
        .cause
        .as_ref()
        .filter(|_| *room > FIELD_OVERHEAD && depth > 0)
        .map(|cause| Box::new(truncated(cause, room, depth - 1)));
    Failure { message, source, stack_trace, cause, failure_info, ..Failure::default() }
}

/// Approximate bytes of a field's tag and length.
const FIELD_OVERHEAD: usize = 4;

fn cut(text: &str, room: &mut usize) -> String {
    let mut end = text.len().min(*room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    *room = room.saturating_sub(end + FIELD_OVERHEAD);
    text[..end].to_owned()
}
