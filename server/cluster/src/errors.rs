//! `ServiceError` and its conversion to gRPC; no other server code makes a `tonic::Status`. Details are the typed ones
//! that SDKs decode.

use persistence::error::StoreError;
use prost::{Message, Name};
use proto::google::rpc;
use proto::temporal::api::enums::v1::{NamespaceState, ResourceExhaustedCause, ResourceExhaustedScope};
use proto::temporal::api::errordetails::v1 as details;
use proto::temporal::api::errordetails::v1::multi_operation_execution_failure::OperationStatus;
use proto::temporal::api::failure::v1::{Failure, MultiOperationExecutionAborted};
use thiserror::Error;
use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use workflow::{LimitCause, Rejection};

mod trailers;

/// Error of a service call; each variant is one that a client can distinguish.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ServiceError {
    #[error("{0}")]
    InvalidArgument(String),
    #[error("{0}")]
    NotFound(String),
    #[error("Namespace {namespace} is not found.")]
    NamespaceNotFound { namespace: String },
    #[error("Namespace {namespace:?} already exists")]
    NamespaceAlreadyExists { namespace: String },
    #[error("{0}")]
    AlreadyExists(String),
    /// The namespace is deprecated or deleted, and does not allow the call.
    #[error("Namespace has invalid state: {}. Must be {}.", state_name(*state), state_names(allowed))]
    NamespaceInvalidState { namespace: String, state: NamespaceState, allowed: Vec<NamespaceState> },
    #[error("{message}")]
    AlreadyStarted { message: String, start_request_id: String, run_id: String, first_run_id: String },
    #[error("{message}")]
    ResourceExhausted { cause: ResourceExhaustedCause, scope: ResourceExhaustedScope, message: String },
    #[error("{message}")]
    PermissionDenied { message: String, reason: String },
    #[error("{0}")]
    FailedPrecondition(String),
    /// The run's workflow tasks fail, or it has had none yet: a call that needs one cannot be served now.
    #[error("{0}")]
    WorkflowNotReady(String),
    /// The workflow answered a query with an error.
    #[error("{message}")]
    QueryFailed { message: String, failure: Option<Box<Failure>> },
    /// The task is already started, or over. Between our services only.
    #[error("{0}")]
    TaskAlreadyStarted(String),
    /// The sticky queue has no poller: the task goes to the normal one at once. Between our services only.
    #[error("sticky worker unavailable, please use original task queue.")]
    StickyWorkerUnavailable,
    /// This node no longer owns the shard: retry at its owner.
    #[error("shard {0} is owned by another node")]
    ShardOwnershipLost(i32),
    #[error("{0}")]
    Unavailable(String),
    /// The store failed, or refused for now. Its text is for the log: `for_client` replaces it.
    #[error("{0}")]
    Store(StoreError),
    #[error("{0}")]
    DeadlineExceeded(String),
    /// The caller may retry the whole request.
    #[error("{0}")]
    Aborted(String),
    /// Outcome of each operation of a multi-operation. `None` if it succeeded.
    #[error("Update-with-Start could not be executed.")]
    Operations(Vec<Option<ServiceError>>),
    /// An operation was skipped because another one failed.
    #[error("Operation was aborted.")]
    OperationAborted,
    #[error("{0}")]
    Unimplemented(String),
    #[error("{0}")]
    Internal(String),
    /// Stored data cannot be read: the run is left unchanged.
    #[error("{0}")]
    DataLoss(String),
}

impl ServiceError {
    #[must_use]
    pub fn execution_not_found(workflow_id: &str, run_id: &str) -> Self {
        Self::NotFound(if run_id.is_empty() {
            format!("workflow not found for ID: {workflow_id}")
        } else {
            format!("workflow execution not found for workflow ID {workflow_id:?} and run ID {run_id:?}")
        })
    }

    /// Clients know schedules as workflows of the server.
    #[must_use]
    pub fn schedule_not_found(schedule_id: &str) -> Self {
        Self::NotFound(format!("workflow not found for ID: temporal-sys-scheduler:{schedule_id}"))
    }

    #[must_use]
    pub fn query_timed_out() -> Self {
        Self::DeadlineExceeded("query timed out before a worker could process it".into())
    }

    #[must_use]
    pub fn operations(met: [Option<Self>; 2]) -> Self {
        Self::Operations(met.into())
    }

