//! The history service as its peers see it: finds the run, turns the request into an input, and answers.

use std::sync::Arc;
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::namespaces::NamespaceRegistry;
use cluster::segments::Segments;
use cluster::spans;
use persistence::stores::Stores;
use persistence::stores::executions::RunCounts;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::time::Instant;
use uuid::Uuid;
use workflow::{
    EventId, ExecutionKey, Input, NamespaceId, PauseRequest, Reapplied, Rejection, Reply, RequestCancel, RunId, Sender,
    Signal, Terminate,
};

use super::cache::HotExecutions;
use super::config::HistoryConfig;
use super::describe::describe;
use super::links::LinkedRun;
use super::options::change_after_reset;
use super::ownership::Ownership;
use super::queries::Query;
use super::reading::Reader;
use super::reset::ResetRequest;
use super::shard::{Shard, ShardParts};
use super::token::{self, ParsedToken};
use super::transact::TransactError;
use crate::peers::Peers;

pub struct Service {
    pub(super) ownership: Ownership,
    pub(super) env: Env,
    pub(super) peers: Peers,
}

/// Dependencies of the service.
pub struct Parts {
    pub env: Env,
    pub stores: Stores,
    pub namespaces: Arc<NamespaceRegistry>,
    pub peers: Peers,
    pub config: HistoryConfig,
    pub segments: Segments,
    pub n_shards: i32,
    /// Names this node in the leases it takes; not empty.
    pub owner: String,
    /// Other nodes may want the same shards.
    pub is_store_shared: bool,
}

impl Service {
    #[must_use]
    pub fn start(parts: Parts) -> Arc<Self> {
        let hot = HotExecutions::new(parts.config.cache_bytes);
        let env = parts.env.clone();
        let shard_parts = ShardParts {
            env: parts.env,
            stores: parts.stores,
            namespaces: parts.namespaces,
            config: Arc::new(parts.config),
            hot,
            segments: parts.segments,
            owner: parts.owner,
            is_store_shared: parts.is_store_shared,
        };
        let ownership = Ownership::start(parts.n_shards, &shard_parts, &parts.peers);
        Arc::new(Self { ownership, env, peers: parts.peers })
    }

    /// Number of a namespace's runs by status, without runs that visibility hides.
    pub async fn count_runs(&self, namespace_id: NamespaceId) -> Result<RunCounts, ServiceError> {
        self.ownership.count(namespace_id).await
    }

    /// Commits pending submissions and releases all shards.
    pub async fn shutdown(&self) {
        self.ownership.shutdown().await;
    }

    pub async fn signal_workflow_execution(
        &self,
        request: request::SignalWorkflowExecutionRequest,
    ) -> Result<public::SignalWorkflowExecutionResponse, ServiceError> {
        let sender =
            sender(request.external_execution, request.external_initiated_event_id, request.child_workflow_only);
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = Target::new(namespace_id, request.workflow_execution)?;
        let input = Input::Signal(Signal {
            name: request.signal_name,
            input: request.input,
            header: request.header,
            identity: request.identity,
            request_id: request.request_id.clone(),
            links: request.links,
            sender,
        });
        let (run_id, _) = self.transact_with_run(&target, input).await?;
        let linked = LinkedRun { namespace: request.namespace, workflow_id: &target.workflow_id, run_id };
        let link = linked.request_link(request.request_id, EventType::WorkflowExecutionSignaled);
        Ok(public::SignalWorkflowExecutionResponse { link: Some(link) })
    }

    pub async fn request_cancel_workflow_execution(
        &self,
        request: request::RequestCancelWorkflowExecutionRequest,
    ) -> Result<public::RequestCancelWorkflowExecutionResponse, ServiceError> {
        let sender =
            sender(request.external_execution, request.external_initiated_event_id, request.child_workflow_only);
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = Target::of_chain(namespace_id, request.workflow_execution, &request.first_execution_run_id)?;
        let input = Input::RequestCancel(RequestCancel {
            reason: request.reason,
            identity: request.identity,
            request_id: request.request_id,
            first_run_id: token::run_id(&request.first_execution_run_id)?,
            links: request.links,
            sender,
        });
        self.transact(&target, input).await?;
        Ok(public::RequestCancelWorkflowExecutionResponse::default())
    }

