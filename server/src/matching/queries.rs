//! Queries of runs. Nothing is stored: a query reaches a poller, or its caller gives up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cluster::errors::ServiceError;
use prost::Message as _;
use proto::everrow::{history, matching as request};
use proto::temporal::api::enums::v1::{QueryResultType, ResourceExhaustedCause, ResourceExhaustedScope};
use proto::temporal::api::workflowservice::v1 as public;
use tokio::sync::oneshot;
use tokio::time::Instant;
use workflow::NamespaceId;

use super::partition::{Partition, QueryPlacement};
use super::service::{ADD_TRIES, Service};
use super::task::{Kind, QueueKey, TaskType, namespace_id};
use crate::peers::HistoryService;

/// Queries outstanding on one node.
const AWAITED_MAX: usize = 10_000;

/// Bytes of the queries outstanding on one node. A query without a worker is kept until its caller gives up, and a
/// caller chooses the size of its arguments: `AWAITED_MAX` of the largest would take 40 GB.
pub(super) const AWAITED_BYTES_MAX: usize = 32 << 20;

/// A queue without a poll for this long has no worker, as far as a query's caller is concerned.
const WORKER_GONE_AFTER: Duration = Duration::from_secs(20);

/// Without a worker, answers this long before the caller's deadline, so the caller sees that and not a timeout.
const NO_WORKER_MARGIN: Duration = Duration::from_secs(1);

type Outcome = Result<public::QueryWorkflowResponse, ServiceError>;

/// The queries outstanding on this node.
#[derive(Default)]
pub(super) struct Queries {
    awaited: Mutex<HashMap<String, Awaited>>,
    n_begun: AtomicU64,
    n_bytes: AtomicUsize,
}

struct Awaited {
    namespace_id: NamespaceId,
    answer: oneshot::Sender<Outcome>,
}

/// A query that waits for a worker.
pub(super) struct Query {
    pub(super) id: String,
    /// Its age: lower is older.
    pub(super) number: u64,
    request: Box<public::QueryWorkflowRequest>,
    queries: Arc<Queries>,
}

/// A query in delivery to a poll. Returns to the queue on drop, so a poll that ends early loses nothing.
pub(super) struct QueryTask {
    partition: Arc<Partition>,
    /// Taken once, by the method that ends the delivery.
    query: Option<Query>,
}

/// The caller's side. On drop, later answers are discarded.
struct Awaiting {
    queries: Arc<Queries>,
    id: String,
    number: u64,
    n_bytes: usize,
    answer: oneshot::Receiver<Outcome>,
    /// Where it was submitted.
    partition: Option<Arc<Partition>>,
}

impl Queries {
    fn begin(
        self: &Arc<Self>,
        id: String,
        namespace_id: NamespaceId,
        n_bytes: usize,
    ) -> Result<Awaiting, ServiceError> {
        let mut awaited = self.awaited();
        // Grows under the lock only, so the sum cannot exceed the bound between check and update.
        let n_bytes_after = self.n_bytes.load(Ordering::Relaxed).saturating_add(n_bytes);
        if awaited.len() >= AWAITED_MAX || n_bytes_after > AWAITED_BYTES_MAX {
            return Err(ServiceError::ResourceExhausted {
                cause: ResourceExhaustedCause::ConcurrentLimit,
                scope: ResourceExhaustedScope::System,
                message: "too many outstanding queries".into(),
            });
        }
        self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        awaited.insert(id.clone(), Awaited { namespace_id, answer: sender });
        let number = self.n_begun.fetch_add(1, Ordering::Relaxed);
        Ok(Awaiting { queries: Arc::clone(self), id, number, n_bytes, answer, partition: None })
    }

    #[cfg(test)]
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes.load(Ordering::Relaxed)
    }

    /// Drops all outstanding queries: their callers retry elsewhere.
    pub(super) fn stop(&self) {
        self.awaited().clear();
    }

    /// A token can be forged, so the namespace must be the query's own.
    fn take(&self, id: &str, namespace_id: NamespaceId) -> Option<oneshot::Sender<Outcome>> {
        let mut awaited = self.awaited();
        awaited.get(id).filter(|query| query.namespace_id == namespace_id)?;
        awaited.remove(id).map(|query| query.answer)
    }

    fn awaited(&self) -> MutexGuard<'_, HashMap<String, Awaited>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Query {
    /// Returns the error to the caller: no worker will get it.
    pub(super) fn fail(self, error: ServiceError) {
        let awaited = self.queries.awaited().remove(&self.id);
        if let Some(awaited) = awaited {
            drop(awaited.answer.send(Err(error)));
        }
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.queries.awaited().contains_key(&self.id)
    }
}

impl QueryTask {
    pub(super) fn new(partition: Arc<Partition>, query: Query) -> Self {
        Self { partition, query: Some(query) }
    }

    /// Takes the query without returning it to the queue: a worker has it, or the partition that made this.
    pub(super) fn reclaim(mut self) -> Query {
        self.query.take().expect("taken only by what consumes this")
    }

    fn query(&self) -> &Query {
        self.query.as_ref().expect("taken only by what consumes this")
    }
}

impl Drop for QueryTask {
    fn drop(&mut self) {
        let Some(query) = self.query.take() else { return };
        match self.partition.ask(query) {
            QueryPlacement::Waiting => {}
            QueryPlacement::NoWorker(query) => query.fail(ServiceError::StickyWorkerUnavailable),
            QueryPlacement::Closed(query) => query.fail(unloaded()),
        }
    }
}

