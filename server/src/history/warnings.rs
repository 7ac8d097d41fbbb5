//! Logs and counts runs that come near to a limit, once per upward crossing of a level. Levels are the reference's.

use cluster::metrics::{Limit, count_warning};
use prost::Message;
use proto::temporal::api::history::v1::HistoryEvent;
use tracing::warn;
use workflow::{Activity, ChangedItems, ExecutionState};

const HISTORY_BYTES: i64 = 10 << 20;
const HISTORY_EVENTS: i64 = 10 << 10;
const EVENT_BYTES: usize = 512 << 10;
const MEMO_BYTES: usize = 2 << 10;
const MUTABLE_STATE_BYTES: usize = 1 << 20;
const ACTIVITY_FAILURE_BYTES: usize = 2 << 10;

/// Checks a transition that is about to be committed.
pub(super) fn warn_of_growth(
    before: Option<&ExecutionState>,
    after: &ExecutionState,
    (events, changed): (&[HistoryEvent], &ChangedItems),
) {
    let size = |state: &ExecutionState| state.history_size;
    let count = |state: &ExecutionState| state.last_event_id().0;
    let memo = |state: &ExecutionState| state.memo.encoded_len();
    if passes(before.map_or(0, size), size(after), HISTORY_BYTES) {
        count_warning(Limit::HistorySize);
        warn!(execution = %after.key, bytes = size(after), "the history is large; the run should continue as new");
    }
    if passes(before.map_or(0, count), count(after), HISTORY_EVENTS) {
        count_warning(Limit::HistoryCount);
        warn!(execution = %after.key, events = count(after), "the history is long; the run should continue as new");
    }
    for event in events.iter().filter(|event| event.encoded_len() > EVENT_BYTES) {
        let bytes = event.encoded_len();
        count_warning(Limit::BlobSize);
        warn!(execution = %after.key, event_id = event.event_id, bytes, "an event carries large payloads");
    }
    if passes(before.map_or(0, memo), memo(after), MEMO_BYTES) {
        count_warning(Limit::MemoSize);
        warn!(execution = %after.key, bytes = memo(after), "the memo is large");
    }
    let bytes = after.mutable_state_size();
    if passes(before.map_or(0, ExecutionState::mutable_state_size), bytes, MUTABLE_STATE_BYTES) {
        count_warning(Limit::MutableStateSize);
        warn!(execution = %after.key, bytes, "mutable state is large");
    }
    for (id, activity) in &changed.activities {
        let known = before.and_then(|state| state.activities.get(*id)).map_or(0, failure_bytes);
        let bytes = activity.as_deref().map_or(0, failure_bytes);
        if passes(known, bytes, ACTIVITY_FAILURE_BYTES) {
            count_warning(Limit::ActivityFailureSize);
            warn!(execution = %after.key, scheduled_event_id = id, bytes, "the failure of an activity is large");
        }
    }
}

fn failure_bytes(activity: &Activity) -> usize {
    activity.unrecorded.last_failure.as_ref().map_or(0, Message::encoded_len)
}

fn passes<T: PartialOrd>(before: T, after: T, level: T) -> bool {
    before <= level && after > level
}

#[cfg(test)]
mod tests {
    use super::passes;

    #[test]
    fn a_level_is_passed_once_and_only_upwards() {
        let cases = [((9, 10), false), ((10, 11), true), ((9, 11), true), ((11, 12), false), ((12, 9), false)];
        for ((before, after), expected) in cases {
            assert_eq!(passes(before, after, 10), expected, "{before} to {after}");
        }
    }
}
