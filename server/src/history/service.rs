//! The history service as its peers see it (skeleton: being written).

use proto::everrow::history as request;
use proto::temporal::api::workflowservice::v1 as public;

use crate::errors::ServiceError;

pub struct Service {}

impl Service {
    pub async fn start_workflow_execution(&self, _request: request::StartWorkflowExecutionRequest) -> Result<public::StartWorkflowExecutionResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn signal_workflow_execution(&self, _request: request::SignalWorkflowExecutionRequest) -> Result<public::SignalWorkflowExecutionResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn signal_with_start_workflow_execution(&self, _request: request::SignalWithStartWorkflowExecutionRequest) -> Result<public::SignalWithStartWorkflowExecutionResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn request_cancel_workflow_execution(&self, _request: request::RequestCancelWorkflowExecutionRequest) -> Result<public::RequestCancelWorkflowExecutionResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn terminate_workflow_execution(&self, _request: request::TerminateWorkflowExecutionRequest) -> Result<public::TerminateWorkflowExecutionResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn describe_workflow_execution(&self, _request: request::DescribeWorkflowExecutionRequest) -> Result<public::DescribeWorkflowExecutionResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn get_workflow_execution_history(&self, _request: request::GetWorkflowExecutionHistoryRequest) -> Result<public::GetWorkflowExecutionHistoryResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn get_workflow_execution_history_reverse(&self, _request: request::GetWorkflowExecutionHistoryReverseRequest) -> Result<public::GetWorkflowExecutionHistoryReverseResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn record_workflow_task_started(&self, _request: request::RecordWorkflowTaskStartedRequest) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn record_activity_task_started(&self, _request: request::RecordActivityTaskStartedRequest) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn respond_workflow_task_completed(&self, _request: request::RespondWorkflowTaskCompletedRequest) -> Result<public::RespondWorkflowTaskCompletedResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn respond_workflow_task_failed(&self, _request: request::RespondWorkflowTaskFailedRequest) -> Result<public::RespondWorkflowTaskFailedResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn record_activity_task_heartbeat(&self, _request: request::RecordActivityTaskHeartbeatRequest) -> Result<public::RecordActivityTaskHeartbeatResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn respond_activity_task_completed(&self, _request: request::RespondActivityTaskCompletedRequest) -> Result<public::RespondActivityTaskCompletedResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn respond_activity_task_failed(&self, _request: request::RespondActivityTaskFailedRequest) -> Result<public::RespondActivityTaskFailedResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn respond_activity_task_canceled(&self, _request: request::RespondActivityTaskCanceledRequest) -> Result<public::RespondActivityTaskCanceledResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn reset_sticky_task_queue(&self, _request: request::ResetStickyTaskQueueRequest) -> Result<public::ResetStickyTaskQueueResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }
}
