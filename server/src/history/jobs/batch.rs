//! A batch operation: one operation on each of many runs, page by page. A finished page is committed, an interrupted
//! one is repeated. Signals, cancellations and resets carry a request id by which the run drops duplicates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::errors::ServiceError;
use cluster::namespaces::Namespace;
use futures_util::StreamExt as _;
use persistence::stores::executions::JobKey;
use proto::everrow::record;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::BatchOperationState;
use proto::temporal::api::workflowservice::v1::StartBatchOperationRequest;
use proto::temporal::api::workflowservice::v1::start_batch_operation_request::Operation;
use tokio::sync::watch;
use tracing::{info, warn};

use super::operation::Operations;
use super::pace::Pace;
use super::{Counts, Decided, close, is_open};
use crate::history::committer::stopped;
use crate::history::queues::backoff;
use crate::history::shard::Shard;
use crate::peers::{Among, ListRequest, Peers};

/// Runs per page: at most one page is repeated after a crash.
const PAGE: usize = 100;
/// Concurrent operations.
const AT_ONCE: usize = 5;
/// Attempts per operation while its errors are transient.
const TRIES_MAX: u32 = 50;
/// Timeout of one attempt.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);
/// Query filter of operations on open runs only.
const OPEN: &str = "ExecutionStatus='Running' OR ExecutionStatus='Paused'";

pub(super) async fn run(
    shard: &Arc<Shard>,
    peers: &Peers,
    (key, stop): (&JobKey, watch::Receiver<bool>),
    request: StartBatchOperationRequest,
) -> Result<(), ServiceError> {
    let Some(mut progress) = shard.jobs.find(key) else { return Ok(()) };
    let namespace = shard.namespaces.by_id(key.namespace_id).await?;
    let pace = Pace::new(request.max_operations_per_second, shard.config.batch_operations_per_second);
    let started_at = progress.started_at;
    // Discards the counts of an interrupted page, which is repeated.
    shard.jobs.take_uncounted(key);
    let (namespace, request) = (&namespace, &request);
    let batch = Batch { shard, peers, namespace, query: query(request), request, key, started_at, stop };
    if progress.n_total.is_none() {
        let n_total = batch.count().await?;
        if !shard.advance_job(key, |progress| progress.n_total = Some(n_total)).await? {
            return Ok(());
        }
    }
    loop {
        let page = batch.page(&progress.place).await?;
        batch.perform(&page.executions, &pace).await;
        let is_last = page.next.is_empty();
        let times = (shard.env.now(), shard.forget_job_at(key).await?);
        let change = |progress: &mut record::JobProgress| {
            shard.jobs.take_uncounted(key).add_to(progress);
            progress.n_attempts = 0;
            progress.place = page.next;
            if is_last {
                progress.n_total = Some(progress.n_complete + progress.n_failed);
                close(progress, BatchOperationState::Completed, times);
            }
        };
        let is_stopped = !shard.advance_job(key, change).await?;
        if is_stopped {
            batch.count_last().await?;
        }
        match shard.jobs.find(key) {
            Some(now) if !is_stopped && !is_last => progress = now,
            ended => {
                let (n_complete, n_failed) = ended.map(|ended| (ended.n_complete, ended.n_failed)).unwrap_or_default();
                info!(job = %key.job_id, n_complete, n_failed, is_stopped, "batch operation ended");
                return Ok(());
            }
        }
    }
}

/// The visibility query, limited to open runs if the operation needs that. Empty if the request lists runs.
fn query(request: &StartBatchOperationRequest) -> String {
    let query = &request.visibility_query;
    if query.is_empty() {
        return String::new();
    }
    match request.operation {
        Some(Operation::DeletionOperation(_) | Operation::ResetOperation(_)) => query.clone(),
        Some(
            Operation::TerminationOperation(_)
            | Operation::SignalOperation(_)
            | Operation::CancellationOperation(_)
            | Operation::UpdateWorkflowOptionsOperation(_)
            | Operation::UnpauseActivitiesOperation(_)
            | Operation::ResetActivitiesOperation(_)
            | Operation::UpdateActivityOptionsOperation(_)
            | Operation::CancelActivitiesOperation(_)
            | Operation::TerminateActivitiesOperation(_)
            | Operation::DeleteActivitiesOperation(_),
        )
        | None => format!("({query}) AND ({OPEN})"),
    }
}

struct Batch<'a> {
    shard: &'a Arc<Shard>,
    peers: &'a Peers,
    namespace: &'a Namespace,
    query: String,
    request: &'a StartBatchOperationRequest,
    key: &'a JobKey,
    /// Sets the job apart from a later one with its id.
    started_at: i64,
    stop: watch::Receiver<bool>,
}

/// A page of runs and the page token of the next one; empty on the last page.
struct Page {
    executions: Vec<WorkflowExecution>,
    next: Bytes,
}

