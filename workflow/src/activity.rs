//! Activities: the record of a pending one, its deadlines, and how events change it. Commands are in
//! activity_command.rs, attempts at a worker in activity_attempt.rs.

use std::time::Duration;

use proto::temporal::api::common::v1::{Payloads, Priority, RetryPolicy};
use proto::temporal::api::enums::v1::TimeoutType;
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ActivityTaskCancelRequestedEventAttributes, ActivityTaskScheduledEventAttributes,
    ActivityTaskStartedEventAttributes, HistoryEvent,
};

use crate::activity_options::ActivityOptions;
use crate::draft::Draft;
use crate::ids::EventId;
use crate::pause;
use crate::state::ExecutionState;
use crate::tasks::{TimerTask, TransferTask};
use crate::time::{Timestamp, limit};

#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub scheduled_event_id: EventId,
    pub scheduled_at: Timestamp,
    /// History node that holds the scheduled event, so that the input is found without reading all of history.
    pub scheduled_batch_id: EventId,
    pub version: i64,
    pub activity_id: String,
    pub activity_type: String,
    pub task_queue: String,
    /// `None` is no limit.
    pub schedule_to_start_timeout: Option<Duration>,
    pub schedule_to_close_timeout: Option<Duration>,
    pub start_to_close_timeout: Option<Duration>,
    pub heartbeat_timeout: Option<Duration>,
    pub retry_policy: Option<RetryPolicy>,
    pub cancel_requested_event_id: Option<EventId>,
    pub priority: Option<Priority>,
    /// Progress that leaves no event until the activity ends.
    pub unrecorded: ActivityProgress,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActivityProgress {
    /// Counts from 1.
    pub attempt: i32,
    pub attempt_scheduled_at: Timestamp,
    pub started: Option<ActivityAttempt>,
    pub last_failure: Option<Failure>,
    pub last_worker_identity: String,
    pub heartbeat_details: Option<Payloads>,
    pub last_heartbeat_at: Option<Timestamp>,
    /// Due time of the earliest pending timer task: no second one is created for a later time.
    pub timer_armed_for: Option<Timestamp>,
    pub last_attempt_ended_at: Option<Timestamp>,
    /// While set, no worker gets the activity, and its deadlines do not apply.
    pub pause: Option<ActivityPause>,
    /// Incremented when an operator changes something: earlier dispatches are void.
    pub stamp: i32,
    /// The next heartbeat must report a reset to the worker.
    pub is_reset: bool,
    /// The next attempt begins without the heartbeat details of the ones before.
    pub resets_heartbeats: bool,
    /// The options that it was scheduled with, if an operator changed them.
    pub original_options: Option<Box<ActivityOptions>>,
}

/// Time, author and reason of an activity's pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityPause {
    pub at: Timestamp,
    pub identity: String,
    pub reason: String,
    pub request_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActivityAttempt {
    /// Set once the started event is recorded: at the end of the activity, or at once if it has no retry policy.
    pub event_id: Option<EventId>,
    pub at: Timestamp,
    pub request_id: String,
    pub identity: String,
}

/// A timeout of an activity and its due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub at: Timestamp,
    pub timeout: TimeoutType,
}

impl Deadline {
    /// Order of deadlines at the same time. An eager activity has one time for its schedule and its start, although the
    /// start comes later: deadlines counted from the schedule precede those counted from the start.
    fn rank(self) -> (bool, i32) {
        let counts_from_start = matches!(self.timeout, TimeoutType::StartToClose | TimeoutType::Heartbeat);
        (counts_from_start, i32::from(self.timeout))
    }
}

impl ActivityProgress {
    pub(crate) fn first_attempt(scheduled_at: Timestamp) -> Self {
        Self {
            attempt: 1,
            attempt_scheduled_at: scheduled_at,
            started: None,
            last_failure: None,
            last_worker_identity: String::new(),
            heartbeat_details: None,
            last_heartbeat_at: None,
            timer_armed_for: None,
            last_attempt_ended_at: None,
            pause: None,
            stamp: 0,
            is_reset: false,
            resets_heartbeats: false,
            original_options: None,
        }
    }
}

impl Activity {
    pub(crate) fn is_paused(&self) -> bool {
        self.unrecorded.pause.is_some()
    }

