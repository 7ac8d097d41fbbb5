//! Actions of schedules, done and missed.

use std::fmt::Write as _;
use std::time::Duration;

use super::family::{Family, Labels};

static ACTIONS: Family<Scheduler> =
    Family::counter("schedule_action_success", "The number of workflows that schedules started.");
static ACTION_ERRORS: Family<Scheduler> =
    Family::counter("schedule_action_errors", "The number of workflows that schedules could not start.");
static MISSED: Family<Scheduler> = Family::counter(
    "schedule_missed_catchup_window",
    "The number of times of schedules that were longer ago than the catchup window.",
);
static SKIPPED: Family<Scheduler> =
    Family::counter("schedule_overlap_skipped", "The number of actions that a schedule's overlap policy left out.");
static OVERRUNS: Family<Scheduler> =
    Family::counter("schedule_buffer_overruns", "The number of actions that a schedule had no room to keep waiting.");
static DELAY: Family<Scheduler> =
    Family::histogram("schedule_action_delay", "How late schedules started workflows, in seconds.");

/// Counted events of schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduled {
    ActionSuccess,
    ActionError,
    MissedCatchupWindow,
    OverlapSkipped,
    BufferOverrun,
}

pub fn count_scheduled(what: Scheduled, amount: i64) {
    if amount > 0 {
        what.family().add(Scheduler, amount);
    }
}

/// Delay of a workflow that a schedule started, not manually.
pub fn observe_action_delay(delay: Duration) {
    DELAY.observe(Scheduler, delay);
}

pub(super) fn write(text: &mut String) {
    for family in [&ACTIONS, &ACTION_ERRORS, &MISSED, &SKIPPED, &OVERRUNS, &DELAY] {
        family.write(text);
    }
}

impl Scheduled {
    fn family(self) -> &'static Family<Scheduler> {
        match self {
            Self::ActionSuccess => &ACTIONS,
            Self::ActionError => &ACTION_ERRORS,
            Self::MissedCatchupWindow => &MISSED,
            Self::OverlapSkipped => &SKIPPED,
            Self::BufferOverrun => &OVERRUNS,
        }
    }
}

/// One series for all schedules of the process: their number is unbounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduler;

impl Labels for Scheduler {
    fn write(&self, text: &mut String) {
        let _ = write!(text, "service_name=\"history\"");
    }
}
