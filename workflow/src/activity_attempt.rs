//! An activity at a worker: started, alive, then completed, failed and perhaps retried, canceled, or timed out.

use std::time::Duration;

use prost::Message;
use proto::temporal::api::common::v1::{Payloads, Priority, WorkflowExecution};
use proto::temporal::api::enums::v1::{RetryState, TimeoutType};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{Failure, ServerFailureInfo, TimeoutFailureInfo};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    ActivityTaskCanceledEventAttributes, ActivityTaskCompletedEventAttributes, ActivityTaskFailedEventAttributes,
    ActivityTaskStartedEventAttributes, ActivityTaskTimedOutEventAttributes,
};
use uuid::Uuid;

use crate::activity::{Activity, ActivityAttempt, arm_timer, dispatch, find, find_by_id};
use crate::commands::Completion;
use crate::draft::{Draft, Entry};
use crate::ids::EventId;
use crate::input::{ActivityRef, CancelActivity, CompleteActivity, FailActivity, Heartbeat, StartActivity};
use crate::outcome::{ActivityStarted, HeartbeatFlags, Outcome, Rejection, Reply};
use crate::pause;
use crate::retry;
use crate::tasks::TimerTask;
use crate::time::Timestamp;
use crate::workflow_task;

const NOT_ENOUGH_TIME: &str =
    "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying";
const FAILURE_TOO_LARGE: &str = "Failure exceeds size limit.";
const NOT_CANCEL_REQUESTED: &str = "unable to mark activity as canceled without activity being request canceled first";

/// Matching found a worker for the activity.
pub(crate) fn start(draft: &mut Draft, input: StartActivity) -> Result<Outcome, Rejection> {
    let activity = find(draft, input.scheduled_event_id).ok_or(Rejection::ActivityNotFound)?;
    if let Some(started) = &activity.unrecorded.started {
        if started.request_id == input.request_id {
            return Ok(Outcome::Unchanged(started_reply(draft, activity, started.at)));
        }
        return Err(Rejection::AlreadyStarted("Activity"));
    }
    let progress = &activity.unrecorded;
    if progress.attempt != input.attempt || progress.stamp != input.stamp || progress.pause.is_some() {
        return Err(Rejection::ActivityNotFound);
    }
    let at = draft.now();
    let reply = started_reply(draft, activity, at);
    begin_attempt(draft, input.scheduled_event_id, input.request_id, input.identity);
    arm_timer(draft, input.scheduled_event_id);
    Ok(Outcome::Changed(reply))
}

/// Starts activities on the worker that has just scheduled them, unless they are over already.
pub(crate) fn start_eagerly(draft: &mut Draft, completion: &Completion, request_id: Uuid) -> Vec<ActivityStarted> {
    if !draft.state.is_running() {
        return Vec::new();
    }
    let mut started = Vec::new();
    for (scheduled_event_id, n) in completion.eager_activities.iter().zip(0..) {
        let Some(activity) = find(draft, *scheduled_event_id) else { continue };
        started.push(described(draft, activity, draft.now()));
        // Each gets its own: a request id starts one activity.
        let request_id = Uuid::from_u128(request_id.as_u128().wrapping_add(n)).to_string();
        begin_attempt(draft, *scheduled_event_id, request_id, completion.identity.clone());
        arm_timer(draft, *scheduled_event_id);
    }
    started
}

/// A heartbeat. The next attempt begins from its details.
pub(crate) fn heartbeat(draft: &mut Draft, input: Heartbeat) -> Result<Outcome, Rejection> {
    let activity = find_started(draft, &input.activity)?;
    let flags = HeartbeatFlags {
        cancel_requested: activity.cancel_requested_event_id.is_some(),
        paused: activity.unrecorded.pause.is_some(),
        reset: activity.unrecorded.is_reset,
    };
    let scheduled_event_id = activity.scheduled_event_id;
    keep_progress(draft, scheduled_event_id, input.details, &input.identity);
    Ok(Outcome::Changed(Reply::Heartbeat(flags)))
}

