//! Buffered starts, and the overlap policies that decide on them.

use std::time::Duration;

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy as Policy;

use super::decide::Draft;
use super::schedule::{Start, Stop};

/// Retry window of a manual start.
const MANUAL_TRIES: Duration = Duration::from_secs(60);
/// Retry window of any other start, at least and at most.
const TRIES_MIN: Duration = Duration::from_secs(5);
const TRIES_MAX: Duration = Duration::from_secs(60 * 60);

/// Decisions on the buffered starts.
#[derive(Debug, Default, PartialEq)]
struct Sorted {
    /// Start now, beside other runs.
    beside: Vec<Start>,
    /// Starts now, as the only one that does not overlap.
    alone: Option<Start>,
    /// Stay buffered.
    waiting: Vec<Start>,
    stop: Option<Stop>,
    n_skipped: i64,
}

/// Decides on the buffered starts until all that are left must stay buffered.
pub(super) fn start_buffered(draft: &mut Draft) {
    let action = draft.schedule.definition.action.as_ref().and_then(|action| action.action.as_ref());
    if action.is_none() {
        draft.schedule.work.buffer.clear();
        return;
    }
    // Every round takes starts out of the buffer, or is the last.
    while round(draft) {}
}

/// Returns whether a start was dropped, so that the next one may start.
fn round(draft: &mut Draft) -> bool {
    let waiting = std::mem::take(&mut draft.schedule.work.buffer);
    let Sorted { beside, alone, waiting, stop, n_skipped } = sort(draft, waiting);
    draft.schedule.work.buffer = waiting;
    draft.schedule.counts.overlap_skipped += n_skipped;
    let mut is_dropped = false;
    let beside = beside.into_iter().map(|start| Start { overlaps: true, ..start });
    for start in beside.chain(alone) {
        if draft.spend(&start) {
            let gives_up_at = draft.now + patience(draft, &start);
            draft.schedule.work.starting.push(Start { gives_up_at, ..start });
        } else {
            is_dropped = true;
        }
    }
    for run in &mut draft.schedule.work.running {
        if stop > run.stop {
            run.stop = stop;
            run.is_stop_asked = false;
        }
    }
    is_dropped
}

/// Resolves the policies only now, so that an update applies to buffered starts.
fn sort(draft: &Draft, buffer: Vec<Start>) -> Sorted {
    let work = &draft.schedule.work;
    // A start in flight counts as a run, but cannot be stopped yet.
    let is_running = !work.running.is_empty() || work.starting.iter().any(|start| !start.overlaps);
    let mut sorted = Sorted::default();
    for start in buffer {
        let policy = draft.schedule.overlap_policy(start.overlap_policy);
        if policy == Policy::AllowAll {
            sorted.beside.push(start);
        } else if !is_running && sorted.alone.is_none() {
            sorted.alone = Some(start);
        } else {
            sorted.overlap(start, policy, is_running);
        }
    }
    if sorted.stop.is_some() {
        // As in the reference: nothing starts beside a run that is being stopped.
        sorted.beside.clear();
    }
    sorted
}

impl Sorted {
    fn overlap(&mut self, start: Start, policy: Policy, is_running: bool) {
        match policy {
            Policy::BufferAll => self.waiting.push(start),
            Policy::BufferOne if self.waiting.is_empty() => self.waiting.push(start),
            Policy::CancelOther | Policy::TerminateOther if is_running => {
                let stop = if policy == Policy::CancelOther { Stop::Cancel } else { Stop::Terminate };
                self.stop = self.stop.max(Some(stop));
                self.waiting.push(start);
            }
            // The start to stop has not begun: replaces it.
            Policy::CancelOther | Policy::TerminateOther => self.alone = Some(start),
            Policy::Skip | Policy::BufferOne | Policy::AllowAll | Policy::Unspecified => self.n_skipped += 1,
        }
    }
}

fn patience(draft: &Draft, start: &Start) -> Duration {
    if start.is_manual {
        return MANUAL_TRIES;
    }
    (start.acts_at + draft.schedule.catchup_window()).since(draft.now).clamp(TRIES_MIN, TRIES_MAX)
}
