//! Size of an error on the wire. A status travels in trailers: its message percent-encoded, and again, with the typed
//! detail, in base64. C-core clients reject trailers of more than 8 KiB entirely, and see no error at all. Pure.

use prost::Message as _;
use proto::temporal::api::errordetails::v1 as details;
use proto::temporal::api::errordetails::v1::multi_operation_execution_failure::OperationStatus;
use proto::temporal::api::failure::v1::Failure;

/// Message and details as they are on the wire. Leaves 1 KiB of the 8 KiB for the names, the code and headers of ours.
pub(super) const STATUS_BYTES_MAX: usize = 7 << 10;
/// The reference truncates a message here, whatever its size on the wire.
const MESSAGE_BYTES_MAX: usize = 4000;
/// A typed detail before it is encoded, so that a message of the usual length stays whole beside it.
const DETAIL_BYTES_MAX: usize = 2 << 10;
/// Each text in a detail that is too large; two of them fit.
const TEXT_BYTES_MAX: usize = 800;
const SUFFIX: &str = "... <truncated>";

/// The message, truncated to fit on the wire beside `detail`.
pub(super) fn message(message: String, detail: Option<&prost_types::Any>) -> String {
    let room = detail.map_or(STATUS_BYTES_MAX, |detail| STATUS_BYTES_MAX - in_base64(detail.encoded_len()));
    // A byte takes at most three in the header, and a third more than itself beside the detail.
    if message.len() * 5 <= room {
        return message;
    }
    let mut taken = 0;
    let mut cut_at = 0;
    for (start, character) in message.char_indices() {
        let end = start + character.len_utf8();
        taken += in_header(character) + detail.map_or(0, |_| in_base64(character.len_utf8()));
        if taken > room || end > MESSAGE_BYTES_MAX {
            return format!("{}{SUFFIX}", &message[..cut_at]);
        }
        // A truncated message must leave room for the suffix.
        if taken + 3 * SUFFIX.len() + in_base64(SUFFIX.len()) <= room && end + SUFFIX.len() <= MESSAGE_BYTES_MAX {
            cut_at = end;
        }
    }
    message
}

/// The detail, if it fits.
pub(super) fn detail(detail: prost_types::Any) -> Option<prost_types::Any> {
    (detail.encoded_len() <= DETAIL_BYTES_MAX).then_some(detail)
}

/// The failure of a query: whole if it fits, otherwise its truncated message and source.
pub(super) fn query_failure(failure: Option<&Failure>) -> details::QueryFailedFailure {
    let Some(failure) = failure else { return details::QueryFailedFailure::default() };
    let whole = details::QueryFailedFailure { failure: Some(failure.clone()) };
    if whole.encoded_len() <= DETAIL_BYTES_MAX - TYPE_BYTES {
        return whole;
    }
    let failure = Failure { message: cut(&failure.message), source: cut(&failure.source), ..Failure::default() };
    details::QueryFailedFailure { failure: Some(failure) }
}

/// Statuses of several operations: with typed details if they fit, otherwise the codes and truncated messages, which
/// clients need.
pub(super) fn operations(statuses: Vec<OperationStatus>) -> details::MultiOperationExecutionFailure {
    let mut whole = details::MultiOperationExecutionFailure { statuses };
    if whole.encoded_len() > DETAIL_BYTES_MAX - TYPE_BYTES {
        for status in &mut whole.statuses {
            status.details.clear();
            status.message = cut(&status.message);
        }
    }
    whole
}

/// A detail's type URL and framing.
const TYPE_BYTES: usize = 128;

fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = TEXT_BYTES_MAX - SUFFIX.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SUFFIX}", &text[..end])
}

fn in_header(character: char) -> usize {
    match character {
        ' ' | '"' | '#' | '%' | '<' | '>' | '`' | '?' | '{' | '}' => 3,
        '!'..='~' => 1,
        _ => 3 * character.len_utf8(),
    }
}

/// Rounded up per character: an upper bound.
fn in_base64(bytes: usize) -> usize {
    (bytes * 4).div_ceil(3)
}

#[cfg(test)]
mod tests;