    /// Whether our own services may retry, as opposed to an error that would recur.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_)
                | Self::Store(
                    StoreError::Unavailable(_)
                        | StoreError::OutcomeUnknown(_)
                        | StoreError::LeaseLost(_)
                        | StoreError::Refused(_)
                )
                | Self::ShardOwnershipLost(_)
                | Self::ResourceExhausted { .. }
                | Self::DeadlineExceeded(_)
        )
    }

    /// The error for clients of the public API: internal details stay in the log, under `hidden_hash`.
    #[must_use]
    pub fn for_client(self) -> Self {
        match self {
            Self::ShardOwnershipLost(_) => Self::Unavailable("shard unavailable, please backoff and retry".into()),
            Self::DataLoss(_) => Self::Unavailable("internal history service error".into()),
            Self::Store(StoreError::TooLarge(_)) => Self::InvalidArgument("too large to be stored".into()),
            Self::Store(_) => Self::Unavailable("the store is unavailable, please retry".into()),
            Self::Internal(message) => {
                Self::Internal(format!("something went wrong, please retry ({:08x})", hash(&message)))
            }
            Self::Operations(met) => Self::Operations(met.into_iter().map(|one| one.map(Self::for_client)).collect()),
            Self::InvalidArgument(_)
            | Self::NotFound(_)
            | Self::NamespaceNotFound { .. }
            | Self::NamespaceAlreadyExists { .. }
            | Self::AlreadyExists(_)
            | Self::NamespaceInvalidState { .. }
            | Self::AlreadyStarted { .. }
            | Self::ResourceExhausted { .. }
            | Self::PermissionDenied { .. }
            | Self::FailedPrecondition(_)
            | Self::WorkflowNotReady(_)
            | Self::QueryFailed { .. }
            | Self::TaskAlreadyStarted(_)
            | Self::StickyWorkerUnavailable
            | Self::Unavailable(_)
            | Self::DeadlineExceeded(_)
            | Self::Aborted(_)
            | Self::OperationAborted
            | Self::Unimplemented(_) => self,
        }
    }

    /// Hash of the log entry with the details that `for_client` hides.
    #[must_use]
    pub fn hidden_hash(&self) -> Option<u32> {
        if let Self::Operations(met) = self {
            return met.iter().flatten().find_map(Self::hidden_hash);
        }
        matches!(self, Self::Internal(_) | Self::DataLoss(_)).then(|| hash(&self.to_string()))
    }

    /// Whether the caller or its namespace caused it, not the server.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        if let Self::ResourceExhausted { scope, .. } = self {
            return *scope == ResourceExhaustedScope::Namespace;
        }
        let is_callers = matches!(
            self.code(),
            Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::PermissionDenied
                | Code::FailedPrecondition
        );
        is_callers || *self == Self::StickyWorkerUnavailable
    }

    /// The error's type in metrics.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::InvalidArgument(_) => "InvalidArgument",
            Self::NotFound(_) => "NotFound",
            Self::NamespaceNotFound { .. } => "NamespaceNotFound",
            Self::NamespaceAlreadyExists { .. } => "NamespaceAlreadyExists",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::NamespaceInvalidState { .. } => "NamespaceInvalidState",
            Self::AlreadyStarted { .. } => "WorkflowExecutionAlreadyStarted",
            Self::ResourceExhausted { .. } => "ResourceExhausted",
            Self::PermissionDenied { .. } => "PermissionDenied",
            Self::FailedPrecondition(_) => "FailedPrecondition",
            Self::WorkflowNotReady(_) => "WorkflowNotReady",
            Self::QueryFailed { .. } => "QueryFailed",
            Self::TaskAlreadyStarted(_) => "TaskAlreadyStarted",
            Self::StickyWorkerUnavailable => "StickyWorkerUnavailable",
            Self::ShardOwnershipLost(_) => "ShardOwnershipLost",
            Self::Store(StoreError::TooLarge(_)) => "InvalidArgument",
            Self::Unavailable(_) | Self::Store(_) => "Unavailable",
            Self::DeadlineExceeded(_) => "DeadlineExceeded",
            Self::Aborted(_) => "Aborted",
            Self::Operations(_) => "MultiOperationExecution",
            Self::OperationAborted => "MultiOperationAborted",
            Self::Unimplemented(_) => "Unimplemented",
            Self::Internal(_) => "Internal",
            Self::DataLoss(_) => "DataLoss",
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::InvalidArgument(_) | Self::QueryFailed { .. } | Self::Store(StoreError::TooLarge(_)) => {
                Code::InvalidArgument
            }
            Self::NotFound(_) | Self::NamespaceNotFound { .. } => Code::NotFound,
            Self::NamespaceAlreadyExists { .. } | Self::AlreadyStarted { .. } => Code::AlreadyExists,
            Self::TaskAlreadyStarted(_) | Self::AlreadyExists(_) => Code::AlreadyExists,
            Self::ResourceExhausted { .. } => Code::ResourceExhausted,
            Self::PermissionDenied { .. } => Code::PermissionDenied,
            Self::FailedPrecondition(_) | Self::WorkflowNotReady(_) | Self::NamespaceInvalidState { .. } => {
                Code::FailedPrecondition
            }
            Self::ShardOwnershipLost(_) | Self::StickyWorkerUnavailable | Self::Unavailable(_) | Self::Store(_) => {
                Code::Unavailable
            }
            Self::DeadlineExceeded(_) => Code::DeadlineExceeded,
            Self::Aborted(_) | Self::OperationAborted => Code::Aborted,
            // The code of the first operation that failed itself.
            Self::Operations(met) => {
                let mut failed = met.iter().flatten().filter(|one| **one != Self::OperationAborted);
                failed.next().map_or(Code::Aborted, Self::code)
            }
            Self::Unimplemented(_) => Code::Unimplemented,
            Self::Internal(_) => Code::Internal,
            Self::DataLoss(_) => Code::DataLoss,
        }
    }

    fn detail(&self) -> Option<prost_types::Any> {
        match self {
            Self::NotFound(_) => Some(packed(&details::NotFoundFailure::default())),
            Self::NamespaceNotFound { namespace } => {
                Some(packed(&details::NamespaceNotFoundFailure { namespace: namespace.clone() }))
            }
            Self::NamespaceAlreadyExists { .. } => Some(packed(&details::NamespaceAlreadyExistsFailure {})),
            Self::NamespaceInvalidState { namespace, state, allowed } => {
                Some(packed(&details::NamespaceInvalidStateFailure {
                    namespace: namespace.clone(),
                    state: (*state).into(),
                    allowed_states: allowed.iter().map(|state| (*state).into()).collect(),
                }))
            }
            Self::AlreadyStarted { start_request_id, run_id, first_run_id, .. } => {
                Some(packed(&details::WorkflowExecutionAlreadyStartedFailure {
                    start_request_id: start_request_id.clone(),
                    run_id: run_id.clone(),
                    first_execution_run_id: first_run_id.clone(),
                }))
            }
            Self::ResourceExhausted { cause, scope, .. } => {
                Some(packed(&details::ResourceExhaustedFailure { cause: (*cause).into(), scope: (*scope).into() }))
            }
            Self::PermissionDenied { reason, .. } => {
                Some(packed(&details::PermissionDeniedFailure { reason: reason.clone() }))
            }
            Self::WorkflowNotReady(_) => Some(packed(&details::WorkflowNotReadyFailure {})),
            Self::QueryFailed { failure, .. } => Some(packed(&trailers::query_failure(failure.as_deref()))),
            Self::OperationAborted => Some(packed(&MultiOperationExecutionAborted {})),
            Self::Operations(met) => {
                let statuses =
                    met.iter().map(|one| one.as_ref().map_or_else(OperationStatus::default, operation_status));
                Some(packed(&trailers::operations(statuses.collect())))
            }
            Self::InvalidArgument(_)
            | Self::AlreadyExists(_)
            | Self::TaskAlreadyStarted(_)
            | Self::StickyWorkerUnavailable
            | Self::FailedPrecondition(_)
            | Self::ShardOwnershipLost(_)
            | Self::Unavailable(_)
            | Self::Store(_)
            | Self::DeadlineExceeded(_)
            | Self::Aborted(_)
            | Self::Unimplemented(_)
            | Self::Internal(_)
            | Self::DataLoss(_) => None,
        }
    }
}

