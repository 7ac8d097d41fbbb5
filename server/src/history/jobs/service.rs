//! The history service's calls for jobs.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use cluster::errors::ServiceError;
use persistence::stores::executions::JobKey;
use proto::everrow::record::job::Work;
use proto::everrow::{history as request, record};
use proto::temporal::api::batch::v1::BatchOperationInfo;
use proto::temporal::api::common::v1::Execution;
use proto::temporal::api::enums::v1::{
    BatchOperationState, BatchOperationType, ExecutionType, ResourceExhaustedCause, ResourceExhaustedScope,
};
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::start_batch_operation_request::Operation;
use workflow::{NamespaceId, Rejection, Timestamp};

use super::removal::JOB_ID;
use super::{Decided, close, is_open};
use crate::history::service::{Service, namespace_id};

/// Concurrent batches per namespace.
const BATCHES_MAX: usize = 1;
const PAGE_MAX: usize = 1000;

impl Service {
    pub async fn start_batch_operation(
        &self,
        request: request::StartBatchOperationRequest,
    ) -> Result<public::StartBatchOperationResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let key = JobKey { namespace_id, job_id: request.job_id.as_str().into() };
        let progress = record::JobProgress {
            state: BatchOperationState::Running.into(),
            operation_type: operation_type(request.operation.as_ref()).into(),
            started_at: self.env.now().0,
            ..Default::default()
        };
        let job = Arc::new(record::Job { work: Some(Work::Batch(request)) });
        let shard = self.ownership.job_shard(namespace_id).await?;
        shard
            .change_job(&key, |jobs| {
                let of_namespace = jobs.iter().filter(|(other, _)| other.namespace_id == namespace_id);
                if of_namespace.filter(|(_, progress)| is_open(progress)).count() >= BATCHES_MAX {
                    return Err(too_many());
                }
                if jobs.contains_key(&key) {
                    return Err(already_started(&key));
                }
                Ok(Decided::Start(job, progress))
            })
            .await?;
        Ok(public::StartBatchOperationResponse {})
    }

    pub async fn stop_batch_operation(
        &self,
        request: request::StopBatchOperationRequest,
    ) -> Result<public::StopBatchOperationResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let key = JobKey { namespace_id, job_id: request.job_id.as_str().into() };
        let shard = self.ownership.job_shard(namespace_id).await?;
        let times = (shard.env.now(), shard.forget_job_at(&key).await?);
        shard
            .change_job(&key, |jobs| {
                let progress = jobs.get(&key).ok_or_else(|| not_found(&key))?;
                if !is_open(progress) {
                    return Err(Rejection::ExecutionClosed.into());
                }
                let mut stopped = progress.clone();
                shard.jobs.take_uncounted(&key).add_to(&mut stopped);
                close(&mut stopped, BatchOperationState::Failed, times);
                stopped.ended_because = request.reason;
                stopped.ended_by = request.identity;
                Ok(Decided::Become(stopped))
            })
            .await?;
        Ok(public::StopBatchOperationResponse {})
    }

    pub async fn describe_batch_operation(
        &self,
        request: request::DescribeBatchOperationRequest,
    ) -> Result<public::DescribeBatchOperationResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let key = JobKey { namespace_id, job_id: request.job_id.as_str().into() };
        let shard = self.ownership.job_shard(namespace_id).await?;
        let progress = shard.jobs.find_counted(&key);
        shard.confirm_jobs().await?;
        let progress = progress.ok_or_else(|| not_found(&key))?;
        let job = shard.stores.executions.load_job(shard.id, &key).await?.unwrap_or_default();
        let Some(Work::Batch(batch)) = job.work else { return Err(not_found(&key)) };
        Ok(described(&progress, batch))
    }

    /// Running batches first, then the most recently closed.
    pub async fn list_batch_operations(
        &self,
        request: request::ListBatchOperationsRequest,
    ) -> Result<public::ListBatchOperationsResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let page_size = usize::try_from(request.page_size).ok().filter(|size| (1..=PAGE_MAX).contains(size));
        let page_size = page_size.unwrap_or(PAGE_MAX);
        let after = Place::decode(&request.next_page_token)?;
        let shard = self.ownership.job_shard(namespace_id).await?;
        let is_batch = |key: &JobKey| key.namespace_id == namespace_id && &*key.job_id != JOB_ID;
        let mut jobs = shard.jobs.select(|key, _| is_batch(key));
        shard.confirm_jobs().await?;
        jobs.sort_by_cached_key(|(key, progress)| Place::of(key, progress));
        let mut rest = jobs.iter().filter(|(key, job)| after.as_ref().is_none_or(|after| Place::of(key, job) > *after));
        let page: Vec<_> = rest.by_ref().take(page_size).collect();
        let next_page_token = match (rest.next(), page.last()) {
            (Some(_), Some((key, progress))) => Place::of(key, progress).encode(),
            (Some(_) | None, _) => Bytes::new(),
        };
        let operation_info = page.into_iter().map(|(key, progress)| BatchOperationInfo {
            job_id: key.job_id.to_string(),
            state: progress.state,
            start_time: Some(Timestamp(progress.started_at).into()),
            close_time: progress.closed_at.map(|at| Timestamp(at).into()),
            operation_type: progress.operation_type,
        });
        Ok(public::ListBatchOperationsResponse { operation_info: operation_info.collect(), next_page_token })
    }

    /// Starts the removal of a namespace with everything in it. A repeated call restarts it with the new delay.
    pub async fn remove_namespace(
        &self,
        request: request::RemoveNamespaceRequest,
    ) -> Result<request::RemoveNamespaceResponse, ServiceError> {
        let key = JobKey { namespace_id: namespace_id(&request.namespace_id)?, job_id: JOB_ID.into() };
        let shard = self.ownership.job_shard(key.namespace_id).await?;
        let wanted = record::NamespaceRemoval { delay: request.delay };
        let job = Arc::new(record::Job { work: Some(Work::NamespaceRemoval(wanted)) });
        let progress = record::JobProgress {
            state: BatchOperationState::Running.into(),
            started_at: shard.env.now().0,
            ..Default::default()
        };
        shard.change_job(&key, |_| Ok(Decided::Start(job, progress))).await?;
        Ok(request::RemoveNamespaceResponse {})
    }

    /// Deletes all that this node's shards have of a namespace.
    pub async fn empty_namespace(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        for shard in self.ownership.all().await? {
            shard.empty_namespace(namespace_id).await?;
        }
        Ok(())
    }
}