pub(crate) fn complete(draft: &mut Draft, input: CompleteActivity) -> Result<Outcome, Rejection> {
    let activity = match &input.activity {
        // A by-id call can complete an activity that no worker has started.
        ActivityRef::Id(id) => find_named(draft, id)?,
        ActivityRef::Task(_) => find_started(draft, &input.activity)?,
    };
    let scheduled_event_id = activity.scheduled_event_id;
    if activity.unrecorded.started.is_none() {
        begin_attempt(draft, scheduled_event_id, String::new(), input.identity.clone());
    }
    let what = Attributes::ActivityTaskCompletedEventAttributes(ActivityTaskCompletedEventAttributes {
        result: input.result,
        scheduled_event_id: scheduled_event_id.0,
        identity: input.identity,
        ..Default::default()
    });
    end(draft, scheduled_event_id, what);
    Ok(Outcome::Changed(Reply::Done))
}

pub(crate) fn fail(draft: &mut Draft, input: FailActivity) -> Result<Outcome, Rejection> {
    let scheduled_event_id = find_started(draft, &input.activity)?.scheduled_event_id;
    if input.last_heartbeat_details.is_some() {
        keep_progress(draft, scheduled_event_id, input.last_heartbeat_details, &input.identity);
    }
    let Err(retry_state) = retry(draft, scheduled_event_id, input.failure.as_ref()) else {
        return Ok(Outcome::Changed(Reply::Done));
    };
    let what = Attributes::ActivityTaskFailedEventAttributes(ActivityTaskFailedEventAttributes {
        failure: input.failure,
        scheduled_event_id: scheduled_event_id.0,
        identity: input.identity,
        retry_state: retry_state.into(),
        ..Default::default()
    });
    end(draft, scheduled_event_id, what);
    Ok(Outcome::Changed(Reply::Done))
}

/// The worker acknowledges a cancel request.
pub(crate) fn cancel(draft: &mut Draft, input: CancelActivity) -> Result<Outcome, Rejection> {
    let activity = find_started(draft, &input.activity)?;
    let scheduled_event_id = activity.scheduled_event_id;
    let Some(requested) = activity.cancel_requested_event_id else {
        return Err(Rejection::InvalidArgument(NOT_CANCEL_REQUESTED.to_owned()));
    };
    let what = Attributes::ActivityTaskCanceledEventAttributes(ActivityTaskCanceledEventAttributes {
        details: input.details,
        latest_cancel_requested_event_id: requested.0,
        scheduled_event_id: scheduled_event_id.0,
        identity: input.identity,
        ..Default::default()
    });
    end(draft, scheduled_event_id, what);
    Ok(Outcome::Changed(Reply::Done))
}

/// An activity's timer is due: one of its deadlines has passed, or has moved since.
pub(crate) fn time_out(draft: &mut Draft, scheduled_event_id: EventId, version: i64) -> Outcome {
    let Some(activity) = find(draft, scheduled_event_id).filter(|activity| activity.version == version) else {
        return Outcome::Unchanged(Reply::Done);
    };
    let now = draft.now();
    match activity.next_deadline().filter(|deadline| deadline.at <= now) {
        Some(deadline) => expire(draft, scheduled_event_id, deadline.timeout),
        None if activity.unrecorded.timer_armed_for.is_some_and(|armed_for| armed_for > now) => {
            return Outcome::Unchanged(Reply::Done);
        }
        None => {}
    }
    if find(draft, scheduled_event_id).is_some() {
        let activity = draft.state.activities.get_mut(scheduled_event_id.0).expect("it was just found");
        // This timer is used up, and so is every other one that was due by now.
        activity.unrecorded.timer_armed_for = activity.unrecorded.timer_armed_for.filter(|armed_for| *armed_for > now);
        arm_timer(draft, scheduled_event_id);
    }
    Outcome::Changed(Reply::Done)
}