/// Status of one of several operations, as if it came alone.
fn operation_status(error: &ServiceError) -> OperationStatus {
    let details = error.detail().into_iter().collect();
    OperationStatus { code: error.code().into(), message: error.to_string(), details }
}

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let (code, detail) = (error.code(), error.detail().and_then(trailers::detail));
        let message = trailers::message(error.to_string(), detail.as_ref());
        let Some(detail) = detail else { return Self::new(code, message) };
        let details = rpc::Status { code: code.into(), message: message.clone(), details: vec![detail] };
        let mut status = Self::with_details(code, message, details.encode_to_vec().into());
        if let ServiceError::ResourceExhausted { cause, scope, .. } = &error {
            let headers = status.metadata_mut();
            for (header, name) in [
                ("x-resource-exhausted-cause", camel_case(cause.as_str_name(), "RESOURCE_EXHAUSTED_CAUSE_")),
                ("x-resource-exhausted-scope", camel_case(scope.as_str_name(), "RESOURCE_EXHAUSTED_SCOPE_")),
            ] {
                if let Ok(value) = name.parse::<MetadataValue<_>>() {
                    headers.insert(header, value);
                }
            }
        }
        status
    }
}

/// The store as a whole is down, and recovers by itself.
#[must_use]
pub fn store_down(reason: &str) -> Status {
    ServiceError::Unavailable(format!("the store is down: {reason}; it is opened again as soon as that is over")).into()
}

/// A handler panicked. The client may try again; the log has the reason.
#[must_use]
pub fn panicked() -> Status {
    Status::internal("something went wrong, please retry")
}

