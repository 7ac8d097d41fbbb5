//! Recently closed runs, whose timers are obsolete. A released shard passes them to its next owner, which would
//! otherwise read each run. Pure.

use std::collections::{HashSet, VecDeque};

use workflow::{RunId, TimerTask};

/// Some minutes of a busy shard, in about 1 MB. For an evicted run, its state shows that it is closed.
const REMEMBERED_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct ClosedRuns {
    known: HashSet<RunId>,
    order: VecDeque<RunId>,
}

impl ClosedRuns {
    /// As the previous owner stored them.
    pub(super) fn of(run_ids: Vec<RunId>) -> Self {
        let mut closed = Self::default();
        run_ids.into_iter().for_each(|run_id| closed.add(run_id));
        closed
    }

    /// Oldest first.
    pub(super) fn all(&self) -> Vec<RunId> {
        self.order.iter().copied().collect()
    }

    pub(super) fn add(&mut self, run_id: RunId) {
        if !self.known.insert(run_id) {
            return;
        }
        self.order.push_back(run_id);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether the timer is obsolete: its run has closed.
    pub(super) fn is_obsolete(&self, run_id: RunId, task: &TimerTask) -> bool {
        match task {
            // Retention concerns closed runs; a schedule is not a run.
            TimerTask::Retention { .. } | TimerTask::Schedule => false,
            TimerTask::UserTimer { .. }
            | TimerTask::ActivityTimeout { .. }
            | TimerTask::ActivityRetry { .. }
            | TimerTask::WorkflowTaskScheduleToStart { .. }
            | TimerTask::WorkflowTaskStartToClose { .. }
            | TimerTask::FirstWorkflowTask { .. }
            | TimerTask::RunTimeout { .. }
            | TimerTask::ExecutionTimeout { .. } => self.known.contains(&run_id),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Eviction, and which timers are obsolete.

    use uuid::Uuid;

    use super::*;

    fn run(n: usize) -> RunId {
        RunId(Uuid::from_u128(n as u128))
    }

    #[test]
    fn a_closed_run_has_outlived_its_timers_but_not_its_retention() {
        let mut closed = ClosedRuns::default();
        closed.add(run(1));
        assert!(closed.is_obsolete(run(1), &TimerTask::RunTimeout { version: 0 }));
        assert!(!closed.is_obsolete(run(1), &TimerTask::Retention { version: 0 }));
        assert!(!closed.is_obsolete(run(2), &TimerTask::RunTimeout { version: 0 }));
    }

    #[test]
    fn only_the_last_ones_are_remembered() {
        let mut closed = ClosedRuns::default();
        (0..=REMEMBERED_MAX).chain([REMEMBERED_MAX]).for_each(|n| closed.add(run(n)));
        assert_eq!((closed.known.len(), closed.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert!(!closed.is_obsolete(run(0), &TimerTask::RunTimeout { version: 0 }));
        assert!(closed.is_obsolete(run(REMEMBERED_MAX), &TimerTask::RunTimeout { version: 0 }));
    }
}