    pub async fn terminate_workflow_execution(
        &self,
        request: request::TerminateWorkflowExecutionRequest,
    ) -> Result<public::TerminateWorkflowExecutionResponse, ServiceError> {
        let sender =
            sender(request.external_execution, request.external_initiated_event_id, request.child_workflow_only);
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = Target::of_chain(namespace_id, request.workflow_execution, &request.first_execution_run_id)?;
        let input = Input::Terminate(Terminate {
            reason: request.reason,
            details: request.details,
            identity: request.identity,
            first_run_id: token::run_id(&request.first_execution_run_id)?,
            links: request.links,
            sender,
        });
        self.transact(&target, input).await?;
        Ok(public::TerminateWorkflowExecutionResponse::default())
    }

    pub async fn pause_workflow_execution(
        &self,
        request: request::PauseWorkflowExecutionRequest,
    ) -> Result<public::PauseWorkflowExecutionResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let execution = WorkflowExecution { workflow_id: request.workflow_id, run_id: request.run_id };
        let (identity, reason, request_id) = (request.identity, request.reason, request.request_id);
        let input = Input::Pause(PauseRequest { identity, reason, request_id });
        self.transact(&Target::new(namespace_id, Some(execution))?, input).await?;
        Ok(public::PauseWorkflowExecutionResponse {})
    }

    pub async fn unpause_workflow_execution(
        &self,
        request: request::UnpauseWorkflowExecutionRequest,
    ) -> Result<public::UnpauseWorkflowExecutionResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let execution = WorkflowExecution { workflow_id: request.workflow_id, run_id: request.run_id };
        let (identity, reason, request_id) = (request.identity, request.reason, request.request_id);
        let input = Input::Unpause(PauseRequest { identity, reason, request_id });
        self.transact(&Target::new(namespace_id, Some(execution))?, input).await?;
        Ok(public::UnpauseWorkflowExecutionResponse {})
    }

    pub async fn reset_workflow_execution(
        &self,
        request: request::ResetWorkflowExecutionRequest,
    ) -> Result<public::ResetWorkflowExecutionResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let excluded: Vec<_> = request.reset_reapply_exclude_types().collect();
        let reapplied = Reapplied::new(request.reset_reapply_type(), &excluded);
        let (shard, base) = self.find(&Target::new(namespace_id, request.workflow_execution)?).await?;
        let reset = ResetRequest {
            base,
            point: EventId(request.workflow_task_finish_event_id),
            reason: request.reason,
            request_id: request.request_id,
            reapplied,
            options: request.post_reset_operations.into_iter().filter_map(change_after_reset).collect(),
        };
        let run_id = shard.reset(reset).await?.to_string();
        Ok(public::ResetWorkflowExecutionResponse { run_id })
    }

    pub async fn delete_workflow_execution(
        &self,
        request: request::DeleteWorkflowExecutionRequest,
    ) -> Result<public::DeleteWorkflowExecutionResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        self.transact(&Target::new(namespace_id, request.workflow_execution)?, Input::Delete).await?;
        Ok(public::DeleteWorkflowExecutionResponse {})
    }

    pub async fn describe_workflow_execution(
        &self,
        request: request::DescribeWorkflowExecutionRequest,
    ) -> Result<public::DescribeWorkflowExecutionResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key) = self.find(&Target::new(namespace_id, request.execution)?).await?;
        let state = shard.read(&key).await?;
        let first = shard.event(&state, workflow::EventId::FIRST, workflow::EventId::FIRST).await?;
        Ok(describe(&state, first, shard.env.now()))
    }

    pub async fn get_workflow_execution_history(
        &self,
        request: request::GetWorkflowExecutionHistoryRequest,
    ) -> Result<public::GetWorkflowExecutionHistoryResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let (shows_unwritten, follows_next_run) = (request.shows_unwritten, request.follows_next_run);
        let reader = Reader { shows_unwritten, follows_next_run };
        let request = request.request.unwrap_or_default();
        let target = Target::new(namespace_id, request.execution.clone())?;
        let (target, token) = target.resume(&request.next_page_token)?;
        let (shard, key) = self.find(&target).await?;
        shard.get_history(key, token, &request, reader).await
    }

    pub async fn get_workflow_execution_history_reverse(
        &self,
        request: request::GetWorkflowExecutionHistoryReverseRequest,
    ) -> Result<public::GetWorkflowExecutionHistoryReverseResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = Target::new(namespace_id, request.execution.clone())?;
        let (target, token) = target.resume(&request.next_page_token)?;
        let (shard, key) = self.find(&target).await?;
        shard.get_history_reverse(key, token, &request).await
    }

    pub async fn record_workflow_task_started(
        &self,
        request: request::RecordWorkflowTaskStartedRequest,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        let target = Target::new(namespace_id(&request.namespace_id)?, request.execution.clone())?;
        let (shard, key) = self.find(&target).await?;
        shard.start_workflow_task(&key, request).await
    }

    pub async fn record_activity_task_started(
        &self,
        request: request::RecordActivityTaskStartedRequest,
    ) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
        let target = Target::new(namespace_id(&request.namespace_id)?, request.execution.clone())?;
        let (shard, key) = self.find(&target).await?;
        shard.start_activity(&key, request).await
    }

    pub async fn respond_workflow_task_completed(
        &self,
        request: request::RespondWorkflowTaskCompletedRequest,
    ) -> Result<public::RespondWorkflowTaskCompletedResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key, token) = self.find_task(namespace_id, &request.task_token).await?;
        shard.complete_workflow_task(&key, token.task, request).await
    }

    pub async fn respond_workflow_task_failed(
        &self,
        request: request::RespondWorkflowTaskFailedRequest,
    ) -> Result<public::RespondWorkflowTaskFailedResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key, token) = self.find_task(namespace_id, &request.task_token).await?;
        shard.fail_workflow_task(&key, token.task, request).await
    }

    pub async fn record_activity_task_heartbeat(
        &self,
        request: request::RecordActivityTaskHeartbeatRequest,
    ) -> Result<public::RecordActivityTaskHeartbeatResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key, token) = self.find_task(namespace_id, &request.task_token).await?;
        shard.heartbeat(&key, token.activity(), request).await
    }

    pub async fn respond_activity_task_completed(
        &self,
        request: request::RespondActivityTaskCompletedRequest,
    ) -> Result<public::RespondActivityTaskCompletedResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key, token) = self.find_task(namespace_id, &request.task_token).await?;
        shard.complete_activity(&key, token.activity(), request).await
    }

    pub async fn respond_activity_task_failed(
        &self,
        request: request::RespondActivityTaskFailedRequest,
    ) -> Result<public::RespondActivityTaskFailedResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key, token) = self.find_task(namespace_id, &request.task_token).await?;
        shard.fail_activity(&key, token.activity(), request).await
    }

    pub async fn respond_activity_task_canceled(
        &self,
        request: request::RespondActivityTaskCanceledRequest,
    ) -> Result<public::RespondActivityTaskCanceledResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key, token) = self.find_task(namespace_id, &request.task_token).await?;
        shard.cancel_activity(&key, token.activity(), request).await
    }

    pub async fn reset_sticky_task_queue(
        &self,
        request: request::ResetStickyTaskQueueRequest,
    ) -> Result<public::ResetStickyTaskQueueResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        self.transact(&Target::new(namespace_id, request.execution)?, Input::ResetSticky).await?;
        Ok(public::ResetStickyTaskQueueResponse {})
    }

    pub async fn query_workflow(
        &self,
        request: request::QueryWorkflowRequest,
    ) -> Result<public::QueryWorkflowResponse, ServiceError> {
        let deadline = Instant::now() + span(request.timeout).unwrap_or_default();
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let (shard, key) = self.find(&Target::new(namespace_id, request.execution.clone())?).await?;
        shard.query(&key, Query { request, deadline }, &self.peers).await
    }

    pub async fn record_query_task_started(
        &self,
        request: request::RecordQueryTaskStartedRequest,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        let target = Target::new(namespace_id(&request.namespace_id)?, request.execution)?;
        let (shard, key) = self.find(&target).await?;
        shard.query_task(&key, &request.task_queue).await
    }

    /// The target's shard and run; without a run id, the workflow's current run.
    pub(super) async fn find(&self, target: &Target) -> Result<(Arc<Shard>, ExecutionKey), ServiceError> {
        let shard = self.ownership.shard(target.namespace_id, &target.workflow_id).await?;
        let run_id = match target.run_id {
            Some(run_id) => run_id,
            None => {
                let current = shard.find_current(target.namespace_id, &target.workflow_id).await?;
                match current {
                    Some(current) => current.run_id,
                    None => {
                        shard.committer.confirmed().await.map_err(TransactError::from)?;
                        return Err(ServiceError::execution_not_found(&target.workflow_id, ""));
                    }
                }
            }
        };
        Ok((shard, target.key(run_id)))
    }

    async fn find_task(
        &self,
        namespace_id: NamespaceId,
        token: &bytes::Bytes,
    ) -> Result<(Arc<Shard>, ExecutionKey, ParsedToken), ServiceError> {
        let token = token::parse_task_token(namespace_id, token)?;
        let (workflow_id, run_id) = (Arc::clone(&token.workflow_id), token.run_id);
        let (shard, key) = self.find(&Target { namespace_id: token.namespace_id, workflow_id, run_id }).await?;
        Ok((shard, key, token))
    }

    /// Applies an input to the target. If the current run closes in between and another one follows, the input goes to
    /// that one.
    pub(super) async fn transact(&self, target: &Target, input: Input) -> Result<Reply, ServiceError> {
        Ok(self.transact_with_run(target, input).await?.1)
    }

    /// As `transact`, and returns the run that the input went to.
    async fn transact_with_run(&self, target: &Target, input: Input) -> Result<(RunId, Reply), ServiceError> {
        let (mut shard, mut key) = self.find(target).await?;
        for _ in 0..FOLLOWED_RUNS_MAX {
            let outcome = shard.transact(&key, input.clone()).await;
            // A closed run accepts a cancel request, which is then meant for the run that followed.
            let may_be_followed = match (&outcome, &input) {
                (Err(TransactError::Rejected(Rejection::ExecutionClosed)), _) | (Ok(_), Input::RequestCancel(_)) => {
                    true
                }
                (Ok(_) | Err(_), _) => false,
            };
            if !may_be_followed || target.run_id.is_some() {
                return Ok((key.run_id, outcome?));
            }
            let (next_shard, next) = self.find(target).await?;
            if next == key {
                return Ok((key.run_id, outcome?));
            }
            (shard, key) = (next_shard, next);
        }
        Err(ServiceError::Unavailable("the workflow's runs follow one another too fast".into()))
    }
}

