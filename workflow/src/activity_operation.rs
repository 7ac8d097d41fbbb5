//! Operator actions on pending activities: pause, unpause, reset, update of options. None leaves an event.
//!
//! The activity's stamp voids what was dispatched, or scheduled for a retry, before such a change.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::activity::{Activity, ActivityPause, arm_timer, find, find_by_id};
use crate::activity_options::{merged, shown};
use crate::draft::Draft;
use crate::ids::EventId;
use crate::input::{
    ActivityTarget, Jitter, OptionsChange, PauseActivity, ResetActivity, UnpauseActivity, UpdateActivity,
};
use crate::outcome::{Outcome, Rejection, Reply};
use crate::retry;
use crate::tasks::TimerTask;
use crate::time::Timestamp;

/// No worker gets a paused activity; a worker that has one is notified by its next heartbeat.
pub(crate) fn pause(draft: &mut Draft, input: PauseActivity) -> Result<Outcome, Rejection> {
    let pause =
        ActivityPause { at: draft.now(), identity: input.identity, reason: input.reason, request_id: input.request_id };
    let mut is_changed = false;
    for id in targets(draft, &input.target)? {
        let activity = pending(draft, id);
        match &activity.unrecorded.pause {
            Some(earlier) if earlier.request_id == pause.request_id => continue,
            Some(_) => return Err(Rejection::FailedPrecondition("activity is already paused".to_owned())),
            None => {}
        }
        // Voids a dispatch in flight. A worker that has the activity may finish.
        if waits_for_worker(activity) {
            activity.unrecorded.stamp += 1;
        }
        activity.unrecorded.pause = Some(pause.clone());
        is_changed = true;
    }
    Ok(if is_changed { Outcome::Changed(Reply::Done) } else { Outcome::Unchanged(Reply::Done) })
}

pub(crate) fn unpause(draft: &mut Draft, input: &UnpauseActivity) -> Result<Outcome, Rejection> {
    let mut is_changed = false;
    for id in targets(draft, &input.target)? {
        let activity = pending(draft, id);
        if activity.unrecorded.pause.is_none() {
            continue;
        }
        is_changed = true;
        end_pause(activity);
        if input.reset_attempts {
            activity.unrecorded.attempt = 1;
        }
        if input.reset_heartbeat {
            forget_heartbeats(activity);
        }
        if waits_for_worker(activity) {
            schedule_again(draft, id, input.jitter.moment(draft.now(), id));
        } else {
            arm_timer(draft, id);
        }
    }
    Ok(if is_changed { Outcome::Changed(Reply::Done) } else { Outcome::Unchanged(Reply::Done) })
}

/// Restarts activities from the first attempt.
pub(crate) fn reset(draft: &mut Draft, input: &ResetActivity) -> Result<Outcome, Rejection> {
    for id in targets(draft, &input.target)? {
        let activity = pending(draft, id);
        let was_paused = activity.unrecorded.pause.is_some();
        activity.unrecorded.attempt = 1;
        activity.unrecorded.is_reset = true;
        activity.unrecorded.resets_heartbeats |= input.reset_heartbeat;
        if input.restore_original_options {
            activity.restore_options();
            activity.unrecorded.stamp += 1;
        }
        if was_paused && !input.keep_paused {
            end_pause(activity);
        }
        if waits_for_worker(activity) && activity.unrecorded.pause.is_none() {
            if !was_paused {
                activity.unrecorded.stamp += 1;
            }
            schedule_again(draft, id, input.jitter.moment(draft.now(), id));
        } else {
            arm_timer(draft, id);
        }
    }
    Ok(Outcome::Changed(Reply::Done))
}