/// The backoff before an attempt is over: dispatches it.
pub(crate) fn attempt_again(
    draft: &mut Draft,
    scheduled_event_id: EventId,
    (attempt, stamp): (i32, i32),
    version: i64,
) -> Outcome {
    let is_waiting = |activity: &&Activity| {
        let progress = &activity.unrecorded;
        let is_current = activity.version == version && progress.attempt == attempt && progress.stamp == stamp;
        is_current && progress.started.is_none() && progress.pause.is_none()
    };
    if find(draft, scheduled_event_id).filter(is_waiting).is_none() || pause::is_paused(draft) {
        return Outcome::Unchanged(Reply::Done);
    }
    dispatch(draft, scheduled_event_id);
    Outcome::Changed(Reply::Done)
}

fn find_named<'a>(draft: &'a Draft, activity_id: &str) -> Result<&'a Activity, Rejection> {
    if activity_id.is_empty() {
        return Err(Rejection::InvalidArgument("activityID cannot be empty".to_owned()));
    }
    find_by_id(draft, activity_id).ok_or_else(|| Rejection::ActivityIdNotFound(activity_id.to_owned()))
}

/// The started activity that a worker refers to, if it is still at that attempt.
fn find_started<'a>(draft: &'a Draft, activity: &ActivityRef) -> Result<&'a Activity, Rejection> {
    let (found, attempt) = match activity {
        ActivityRef::Id(id) => (Some(find_named(draft, id)?), None),
        ActivityRef::Task(task) => (find(draft, task.scheduled_event_id), task.attempt),
    };
    let is_it = |activity: &&Activity| {
        let progress = &activity.unrecorded;
        progress.started.is_some() && attempt.is_none_or(|attempt| attempt == progress.attempt)
    };
    found.filter(is_it).ok_or(Rejection::ActivityNotFound)
}

fn begin_attempt(draft: &mut Draft, scheduled_event_id: EventId, request_id: String, identity: String) {
    let at = draft.now();
    let activity = draft.state.activities.get_mut(scheduled_event_id.0).expect("a started activity is pending");
    assert!(activity.unrecorded.started.is_none(), "an attempt is started once");
    activity.unrecorded.started = Some(ActivityAttempt { event_id: None, at, request_id, identity });
    if activity.retry_policy.is_none() {
        record_started(draft, scheduled_event_id);
    }
}

/// Records the start of the last attempt, unless it is recorded.
fn record_started(draft: &mut Draft, scheduled_event_id: EventId) {
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("a started activity is pending");
    let Some(started) = activity.unrecorded.started.as_ref().filter(|started| started.event_id.is_none()) else {
        return;
    };
    let at = Some(started.at);
    let what = Attributes::ActivityTaskStartedEventAttributes(ActivityTaskStartedEventAttributes {
        scheduled_event_id: scheduled_event_id.0,
        identity: started.identity.clone(),
        request_id: started.request_id.clone(),
        attempt: activity.unrecorded.attempt,
        last_failure: activity.unrecorded.last_failure.clone(),
        ..Default::default()
    });
    draft.record(Entry { at, ..what.into() });
}

/// Records the end of an activity, after its start, and schedules a workflow task.
fn end(draft: &mut Draft, scheduled_event_id: EventId, what: Attributes) {
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("only a pending activity ends");
    // Without a policy there are no retries, and the start was recorded when it happened.
    if activity.retry_policy.is_some() {
        record_started(draft, scheduled_event_id);
    }
    draft.record(what);
    assert!(find(draft, scheduled_event_id).is_none(), "an activity ends once");
    workflow_task::ensure(draft);
}

fn keep_progress(draft: &mut Draft, scheduled_event_id: EventId, details: Option<Payloads>, identity: &str) {
    let at = draft.now();
    let activity = draft.state.activities.get_mut(scheduled_event_id.0).expect("only a pending activity is alive");
    assert!(activity.unrecorded.started.is_some(), "only what a worker has is alive");
    activity.unrecorded.heartbeat_details = details;
    activity.unrecorded.last_heartbeat_at = Some(at);
    if !identity.is_empty() {
        identity.clone_into(&mut activity.unrecorded.last_worker_identity);
    }
}