/// Runs that a request tries in turn while each closes before the request reaches it.
pub(super) const FOLLOWED_RUNS_MAX: usize = 8;

/// The run that a request addresses.
pub(super) struct Target {
    namespace_id: NamespaceId,
    workflow_id: Arc<str>,
    pub(super) run_id: Option<RunId>,
}

impl Target {
    pub(super) fn new(namespace_id: NamespaceId, execution: Option<WorkflowExecution>) -> Result<Self, ServiceError> {
        let execution = execution.unwrap_or_default();
        let run_id = token::run_id(&execution.run_id)?;
        Ok(Self { namespace_id, workflow_id: execution.workflow_id.into(), run_id })
    }

    /// With the first run of a chain given, the target is the newest run.
    fn of_chain(
        namespace_id: NamespaceId,
        execution: Option<WorkflowExecution>,
        first_run_id: &str,
    ) -> Result<Self, ServiceError> {
        let target = Self::new(namespace_id, execution)?;
        Ok(Self { run_id: target.run_id.filter(|_| first_run_id.is_empty()), ..target })
    }

    fn key(&self, run_id: RunId) -> ExecutionKey {
        ExecutionKey { namespace_id: self.namespace_id, workflow_id: Arc::clone(&self.workflow_id), run_id }
    }

    /// A page token pins the run that the first page was of.
    fn resume(self, token: &bytes::Bytes) -> Result<(Self, Option<request::HistoryPageToken>), ServiceError> {
        if token.is_empty() {
            return Ok((self, None));
        }
        let (token, key) = token::parse_page_token(self.namespace_id, (&self.workflow_id, self.run_id), token)?;
        Ok((Self { run_id: Some(key.run_id), ..self }, Some(token)))
    }
}

pub(super) fn namespace_id(text: &str) -> Result<NamespaceId, ServiceError> {
    let uuid = Uuid::parse_str(text).map_err(|_| ServiceError::InvalidArgument("Invalid namespace UUID.".into()))?;
    Ok(NamespaceId(uuid))
}

fn sender(execution: Option<WorkflowExecution>, initiated_event_id: i64, child_only: bool) -> Option<Sender> {
    execution.map(|execution| Sender { execution, initiated_event_id, child_only })
}

/// `None` if the duration is absent, zero or negative.
pub(super) fn span(duration: Option<prost_types::Duration>) -> Option<Duration> {
    duration.and_then(spans::from_proto).filter(|span| !span.is_zero())
}
