//! Activities: scheduled and canceled by commands. What happens to one at a worker is in activity_attempt.rs.

use std::time::Duration;

use proto::temporal::api::command::v1::{
    RequestCancelActivityTaskCommandAttributes, ScheduleActivityTaskCommandAttributes,
};
use proto::temporal::api::common::v1::{Payloads, Priority, RetryPolicy};
use proto::temporal::api::enums::v1::{TimeoutType, WorkflowTaskFailedCause};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ActivityTaskCancelRequestedEventAttributes, ActivityTaskCanceledEventAttributes,
    ActivityTaskScheduledEventAttributes, ActivityTaskStartedEventAttributes, HistoryEvent,
};

use crate::commands::{BadCommand, Completion, check_size, encode_string};
use crate::draft::{Annotation, Draft, Entry};
use crate::ids::EventId;
use crate::retry;
use crate::state::ExecutionState;
use crate::tasks::{TimerTask, TransferTask};
use crate::time::{Timestamp, limit, nonzero, parse_span, to_proto};

#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub scheduled_event_id: EventId,
    pub scheduled_at: Timestamp,
    /// Node of history that holds the scheduled event, so that its input is found without reading all of history.
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
    /// What leaves no event until the activity ends.
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
    /// The earliest timer task that is known to be waiting: no second one is made for a later moment.
    pub timer_armed_for: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActivityAttempt {
    /// Set once the started event is recorded: at the end of the activity, or at once if it is never retried.
    pub event_id: Option<EventId>,
    pub at: Timestamp,
    pub request_id: String,
    pub identity: String,
}

/// A moment at which an activity times out, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub at: Timestamp,
    pub timeout: TimeoutType,
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
        }
    }
}

impl Activity {
    /// The next moment at which it times out, as it stands now.
    pub(crate) fn next_deadline(&self) -> Option<Deadline> {
        let progress = &self.unrecorded;
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
        deadlines.into_iter().flatten().min_by_key(|deadline| (deadline.at, i32::from(deadline.timeout)))
    }

    /// Until when it may be retried.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.schedule_to_close_timeout.map(|timeout| self.scheduled_at + timeout)
    }
}

/// A pending activity: one whose end is neither recorded nor waiting to be.
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

/// Tells an event that ends an activity where that was started: only now, when the event is recorded, is it known.
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

/// Decides on a `ScheduleActivityTask` command.
#[expect(deprecated, reason = "old workers send a build id")]
pub(crate) fn schedule(
    draft: &mut Draft,
    completion: &Completion,
    command: ScheduleActivityTaskCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadScheduleActivityAttributes;
    let command = normalize(draft, command).map_err(|reason| BadCommand::new(cause, reason))?;
    let oversized = "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.";
    check_size(draft, cause, command.input.as_ref(), oversized)?;
    check_count(draft)?;
    if find_by_id(draft, &command.activity_id).is_some() {
        let reason = format!(
            "invalid history builder state for action: add-activitytask-scheduled-event, ActivityID: {}",
            command.activity_id
        );
        return Err(BadCommand::new(WorkflowTaskFailedCause::ScheduleActivityDuplicateId, reason));
    }
    let what = Attributes::ActivityTaskScheduledEventAttributes(ActivityTaskScheduledEventAttributes {
        activity_id: command.activity_id,
        activity_type: command.activity_type,
        task_queue: command.task_queue,
        header: command.header,
        input: command.input,
        schedule_to_close_timeout: command.schedule_to_close_timeout,
        schedule_to_start_timeout: command.schedule_to_start_timeout,
        start_to_close_timeout: command.start_to_close_timeout,
        heartbeat_timeout: command.heartbeat_timeout,
        workflow_task_completed_event_id: completion.event_id.0,
        retry_policy: command.retry_policy,
        use_workflow_build_id: command.use_workflow_build_id,
        priority: command.priority,
    });
    draft.record(Entry { annotation, ..what.into() });
    let scheduled_event_id = draft.state.last_event_id();
    dispatch(draft, scheduled_event_id);
    arm_timer(draft, scheduled_event_id);
    Ok(())
}

