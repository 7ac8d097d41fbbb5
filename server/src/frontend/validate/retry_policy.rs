//! Retry policies: fills in defaults, then checks the whole policy.

use cluster::errors::ServiceError;
use prost_types::Duration;
use proto::temporal::api::common::v1::RetryPolicy;
use proto::temporal::api::enums::v1::TimeoutType;

use super::{invalid, span};

const INITIAL_INTERVAL: Duration = Duration { seconds: 1, nanos: 0 };
const BACKOFF_COEFFICIENT: f64 = 2.0;
/// Default maximum interval, in initial intervals.
const MAXIMUM_INTERVAL_FACTOR: i64 = 100;

/// An error type of this prefix names a kind of timeout that must not be retried.
const TIMEOUT_PREFIX: &str = "TemporalTimeout:";

pub(crate) fn check(policy: Option<&mut RetryPolicy>) -> Result<(), ServiceError> {
    let Some(policy) = policy else { return Ok(()) };
    fill_in(policy);
    if policy.maximum_attempts == 1 {
        // One attempt is no retry: the rest does not matter.
        return Ok(());
    }
    let wrong = |name, error| invalid(format!("invalid {name} set on retry policy: {error}"));
    span(&mut policy.initial_interval).map_err(|error| wrong("InitialInterval", error))?;
    if policy.backoff_coefficient.is_nan() || policy.backoff_coefficient < 1.0 {
        return Err(invalid("BackoffCoefficient cannot be less than 1 on retry policy."));
    }
    span(&mut policy.maximum_interval).map_err(|error| wrong("MaximumInterval", error))?;
    if nanos(policy.maximum_interval) > 0 && nanos(policy.maximum_interval) < nanos(policy.initial_interval) {
        return Err(invalid("MaximumInterval cannot be less than InitialInterval on retry policy."));
    }
    if policy.maximum_attempts < 0 {
        return Err(invalid("MaximumAttempts cannot be negative on retry policy."));
    }
    policy.non_retryable_error_types.iter().try_for_each(|name| error_type(name))
}

fn fill_in(policy: &mut RetryPolicy) {
    if nanos(policy.initial_interval) == 0 {
        policy.initial_interval = Some(INITIAL_INTERVAL);
    }
    if nanos(policy.maximum_interval) == 0 {
        policy.maximum_interval = policy.initial_interval.map(|initial| {
            let nanos = i64::from(initial.nanos) * MAXIMUM_INTERVAL_FACTOR;
            let seconds = initial.seconds.saturating_mul(MAXIMUM_INTERVAL_FACTOR);
            let below_a_second = i32::try_from(nanos % 1_000_000_000).unwrap_or(0);
            Duration { seconds: seconds.saturating_add(nanos / 1_000_000_000), nanos: below_a_second }
        });
    }
    if policy.backoff_coefficient == 0.0 {
        policy.backoff_coefficient = BACKOFF_COEFFICIENT;
    }
}

fn error_type(name: &str) -> Result<(), ServiceError> {
    let Some(timeout) = name.strip_prefix(TIMEOUT_PREFIX) else { return Ok(()) };
    let names = [
        (TimeoutType::StartToClose, "StartToClose"),
        (TimeoutType::ScheduleToStart, "ScheduleToStart"),
        (TimeoutType::ScheduleToClose, "ScheduleToClose"),
        (TimeoutType::Heartbeat, "Heartbeat"),
    ];
    if names.iter().any(|(kind, short)| timeout == *short || timeout == kind.as_str_name()) {
        return Ok(());
    }
    Err(invalid(format!("Invalid timeout type value: {timeout}.")))
}

fn nanos(span: Option<Duration>) -> i128 {
    span.map_or(0, |span| i128::from(span.seconds) * 1_000_000_000 + i128::from(span.nanos))
}