/// The HTTP API has no such path. Without a detail: no object of a namespace was looked up.
#[must_use]
pub fn no_such_path() -> Status {
    Status::not_found("Not Found")
}

/// Status of a request's body that ended with an error: our own refusal (no room, or too late), or a malformed body.
#[must_use]
pub fn unreadable_body(error: Box<dyn std::error::Error + Send + Sync>) -> Status {
    match Status::try_from_error(error) {
        Ok(status) if status.code() != Code::Unknown => status,
        Ok(status) => ServiceError::InvalidArgument(status.message().to_owned()).into(),
        Err(error) => ServiceError::InvalidArgument(error.to_string()).into(),
    }
}

/// Rewords errors of the gRPC library like the reference's, which SDKs look for: an RPC without a handler, and a
/// message over the limit as sent or once decompressed. An SDK retries what it does not recognise. `None` if the
/// response stands.
#[must_use]
pub fn restated(headers: &HeaderMap, method: &str) -> Option<Status> {
    let status = Status::from_header_map(headers)?;
    let message = status.message();
    if status.code() == Code::Unimplemented && message == "Not yet implemented" {
        return Some(Status::unimplemented(format!("{method} is not built yet")));
    }
    let mut sizes = message.split(|character: char| !character.is_ascii_digit()).filter(|part| !part.is_empty());
    if status.code() == Code::OutOfRange && message.contains("message length too large") {
        let (found, limit) = (sizes.next()?, sizes.next()?);
        let message = format!("grpc: received message larger than max ({found} vs. {limit})");
        return Some(Status::resource_exhausted(message));
    }
    if status.code() == Code::ResourceExhausted && message.contains("exceeded while decompressing message") {
        let limit = sizes.next()?;
        let message = format!("grpc: received message after decompression larger than max {limit}");
        return Some(Status::resource_exhausted(message));
    }
    None
}

impl From<Rejection> for ServiceError {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        match rejection {
            Rejection::ExecutionClosed
            | Rejection::WorkflowTaskNotFound
            | Rejection::ActivityNotFound
            | Rejection::ActivityIdNotFound(_)
            | Rejection::ChildNotFound
            | Rejection::OtherParent
            | Rejection::NoSuchActivity
            | Rejection::OtherChain { .. } => Self::NotFound(message),
            Rejection::AlreadyStarted(_) => Self::TaskAlreadyStarted(message),
            Rejection::InvalidArgument(_) => Self::InvalidArgument(message),
            Rejection::FailedPrecondition(_) => Self::FailedPrecondition(message),
            Rejection::WorkflowNotReady(_) => Self::WorkflowNotReady(message),
            Rejection::LimitExceeded { cause, .. } => match cause {
                // The reference answers a full run like an invalid request.
                LimitCause::Signals | LimitCause::BlobSize => Self::InvalidArgument(message),
                LimitCause::Updates => Self::FailedPrecondition(message),
                LimitCause::UpdatesInFlight => Self::ResourceExhausted {
                    cause: ResourceExhaustedCause::ConcurrentLimit,
                    scope: ResourceExhaustedScope::Namespace,
                    message,
                },
            },
            Rejection::Busy(_) => Self::ResourceExhausted {
                cause: ResourceExhaustedCause::BusyWorkflow,
                scope: ResourceExhaustedScope::Namespace,
                message,
            },
        }
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(_) => Self::DataLoss(error.to_string()),
            StoreError::Unavailable(_)
            | StoreError::OutcomeUnknown(_)
            | StoreError::LeaseLost(_)
            | StoreError::Refused(_)
            | StoreError::TooLarge(_) => Self::Store(error),
        }
    }
}

/// FNV-1a: short, stable over releases, and good enough to find a line in a log.
fn hash(message: &str) -> u32 {
    message.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// `RPS_LIMIT` is `RpsLimit` to clients: the form that the reference prints.
pub fn camel_case(name: &str, prefix: &str) -> String {
    let words = name.strip_prefix(prefix).unwrap_or(name).split('_').filter(|word| !word.is_empty());
    words.map(|word| format!("{}{}", &word[..1], word[1..].to_ascii_lowercase())).collect()
}

fn state_name(state: NamespaceState) -> &'static str {
    match state {
        NamespaceState::Unspecified => "Unspecified",
        NamespaceState::Registered => "Registered",
        NamespaceState::Deprecated => "Deprecated",
        NamespaceState::Deleted => "Deleted",
    }
}

fn state_names(states: &[NamespaceState]) -> String {
    states.iter().map(|state| state_name(*state)).collect::<Vec<_>>().join(" or ")
}

fn packed<M: Message + Name>(message: &M) -> prost_types::Any {
    // Clients in other languages look for the full type URL.
    let type_url = format!("type.googleapis.com/{}", M::full_name());
    prost_types::Any { type_url, value: message.encode_to_vec() }
}

#[cfg(test)]
mod tests;
