//! Warns of runs that come near to a limit: each once, when it passes the level. Levels are the reference's.

use prost::Message;
use proto::temporal::api::history::v1::HistoryEvent;
use tracing::warn;
use workflow::ExecutionState;

const HISTORY_BYTES: i64 = 10 << 20;
const HISTORY_EVENTS: i64 = 10 << 10;
const EVENT_BYTES: usize = 512 << 10;
const MEMO_BYTES: usize = 2 << 10;

/// A transition was decided on, and is about to be committed.
pub(super) fn warn_of_growth(before: Option<&ExecutionState>, after: &ExecutionState, events: &[HistoryEvent]) {
    let size = |state: &ExecutionState| state.history_size;
    let count = |state: &ExecutionState| state.last_event_id().0;
    if passes(before.map_or(0, size), size(after), HISTORY_BYTES) {
        warn!(execution = %after.key, bytes = size(after), "the history is large; the run should continue as new");
    }
    if passes(before.map_or(0, count), count(after), HISTORY_EVENTS) {
        warn!(execution = %after.key, events = count(after), "the history is long; the run should continue as new");
    }
    for event in events.iter().filter(|event| event.encoded_len() > EVENT_BYTES) {
        let bytes = event.encoded_len();
        warn!(execution = %after.key, event_id = event.event_id, bytes, "an event carries large payloads");
    }
    let memo_before = before.map_or(0, |state| state.memo.encoded_len());
    if memo_before <= MEMO_BYTES && after.memo.encoded_len() > MEMO_BYTES {
        warn!(execution = %after.key, bytes = after.memo.encoded_len(), "the memo is large");
    }
}

fn passes(before: i64, after: i64, level: i64) -> bool {
    before <= level && after > level
}
