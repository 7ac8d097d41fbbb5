//! Retries: which failures are retryable, the backoff, and the defaults of a policy.

use std::time::Duration;

use proto::temporal::api::common::v1::RetryPolicy;
use proto::temporal::api::enums::v1::{RetryState, TimeoutType};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::failure::v1::failure::FailureInfo;

use crate::events::short_name;
use crate::ids::RunId;
use crate::time::{Timestamp, limit, parse_span, span, to_proto};

/// Prefix of timeout types among a policy's non-retryable error types.
const TIMEOUT_TYPE_PREFIX: &str = "TemporalTimeout:";

const DEFAULT_INITIAL_INTERVAL: Duration = Duration::from_secs(1);
const DEFAULT_BACKOFF_COEFFICIENT: f64 = 2.0;
/// Multiple of the initial interval.
const DEFAULT_MAXIMUM_INTERVAL_FACTOR: u32 = 100;

/// Fills in the unset fields of a policy.
pub fn with_defaults(mut policy: RetryPolicy) -> RetryPolicy {
    if span(policy.initial_interval.as_ref()).is_zero() {
        policy.initial_interval = Some(to_proto(DEFAULT_INITIAL_INTERVAL));
    }
    if span(policy.maximum_interval.as_ref()).is_zero() {
        let initial = span(policy.initial_interval.as_ref());
        policy.maximum_interval = Some(to_proto(initial.saturating_mul(DEFAULT_MAXIMUM_INTERVAL_FACTOR)));
    }
    if policy.backoff_coefficient == 0.0 {
        policy.backoff_coefficient = DEFAULT_BACKOFF_COEFFICIENT;
    }
    assert!(policy.initial_interval.is_some(), "a policy says how long to wait first");
    assert!(policy.maximum_interval.is_some(), "and at most");
    policy
}

/// Validates a policy; errors have the reference's text.
pub(crate) fn check_policy(policy: &RetryPolicy) -> Result<(), String> {
    if policy.maximum_attempts == 1 {
        // There are no retries: the rest does not matter.
        return Ok(());
    }
    let initial = parse_span(policy.initial_interval.as_ref())
        .map_err(|reason| format!("invalid InitialInterval set on retry policy: {reason}"))?;
    if policy.backoff_coefficient.is_nan() || policy.backoff_coefficient < 1.0 {
        return Err("BackoffCoefficient cannot be less than 1 on retry policy.".to_owned());
    }
    let maximum = parse_span(policy.maximum_interval.as_ref())
        .map_err(|reason| format!("invalid MaximumInterval set on retry policy: {reason}"))?;
    if !maximum.is_zero() && maximum < initial {
        return Err("MaximumInterval cannot be less than InitialInterval on retry policy.".to_owned());
    }
    if policy.maximum_attempts < 0 {
        return Err("MaximumAttempts cannot be negative on retry policy.".to_owned());
    }
    for error_type in &policy.non_retryable_error_types {
        if let Some(timeout) = error_type.strip_prefix(TIMEOUT_TYPE_PREFIX)
            && !TIMEOUTS.iter().any(|known| timeout_name(*known) == timeout)
        {
            return Err(format!("Invalid timeout type value: {timeout}."));
        }
    }
    Ok(())
}

const TIMEOUTS: [TimeoutType; 4] =
    [TimeoutType::StartToClose, TimeoutType::ScheduleToStart, TimeoutType::ScheduleToClose, TimeoutType::Heartbeat];

/// `StartToClose`, as the reference's messages have it.
pub(crate) fn timeout_name(timeout: TimeoutType) -> String {
    short_name(timeout.as_str_name(), "TIMEOUT_TYPE_")
}