/// Sort key and page token of a batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    closed_at: Reverse<i64>,
    started_at: Reverse<i64>,
    job_id: String,
}

impl Place {
    fn of(key: &JobKey, progress: &record::JobProgress) -> Self {
        Self {
            closed_at: Reverse(progress.closed_at.unwrap_or(i64::MAX)),
            started_at: Reverse(progress.started_at),
            job_id: key.job_id.to_string(),
        }
    }

    fn encode(&self) -> Bytes {
        format!("{} {} {}", self.closed_at.0, self.started_at.0, self.job_id).into()
    }

    fn decode(token: &[u8]) -> Result<Option<Self>, ServiceError> {
        if token.is_empty() {
            return Ok(None);
        }
        let parse = || {
            let mut parts = std::str::from_utf8(token).ok()?.splitn(3, ' ');
            let closed_at = Reverse(parts.next()?.parse().ok()?);
            let started_at = Reverse(parts.next()?.parse().ok()?);
            Some(Self { closed_at, started_at, job_id: parts.next()?.to_owned() })
        };
        let place = parse().ok_or_else(|| ServiceError::InvalidArgument("Invalid NextPageToken.".into()))?;
        Ok(Some(place))
    }
}

fn described(
    progress: &record::JobProgress,
    batch: public::StartBatchOperationRequest,
) -> public::DescribeBatchOperationResponse {
    public::DescribeBatchOperationResponse {
        operation_type: progress.operation_type,
        state: progress.state,
        start_time: Some(Timestamp(progress.started_at).into()),
        close_time: progress.closed_at.map(|at| Timestamp(at).into()),
        total_operation_count: progress.n_total.unwrap_or_default(),
        complete_operation_count: progress.n_complete,
        failure_operation_count: progress.n_failed,
        identity: identity(batch.operation.as_ref()).to_owned(),
        executions: named(&batch),
        job_id: batch.job_id,
        reason: batch.reason,
        query: batch.visibility_query,
    }
}