/// Schedules the next attempt, or returns why there is none.
fn retry(draft: &mut Draft, scheduled_event_id: EventId, failure: Option<&Failure>) -> Result<(), RetryState> {
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("only a pending activity is retried");
    let interval = retry_interval(activity, failure, draft.now())?;
    let kept_failure = failure.map(|failure| cut(failure, draft.facts.limits.activity_failure_size));
    let now = draft.now();
    let activity = draft.state.activities.get_mut(scheduled_event_id.0).expect("it was just read");
    let progress = &mut activity.unrecorded;
    if let Some(started) = progress.started.take() {
        progress.last_worker_identity = started.identity;
    }
    progress.attempt = progress.attempt.saturating_add(1);
    progress.last_failure = kept_failure;
    progress.last_attempt_ended_at = Some(now);
    assert!(progress.attempt > 1, "the first attempt is no retry");
    assert!(progress.started.is_none(), "the next attempt waits for a worker");
    // While paused, the next attempt has no time; it gets one when unpaused.
    let Some(interval) = interval else { return Ok(()) };
    let scheduled_at = now + interval;
    progress.attempt_scheduled_at = scheduled_at;
    if progress.resets_heartbeats {
        progress.heartbeat_details = None;
        progress.last_heartbeat_at = None;
    }
    progress.is_reset = false;
    progress.resets_heartbeats = false;
    let (attempt, stamp, version) = (progress.attempt, progress.stamp, activity.version);
    draft.timer(scheduled_at, TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp, version });
    arm_timer(draft, scheduled_event_id);
    Ok(())
}

/// `None`: it is paused, and retried when unpaused.
fn retry_interval(
    activity: &Activity,
    failure: Option<&Failure>,
    now: Timestamp,
) -> Result<Option<Duration>, RetryState> {
    let policy = activity.retry_policy.as_ref().ok_or(RetryState::RetryPolicyNotSet)?;
    if activity.cancel_requested_event_id.is_some() {
        return Err(RetryState::CancelRequested);
    }
    let is_deadline = |timeout| matches!(timeout, TimeoutType::ScheduleToStart | TimeoutType::ScheduleToClose);
    if timeout_of(failure).is_some_and(is_deadline) {
        return Err(RetryState::Timeout);
    }
    if !retry::is_retryable(failure, &policy.non_retryable_error_types) {
        return Err(RetryState::NonRetryableFailure);
    }
    if activity.unrecorded.pause.is_some() {
        return Ok(None);
    }
    let requested_delay = retry::requested_delay(failure);
    let interval = retry::next_interval(&retry::Attempt {
        policy,
        number: activity.unrecorded.attempt,
        now,
        expires_at: activity.expires_at(),
        requested_delay,
        // A delay that the application requests is not bounded by the policy.
        interval_max: requested_delay.or_else(|| retry::interval_max(policy)),
    })?;
    Ok(Some(interval))
}

fn timeout_of(failure: Option<&Failure>) -> Option<TimeoutType> {
    if let Some(FailureInfo::TimeoutFailureInfo(timeout)) = &failure?.failure_info {
        return Some(timeout.timeout_type());
    }
    None
}

fn expire(draft: &mut Draft, scheduled_event_id: EventId, timeout: TimeoutType) {
    let message = format!("activity {} timeout", retry::timeout_name(timeout));
    let failure = timeout_failure(message, timeout);
    let Err(retry_state) = retry(draft, scheduled_event_id, Some(&failure)) else { return };
    let mut failure = failure;
    if retry_state == RetryState::Timeout && timeout != TimeoutType::ScheduleToStart {
        failure = timeout_failure(NOT_ENOUGH_TIME.to_owned(), TimeoutType::ScheduleToClose);
    }
    let activity = draft.state.activities.get(scheduled_event_id.0).expect("an expired activity is pending");
    if let Some(FailureInfo::TimeoutFailureInfo(info)) = &mut failure.failure_info {
        info.last_heartbeat_details = activity.unrecorded.heartbeat_details.clone();
    }
    failure.cause = activity.unrecorded.last_failure.clone().map(Box::new);
    let what = Attributes::ActivityTaskTimedOutEventAttributes(ActivityTaskTimedOutEventAttributes {
        failure: Some(failure),
        scheduled_event_id: scheduled_event_id.0,
        retry_state: retry_state.into(),
        ..Default::default()
    });
    end(draft, scheduled_event_id, what);
}

