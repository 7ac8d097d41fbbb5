//! Activity options that an operator may change, field by field.

use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions as ProtoOptions;
use proto::temporal::api::common::v1::{Priority, RetryPolicy};

use crate::activity::Activity;
use crate::activity_command::{Timeouts, missing_timeout};
use crate::commands::normalize_queue;
use crate::draft::Draft;
use crate::outcome::Rejection;
use crate::retry;
use crate::time::{nonzero, parse_span, to_proto};
use crate::workflow_task::normal_queue;

/// Task queue, limits and priority of an activity. An operator may change them.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityOptions {
    pub task_queue: String,
    pub schedule_to_start_timeout: Option<Duration>,
    pub schedule_to_close_timeout: Option<Duration>,
    pub start_to_close_timeout: Option<Duration>,
    pub heartbeat_timeout: Option<Duration>,
    pub retry_policy: Option<RetryPolicy>,
    pub priority: Option<Priority>,
}

/// Copies one field from the second message to the first.
type Copy<M> = fn(&mut M, &M);

/// The activity's options with the named fields replaced.
pub(crate) fn merged(
    draft: &Draft,
    activity: &Activity,
    from: &ProtoOptions,
    fields: &[String],
) -> Result<ActivityOptions, Rejection> {
    let has = |field: &str| fields.iter().any(|named| named == field);
    let mut options = activity.options();
    let mut queue = normal_queue(options.task_queue.clone());
    if has("taskQueue.name") {
        let given = from.task_queue.as_ref().ok_or_else(|| not_provided("TaskQueue"))?;
        queue.name.clone_from(&given.name);
    }
    options.priority = merged_priority(options.priority, from.priority.as_ref(), &has)?;
    options.retry_policy = merged_policy(options.retry_policy, from.retry_policy.as_ref(), &has)?;
    let is_policy = |field: &String| field == "retryPolicy" || field.starts_with("retryPolicy.");
    if let (true, Some(policy)) = (fields.iter().any(is_policy), &options.retry_policy) {
        retry::check_policy(policy).map_err(Rejection::InvalidArgument)?;
    }
    let run_queue = &draft.state.started.task_queue;
    normalize_queue(&mut queue, Some(run_queue), draft.facts.limits.id_length).map_err(Rejection::InvalidArgument)?;
    let timeouts = merged_timeouts(&options, from, &has).map_err(Rejection::InvalidArgument)?;
    let timeouts = timeouts
        .normalize(None)
        .ok_or_else(|| Rejection::InvalidArgument(missing_timeout(&activity.activity_id, &activity.activity_type)))?;
    Ok(ActivityOptions {
        task_queue: queue.name,
        schedule_to_close_timeout: nonzero(timeouts.schedule_to_close),
        schedule_to_start_timeout: nonzero(timeouts.schedule_to_start),
        start_to_close_timeout: nonzero(timeouts.start_to_close),
        heartbeat_timeout: nonzero(timeouts.heartbeat),
        ..options
    })
}

fn merged_timeouts(
    options: &ActivityOptions,
    from: &ProtoOptions,
    has: &impl Fn(&str) -> bool,
) -> Result<Timeouts, String> {
    let merge = |name: &str, field: &str, given: Option<&prost_types::Duration>, present: Option<Duration>| {
        if has(field) {
            parse_span(given).map_err(|reason| format!("invalid {name}: {reason}"))
        } else {
            Ok(present.unwrap_or(Duration::ZERO))
        }
    };
    Ok(Timeouts {
        schedule_to_close: merge(
            "ScheduleToCloseTimeout",
            "scheduleToCloseTimeout",
            from.schedule_to_close_timeout.as_ref(),
            options.schedule_to_close_timeout,
        )?,
        schedule_to_start: merge(
            "ScheduleToStartTimeout",
            "scheduleToStartTimeout",
            from.schedule_to_start_timeout.as_ref(),
            options.schedule_to_start_timeout,
        )?,
        start_to_close: merge(
            "StartToCloseTimeout",
            "startToCloseTimeout",
            from.start_to_close_timeout.as_ref(),
            options.start_to_close_timeout,
        )?,
        heartbeat: merge(
            "HeartbeatTimeout",
            "heartbeatTimeout",
            from.heartbeat_timeout.as_ref(),
            options.heartbeat_timeout,
        )?,
    })
}

fn merged_priority(
    present: Option<Priority>,
    from: Option<&Priority>,
    has: &impl Fn(&str) -> bool,
) -> Result<Option<Priority>, Rejection> {
    let mut priority = if has("priority") { from.cloned() } else { present };
    let subfields: [(&str, Copy<Priority>); 3] = [
        ("priority.priorityKey", |into, from| into.priority_key = from.priority_key),
        ("priority.fairnessKey", |into, from| into.fairness_key.clone_from(&from.fairness_key)),
        ("priority.fairnessWeight", |into, from| into.fairness_weight = from.fairness_weight),
    ];
    for (field, copy) in subfields {
        if has(field) {
            copy(priority.get_or_insert_default(), from.ok_or_else(|| not_provided("Priority"))?);
        }
    }
    Ok(priority)
}

/// Non-retryable error types stay unchanged: only workflow code defines its errors.
fn merged_policy(
    present: Option<RetryPolicy>,
    from: Option<&RetryPolicy>,
    has: &impl Fn(&str) -> bool,
) -> Result<Option<RetryPolicy>, Rejection> {
    let subfields: [(&str, Copy<RetryPolicy>); 4] = [
        ("retryPolicy.initialInterval", |into, from| into.initial_interval = from.initial_interval),
        ("retryPolicy.backoffCoefficient", |into, from| into.backoff_coefficient = from.backoff_coefficient),
        ("retryPolicy.maximumInterval", |into, from| into.maximum_interval = from.maximum_interval),
        ("retryPolicy.maximumAttempts", |into, from| into.maximum_attempts = from.maximum_attempts),
    ];
    let mut policy = present;
    for (field, copy) in subfields {
        if has("retryPolicy") || has(field) {
            copy(policy.get_or_insert_default(), from.ok_or_else(|| not_provided("RetryPolicy"))?);
        }
    }
    Ok(policy)
}

fn not_provided(what: &str) -> Rejection {
    Rejection::InvalidArgument(format!("{what} is not provided"))
}

/// Converts options to the public API.
pub(crate) fn shown(options: &ActivityOptions) -> ProtoOptions {
    let span = |timeout: Option<Duration>| Some(to_proto(timeout.unwrap_or(Duration::ZERO)));
    ProtoOptions {
        task_queue: Some(normal_queue(options.task_queue.clone())),
        schedule_to_close_timeout: span(options.schedule_to_close_timeout),
        schedule_to_start_timeout: span(options.schedule_to_start_timeout),
        start_to_close_timeout: span(options.start_to_close_timeout),
        heartbeat_timeout: span(options.heartbeat_timeout),
        retry_policy: options.retry_policy.clone(),
        priority: options.priority.clone(),
        ..Default::default()
    }
}