/// Whether a failure is retryable at all.
pub(crate) fn is_retryable(failure: Option<&Failure>, non_retryable_types: &[String]) -> bool {
    let Some(info) = failure.and_then(|failure| failure.failure_info.as_ref()) else { return true };
    match info {
        FailureInfo::TerminatedFailureInfo(_) | FailureInfo::CanceledFailureInfo(_) => false,
        FailureInfo::TimeoutFailureInfo(timeout) => match timeout.timeout_type() {
            kind @ (TimeoutType::StartToClose | TimeoutType::Heartbeat) => {
                let name = format!("{TIMEOUT_TYPE_PREFIX}{}", timeout_name(kind));
                !non_retryable_types.contains(&name)
            }
            TimeoutType::Unspecified | TimeoutType::ScheduleToStart | TimeoutType::ScheduleToClose => false,
        },
        FailureInfo::ServerFailureInfo(server) => !server.non_retryable,
        FailureInfo::ApplicationFailureInfo(application) => {
            !application.non_retryable && !non_retryable_types.contains(&application.r#type)
        }
        FailureInfo::ResetWorkflowFailureInfo(_)
        | FailureInfo::ActivityFailureInfo(_)
        | FailureInfo::ChildWorkflowExecutionFailureInfo(_)
        | FailureInfo::NexusOperationExecutionFailureInfo(_)
        | FailureInfo::NexusHandlerFailureInfo(_) => true,
    }
}

/// The retry delay that the application requested.
pub(crate) fn requested_delay(failure: Option<&Failure>) -> Option<Duration> {
    match failure?.failure_info.as_ref()? {
        FailureInfo::ApplicationFailureInfo(application) => {
            application.next_retry_delay.as_ref().map(|delay| span(Some(delay)))
        }
        FailureInfo::TerminatedFailureInfo(_)
        | FailureInfo::CanceledFailureInfo(_)
        | FailureInfo::TimeoutFailureInfo(_)
        | FailureInfo::ServerFailureInfo(_)
        | FailureInfo::ResetWorkflowFailureInfo(_)
        | FailureInfo::ActivityFailureInfo(_)
        | FailureInfo::ChildWorkflowExecutionFailureInfo(_)
        | FailureInfo::NexusOperationExecutionFailureInfo(_)
        | FailureInfo::NexusHandlerFailureInfo(_) => None,
    }
}

/// The attempt that just failed, and what bounds the next one.
pub(crate) struct Attempt<'a> {
    pub policy: &'a RetryPolicy,
    /// Counts from 1.
    pub number: i32,
    pub now: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Instead of the policy's interval.
    pub requested_delay: Option<Duration>,
    pub interval_max: Option<Duration>,
}

/// Backoff before the next attempt, or why there is none.
pub(crate) fn next_interval(attempt: &Attempt) -> Result<Duration, RetryState> {
    assert!(attempt.number >= 1, "attempts count from one");
    let policy = attempt.policy;
    if policy.maximum_attempts > 0 && attempt.number >= policy.maximum_attempts {
        return Err(RetryState::MaximumAttemptsReached);
    }
    let mut interval = attempt.requested_delay.unwrap_or_else(|| exponential(policy, attempt.number));
    match attempt.interval_max {
        Some(maximum) if interval.is_zero() || interval > maximum => interval = maximum,
        None if interval.is_zero() => return Err(RetryState::Timeout),
        Some(_) | None => {}
    }
    assert!(attempt.interval_max.is_none_or(|maximum| interval <= maximum), "no interval is longer than the longest");
    if attempt.expires_at.is_some_and(|expires_at| attempt.now + interval > expires_at) {
        return Err(RetryState::Timeout);
    }
    Ok(interval)
}

pub(crate) fn interval_max(policy: &RetryPolicy) -> Option<Duration> {
    limit(policy.maximum_interval.as_ref())
}

/// Backoff of a rescheduled attempt, computed from that attempt's number as in the reference.
pub(crate) fn interval_before(policy: &RetryPolicy, attempt: i32) -> Duration {
    let interval = exponential(policy, attempt);
    interval_max(policy).map_or(interval, |maximum| interval.min(maximum))
}

fn exponential(policy: &RetryPolicy, attempt: i32) -> Duration {
    let factor = policy.backoff_coefficient.powi(attempt - 1);
    scaled(span(policy.initial_interval.as_ref()), factor)
}

/// Saturates at the longest span that fits a timestamp.
fn scaled(interval: Duration, factor: f64) -> Duration {
    const LONGEST: Duration = Duration::from_nanos(i64::MAX as u64);
    let seconds = interval.as_secs_f64() * factor;
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(LONGEST).min(LONGEST)
}

/// Backoff added to the timeout of a workflow task that failed before: a workflow that cannot proceed is retried ever
/// less often. Jittered by the run id, so that many such runs do not retry at once.
pub(crate) fn workflow_task_delay(attempt: i32, interval_max: Duration, run_id: RunId) -> Duration {
    const ATTEMPTS_WITHOUT_DELAY: i32 = 3;
    const INITIAL: Duration = Duration::from_secs(5);
    if attempt <= ATTEMPTS_WITHOUT_DELAY {
        return Duration::ZERO;
    }
    let factor = 2_f64.powi(attempt - ATTEMPTS_WITHOUT_DELAY - 1);
    let interval = scaled(INITIAL, factor).min(interval_max);
    interval.mul_f64(0.8) + spread(interval.mul_f64(0.2), run_id)
}

/// A part of a span, fixed for each run: the core draws no random numbers.
fn spread(span: Duration, run_id: RunId) -> Duration {
    span.mul_f64((run_id.0.as_u128() % 1000) as f64 / 1000.0)
}
