//! From a specification's times to starts that wait for their turn.

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy;
use workflow::Timestamp;

use super::decide::{Draft, Manual};
use super::schedule::BUFFER_MAX;

/// Times that one decision deals with; the rest is left to the next one, which comes at once. A schedule that slept for
/// long and acts every second must not keep others waiting.
pub(super) const TIMES_MAX: usize = 10_000;
/// Backfilled starts of one decision.
const BACKFILLED_MAX: usize = 10;

/// Deals with the times since the last look.
pub(super) fn pass(draft: &mut Draft) {
    let (from, to) = (draft.schedule.moments.processed_at, draft.now);
    if !draft.may_act() {
        draft.schedule.moments.processed_at = from.max(to);
        return;
    }
    let catchup_window = draft.schedule.catchup_window();
    let updated_at = draft.schedule.moments.updated_at;
    for _ in 0..TIMES_MAX {
        let Some((nominal, at)) = after(draft, draft.schedule.moments.processed_at).filter(|(_, at)| *at <= to) else {
            return;
        };
        draft.schedule.moments.processed_at = at;
        if updated_at.is_some_and(|updated_at| updated_at > at) {
            // It was another schedule's, which dealt with it.
        } else if to.since(at) > catchup_window {
            draft.schedule.counts.missed_catchup_window += 1;
        } else {
            draft.buffer_start((nominal, at), ScheduleOverlapPolicy::Unspecified, Manual::No);
        }
    }
}

/// Works off a part of the backfills. They take no more than half of the buffer.
pub(super) fn backfill(draft: &mut Draft) {
    for _ in 0..BACKFILLED_MAX {
        if draft.schedule.work.buffer.len() >= BUFFER_MAX / 2 {
            return;
        }
        let Some((nominal, at)) = next_backfilled(draft) else { return };
        let backfill = &mut draft.schedule.work.backfills[0];
        backfill.start_time = Some(at.into());
        let asked = backfill.overlap_policy();
        draft.buffer_start((nominal, at), asked, Manual::Yes);
    }
    // So that what is used up does not look like something to do.
    next_backfilled(draft);
}

/// The next time of the first backfill that has one; those before it are over.
fn next_backfilled(draft: &mut Draft) -> Option<(Timestamp, Timestamp)> {
    loop {
        let backfill = draft.schedule.work.backfills.first()?;
        let [from, to] =
            [backfill.start_time, backfill.end_time].map(|time| time.map_or(Timestamp(0), Timestamp::from));
        match after(draft, from).filter(|(_, at)| *at <= to) {
            Some(next) => return Some(next),
            None => drop(draft.schedule.work.backfills.remove(0)),
        }
    }
}

/// When the specification has its next time that is not dealt with.
pub(super) fn next(draft: &Draft) -> Option<Timestamp> {
    let mut moment = draft.schedule.moments.processed_at;
    for _ in 0..TIMES_MAX {
        let (_, at) = after(draft, moment)?;
        if draft.schedule.moments.updated_at.is_none_or(|updated_at| updated_at <= at) {
            return Some(at);
        }
        moment = at;
    }
    Some(moment)
}

/// The nominal time and the moment of the next action; nothing if there is none, or it is too far behind exclusions.
fn after(draft: &Draft, moment: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let next = draft.spec.as_ref()?.next_time(&draft.schedule.jitter_seed(), moment).ok()??;
    Some((next.nominal, next.at))
}
