//! Metrics of the process, for Prometheus. Names and labels are the reference's where it has them, so that its
//! dashboards find them; label values are constants or enums of ours, so that the number of series is bounded.

use std::fmt::Write as _;

use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::time::Instant;

use crate::errors::{ServiceError, camel_case};
use family::{Family, Labels};

pub mod clock;
pub mod endpoint;
mod family;
pub mod schedules;
#[cfg(test)]
mod tests;

/// Calls that began.
static REQUESTS: Family<Operation> =
    Family::counter("service_requests", "The number of RPC requests received by the service.");
/// Calls under way.
static PENDING: Family<Operation> = Family::gauge("service_pending_requests", "RPC requests that are under way.");
/// Errors not caused by the caller.
static ERRORS: Family<Operation> = Family::counter("service_errors", "The number of unexpected service errors.");
static ERRORS_BY_TYPE: Family<Failed> =
    Family::counter("service_error_with_type", "The number of all service errors, by their type.");
static RESOURCE_EXHAUSTED: Family<Exhausted> =
    Family::counter("service_errors_resource_exhausted", "The number of requests refused for the lack of a resource.");
static LATENCY: Family<Operation> = Family::histogram("service_latency", "How long RPC requests took, in seconds.");
static LIMIT_WARNINGS: Family<Limit> =
    Family::counter("limit_warnings", "How often a run came near to a limit, by the limit.");

/// All metrics in Prometheus' text format.
pub fn text() -> String {
    let mut text = String::new();
    for family in [&REQUESTS, &PENDING, &ERRORS, &LATENCY] {
        family.write(&mut text);
    }
    ERRORS_BY_TYPE.write(&mut text);
    RESOURCE_EXHAUSTED.write(&mut text);
    LIMIT_WARNINGS.write(&mut text);
    schedules::write(&mut text);
    clock::write(&mut text);
    text
}

/// A limit with a warning threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    ActivityFailureSize,
    BlobSize,
    HistoryCount,
    HistorySize,
    MemoSize,
    MutableStateSize,
}

/// A run crossed the warning threshold of a limit.
pub fn count_warning(limit: Limit) {
    LIMIT_WARNINGS.add(limit, 1);
}

/// A call under way; its end is counted on drop, whatever the outcome.
pub struct CallUnderWay {
    operation: Operation,
    began: Instant,
}

impl CallUnderWay {
    pub fn begin(operation: &'static str) -> Self {
        let operation = Operation(operation);
        REQUESTS.add(operation, 1);
        PENDING.add(operation, 1);
        Self { operation, began: Instant::now() }
    }

    pub fn failed(&self, error: &ServiceError) {
        let Operation(operation) = self.operation;
        ERRORS_BY_TYPE.add(Failed { operation, error_type: error.type_name() }, 1);
        if let ServiceError::ResourceExhausted { cause, scope, .. } = error {
            RESOURCE_EXHAUSTED.add(Exhausted { operation, cause: *cause, scope: *scope }, 1);
        }
        if !error.is_expected() {
            ERRORS.add(self.operation, 1);
        }
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        PENDING.add(self.operation, -1);
        LATENCY.observe(self.operation, self.began.elapsed());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Operation(&'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Failed {
    operation: &'static str,
    error_type: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Exhausted {
    operation: &'static str,
    cause: ResourceExhaustedCause,
    scope: ResourceExhaustedScope,
}

impl Labels for Operation {
    fn write(&self, text: &mut String) {
        write_operation(text, self.0);
    }
}

impl Labels for Failed {
    fn write(&self, text: &mut String) {
        let _ = write!(text, "error_type=\"serviceerror_{}\",", self.error_type);
        write_operation(text, self.operation);
    }
}

impl Labels for Exhausted {
    fn write(&self, text: &mut String) {
        let cause = camel_case(self.cause.as_str_name(), "RESOURCE_EXHAUSTED_CAUSE_");
        let scope = camel_case(self.scope.as_str_name(), "RESOURCE_EXHAUSTED_SCOPE_");
        let _ = write!(text, "resource_exhausted_cause=\"{cause}\",resource_exhausted_scope=\"{scope}\",");
        write_operation(text, self.operation);
    }
}

impl Labels for Limit {
    fn write(&self, text: &mut String) {
        let name = match self {
            Self::ActivityFailureSize => "activity_failure_size",
            Self::BlobSize => "blob_size",
            Self::HistoryCount => "history_count",
            Self::HistorySize => "history_size",
            Self::MemoSize => "memo_size",
            Self::MutableStateSize => "mutable_state_size",
        };
        let _ = write!(text, "limit=\"{name}\",service_name=\"history\"");
    }
}

fn write_operation(text: &mut String, operation: &str) {
    let _ = write!(text, "operation=\"{operation}\",service_name=\"frontend\"");
}
