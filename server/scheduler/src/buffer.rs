//! Starts that wait, and what becomes of those that overlap with a run.

use std::time::Duration;

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy as Policy;

use super::decide::Draft;
use super::schedule::{Start, Stop};

/// How long a start that was asked for is tried.
const MANUAL_TRIES: Duration = Duration::from_secs(60);
/// How long another one is tried at least, and at most.
const TRIES_MIN: Duration = Duration::from_secs(5);
const TRIES_MAX: Duration = Duration::from_secs(60 * 60);

/// What is to be done with the starts that wait.
#[derive(Debug, Default, PartialEq)]
struct Sorted {
    /// These go beside others.
    beside: Vec<Start>,
    /// This one goes alone.
    alone: Option<Start>,
    /// These go on waiting.
    waiting: Vec<Start>,
    stop: Option<Stop>,
    n_skipped: i64,
}

/// Decides on the starts that wait, until all of them must wait on.
pub(super) fn work_off(draft: &mut Draft) {
    let action = draft.schedule.definition.action.as_ref().and_then(|action| action.action.as_ref());
    if action.is_none() {
        draft.schedule.work.buffer.clear();
        return;
    }
    // Every round takes starts out of the buffer, or is the last.
    while round(draft) {}
}

/// True: a start was dropped, and the next may have its turn.
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

/// Sorts by the policies, which are only now the schedule's: an update changes what waits.
fn sort(draft: &Draft, buffer: Vec<Start>) -> Sorted {
    let work = &draft.schedule.work;
    // A start that is under way is as good as a run, but cannot be stopped yet.
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
        // They would only be started to be stopped.
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
            // What would be stopped has not begun: it is replaced.
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