/// Sends the current attempt to matching.
pub(crate) fn dispatch(draft: &mut Draft, scheduled_event_id: EventId) {
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("a dispatched activity is pending");
    let task = TransferTask::Activity {
        task_queue: activity.task_queue.clone(),
        scheduled_event_id,
        attempt: activity.unrecorded.attempt,
        version: activity.version,
    };
    draft.transfer(task);
}

/// Sees to it that a timer task waits for the next deadline, or for an earlier moment.
pub(crate) fn arm_timer(draft: &mut Draft, scheduled_event_id: EventId) {
    let Some(activity) = draft.state.activities.get(scheduled_event_id.0) else { return };
    let Some(deadline) = activity.next_deadline() else { return };
    if activity.unrecorded.timer_armed_for.is_some_and(|armed_for| armed_for <= deadline.at) {
        return;
    }
    let (attempt, version) = (activity.unrecorded.attempt, activity.version);
    let activity = draft.state.activities.get_mut(scheduled_event_id.0).expect("it was just read");
    activity.unrecorded.timer_armed_for = Some(deadline.at);
    draft.timer(deadline.at, TimerTask::ActivityTimeout { scheduled_event_id, attempt, version });
}

fn check_count(draft: &Draft) -> Result<(), BadCommand> {
    let n_pending = draft.state.activities.len();
    let limit = draft.facts.limits.pending_activities;
    if n_pending < limit {
        return Ok(());
    }
    let reason =
        format!("the number of pending activities, {n_pending}, has reached the per-workflow limit of {limit}");
    Err(BadCommand::new(WorkflowTaskFailedCause::PendingActivitiesLimitExceeded, reason))
}

/// Checks a command's attributes and fills in what they leave out.
fn normalize(
    draft: &Draft,
    mut command: ScheduleActivityTaskCommandAttributes,
) -> Result<ScheduleActivityTaskCommandAttributes, String> {
    let id_length = draft.facts.limits.id_length;
    let activity_type = command.activity_type.as_ref().map_or("", |kind| kind.name.as_str());
    let queue = command.task_queue.as_mut().ok_or("taskQueue is not set")?;
    crate::commands::normalize_queue(queue, None, id_length)?;
    if command.activity_id.is_empty() {
        return Err("activityId is not set".to_owned());
    }
    if activity_type.is_empty() {
        return Err("activityType is not set".to_owned());
    }
    let policy = retry::with_defaults(command.retry_policy.take().unwrap_or_default());
    retry::check_policy(&policy)?;
    command.retry_policy = Some(policy);
    for (name, value) in [("activityId", command.activity_id.as_str()), ("activityType", activity_type)] {
        if value.len() > id_length {
            return Err(format!("{name} exceeds length limit. Length={} Limit={id_length}", value.len()));
        }
    }
    let run_timeout = draft.state.started.run_timeout;
    let timeouts = Timeouts::parse(&command)?.normalize(run_timeout).ok_or_else(|| {
        format!(
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. \
             ActivityId={} ActivityType={activity_type}",
            command.activity_id
        )
    })?;
    command.schedule_to_close_timeout = Some(to_proto(timeouts.schedule_to_close));
    command.schedule_to_start_timeout = Some(to_proto(timeouts.schedule_to_start));
    command.start_to_close_timeout = Some(to_proto(timeouts.start_to_close));
    command.heartbeat_timeout = Some(to_proto(timeouts.heartbeat));
    Ok(command)
}

/// Zero is "not given", and later "no limit".
struct Timeouts {
    schedule_to_close: Duration,
    schedule_to_start: Duration,
    start_to_close: Duration,
    heartbeat: Duration,
}

