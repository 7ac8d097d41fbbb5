//! Options of a run that an operator changes: so far, its priority.

use proto::everrow::history as request;
use proto::temporal::api::workflow::v1::WorkflowExecutionOptions;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{Input, Reply, UpdateOptions};

use super::field_mask::camel_case;
use super::service::{Service, Target, namespace_id};
use crate::errors::ServiceError;

impl Service {
    pub async fn update_workflow_execution_options(
        &self,
        request: request::UpdateWorkflowExecutionOptionsRequest,
    ) -> Result<public::UpdateWorkflowExecutionOptionsResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let input = Input::UpdateOptions(UpdateOptions {
            identity: request.identity,
            priority: request.workflow_execution_options.and_then(|options| options.priority),
            fields: request.update_mask.unwrap_or_default().paths.iter().map(|path| camel_case(path)).collect(),
        });
        let run = Target::new(namespace_id, request.workflow_execution)?;
        let Reply::Priority(priority) = self.transact(&run, input).await? else {
            return Err(ServiceError::Internal(
                "the core answered another question than which priority there is".into(),
            ));
        };
        let options = WorkflowExecutionOptions { priority, ..Default::default() };
        Ok(public::UpdateWorkflowExecutionOptionsResponse {
            workflow_execution_options: Some(options),
            ..Default::default()
        })
    }
}