pub(crate) fn timeout_failure(message: String, timeout: TimeoutType) -> Failure {
    Failure {
        message,
        source: "Server".to_owned(),
        failure_info: Some(FailureInfo::TimeoutFailureInfo(TimeoutFailureInfo {
            timeout_type: timeout.into(),
            last_heartbeat_details: None,
        })),
        ..Default::default()
    }
}

pub(crate) fn server_failure(message: String) -> Failure {
    Failure {
        message,
        failure_info: Some(FailureInfo::ServerFailureInfo(ServerFailureInfo { non_retryable: false })),
        ..Default::default()
    }
}

/// Replaces a failure that is too large to keep by its truncated message.
fn cut(failure: &Failure, size_max: usize) -> Failure {
    if failure.encoded_len() <= size_max {
        return failure.clone();
    }
    let mut end = failure.message.len().min(size_max / 2);
    while !failure.message.is_char_boundary(end) {
        end -= 1;
    }
    let kept = Failure {
        message: failure.message[..end].to_owned(),
        source: failure.source.chars().take(64).collect(),
        ..Default::default()
    };
    assert!(kept.message.len() <= size_max, "a cut failure is no longer too large");
    Failure { cause: Some(Box::new(kept)), ..server_failure(FAILURE_TOO_LARGE.to_owned()) }
}

fn started_reply(draft: &Draft, activity: &Activity, started_at: Timestamp) -> Reply {
    Reply::ActivityStarted(Box::new(described(draft, activity, started_at)))
}

fn described(draft: &Draft, activity: &Activity, started_at: Timestamp) -> ActivityStarted {
    let state = &draft.state;
    // Workers get the timeouts that the workflow chose, not those that an operator changed.
    let original = activity.original_options();
    ActivityStarted {
        scheduled_event_id: activity.scheduled_event_id,
        attempt: activity.unrecorded.attempt,
        started_at,
        scheduled_at: activity.scheduled_at,
        current_attempt_scheduled_at: activity.unrecorded.attempt_scheduled_at,
        activity_id: activity.activity_id.clone(),
        activity_type: activity.activity_type.clone(),
        scheduled_batch_id: activity.scheduled_batch_id,
        heartbeat_details: activity.unrecorded.heartbeat_details.clone(),
        schedule_to_close_timeout: original.schedule_to_close_timeout.unwrap_or_default(),
        start_to_close_timeout: original.start_to_close_timeout.unwrap_or_default(),
        heartbeat_timeout: original.heartbeat_timeout.unwrap_or_default(),
        retry_policy: activity.retry_policy.clone(),
        workflow_type: state.started.workflow_type.clone(),
        execution: WorkflowExecution {
            workflow_id: state.key.workflow_id.to_string(),
            run_id: state.key.run_id.to_string(),
        },
        priority: merged(state.current_priority(), activity.priority.as_ref()),
    }
}

/// The activity's own priority, with the run's where it has none.
fn merged(of_run: Option<&Priority>, of_activity: Option<&Priority>) -> Option<Priority> {
    let (Some(run), Some(activity)) = (of_run, of_activity) else {
        return of_activity.or(of_run).cloned();
    };
    let mut merged = run.clone();
    if activity.priority_key != 0 {
        merged.priority_key = activity.priority_key;
    }
    if !activity.fairness_key.is_empty() {
        merged.fairness_key.clone_from(&activity.fairness_key);
    }
    if activity.fairness_weight != 0.0 {
        merged.fairness_weight = activity.fairness_weight;
    }
    Some(merged)
}
