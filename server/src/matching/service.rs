//! The matching service as its peers see it (skeleton: being written).

use proto::everrow::matching as request;
use proto::temporal::api::workflowservice::v1 as public;

use crate::errors::ServiceError;

pub struct Service {}

impl Service {
    pub async fn add_task(&self, _request: request::AddTaskRequest) -> Result<request::AddTaskResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn poll_workflow_task_queue(
        &self,
        _request: request::PollWorkflowTaskQueueRequest,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn poll_activity_task_queue(
        &self,
        _request: request::PollActivityTaskQueueRequest,
    ) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn cancel_outstanding_poll(
        &self,
        _request: request::CancelOutstandingPollRequest,
    ) -> Result<request::CancelOutstandingPollResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }

    pub async fn describe_task_queue(
        &self,
        _request: request::DescribeTaskQueueRequest,
    ) -> Result<public::DescribeTaskQueueResponse, ServiceError> {
        Err(ServiceError::Unimplemented("being written".into()))
    }
}
