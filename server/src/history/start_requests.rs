//! Start requests of peers: converts a request to the core's `Start`, and a started run to a response.

use std::sync::Arc;

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::Link;
use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{EventId, ExecutionKey, NamespaceId, Parent, Signal, Start};

use super::links::LinkedRun;
use super::service::{Service, namespace_id, span};
use super::start::{Joined, StartRequest, StartedRun};

impl Service {
    pub async fn start_workflow_execution(
        &self,
        request: request::StartWorkflowExecutionRequest,
    ) -> Result<public::StartWorkflowExecutionResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let parent = request.parent.map(parent).transpose()?;
        let schedule_id = Some(request.schedule_id).filter(|id| !id.is_empty());
        let request = request.request.unwrap_or_default();
        let namespace = request.namespace.clone();
        let mut request = start_request(namespace_id, request);
        request.start.parent = parent;
        request.start.schedule_id = schedule_id.map(Arc::from);
        let shard = self.ownership.shard(namespace_id, &request.workflow_id).await?;
        let (workflow_id, request_id) = (Arc::clone(&request.workflow_id), request.start.request_id.clone());
        let mut run = shard.start(request).await?;
        let task = run.task.take();
        let linked = LinkedRun { namespace, workflow_id: &workflow_id, run_id: run.run_id };
        let mut response = start_response(&run, linked, request_id);
        if let Some(task) = task {
            let key = ExecutionKey { namespace_id, workflow_id, run_id: run.run_id };
            response.eager_workflow_task = Some(shard.workflow_task(&key, *task).await?);
        }
        Ok(response)
    }

    pub async fn signal_with_start_workflow_execution(
        &self,
        request: request::SignalWithStartWorkflowExecutionRequest,
    ) -> Result<public::SignalWithStartWorkflowExecutionResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let request = request.request.unwrap_or_default();
        let (namespace, request_id) = (request.namespace.clone(), request.request_id.clone());
        let (start, signal) = signal_with_start_request(namespace_id, request);
        let (shard, workflow_id) =
            (self.ownership.shard(namespace_id, &start.workflow_id).await?, Arc::clone(&start.workflow_id));
        let run = shard.signal_with_start(start, signal).await?;
        let linked = LinkedRun { namespace, workflow_id: &workflow_id, run_id: run.run_id };
        Ok(public::SignalWithStartWorkflowExecutionResponse {
            run_id: run.run_id.to_string(),
            first_execution_run_id: run.first_run_id.to_string(),
            started: run.is_new,
            signal_link: Some(linked.request_link(request_id, EventType::WorkflowExecutionSignaled)),
        })
    }
}

fn parent(parent: request::ParentExecution) -> Result<Parent, ServiceError> {
    Ok(Parent {
        namespace: parent.namespace,
        namespace_id: namespace_id(&parent.namespace_id)?,
        execution: parent.execution.unwrap_or_default(),
        initiated_event_id: EventId(parent.initiated_event_id),
        initiated_version: parent.initiated_version,
        root: parent.root,
    })
}

pub(super) fn start_response(
    run: &StartedRun,
    linked: LinkedRun,
    request_id: String,
) -> public::StartWorkflowExecutionResponse {
    let link = match run.joined_by {
        Joined::Nothing => linked.start_link(),
        Joined::Request => linked.request_link(request_id, EventType::WorkflowExecutionOptionsUpdated),
    };
    public::StartWorkflowExecutionResponse {
        run_id: run.run_id.to_string(),
        first_execution_run_id: run.first_run_id.to_string(),
        started: run.is_new,
        status: run.status.into(),
        link: Some(link),
        ..Default::default()
    }
}

/// The start response of an update-with-start that used an existing run.
pub(super) fn joined_response(run: &StartedRun, link: Option<Link>) -> public::StartWorkflowExecutionResponse {
    public::StartWorkflowExecutionResponse {
        run_id: run.run_id.to_string(),
        status: run.status.into(),
        link,
        ..Default::default()
    }
}

pub(super) fn start_request(namespace_id: NamespaceId, request: public::StartWorkflowExecutionRequest) -> StartRequest {
    let (reuse, conflict) = (request.workflow_id_reuse_policy(), request.workflow_id_conflict_policy());
    let start = Start {
        workflow_type: request.workflow_type.unwrap_or_default().name,
        task_queue: request.task_queue.unwrap_or_default().name,
        input: request.input,
        header: request.header,
        execution_timeout: span(request.workflow_execution_timeout),
        run_timeout: span(request.workflow_run_timeout),
        task_timeout: span(request.workflow_task_timeout).unwrap_or_default(),
        identity: request.identity,
        request_id: request.request_id,
        retry_policy: request.retry_policy,
        cron_schedule: request.cron_schedule,
        memo: request.memo,
        search_attributes: request.search_attributes,
        start_delay: span(request.workflow_start_delay),
        continued_failure: request.continued_failure,
        last_completion_result: request.last_completion_result,
        user_metadata: request.user_metadata,
        links: request.links,
        priority: request.priority,
        callbacks: request.completion_callbacks,
        parent: None,
        schedule_id: None,
        is_eager: request.request_eager_execution,
        signal: None,
    };
    let (workflow_id, on_conflict) = (request.workflow_id.into(), request.on_conflict_options);
    StartRequest { namespace_id, workflow_id, start, reuse, conflict, on_conflict, update: None }
}

fn signal_with_start_request(
    namespace_id: NamespaceId,
    request: public::SignalWithStartWorkflowExecutionRequest,
) -> (StartRequest, Signal) {
    let signal = Signal {
        name: request.signal_name,
        input: request.signal_input,
        header: request.header.clone(),
        identity: request.identity.clone(),
        request_id: request.request_id.clone(),
        links: request.links.clone(),
        sender: None,
    };
    let start = public::StartWorkflowExecutionRequest {
        workflow_id: request.workflow_id,
        workflow_type: request.workflow_type,
        task_queue: request.task_queue,
        input: request.input,
        workflow_execution_timeout: request.workflow_execution_timeout,
        workflow_run_timeout: request.workflow_run_timeout,
        workflow_task_timeout: request.workflow_task_timeout,
        identity: request.identity,
        request_id: request.request_id,
        workflow_id_reuse_policy: request.workflow_id_reuse_policy,
        workflow_id_conflict_policy: request.workflow_id_conflict_policy,
        retry_policy: request.retry_policy,
        cron_schedule: request.cron_schedule,
        memo: request.memo,
        search_attributes: request.search_attributes,
        header: request.header,
        workflow_start_delay: request.workflow_start_delay,
        user_metadata: request.user_metadata,
        links: request.links,
        priority: request.priority,
        ..Default::default()
    };
    (start_request(namespace_id, start), signal)
}