#[expect(deprecated, reason = "older clients name runs in the older way")]
fn named(batch: &public::StartBatchOperationRequest) -> Vec<Execution> {
    let older = batch.executions.iter().map(|execution| Execution {
        r#type: ExecutionType::Workflow.into(),
        business_id: execution.workflow_id.clone(),
        run_id: execution.run_id.clone(),
    });
    batch.target_executions.iter().cloned().chain(older).collect()
}

fn identity(operation: Option<&Operation>) -> &str {
    match operation {
        Some(Operation::TerminationOperation(terminate)) => &terminate.identity,
        Some(Operation::SignalOperation(signal)) => &signal.identity,
        Some(Operation::CancellationOperation(cancel)) => &cancel.identity,
        Some(Operation::DeletionOperation(delete)) => &delete.identity,
        Some(Operation::ResetOperation(reset)) => &reset.identity,
        Some(Operation::UpdateWorkflowOptionsOperation(update)) => &update.identity,
        Some(Operation::UnpauseActivitiesOperation(unpause)) => &unpause.identity,
        Some(Operation::ResetActivitiesOperation(reset)) => &reset.identity,
        Some(Operation::UpdateActivityOptionsOperation(update)) => &update.identity,
        Some(Operation::CancelActivitiesOperation(cancel)) => &cancel.identity,
        Some(Operation::TerminateActivitiesOperation(terminate)) => &terminate.identity,
        Some(Operation::DeleteActivitiesOperation(_)) | None => "",
    }
}

fn operation_type(operation: Option<&Operation>) -> BatchOperationType {
    match operation {
        Some(Operation::TerminationOperation(_)) => BatchOperationType::TerminateWorkflow,
        Some(Operation::SignalOperation(_)) => BatchOperationType::SignalWorkflow,
        Some(Operation::CancellationOperation(_)) => BatchOperationType::CancelWorkflow,
        Some(Operation::DeletionOperation(_)) => BatchOperationType::DeleteWorkflow,
        Some(Operation::ResetOperation(_)) => BatchOperationType::ResetWorkflow,
        Some(Operation::UpdateWorkflowOptionsOperation(_)) => BatchOperationType::UpdateWorkflowExecutionOptions,
        Some(Operation::UnpauseActivitiesOperation(_)) => BatchOperationType::UnpauseActivity,
        Some(Operation::ResetActivitiesOperation(_)) => BatchOperationType::ResetActivity,
        Some(Operation::UpdateActivityOptionsOperation(_)) => BatchOperationType::UpdateActivityOptions,
        Some(Operation::CancelActivitiesOperation(_)) => BatchOperationType::CancelActivity,
        Some(Operation::TerminateActivitiesOperation(_)) => BatchOperationType::TerminateActivity,
        Some(Operation::DeleteActivitiesOperation(_)) => BatchOperationType::DeleteActivity,
        None => BatchOperationType::Unspecified,
    }
}

fn too_many() -> ServiceError {
    ServiceError::ResourceExhausted {
        cause: ResourceExhaustedCause::ConcurrentLimit,
        scope: ResourceExhaustedScope::Namespace,
        message: "Max concurrent batch operations is reached".into(),
    }
}

fn already_started(key: &JobKey) -> ServiceError {
    ServiceError::AlreadyStarted {
        message: format!("Batch operation already finished. JobId: {}.", key.job_id),
        start_request_id: String::new(),
        run_id: String::new(),
        first_run_id: String::new(),
    }
}

fn not_found(key: &JobKey) -> ServiceError {
    ServiceError::execution_not_found(&key.job_id, "")
}