impl Awaiting {
    /// The worker's answer, or an error: no worker, or deadline exceeded.
    async fn outcome(&mut self, partition: &Partition, deadline: Instant) -> Outcome {
        let lost = |_| Err(unloaded());
        let look_at = deadline.checked_sub(NO_WORKER_MARGIN).unwrap_or(deadline);
        tokio::select! {
            biased;
            outcome = &mut self.answer => return outcome.unwrap_or_else(lost),
            () = tokio::time::sleep_until(look_at) => {}
        }
        if partition.is_asked(self.number) && !partition.was_polled_within(WORKER_GONE_AFTER) {
            let message = "no poller seen for task queue recently, worker may be down";
            return Err(ServiceError::FailedPrecondition(message.into()));
        }
        match tokio::time::timeout_at(deadline, &mut self.answer).await {
            Ok(outcome) => outcome.unwrap_or_else(lost),
            Err(_) => Err(ServiceError::query_timed_out()),
        }
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        // In this order: a concurrent return to the queue then sees that the query is not awaited.
        self.queries.awaited().remove(&self.id);
        if let Some(partition) = &self.partition {
            partition.withdraw_query(self.number);
        }
        self.queries.n_bytes.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

impl Service {
    /// Sends a query to a worker and waits for the answer.
    pub async fn query_workflow(
        &self,
        request: request::QueryWorkflowRequest,
    ) -> Result<public::QueryWorkflowResponse, ServiceError> {
        let timeout = request.timeout.and_then(|timeout| Duration::try_from(timeout).ok()).unwrap_or_default();
        let deadline = Instant::now() + timeout;
        let key = QueueKey {
            namespace_id: namespace_id(&request.namespace_id)?,
            task_type: TaskType::Workflow,
            kind: Kind::from_proto(request.task_queue_kind()),
            name: request.task_queue,
        };
        let request = Box::new(request.request.unwrap_or_default());
        let id = self.env.new_uuid().to_string();
        let mut awaiting = self.queries.begin(id, key.namespace_id, request.encoded_len())?;
        let mut query =
            Query { id: awaiting.id.clone(), number: awaiting.number, request, queries: Arc::clone(&self.queries) };
        for _ in 0..ADD_TRIES {
            let partition = self.partition_for_task(&key)?;
            awaiting.partition = Some(Arc::clone(&partition));
            match partition.ask(query) {
                QueryPlacement::Waiting => return awaiting.outcome(&partition, deadline).await,
                QueryPlacement::NoWorker(_) => return Err(ServiceError::StickyWorkerUnavailable),
                QueryPlacement::Closed(returned) => query = returned,
            }
        }
        Err(unloaded())
    }

    /// Returns a worker's answer to the query's caller.
    pub async fn respond_query_task_completed(
        &self,
        request: request::RespondQueryTaskCompletedRequest,
    ) -> Result<public::RespondQueryTaskCompletedResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let (token, answer) = (request.token.unwrap_or_default(), request.request.unwrap_or_default());
        let not_found = || ServiceError::NotFound("query task not found, or already expired".into());
        let caller = self.queries.take(&token.task_id, namespace_id).ok_or_else(not_found)?;
        caller.send(outcome_of(answer)).map_err(|_| not_found())?;
        Ok(public::RespondQueryTaskCompletedResponse {})
    }

    /// The response to the poll that got a query. `None`: its caller is gone, or history failed it.
    pub(super) async fn start_query(
        &self,
        key: &QueueKey,
        task: QueryTask,
    ) -> Option<public::PollWorkflowTaskQueueResponse> {
        if !task.query().is_awaited() {
            drop(task.reclaim());
            return None;
        }
        let start = history::RecordQueryTaskStartedRequest {
            namespace_id: key.namespace_id.to_string(),
            execution: task.query().request.execution.clone(),
            task_queue: key.name.clone(),
        };
        let record = |history: Arc<HistoryService>| {
            let start = start.clone();
            async move { Box::pin(history.record_query_task_started(start)).await }
        };
        let started = self.record_started(record).await;
        let query = task.reclaim();
        let response = match started {
            Ok(response) => response,
            Err(error) => {
                query.fail(error);
                return None;
            }
        };
        let token = request::QueryTaskToken {
            namespace_id: key.namespace_id.to_string(),
            task_queue: key.name.clone(),
            task_id: query.id,
        };
        Some(public::PollWorkflowTaskQueueResponse {
            task_token: token.encode_to_vec().into(),
            query: query.request.query,
            ..response
        })
    }
}

fn outcome_of(answer: public::RespondQueryTaskCompletedRequest) -> Outcome {
    match answer.completed_type() {
        QueryResultType::Answered => {
            Ok(public::QueryWorkflowResponse { query_result: answer.query_result, ..Default::default() })
        }
        QueryResultType::Failed => {
            let failure = answer.failure.map(Box::new);
            Err(ServiceError::QueryFailed { message: answer.error_message, failure })
        }
        // The worker's error, not the server's: for the caller the query failed.
        QueryResultType::Unspecified => {
            Err(ServiceError::QueryFailed { message: "unknown query completed type".into(), failure: None })
        }
    }
}

fn unloaded() -> ServiceError {
    ServiceError::Unavailable("the task queue was unloaded".into())
}
