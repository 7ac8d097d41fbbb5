//! What an error may take on the wire. A status travels in trailers: its message percent-encoded, and again, with the
//! typed detail, in base64. C-core clients refuse trailers of more than 8 KiB altogether, and see no error at all. Pure.

use prost::Message as _;
use proto::temporal::api::errordetails::v1 as details;
use proto::temporal::api::errordetails::v1::multi_operation_execution_failure::OperationStatus;
use proto::temporal::api::failure::v1::Failure;

/// Message and details as they are on the wire. Leaves 1 KiB of the 8 KiB for the names, the code and headers of ours.
pub(super) const STATUS_BYTES_MAX: usize = 7 << 10;
/// The reference cuts a message here, whatever it takes on the wire.
const MESSAGE_BYTES_MAX: usize = 4000;
/// A typed detail before it is encoded, so that a message of the usual length stays whole beside it.
const DETAIL_BYTES_MAX: usize = 2 << 10;
/// Each text within a detail that does not fit as it is; two of them do.
const TEXT_BYTES_MAX: usize = 800;
const SUFFIX: &str = "... <truncated>";

/// The message, cut where it would take more on the wire than there is room for. `detail` is what travels beside it.
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
        // Only what leaves room for the suffix may stay if the rest goes.
        if taken + 3 * SUFFIX.len() + in_base64(SUFFIX.len()) <= room && end + SUFFIX.len() <= MESSAGE_BYTES_MAX {
            cut_at = end;
        }
    }
    message
}

/// The detail, if it can be sent.
pub(super) fn detail(detail: prost_types::Any) -> Option<prost_types::Any> {
    (detail.encoded_len() <= DETAIL_BYTES_MAX).then_some(detail)
}

/// The failure of a query: whole if it fits, otherwise what it says in the first place.
pub(super) fn query_failure(failure: Option<&Failure>) -> details::QueryFailedFailure {
    let Some(failure) = failure else { return details::QueryFailedFailure::default() };
    let whole = details::QueryFailedFailure { failure: Some(failure.clone()) };
    if whole.encoded_len() <= DETAIL_BYTES_MAX - TYPE_BYTES {
        return whole;
    }
    let failure = Failure { message: cut(&failure.message), source: cut(&failure.source), ..Failure::default() };
    details::QueryFailedFailure { failure: Some(failure) }
}

/// What each of several operations met: with typed details if they fit, otherwise the codes and the beginnings of the
/// messages, which clients cannot do without.
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

/// The address of a detail's type, and what is around it.
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

/// Rounded up by character, which is on the safe side.
fn in_base64(bytes: usize) -> usize {
    (bytes * 4).div_ceil(3)
}

#[cfg(test)]
mod tests;