    /// The earliest deadline in the current state.
    pub(crate) fn next_deadline(&self) -> Option<Deadline> {
        let progress = &self.unrecorded;
        if progress.pause.is_some() {
            return None;
        }
        let deadline =
            |from: Timestamp, span: Option<Duration>, timeout| span.map(|span| Deadline { at: from + span, timeout });
        let mut deadlines =
            [deadline(self.scheduled_at, self.schedule_to_close_timeout, TimeoutType::ScheduleToClose), None, None];
        match &progress.started {
            None => {
                let from = progress.attempt_scheduled_at;
                deadlines[1] = deadline(from, self.schedule_to_start_timeout, TimeoutType::ScheduleToStart);
            }
            Some(started) => {
                let alive_at = progress.last_heartbeat_at.map_or(started.at, |heartbeat| heartbeat.max(started.at));
                deadlines[1] = deadline(started.at, self.start_to_close_timeout, TimeoutType::StartToClose);
                deadlines[2] = deadline(alive_at, self.heartbeat_timeout, TimeoutType::Heartbeat);
            }
        }
        deadlines.into_iter().flatten().min_by_key(|deadline| (deadline.at, deadline.rank()))
    }

    /// Deadline for retries.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.schedule_to_close_timeout.map(|timeout| self.scheduled_at + timeout)
    }

    /// Current options.
    #[must_use]
    pub fn options(&self) -> ActivityOptions {
        ActivityOptions {
            task_queue: self.task_queue.clone(),
            schedule_to_start_timeout: self.schedule_to_start_timeout,
            schedule_to_close_timeout: self.schedule_to_close_timeout,
            start_to_close_timeout: self.start_to_close_timeout,
            heartbeat_timeout: self.heartbeat_timeout,
            retry_policy: self.retry_policy.clone(),
            priority: self.priority.clone(),
        }
    }

    /// Options in the scheduled event.
    pub(crate) fn original_options(&self) -> ActivityOptions {
        self.unrecorded.original_options.as_deref().cloned().unwrap_or_else(|| self.options())
    }

    pub(crate) fn change_options(&mut self, options: ActivityOptions) {
        let original = self.original_options();
        self.unrecorded.original_options = (options != original).then(|| Box::new(original));
        let ActivityOptions {
            task_queue,
            schedule_to_start_timeout,
            schedule_to_close_timeout,
            start_to_close_timeout,
            heartbeat_timeout,
            retry_policy,
            priority,
        } = options;
        self.task_queue = task_queue;
        self.schedule_to_start_timeout = schedule_to_start_timeout;
        self.schedule_to_close_timeout = schedule_to_close_timeout;
        self.start_to_close_timeout = start_to_close_timeout;
        self.heartbeat_timeout = heartbeat_timeout;
        self.retry_policy = retry_policy;
        self.priority = priority;
    }

    pub(crate) fn restore_options(&mut self) {
        self.change_options(self.original_options());
    }

    pub(crate) fn forget_unrecorded(&mut self) {
        self.restore_options();
        self.unrecorded = ActivityProgress::first_attempt(self.scheduled_at);
    }
}

/// A pending activity: its end is neither recorded nor buffered.
pub(crate) fn find<'a>(draft: &'a Draft, scheduled_event_id: EventId) -> Option<&'a Activity> {
    let activity = draft.state.activities.get(scheduled_event_id.0)?;
    (!has_waiting_end(draft, scheduled_event_id)).then_some(activity)
}

pub(crate) fn find_by_id<'a>(draft: &'a Draft, activity_id: &str) -> Option<&'a Activity> {
    let mut named = draft.state.activities.iter().filter(|(_, activity)| activity.activity_id == activity_id);
    named.find_map(|(id, _)| find(draft, EventId(id)))
}

fn has_waiting_end(draft: &Draft, scheduled_event_id: EventId) -> bool {
    draft.waiting().any(|event| ended_activity(event) == Some(scheduled_event_id))
}

impl ExecutionState {
    /// Pending activities: their end is neither recorded nor buffered.
    pub fn pending_activities(&self) -> impl Iterator<Item = &Activity> {
        let waiting = || self.unrecorded.buffered_events.iter().map(|(_, event)| event);
        let activities = self.activities.iter().map(|(_, activity)| activity);
        activities
            .filter(move |activity| !waiting().any(|event| ended_activity(event) == Some(activity.scheduled_event_id)))
    }
}

/// The activity that an event ends.
fn ended_activity(event: &HistoryEvent) -> Option<EventId> {
    let what = event.attributes.as_ref()?;
    let scheduled_event_id = if let Attributes::ActivityTaskCompletedEventAttributes(end) = what {
        end.scheduled_event_id
    } else if let Attributes::ActivityTaskFailedEventAttributes(end) = what {
        end.scheduled_event_id
    } else if let Attributes::ActivityTaskTimedOutEventAttributes(end) = what {
        end.scheduled_event_id
    } else if let Attributes::ActivityTaskCanceledEventAttributes(end) = what {
        end.scheduled_event_id
    } else {
        return None;
    };
    Some(EventId(scheduled_event_id))
}

