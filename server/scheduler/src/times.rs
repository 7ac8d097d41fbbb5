//! Turns the times of specs and backfills into buffered starts.

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy;
use workflow::Timestamp;

use super::decide::{Draft, Manual};
use super::schedule::BUFFER_MAX;
use super::spec::budget::Budget;
use super::spec::{NextTime, Search, Spec};

/// Times processed per decision; the rest is left to the next one, which follows at once. A long backlog of one-second
/// times must not block other schedules.
pub(super) const TIMES_MAX: usize = 10_000;
/// Backfilled starts of one decision.
const BACKFILLED_MAX: usize = 10;

/// Processes the times since the last decision.
pub(super) fn pass(draft: &mut Draft) {
    let (from, to) = (draft.schedule.moments.processed_at, draft.now);
    if !draft.may_act() {
        draft.schedule.moments.processed_at = from.max(to);
        return;
    }
    let Some(spec) = draft.spec.clone() else { return };
    let (seed, mut budget) = (draft.schedule.jitter_seed(), spec.budget());
    let mut search = Search::new(&spec, &seed, &mut budget);
    let catchup_window = draft.schedule.catchup_window();
    let updated_at = draft.schedule.moments.updated_at;
    for _ in 0..TIMES_MAX {
        let next = search.next_time(draft.schedule.moments.processed_at).ok().flatten();
        let Some(NextTime { nominal, at }) = next.filter(|next| next.at <= to) else { return };
        draft.schedule.moments.processed_at = at;
        if updated_at.is_some_and(|updated_at| updated_at > at) {
            // It belonged to the previous definition, which processed it.
        } else if to.since(at) > catchup_window {
            draft.schedule.counts.missed_catchup_window += 1;
        } else {
            draft.buffer_start((nominal, at), ScheduleOverlapPolicy::Unspecified, Manual::No);
        }
    }
}

/// Buffers a batch of backfilled starts. They take no more than half of the buffer.
pub(super) fn backfill(draft: &mut Draft) {
    let Some(spec) = draft.spec.clone() else {
        draft.schedule.work.backfills.clear();
        return;
    };
    let mut budget = spec.budget();
    for _ in 0..BACKFILLED_MAX {
        if draft.schedule.work.buffer.len() >= BUFFER_MAX / 2 {
            return;
        }
        let Some(NextTime { nominal, at }) = next_backfilled(draft, &spec, &mut budget) else { return };
        let backfill = &mut draft.schedule.work.backfills[0];
        backfill.start_time = Some(at.into());
        let asked = backfill.overlap_policy();
        draft.buffer_start((nominal, at), asked, Manual::Yes);
    }
    // Drops exhausted backfills, so that they do not count as work.
    next_backfilled(draft, &spec, &mut budget);
}

/// The next time of the first backfill that has one; drops those before it. `None`, with backfills left, if the budget
/// of this decision ran out.
fn next_backfilled(draft: &mut Draft, spec: &Spec, budget: &mut Budget) -> Option<NextTime> {
    let seed = draft.schedule.jitter_seed();
    let backfills = &mut draft.schedule.work.backfills;
    let mut n_over = 0;
    let mut found = None;
    while let Some(backfill) = backfills.get(n_over) {
        let [from, to] =
            [backfill.start_time, backfill.end_time].map(|time| time.map_or(Timestamp(0), Timestamp::from));
        let is_whole = budget.is_whole();
        match Search::new(spec, &seed, budget).next_time(from) {
            Ok(next) => found = next.filter(|next| next.at <= to),
            // The next decision has a new budget.
            Err(_) if !is_whole => {
                draft.is_backfill_cut = true;
                break;
            }
            Err(_) => {}
        }
        if found.is_some() {
            break;
        }
        n_over += 1;
    }
    backfills.drain(..n_over);
    found
}

/// The next unprocessed time of the spec.
pub(super) fn next(draft: &Draft) -> Option<Timestamp> {
    let spec = draft.spec.as_deref()?;
    let (seed, mut budget) = (draft.schedule.jitter_seed(), spec.budget());
    let mut search = Search::new(spec, &seed, &mut budget);
    let processed_at = draft.schedule.moments.processed_at;
    let mut moment = processed_at;
    for _ in 0..TIMES_MAX {
        match search.next_time(moment) {
            Ok(next) => moment = next?.at,
            // Processes the times found so far first; the rest has a new budget then.
            Err(_) => return Some(moment).filter(|moment| *moment > processed_at),
        }
        if draft.schedule.moments.updated_at.is_none_or(|updated_at| updated_at <= moment) {
            return Some(moment);
        }
    }
    Some(moment)
}
