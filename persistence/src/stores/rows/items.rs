//! Pending items of a run, a row each: activities, timers, requests of signals. A buffered event is stored as it is.

use proto::everrow::record;
use workflow::{Activity, ActivityAttempt, ActivityProgress, EventId, Timer, Timestamp};

use super::{Decoded, optional_span, span};

pub(crate) fn encode_activity(activity: &Activity) -> record::Activity {
    let Activity {
        scheduled_event_id: _, // the row's id
        scheduled_at,
        scheduled_batch_id,
        version,
        activity_id,
        activity_type,
        task_queue,
        schedule_to_start_timeout,
        schedule_to_close_timeout,
        start_to_close_timeout,
        heartbeat_timeout,
        retry_policy,
        cancel_requested_event_id,
        priority,
        unrecorded:
            ActivityProgress {
                attempt,
                attempt_scheduled_at,
                started,
                last_failure,
                last_worker_identity,
                heartbeat_details,
                last_heartbeat_at,
                timer_armed_for,
            },
    } = activity;
    record::Activity {
        scheduled_at: scheduled_at.0,
        scheduled_batch_id: scheduled_batch_id.0,
        version: *version,
        activity_id: activity_id.clone(),
        activity_type: activity_type.clone(),
        task_queue: task_queue.clone(),
        schedule_to_start_timeout: schedule_to_start_timeout.map(span),
        schedule_to_close_timeout: schedule_to_close_timeout.map(span),
        start_to_close_timeout: start_to_close_timeout.map(span),
        heartbeat_timeout: heartbeat_timeout.map(span),
        retry_policy: retry_policy.clone(),
        cancel_requested_event_id: cancel_requested_event_id.map(|event| event.0),
        priority: priority.clone(),
        attempt: *attempt,
        attempt_scheduled_at: attempt_scheduled_at.0,
        started: started.as_ref().map(encode_attempt),
        last_failure: last_failure.clone(),
        last_worker_identity: last_worker_identity.clone(),
        heartbeat_details: heartbeat_details.clone(),
        last_heartbeat_at: last_heartbeat_at.map(|at| at.0),
        timer_armed_for: timer_armed_for.map(|at| at.0),
        ..Default::default()
    }
}

pub(crate) fn decode_activity(id: i64, activity: record::Activity) -> Decoded<Activity> {
    Ok(Activity {
        scheduled_event_id: EventId(id),
        scheduled_at: Timestamp(activity.scheduled_at),
        scheduled_batch_id: EventId(activity.scheduled_batch_id),
        version: activity.version,
        activity_id: activity.activity_id,
        activity_type: activity.activity_type,
        task_queue: activity.task_queue,
        schedule_to_start_timeout: optional_span(activity.schedule_to_start_timeout, "schedule_to_start_timeout")?,
        schedule_to_close_timeout: optional_span(activity.schedule_to_close_timeout, "schedule_to_close_timeout")?,
        start_to_close_timeout: optional_span(activity.start_to_close_timeout, "start_to_close_timeout")?,
        heartbeat_timeout: optional_span(activity.heartbeat_timeout, "heartbeat_timeout")?,
        retry_policy: activity.retry_policy,
        cancel_requested_event_id: activity.cancel_requested_event_id.map(EventId),
        priority: activity.priority,
        unrecorded: ActivityProgress {
            attempt: activity.attempt,
            attempt_scheduled_at: Timestamp(activity.attempt_scheduled_at),
            started: activity.started.map(decode_attempt),
            last_failure: activity.last_failure,
            last_worker_identity: activity.last_worker_identity,
            heartbeat_details: activity.heartbeat_details,
            last_heartbeat_at: activity.last_heartbeat_at.map(Timestamp),
            timer_armed_for: activity.timer_armed_for.map(Timestamp),
        },
    })
}

fn encode_attempt(attempt: &ActivityAttempt) -> record::ActivityAttempt {
    let ActivityAttempt { event_id, at, request_id, identity } = attempt;
    record::ActivityAttempt {
        event_id: event_id.map(|event| event.0),
        at: at.0,
        request_id: request_id.clone(),
        identity: identity.clone(),
    }
}

fn decode_attempt(attempt: record::ActivityAttempt) -> ActivityAttempt {
    ActivityAttempt {
        event_id: attempt.event_id.map(EventId),
        at: Timestamp(attempt.at),
        request_id: attempt.request_id,
        identity: attempt.identity,
    }
}

pub(crate) fn encode_timer(timer: &Timer) -> record::Timer {
    let Timer { timer_id, started_event_id: _, fires_at, version } = timer;
    record::Timer { timer_id: timer_id.clone(), fires_at: fires_at.0, version: *version }
}

pub(crate) fn decode_timer(id: i64, timer: record::Timer) -> Timer {
    Timer {
        timer_id: timer.timer_id,
        started_event_id: EventId(id),
        fires_at: Timestamp(timer.fires_at),
        version: timer.version,
    }
}
