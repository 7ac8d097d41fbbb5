//! Shrinks a description to the size that a client can receive. A run's pending items are bounded by its mutable state,
//! which is larger than a message may be: details of the largest activities are dropped first, then whole items.

use prost::Message as _;
use proto::temporal::api::workflow::v1::PendingActivityInfo;
use proto::temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;

/// gRPC clients accept 4 MiB; 64 KiB of it are for the frame.
const ANSWER_BYTES_MAX: usize = (4 << 20) - (64 << 10);

/// Drops heartbeat details first, because a description is not the place to read them; then failures; then whole items,
/// half of each list at a time.
pub(super) fn fit(described: &mut DescribeWorkflowExecutionResponse) {
    leave_out(described, |activity| activity.heartbeat_details.take().map(|details| details.encoded_len()));
    leave_out(described, |activity| activity.last_failure.take().map(|failure| failure.encoded_len()));
    while described.encoded_len() > ANSWER_BYTES_MAX {
        let longest = [
            described.pending_activities.len(),
            described.pending_children.len(),
            described.callbacks.len(),
            described.pending_nexus_operations.len(),
        ];
        if longest.iter().all(|length| *length == 0) {
            return;
        }
        let half = |length: usize| length / 2;
        described.pending_activities.truncate(half(longest[0]));
        described.pending_children.truncate(half(longest[1]));
        described.callbacks.truncate(half(longest[2]));
        described.pending_nexus_operations.truncate(half(longest[3]));
    }
}

fn leave_out(
    described: &mut DescribeWorkflowExecutionResponse,
    take: impl Fn(&mut PendingActivityInfo) -> Option<usize>,
) {
    let bytes = described.encoded_len();
    if bytes <= ANSWER_BYTES_MAX {
        return;
    }
    let mut surplus = bytes - ANSWER_BYTES_MAX;
    let mut activities: Vec<_> = described.pending_activities.iter_mut().collect();
    activities.sort_by_cached_key(|activity| std::cmp::Reverse(activity.encoded_len()));
    for activity in activities {
        surplus = surplus.saturating_sub(take(activity).unwrap_or(0));
        if surplus == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
