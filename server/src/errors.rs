//! Our errors and gRPC codes, both ways: the only maker of `tonic::Status`. Details are the typed ones SDKs decode.

use persistence::error::StoreError;
use prost::{Message, Name};
use proto::google::rpc;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use proto::temporal::api::errordetails::v1 as details;
use thiserror::Error;
use tonic::{Code, Status};
use workflow::{LimitCause, Rejection};

/// What a service answers instead of a response; each variant is one thing that a client can tell apart.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ServiceError {
    #[error("{0}")]
    InvalidArgument(String),
    #[error("{0}")]
    NotFound(String),
    #[error("Namespace {namespace} is not found.")]
    NamespaceNotFound { namespace: String },
    #[error("Namespace already exists.")]
    NamespaceAlreadyExists,
    #[error("{message}")]
    AlreadyStarted { message: String, start_request_id: String, run_id: String },
    #[error("{message}")]
    ResourceExhausted { cause: ResourceExhaustedCause, scope: ResourceExhaustedScope, message: String },
    #[error("{message}")]
    PermissionDenied { message: String, reason: String },
    #[error("{0}")]
    FailedPrecondition(String),
    /// A task that somebody else has, or that is over: between our services only.
    #[error("{0}")]
    TaskAlreadyStarted(String),
    /// This node no longer owns the shard: find its owner and ask again.
    #[error("shard {0} is owned by another node")]
    ShardOwnershipLost(i32),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    DeadlineExceeded(String),
    #[error("{0}")]
    Unimplemented(String),
    #[error("{0}")]
    Internal(String),
    /// What is stored cannot be read: the run is left alone.
    #[error("{0}")]
    DataLoss(String),
}

impl ServiceError {
    #[must_use]
    pub fn execution_not_found(workflow_id: &str, run_id: &str) -> Self {
        Self::NotFound(if run_id.is_empty() {
            format!("workflow execution not found for workflow ID {workflow_id:?}")
        } else {
            format!("workflow execution not found for workflow ID {workflow_id:?} and run ID {run_id:?}")
        })
    }

    /// Worth another try by our own services, as opposed to an answer that would come again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::ShardOwnershipLost(_) | Self::ResourceExhausted { .. } | Self::DeadlineExceeded(_)
        )
    }

    fn code(&self) -> Code {
        match self {
            Self::InvalidArgument(_) => Code::InvalidArgument,
            Self::NotFound(_) | Self::NamespaceNotFound { .. } => Code::NotFound,
            Self::NamespaceAlreadyExists | Self::AlreadyStarted { .. } => Code::AlreadyExists,
            Self::TaskAlreadyStarted(_) => Code::AlreadyExists,
            Self::ResourceExhausted { .. } => Code::ResourceExhausted,
            Self::PermissionDenied { .. } => Code::PermissionDenied,
            Self::FailedPrecondition(_) => Code::FailedPrecondition,
            Self::ShardOwnershipLost(_) | Self::Unavailable(_) => Code::Unavailable,
            Self::DeadlineExceeded(_) => Code::DeadlineExceeded,
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
            Self::NamespaceAlreadyExists => Some(packed(&details::NamespaceAlreadyExistsFailure {})),
            Self::AlreadyStarted { start_request_id, run_id, .. } => {
                Some(packed(&details::WorkflowExecutionAlreadyStartedFailure {
                    start_request_id: start_request_id.clone(),
                    run_id: run_id.clone(),
                }))
            }
            Self::ResourceExhausted { cause, scope, .. } => {
                Some(packed(&details::ResourceExhaustedFailure { cause: (*cause).into(), scope: (*scope).into() }))
            }
            Self::PermissionDenied { reason, .. } => {
                Some(packed(&details::PermissionDeniedFailure { reason: reason.clone() }))
            }
            Self::InvalidArgument(_)
            | Self::TaskAlreadyStarted(_)
            | Self::FailedPrecondition(_)
            | Self::ShardOwnershipLost(_)
            | Self::Unavailable(_)
            | Self::DeadlineExceeded(_)
            | Self::Unimplemented(_)
            | Self::Internal(_)
            | Self::DataLoss(_) => None,
        }
    }
}

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let Some(detail) = error.detail() else { return Self::new(code, message) };
        let status = rpc::Status { code: code.into(), message: message.clone(), details: vec![detail] };
        Self::with_details(code, message, status.encode_to_vec().into())
    }
}

impl From<Rejection> for ServiceError {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        match rejection {
            Rejection::ExecutionClosed
            | Rejection::WorkflowTaskNotFound
            | Rejection::ActivityNotFound
            | Rejection::OtherChain { .. } => Self::NotFound(message),
            Rejection::AlreadyStarted(_) => Self::TaskAlreadyStarted(message),
            Rejection::InvalidArgument(_) => Self::InvalidArgument(message),
            Rejection::LimitExceeded { cause, .. } => match cause {
                // The reference answers the full run's caller as it would a wrong request.
                LimitCause::Signals | LimitCause::HistorySize => Self::InvalidArgument(message),
                LimitCause::BufferedEvents => Self::ResourceExhausted {
                    cause: ResourceExhaustedCause::SystemOverloaded,
                    scope: ResourceExhaustedScope::Namespace,
                    message,
                },
            },
        }
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_) | StoreError::LeaseLost(_) | StoreError::Refused(_) => {
                Self::Unavailable(message)
            }
            StoreError::Corrupt(_) => Self::DataLoss(message),
        }
    }
}

fn packed<M: Message + Name>(message: &M) -> prost_types::Any {
    prost_types::Any { type_url: M::type_url(), value: message.encode_to_vec() }
}
