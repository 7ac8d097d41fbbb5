//! Options of a run that an operator changes: so far, its priority.

use cluster::errors::ServiceError;
use prost_types::FieldMask;
use proto::everrow::history as request;
use proto::temporal::api::workflow::v1::post_reset_operation::Variant;
use proto::temporal::api::workflow::v1::{PostResetOperation, WorkflowExecutionOptions};
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{Input, Reply, UpdateOptions};

use super::field_mask::camel_case;
use super::service::{Service, Target, namespace_id};

impl Service {
    pub async fn update_workflow_execution_options(
        &self,
        request: request::UpdateWorkflowExecutionOptionsRequest,
    ) -> Result<public::UpdateWorkflowExecutionOptionsResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (options, mask) = (request.workflow_execution_options, request.update_mask);
        let input = Input::UpdateOptions(change(request.identity, options, mask));
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

/// The options change that a post-reset operation makes to the new run. The frontend refuses other operations.
pub(super) fn change_after_reset(operation: PostResetOperation) -> Option<UpdateOptions> {
    match operation.variant? {
        Variant::UpdateWorkflowOptions(update) => {
            Some(change(String::new(), update.workflow_execution_options, update.update_mask))
        }
        Variant::SignalWorkflow(_) => None,
    }
}

fn change(identity: String, options: Option<WorkflowExecutionOptions>, mask: Option<FieldMask>) -> UpdateOptions {
    UpdateOptions {
        identity,
        priority: options.and_then(|options| options.priority),
        fields: mask.unwrap_or_default().paths.iter().map(|path| camel_case(path)).collect(),
    }
}