impl Batch<'_> {
    async fn count(&self) -> Result<i64, ServiceError> {
        if self.query.is_empty() {
            return Ok(i64::try_from(named(self.request).count()).unwrap_or(i64::MAX));
        }
        let visibility = self.peers.visibility()?;
        let custom = &self.namespace.custom_attributes;
        Ok(visibility.count(self.namespace.id, custom, Among::Runs, &self.query).await?.count)
    }

    async fn page(&self, place: &Bytes) -> Result<Page, ServiceError> {
        if self.query.is_empty() {
            return Ok(page_of_named(self.request, place));
        }
        let request = ListRequest {
            namespace_id: self.namespace.id,
            among: Among::Runs,
            custom: self.namespace.custom_attributes.clone(),
            query: self.query.clone(),
            page_size: PAGE,
            token: place.clone(),
        };
        let page = self.peers.visibility()?.list(request).await?;
        let executions = page.executions.into_iter().filter_map(|listed| listed.execution).collect();
        Ok(Page { executions, next: page.next_page_token })
    }

    /// Whether the job is still open.
    fn is_wanted(&self) -> bool {
        self.shard.jobs.find(self.key).is_some_and(|now| is_open(&now) && now.started_at == self.started_at)
    }

    /// Counts the operations that were in flight when the batch was stopped: the job is closed, but they were done.
    async fn count_last(&self) -> Result<(), ServiceError> {
        let count = |jobs: &BTreeMap<JobKey, record::JobProgress>| {
            let counts = self.shard.jobs.take_uncounted(self.key);
            let stopped = jobs.get(self.key).filter(|now| now.started_at == self.started_at);
            let Some(mut progress) = stopped.filter(|_| counts != Counts::default()).cloned() else {
                return Ok(Decided::Nothing);
            };
            counts.add_to(&mut progress);
            Ok(Decided::Become(progress))
        };
        self.shard.change_job(self.key, count).await
    }

    /// Performs the operation on each run and counts the results, until the batch is stopped.
    async fn perform(&self, executions: &[WorkflowExecution], pace: &Pace) {
        let operations = futures_util::stream::iter(executions.to_vec())
            .map(|execution| self.perform_one(execution, pace))
            .buffer_unordered(AT_ONCE);
        operations
            .for_each(|succeeded| {
                if let Some(succeeded) = succeeded {
                    self.shard.jobs.count(self.key, succeeded);
                }
                std::future::ready(())
            })
            .await;
    }

    /// Whether the operation succeeded; `None` if the batch was stopped first.
    async fn perform_one(&self, execution: WorkflowExecution, pace: &Pace) -> Option<bool> {
        let operations = Operations {
            peers: self.peers,
            namespace: self.namespace,
            request: self.request,
            started_at: self.started_at,
            now: self.shard.env.now(),
        };
        let mut stop = self.stop.clone();
        for n_tries in 1..=TRIES_MAX {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return None,
                () = pace.turn() => {}
            }
            if !self.is_wanted() {
                return None;
            }
            // Boxed: the services' own futures are large.
            let performed = tokio::time::timeout(OPERATION_TIMEOUT, Box::pin(operations.perform(&execution))).await;
            let error = match performed {
                // The run is closed or deleted: nothing is left to do.
                Ok(Ok(()) | Err(ServiceError::NotFound(_))) => return Some(true),
                Ok(Err(error)) => error,
                Err(_) => ServiceError::DeadlineExceeded("the operation took too long".into()),
            };
            if !error.is_transient() || n_tries == TRIES_MAX {
                warn!(job = %self.key.job_id, workflow_id = execution.workflow_id, n_tries, %error, "batch operation failed");
                return Some(false);
            }
            tokio::time::sleep(self.shard.env.jittered(backoff(n_tries))).await;
        }
        Some(false)
    }
}

/// Runs that the request lists itself.
#[expect(deprecated, reason = "older clients name them in the older way")]
fn named(request: &StartBatchOperationRequest) -> impl Iterator<Item = WorkflowExecution> + '_ {
    let newer = request.target_executions.iter();
    let newer = newer
        .map(|target| WorkflowExecution { workflow_id: target.business_id.clone(), run_id: target.run_id.clone() });
    request.executions.iter().cloned().chain(newer)
}

/// `place` is the index of the page's first run.
fn page_of_named(request: &StartBatchOperationRequest, place: &Bytes) -> Page {
    let first = std::str::from_utf8(place).ok().and_then(|place| place.parse::<usize>().ok()).unwrap_or(0);
    let executions: Vec<_> = named(request).skip(first).take(PAGE).collect();
    let end = first + executions.len();
    let next = if named(request).nth(end).is_some() { Bytes::from(end.to_string()) } else { Bytes::new() };
    Page { executions, next }
}