pub(crate) fn update_options(draft: &mut Draft, input: &UpdateActivity) -> Result<Outcome, Rejection> {
    let mut last = None;
    for id in targets(draft, &input.target)? {
        let activity = draft.state.activities.get(id.0).expect("a target is pending");
        let options = match &input.change {
            OptionsChange::Restore => activity.original_options(),
            OptionsChange::Merge { options, fields } => merged(draft, activity, options, fields)?,
        };
        let activity = pending(draft, id);
        last = Some(shown(&options));
        activity.change_options(options);
        activity.unrecorded.stamp += 1;
        if waits_for_worker(activity) {
            let at = next_attempt_at(activity);
            schedule_again(draft, id, at);
        } else {
            arm_timer(draft, id);
        }
    }
    let last = last.expect("there is a target");
    Ok(Outcome::Changed(Reply::ActivityOptions(Box::new(last))))
}

fn pending<'a>(draft: &'a mut Draft, id: EventId) -> &'a mut Activity {
    draft.state.activities.get_mut(id.0).expect("a target is pending")
}

/// The targeted pending activities; at least one.
fn targets(draft: &Draft, target: &ActivityTarget) -> Result<Vec<EventId>, Rejection> {
    let all = || draft.state.activities.iter().filter_map(|(id, _)| find(draft, EventId(id)));
    let found: Vec<EventId> = match target {
        ActivityTarget::Id(id) => {
            find_by_id(draft, id).map(|activity| activity.scheduled_event_id).into_iter().collect()
        }
        ActivityTarget::Type(kind) => all()
            .filter(|activity| activity.activity_type == *kind)
            .map(|activity| activity.scheduled_event_id)
            .collect(),
        ActivityTarget::All => all().map(|activity| activity.scheduled_event_id).collect(),
    };
    if found.is_empty() { Err(Rejection::NoSuchActivity) } else { Ok(found) }
}

/// Not started by a worker, and without a cancel request.
fn waits_for_worker(activity: &Activity) -> bool {
    activity.unrecorded.started.is_none() && activity.cancel_requested_event_id.is_none()
}

fn end_pause(activity: &mut Activity) {
    activity.unrecorded.pause = None;
    activity.unrecorded.stamp += 1;
}

fn forget_heartbeats(activity: &mut Activity) {
    activity.unrecorded.heartbeat_details = None;
    activity.unrecorded.last_heartbeat_at = None;
}

/// Reschedules the waiting attempt.
fn schedule_again(draft: &mut Draft, scheduled_event_id: EventId, at: Timestamp) {
    let activity = pending(draft, scheduled_event_id);
    assert!(activity.unrecorded.started.is_none(), "only an attempt that waits is put on another moment");
    if activity.unrecorded.resets_heartbeats {
        forget_heartbeats(activity);
    }
    let progress = &mut activity.unrecorded;
    progress.attempt_scheduled_at = at;
    progress.last_failure = None;
    progress.is_reset = false;
    progress.resets_heartbeats = false;
    let (attempt, stamp, version) = (progress.attempt, progress.stamp, activity.version);
    draft.timer(at, TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp, version });
    arm_timer(draft, scheduled_event_id);
}

/// Time of the waiting attempt, under options that may be new: counted from the end of the previous attempt.
fn next_attempt_at(activity: &Activity) -> Timestamp {
    let progress = &activity.unrecorded;
    let (Some(policy), Some(ended_at)) = (&activity.retry_policy, progress.last_attempt_ended_at) else {
        return progress.attempt_scheduled_at;
    };
    if progress.attempt <= 1 {
        return progress.attempt_scheduled_at;
    }
    ended_at + retry::interval_before(policy, progress.attempt)
}

impl Jitter {
    /// A pseudo-random time within the span from now, different for each activity.
    fn moment(self, now: Timestamp, id: EventId) -> Timestamp {
        let Ok(span @ 1..) = u64::try_from(self.span.as_nanos()) else { return now };
        let mut hasher = DefaultHasher::new();
        (self.seed, id.0).hash(&mut hasher);
        now + Duration::from_nanos(hasher.finish() % span)
    }
}