impl Timeouts {
    fn parse(command: &ScheduleActivityTaskCommandAttributes) -> Result<Self, String> {
        let parse = |name: &str, timeout: Option<&prost_types::Duration>| {
            parse_span(timeout).map_err(|reason| format!("invalid {name}: {reason}"))
        };
        Ok(Self {
            schedule_to_close: parse("ScheduleToCloseTimeout", command.schedule_to_close_timeout.as_ref())?,
            schedule_to_start: parse("ScheduleToStartTimeout", command.schedule_to_start_timeout.as_ref())?,
            start_to_close: parse("StartToCloseTimeout", command.start_to_close_timeout.as_ref())?,
            heartbeat: parse("HeartbeatTimeout", command.heartbeat_timeout.as_ref())?,
        })
    }

    /// Fills in each from the others and from the run's; `None` if too few are given.
    fn normalize(mut self, run_timeout: Option<Duration>) -> Option<Self> {
        let or = |timeout: Duration, other: Duration| nonzero(timeout).unwrap_or(other);
        let whole_run = run_timeout.unwrap_or(Duration::ZERO);
        if !self.schedule_to_close.is_zero() {
            self.schedule_to_start = or(self.schedule_to_start, self.schedule_to_close).min(self.schedule_to_close);
            self.start_to_close = or(self.start_to_close, self.schedule_to_close).min(self.schedule_to_close);
        } else if !self.start_to_close.is_zero() {
            self.schedule_to_close = whole_run;
            self.schedule_to_start = or(self.schedule_to_start, whole_run);
        } else {
            return None;
        }
        if let Some(run_timeout) = run_timeout {
            self.schedule_to_close = self.schedule_to_close.min(run_timeout);
            self.schedule_to_start = self.schedule_to_start.min(run_timeout);
            self.start_to_close = self.start_to_close.min(run_timeout);
        }
        self.heartbeat = self.heartbeat.min(self.start_to_close);
        Some(self)
    }
}

/// Decides on a `RequestCancelActivityTask` command. Says whether the activity is over with that: no worker had it.
pub(crate) fn request_cancel(
    draft: &mut Draft,
    completion: &Completion,
    command: &RequestCancelActivityTaskCommandAttributes,
    annotation: Annotation,
) -> Result<CancelRequest, BadCommand> {
    let cause = WorkflowTaskFailedCause::BadRequestCancelActivityAttributes;
    let scheduled_event_id = EventId(command.scheduled_event_id);
    if scheduled_event_id.0 <= 0 {
        return Err(BadCommand::new(cause, "ScheduledEventId is not set on RequestCancelActivityTaskCommand."));
    }
    // One whose end waits to be recorded is still known: the workflow could not know better than to cancel it.
    let known = draft.state.activities.get(scheduled_event_id.0);
    if known.is_none_or(|activity| activity.cancel_requested_event_id.is_some()) {
        let reason = format!(
            "invalid history builder state for action: add-activitytask-cancel-requested-event, ScheduledEventID: {scheduled_event_id}"
        );
        return Err(BadCommand::new(cause, reason));
    }
    let what = Attributes::ActivityTaskCancelRequestedEventAttributes(ActivityTaskCancelRequestedEventAttributes {
        scheduled_event_id: scheduled_event_id.0,
        workflow_task_completed_event_id: completion.event_id.0,
    });
    draft.record(Entry { annotation, ..what.into() });
    let requested_event_id = draft.state.last_event_id();
    let is_unstarted = find(draft, scheduled_event_id).is_some_and(|activity| activity.unrecorded.started.is_none());
    if !is_unstarted {
        return Ok(CancelRequest::Told);
    }
    let what = Attributes::ActivityTaskCanceledEventAttributes(ActivityTaskCanceledEventAttributes {
        details: Some(encode_string("ACTIVITY_ID_NOT_STARTED")),
        latest_cancel_requested_event_id: requested_event_id.0,
        scheduled_event_id: scheduled_event_id.0,
        identity: completion.identity.clone(),
        ..Default::default()
    });
    draft.record(what);
    Ok(CancelRequest::Over)
}

/// What came of a request to cancel an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelRequest {
    /// Its worker will hear of it.
    Told,
    /// No worker had it: it is canceled, and the workflow must hear that.
    Over,
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
