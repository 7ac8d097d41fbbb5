//! Activity commands: schedule, request cancel.

use std::time::Duration;

use proto::temporal::api::command::v1::{
    RequestCancelActivityTaskCommandAttributes, ScheduleActivityTaskCommandAttributes,
};
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ActivityTaskCancelRequestedEventAttributes, ActivityTaskCanceledEventAttributes,
    ActivityTaskScheduledEventAttributes,
};

use crate::activity::{arm_timer, dispatch, find};
use crate::commands::{BadCommand, Completion, check_count, check_size, encode_string, normalize_queue};
use crate::draft::{Annotation, Draft, Entry};
use crate::ids::EventId;
use crate::pause;
use crate::retry;
use crate::time::{nonzero, parse_span, to_proto};

/// Decides on a `ScheduleActivityTask` command.
#[expect(deprecated, reason = "old workers send a build id")]
pub(crate) fn schedule(
    draft: &mut Draft,
    completion: &mut Completion,
    command: ScheduleActivityTaskCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadScheduleActivityAttributes;
    let command = normalize(draft, command).map_err(|reason| BadCommand::new(cause, reason))?;
    let oversized = "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.";
    check_size(draft, cause, command.input.as_ref(), oversized)?;
    let (n_pending, limit) = (draft.state.activities.len(), draft.facts.limits.pending_activities);
    let too_many = WorkflowTaskFailedCause::PendingActivitiesLimitExceeded;
    check_count(too_many, "pending activities", n_pending, limit)?;
    let all = draft.state.activities.iter().map(|(id, activity)| (activity.activity_id.as_str(), EventId(id)));
    if completion.activities.find(&command.activity_id, all, |id| find(draft, id).is_none()).is_some() {
        let reason = format!(
            "invalid history builder state for action: add-activitytask-scheduled-event, ActivityID: {}",
            command.activity_id
        );
        return Err(BadCommand::new(WorkflowTaskFailedCause::ScheduleActivityDuplicateId, reason));
    }
    completion.activities.begun(&command.activity_id, draft.state.next_event_id);
    let is_eager = command.request_eager_execution && !pause::is_paused(draft);
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
    if is_eager {
        // Started after all commands: a later one may cancel it, or close the run.
        completion.eager_activities.push(scheduled_event_id);
    } else {
        dispatch(draft, scheduled_event_id);
        arm_timer(draft, scheduled_event_id);
    }
    Ok(())
}

/// Validates a command's attributes and fills in defaults.
fn normalize(
    draft: &Draft,
    mut command: ScheduleActivityTaskCommandAttributes,
) -> Result<ScheduleActivityTaskCommandAttributes, String> {
    let id_length = draft.facts.limits.id_length;
    let activity_type = command.activity_type.as_ref().map_or("", |kind| kind.name.as_str());
    let queue = command.task_queue.as_mut().ok_or("taskQueue is not set")?;
    normalize_queue(queue, None, id_length)?;
    if command.activity_id.is_empty() {
        return Err("activityId is not set".to_owned());
    }
    if activity_type.is_empty() {
        return Err("activityType is not set".to_owned());
    }
    let policy = retry::with_defaults(command.retry_policy.take().unwrap_or_default());
    retry::check_policy(&policy)?;
    command.retry_policy = Some(policy);
    if command.priority.as_ref().is_some_and(|priority| priority.priority_key < 0) {
        return Err("invalid priorities: priority key can't be negative".to_owned());
    }
    for (name, value) in [("activityId", command.activity_id.as_str()), ("activityType", activity_type)] {
        if value.len() > id_length {
            return Err(format!("{name} exceeds length limit. Length={} Limit={id_length}", value.len()));
        }
    }
    let run_timeout = draft.state.started.run_timeout;
    let timeouts = Timeouts::parse(&command)?
        .normalize(run_timeout)
        .ok_or_else(|| missing_timeout(&command.activity_id, activity_type))?;
    command.schedule_to_close_timeout = Some(to_proto(timeouts.schedule_to_close));
    command.schedule_to_start_timeout = Some(to_proto(timeouts.schedule_to_start));
    command.start_to_close_timeout = Some(to_proto(timeouts.start_to_close));
    command.heartbeat_timeout = Some(to_proto(timeouts.heartbeat));
    Ok(command)
}

pub(crate) fn missing_timeout(activity_id: &str, activity_type: &str) -> String {
    format!(
        "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. \
         ActivityId={activity_id} ActivityType={activity_type}"
    )
}

/// Zero is "not given", and after `normalize` "no limit".
pub(crate) struct Timeouts {
    pub schedule_to_close: Duration,
    pub schedule_to_start: Duration,
    pub start_to_close: Duration,
    pub heartbeat: Duration,
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

    /// Fills in each timeout from the others and from the run's; `None` if too few are given.
    pub(crate) fn normalize(mut self, run_timeout: Option<Duration>) -> Option<Self> {
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
        assert!(!self.start_to_close.is_zero(), "an attempt has a timeout");
        assert!(run_timeout.is_none_or(|run| self.schedule_to_close <= run), "an activity is not longer than its run");
        Some(self)
    }
}

/// Decides on a `RequestCancelActivityTask` command. An activity that no worker has started is canceled at once.
pub(crate) fn request_cancel(
    draft: &mut Draft,
    completion: &mut Completion,
    command: &RequestCancelActivityTaskCommandAttributes,
    annotation: Annotation,
) -> Result<CancelRequest, BadCommand> {
    let cause = WorkflowTaskFailedCause::BadRequestCancelActivityAttributes;
    let scheduled_event_id = EventId(command.scheduled_event_id);
    if scheduled_event_id.0 <= 0 {
        return Err(BadCommand::new(cause, "ScheduledEventId is not set on RequestCancelActivityTaskCommand."));
    }
    // An activity whose end is buffered still counts: the workflow has not seen that end.
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
    let unstarted = find(draft, scheduled_event_id).filter(|activity| activity.unrecorded.started.is_none());
    let Some(unstarted) = unstarted else { return Ok(CancelRequest::Told) };
    completion.activities.ended(&unstarted.activity_id);
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

/// Result of a request to cancel an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelRequest {
    /// Its worker is notified by heartbeat, or its end is buffered.
    Told,
    /// No worker had it: it is canceled, and the workflow needs another task.
    Over,
}