/// Fills in the started event id of an event that ends an activity; it is known only when the event is recorded.
pub(crate) fn wire_started_event(state: &ExecutionState, event: &mut HistoryEvent) {
    let Some(ended) = ended_activity(event) else { return };
    let started = state.activities.get(ended.0).and_then(|activity| activity.unrecorded.started.as_ref());
    let started_event_id = started.and_then(|started| started.event_id).map_or(0, |id| id.0);
    let Some(what) = event.attributes.as_mut() else { return };
    if let Attributes::ActivityTaskCompletedEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ActivityTaskFailedEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ActivityTaskTimedOutEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    } else if let Attributes::ActivityTaskCanceledEventAttributes(end) = what {
        end.started_event_id = started_event_id;
    }
}

/// Dispatches the current attempt to matching, unless the run is paused.
pub(crate) fn dispatch(draft: &mut Draft, scheduled_event_id: EventId) {
    if pause::is_paused(draft) {
        return;
    }
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("a dispatched activity is pending");
    let task = TransferTask::Activity {
        task_queue: activity.task_queue.clone(),
        scheduled_event_id,
        attempt: activity.unrecorded.attempt,
        stamp: activity.unrecorded.stamp,
        version: activity.version,
    };
    draft.transfer(task);
}

/// Ensures that a timer task is pending for the next deadline or earlier.
pub(crate) fn arm_timer(draft: &mut Draft, scheduled_event_id: EventId) {
    let Some(activity) = draft.state.activities.get(scheduled_event_id.0) else { return };
    let Some(deadline) = activity.next_deadline() else { return };
    if activity.unrecorded.timer_armed_for.is_some_and(|armed_for| armed_for <= deadline.at) {
        return;
    }
    assert!(deadline.at >= activity.scheduled_at, "no deadline lies before the beginning");
    let (attempt, version) = (activity.unrecorded.attempt, activity.version);
    let activity = draft.state.activities.get_mut(scheduled_event_id.0).expect("it was just read");
    activity.unrecorded.timer_armed_for = Some(deadline.at);
    draft.timer(deadline.at, TimerTask::ActivityTimeout { scheduled_event_id, attempt, version });
}

pub(crate) fn apply_scheduled(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    scheduled: &ActivityTaskScheduledEventAttributes,
    batch_id: EventId,
) {
    let scheduled_at = event.event_time.map_or(state.started.started_at, Timestamp::from);
    let activity = Activity {
        scheduled_event_id: EventId(event.event_id),
        scheduled_at,
        scheduled_batch_id: batch_id,
        version: event.version,
        activity_id: scheduled.activity_id.clone(),
        activity_type: scheduled.activity_type.as_ref().map(|kind| kind.name.clone()).unwrap_or_default(),
        task_queue: scheduled.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default(),
        schedule_to_start_timeout: limit(scheduled.schedule_to_start_timeout.as_ref()),
        schedule_to_close_timeout: limit(scheduled.schedule_to_close_timeout.as_ref()),
        start_to_close_timeout: limit(scheduled.start_to_close_timeout.as_ref()),
        heartbeat_timeout: limit(scheduled.heartbeat_timeout.as_ref()),
        retry_policy: scheduled.retry_policy.clone(),
        cancel_requested_event_id: None,
        priority: scheduled.priority.clone(),
        unrecorded: ActivityProgress::first_attempt(scheduled_at),
    };
    let previous = state.activities.insert(event.event_id, activity);
    assert!(previous.is_none(), "an event schedules one activity");
}

pub(crate) fn apply_started(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    started: &ActivityTaskStartedEventAttributes,
) {
    let activity = state.activities.get_mut(started.scheduled_event_id).expect("only a pending activity is started");
    let at = event.event_time.map_or(activity.scheduled_at, Timestamp::from);
    activity.unrecorded.attempt = started.attempt.max(1);
    activity.unrecorded.started = Some(ActivityAttempt {
        event_id: Some(EventId(event.event_id)),
        at,
        request_id: started.request_id.clone(),
        identity: started.identity.clone(),
    });
}

pub(crate) fn apply_ended(state: &mut ExecutionState, scheduled_event_id: i64) {
    let ended = state.activities.remove(scheduled_event_id);
    assert!(ended.is_some(), "only a pending activity ends");
}

pub(crate) fn apply_cancel_requested(
    state: &mut ExecutionState,
    event: &HistoryEvent,
    requested: &ActivityTaskCancelRequestedEventAttributes,
) {
    let activity = state.activities.get_mut(requested.scheduled_event_id).expect("only a pending activity is canceled");
    assert!(activity.cancel_requested_event_id.is_none(), "an activity is asked to cancel once");
    activity.cancel_requested_event_id = Some(EventId(event.event_id));
}
