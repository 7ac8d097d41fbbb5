//! A batch's operation on one run: the call that a client would make.

use cluster::errors::ServiceError;
use cluster::namespaces::Namespace;
use proto::everrow::history as request;
use proto::temporal::api::batch::v1 as batch;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::start_batch_operation_request::Operation;
use workflow::Timestamp;

use super::reset_point;
use crate::peers::Peers;

pub(super) struct Operations<'a> {
    pub(super) peers: &'a Peers,
    pub(super) namespace: &'a Namespace,
    pub(super) request: &'a public::StartBatchOperationRequest,
    /// Of the batch, in nanoseconds since 1970.
    pub(super) started_at: i64,
    pub(super) now: Timestamp,
}

impl Operations<'_> {
    pub(super) async fn perform(&self, execution: &WorkflowExecution) -> Result<(), ServiceError> {
        let execution = execution.clone();
        match &self.request.operation {
            Some(Operation::TerminationOperation(terminate)) => self.terminate(terminate, execution).await,
            Some(Operation::SignalOperation(signal)) => self.signal(signal, execution).await,
            Some(Operation::CancellationOperation(cancel)) => self.cancel(cancel, execution).await,
            Some(Operation::DeletionOperation(_)) => self.delete(execution).await,
            Some(Operation::ResetOperation(reset)) => self.reset(reset, execution).await,
            Some(Operation::UpdateWorkflowOptionsOperation(update)) => self.update_options(update, execution).await,
            Some(Operation::UnpauseActivitiesOperation(unpause)) => self.unpause_activities(unpause, execution).await,
            Some(Operation::ResetActivitiesOperation(reset)) => self.reset_activities(reset, execution).await,
            Some(Operation::UpdateActivityOptionsOperation(update)) => {
                self.update_activity_options(update, execution).await
            }
            Some(
                Operation::CancelActivitiesOperation(_)
                | Operation::TerminateActivitiesOperation(_)
                | Operation::DeleteActivitiesOperation(_),
            )
            | None => Err(ServiceError::Unimplemented("this batch operation is not built yet".into())),
        }
    }

    /// By this id a run drops a repeated request of the batch. A later batch may have the same job id, once this one is
    /// deleted.
    fn request_id(&self) -> String {
        format!("batch:{}:{}", self.request.job_id, self.started_at)
    }

    fn namespace_id(&self) -> String {
        self.namespace.id.to_string()
    }

    async fn terminate(
        &self,
        terminate: &batch::BatchOperationTermination,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        let request = public::TerminateWorkflowExecutionRequest {
            namespace: self.namespace.name.clone(),
            workflow_execution: Some(execution),
            reason: self.request.reason.clone(),
            details: terminate.details.clone(),
            identity: terminate.identity.clone(),
            ..Default::default()
        };
        let ask = request::TerminateWorkflowExecutionRequest {
            namespace_id: self.namespace_id(),
            request: Some(request),
            ..Default::default()
        };
        self.peers.history()?.terminate_workflow_execution(ask).await.map(|_| ())
    }

    async fn signal(
        &self,
        signal: &batch::BatchOperationSignal,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        let request = public::SignalWorkflowExecutionRequest {
            namespace: self.namespace.name.clone(),
            workflow_execution: Some(execution),
            signal_name: signal.signal.clone(),
            input: signal.input.clone(),
            header: signal.header.clone(),
            identity: signal.identity.clone(),
            request_id: self.request_id(),
            ..Default::default()
        };
        let ask = request::SignalWorkflowExecutionRequest {
            namespace_id: self.namespace_id(),
            request: Some(request),
            ..Default::default()
        };
        self.peers.history()?.signal_workflow_execution(ask).await.map(|_| ())
    }

    /// Omits the batch's reason, as the reference does: the run sees the cancel request, not why.
    async fn cancel(
        &self,
        cancel: &batch::BatchOperationCancellation,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        let request = public::RequestCancelWorkflowExecutionRequest {
            namespace: self.namespace.name.clone(),
            workflow_execution: Some(execution),
            identity: cancel.identity.clone(),
            request_id: self.request_id(),
            ..Default::default()
        };
        let ask = request::RequestCancelWorkflowExecutionRequest {
            namespace_id: self.namespace_id(),
            request: Some(request),
            ..Default::default()
        };
        self.peers.history()?.request_cancel_workflow_execution(ask).await.map(|_| ())
    }

    async fn delete(&self, execution: WorkflowExecution) -> Result<(), ServiceError> {
        let (namespace, workflow_execution) = (self.namespace.name.clone(), Some(execution));
        let request = Some(public::DeleteWorkflowExecutionRequest { namespace, workflow_execution });
        let ask = request::DeleteWorkflowExecutionRequest { namespace_id: self.namespace_id(), request };
        self.peers.history()?.delete_workflow_execution(ask).await.map(|_| ())
    }

    #[expect(deprecated, reason = "old clients say what to take, newer ones what to leave out")]
    async fn reset(
        &self,
        reset: &batch::BatchOperationReset,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        let history = self.peers.history()?;
        let request = reset_point::Request { history: &history, namespace: self.namespace, now: self.now };
        let (execution, event_id) = request.find(reset, execution).await?;
        let (reapply_type, excluded) = match &reset.options {
            Some(options) => (options.reset_reapply_type, options.reset_reapply_exclude_types.clone()),
            None => (reset.reset_reapply_type, Vec::new()),
        };
        let request = public::ResetWorkflowExecutionRequest {
            namespace: self.namespace.name.clone(),
            workflow_execution: Some(execution),
            reason: self.request.reason.clone(),
            workflow_task_finish_event_id: event_id,
            request_id: self.request_id(),
            reset_reapply_type: reapply_type,
            reset_reapply_exclude_types: excluded,
            post_reset_operations: reset.post_reset_operations.clone(),
            identity: reset.identity.clone(),
        };
        let ask = request::ResetWorkflowExecutionRequest { namespace_id: self.namespace_id(), request: Some(request) };
        history.reset_workflow_execution(ask).await.map(|_| ())
    }

    async fn update_options(
        &self,
        update: &batch::BatchOperationUpdateWorkflowExecutionOptions,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        let request = public::UpdateWorkflowExecutionOptionsRequest {
            namespace: self.namespace.name.clone(),
            workflow_execution: Some(execution),
            workflow_execution_options: update.workflow_execution_options.clone(),
            update_mask: update.update_mask.clone(),
            identity: update.identity.clone(),
        };
        let (namespace_id, request) = (self.namespace_id(), Some(request));
        let ask = request::UpdateWorkflowExecutionOptionsRequest { namespace_id, request };
        self.peers.history()?.update_workflow_execution_options(ask).await.map(|_| ())
    }

    async fn unpause_activities(
        &self,
        unpause: &batch::BatchOperationUnpauseActivities,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        use batch::batch_operation_unpause_activities::Activity as Selected;
        use public::unpause_activity_request::Activity;
        let request = public::UnpauseActivityRequest {
            namespace: self.namespace.name.clone(),
            execution: Some(execution),
            identity: unpause.identity.clone(),
            reset_attempts: unpause.reset_attempts,
            reset_heartbeat: unpause.reset_heartbeat,
            jitter: unpause.jitter,
            activity: Some(match &unpause.activity {
                Some(Selected::Type(kind)) => Activity::Type(kind.clone()),
                Some(Selected::MatchAll(_)) | None => Activity::UnpauseAll(true),
            }),
        };
        let ask = request::UnpauseActivityRequest { namespace_id: self.namespace_id(), request: Some(request) };
        self.peers.history()?.unpause_activity(ask).await.map(|_| ())
    }

    async fn reset_activities(
        &self,
        reset: &batch::BatchOperationResetActivities,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        use batch::batch_operation_reset_activities::Activity as Selected;
        use public::reset_activity_request::Activity;
        let request = public::ResetActivityRequest {
            namespace: self.namespace.name.clone(),
            execution: Some(execution),
            identity: reset.identity.clone(),
            reset_heartbeat: reset.reset_heartbeat,
            keep_paused: reset.keep_paused,
            jitter: reset.jitter,
            restore_original_options: reset.restore_original_options,
            activity: Some(match &reset.activity {
                Some(Selected::Type(kind)) => Activity::Type(kind.clone()),
                Some(Selected::MatchAll(_)) | None => Activity::MatchAll(true),
            }),
        };
        let ask = request::ResetActivityRequest { namespace_id: self.namespace_id(), request: Some(request) };
        self.peers.history()?.reset_activity(ask).await.map(|_| ())
    }

    async fn update_activity_options(
        &self,
        update: &batch::BatchOperationUpdateActivityOptions,
        execution: WorkflowExecution,
    ) -> Result<(), ServiceError> {
        use batch::batch_operation_update_activity_options::Activity as Selected;
        use public::update_activity_options_request::Activity;
        let request = public::UpdateActivityOptionsRequest {
            namespace: self.namespace.name.clone(),
            execution: Some(execution),
            identity: update.identity.clone(),
            activity_options: update.activity_options.clone(),
            update_mask: update.update_mask.clone(),
            restore_original: update.restore_original,
            activity: Some(match &update.activity {
                Some(Selected::Type(kind)) => Activity::Type(kind.clone()),
                Some(Selected::MatchAll(_)) | None => Activity::MatchAll(true),
            }),
        };
        let ask = request::UpdateActivityOptionsRequest { namespace_id: self.namespace_id(), request: Some(request) };
        self.peers.history()?.update_activity_options(ask).await.map(|_| ())
    }
}
