//! Pending items of a run, a row each: activities, timers, children, requests to other workflows, updates. A buffered
//! event is stored as it is.

use proto::everrow::record;
use proto::temporal::api::activity::v1::ActivityOptions as ProtoOptions;
use proto::temporal::api::enums::v1::ParentClosePolicy;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use workflow::{
    Activity, ActivityAttempt, ActivityOptions, ActivityPause, ActivityProgress, Child, ChildStart, EventId,
    ExternalRequest, NamespaceId, RecordedAt, RunId, Timer, Timestamp, Update,
};

use super::{Decoded, Malformed, optional_span, span, uuid, uuid_bytes};

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
                last_attempt_ended_at,
                pause,
                stamp,
                is_reset,
                resets_heartbeats,
                original_options,
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
        last_attempt_ended_at: last_attempt_ended_at.map(|at| at.0),
        paused: pause.as_ref().map(encode_pause),
        stamp: *stamp,
        is_reset: *is_reset,
        resets_heartbeats: *resets_heartbeats,
        original_options: original_options.as_deref().map(encode_options),
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
            last_attempt_ended_at: activity.last_attempt_ended_at.map(Timestamp),
            pause: activity.paused.map(decode_pause),
            stamp: activity.stamp,
            is_reset: activity.is_reset,
            resets_heartbeats: activity.resets_heartbeats,
            original_options: activity.original_options.map(decode_options).transpose()?.map(Box::new),
        },
    })
}

fn encode_pause(pause: &ActivityPause) -> record::Paused {
    let ActivityPause { at, identity, reason, request_id } = pause;
    record::Paused { at: at.0, identity: identity.clone(), reason: reason.clone(), request_id: request_id.clone() }
}

fn decode_pause(pause: record::Paused) -> ActivityPause {
    ActivityPause {
        at: Timestamp(pause.at),
        identity: pause.identity,
        reason: pause.reason,
        request_id: pause.request_id,
    }
}

fn encode_options(options: &ActivityOptions) -> ProtoOptions {
    let ActivityOptions {
        task_queue,
        schedule_to_start_timeout,
        schedule_to_close_timeout,
        start_to_close_timeout,
        heartbeat_timeout,
        retry_policy,
        priority,
    } = options;
    ProtoOptions {
        task_queue: Some(TaskQueue { name: task_queue.clone(), ..Default::default() }),
        schedule_to_start_timeout: schedule_to_start_timeout.map(span),
        schedule_to_close_timeout: schedule_to_close_timeout.map(span),
        start_to_close_timeout: start_to_close_timeout.map(span),
        heartbeat_timeout: heartbeat_timeout.map(span),
        retry_policy: retry_policy.clone(),
        priority: priority.clone(),
        ..Default::default()
    }
}

fn decode_options(options: ProtoOptions) -> Decoded<ActivityOptions> {
    Ok(ActivityOptions {
        task_queue: options.task_queue.unwrap_or_default().name,
        schedule_to_start_timeout: optional_span(options.schedule_to_start_timeout, "schedule_to_start_timeout")?,
        schedule_to_close_timeout: optional_span(options.schedule_to_close_timeout, "schedule_to_close_timeout")?,
        start_to_close_timeout: optional_span(options.start_to_close_timeout, "start_to_close_timeout")?,
        heartbeat_timeout: optional_span(options.heartbeat_timeout, "heartbeat_timeout")?,
        retry_policy: options.retry_policy,
        priority: options.priority,
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

pub(crate) fn encode_child(child: &Child) -> record::Child {
    let Child {
        initiated_event_id: _, // the row's id
        initiated_batch_id,
        version,
        namespace,
        namespace_id,
        workflow_id,
        workflow_type,
        parent_close_policy,
        create_request_id,
        started,
        priority,
    } = child;
    record::Child {
        version: *version,
        initiated_batch_id: initiated_batch_id.0,
        namespace: namespace.clone(),
        namespace_id: uuid_bytes(namespace_id.0),
        workflow_id: workflow_id.clone(),
        workflow_type: workflow_type.clone(),
        parent_close_policy: (*parent_close_policy).into(),
        create_request_id: create_request_id.clone(),
        started: started.as_ref().map(|ChildStart { event_id, run_id }| record::ChildStarted {
            event_id: event_id.0,
            run_id: uuid_bytes(run_id.0),
        }),
        priority: priority.clone(),
    }
}

pub(crate) fn decode_child(id: i64, child: record::Child) -> Decoded<Child> {
    let unknown = |_| Malformed::new(format!("unknown parent close policy {}", child.parent_close_policy));
    let started = child.started.map(|started| {
        let run_id = RunId(uuid(&started.run_id, "run_id")?);
        Ok(ChildStart { event_id: EventId(started.event_id), run_id })
    });
    Ok(Child {
        initiated_event_id: EventId(id),
        initiated_batch_id: EventId(child.initiated_batch_id),
        version: child.version,
        namespace: child.namespace,
        namespace_id: NamespaceId(uuid(&child.namespace_id, "namespace_id")?),
        workflow_id: child.workflow_id,
        workflow_type: child.workflow_type,
        parent_close_policy: ParentClosePolicy::try_from(child.parent_close_policy).map_err(unknown)?,
        create_request_id: child.create_request_id,
        started: started.transpose()?,
        priority: child.priority,
    })
}

pub(crate) fn encode_external(request: &ExternalRequest) -> record::ExternalRequest {
    let ExternalRequest {
        initiated_event_id: _, // the row's id
        initiated_batch_id,
        version,
        request_id,
        namespace_id,
        workflow_id,
    } = request;
    record::ExternalRequest {
        version: *version,
        initiated_batch_id: initiated_batch_id.0,
        request_id: request_id.clone(),
        namespace_id: uuid_bytes(namespace_id.0),
        workflow_id: workflow_id.clone(),
    }
}

pub(crate) fn decode_external(id: i64, request: record::ExternalRequest) -> Decoded<ExternalRequest> {
    Ok(ExternalRequest {
        initiated_event_id: EventId(id),
        initiated_batch_id: EventId(request.initiated_batch_id),
        version: request.version,
        request_id: request.request_id,
        namespace_id: NamespaceId(uuid(&request.namespace_id, "namespace_id")?),
        workflow_id: request.workflow_id,
    })
}

pub(crate) fn encode_update(update: &Update) -> record::Update {
    let Update { update_id, admitted, accepted_event_id, completed } = update;
    let place = |at: &Option<RecordedAt>| at.map_or((0, 0), |at| (at.event_id.0, at.batch_id.0));
    let (admitted_event_id, admitted_batch_id) = place(admitted);
    let (completed_event_id, completed_batch_id) = place(completed);
    record::Update {
        update_id: update_id.clone(),
        admitted_event_id,
        accepted_event_id: accepted_event_id.map_or(0, |event| event.0),
        completed_event_id,
        completed_batch_id,
        admitted_batch_id,
    }
}

pub(crate) fn decode_update(update: record::Update) -> Update {
    let place = |event_id: i64, batch_id: i64| {
        (event_id != 0).then_some(RecordedAt { event_id: EventId(event_id), batch_id: EventId(batch_id) })
    };
    Update {
        update_id: update.update_id,
        admitted: place(update.admitted_event_id, update.admitted_batch_id),
        accepted_event_id: (update.accepted_event_id != 0).then_some(EventId(update.accepted_event_id)),
        completed: place(update.completed_event_id, update.completed_batch_id),
    }
}
