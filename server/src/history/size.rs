//! Size limits of a submission, checked before a transition is kept: state in memory must be committable, because the
//! shard is given up when a store refuses a batch. A transition that is too large fails only its own caller.

use persistence::stores::executions::RunWrite;
use prost::Message;
use workflow::{ChangedItems, Decision, ExecutionState, Rejection, Transition};

/// Bytes of rows in one submission, and in all submissions of a batch together: a store takes 15 MiB
/// (`persistence_cql`), and the committer's own rows, such as a checkpoint, take less than the rest.
pub(super) const SUBMISSION_BYTES_MAX: usize = 12 << 20;

/// Bytes of one event. A history node has less than 4 MiB before its last event: together below what a store takes.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// Bytes of a queue task with the key of its run, without the workflow id.
const TASK_BYTES: usize = 128;

/// Refuses a change that does not fit one batch, together with the new run that it starts.
pub(super) fn checked(decision: Decision) -> Result<Decision, Rejection> {
    if let Decision::Changed(next) = &decision {
        check(std::iter::once(next.as_ref()).chain(next.new_run.as_deref()))?;
    }
    Ok(decision)
}

/// Refuses transitions that are committed together and do not fit one batch.
pub(super) fn check<'a>(transitions: impl IntoIterator<Item = &'a Transition>) -> Result<(), Rejection> {
    let mut bytes = 0;
    for next in transitions {
        bytes += of_run(&next.state, &next.changed, next.tasks.len());
        // A history within the limit has no event above it: most runs skip the check of each event.
        let may_be_large = usize::try_from(next.state.history_size).is_ok_and(|size| size > EVENT_BYTES_MAX);
        if may_be_large {
            next.events.iter().try_for_each(|event| check_size(event.encoded_len(), EVENT_BYTES_MAX))?;
        }
    }
    check_size(bytes, SUBMISSION_BYTES_MAX)
}

/// Bytes that a run adds to a batch.
pub(super) fn of_run(state: &ExecutionState, changed: &ChangedItems, n_tasks: usize) -> usize {
    RunWrite::size_of(state, changed) + n_tasks * (TASK_BYTES + state.key.workflow_id.len())
}

fn check_size(bytes: usize, bytes_max: usize) -> Result<(), Rejection> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let message = format!("transaction size of {bytes} bytes exceeds limit of {bytes_max} bytes");
    Err(Rejection::InvalidArgument(message))
}

#[cfg(test)]
mod tests;
