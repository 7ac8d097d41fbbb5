//! The matching service as its peers see it: tasks come from history, polls from the frontend, and history records each
//! start before the poller gets the task.

use std::sync::Arc;
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use persistence::stores::task_queues::TaskQueueStore;
use proto::everrow::{history, matching as request};
use proto::temporal::api::enums::v1::{DescribeTaskQueueMode, TaskQueueType};
use proto::temporal::api::taskqueue::v1 as taskqueue;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::time::Instant;
use workflow::NamespaceId;

use super::config::MatchingConfig;
use super::describe;
use super::dispatch::{Delivery, Dispatched};
use super::partition::{Added, Partition, Polled};
use super::pollers::Poller;
use super::polls::{OutstandingPoll, Polls};
use super::queries::Queries;
use super::queues::Queues;
use super::task::{Kind, QueueKey, Task, TaskType, namespace_id};
use crate::peers::{HistoryService, Peers};

/// The empty answer leaves this long before the caller's deadline, so the caller sees no error.
const ANSWER_MARGIN: Duration = Duration::from_secs(1);

/// Attempts to reach a queue that is being unloaded before the caller gets `Unavailable`.
pub(super) const ADD_TRIES: usize = 3;

/// Pauses between attempts to record a start in history.
const RECORD_PAUSES: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(150), Duration::from_millis(400), Duration::from_secs(1)];

pub struct Service {
    pub(super) env: Env,
    peers: Peers,
    config: Arc<MatchingConfig>,
    queues: Arc<Queues>,
    polls: Arc<Polls>,
    pub(super) queries: Arc<Queries>,
}

/// One poll, from its arrival to its answer; it may receive several obsolete tasks.
pub(super) struct Poll {
    key: QueueKey,
    poller: Poller,
    deadline: Instant,
    outstanding: OutstandingPoll,
}

impl Service {
    #[must_use]
    pub fn new(env: Env, peers: Peers, store: TaskQueueStore, config: MatchingConfig) -> Arc<Self> {
        let config = Arc::new(config);
        let queues = Queues::new(env.clone(), store, Arc::clone(&config));
        let polls = Polls::new(config.outstanding_polls);
        Arc::new(Self { env, peers, config, queues, polls, queries: Arc::default() })
    }

    /// Answers all polls empty, writes waiting tasks, and accepts nothing more.
    pub async fn shutdown(&self) {
        self.polls.stop();
        self.queries.stop();
        self.queues.stop().await;
    }

    /// Deletes the backlogs of all task queues of a namespace that is being removed: no polls or tasks arrive any more.
    pub async fn remove_namespace(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        self.queues.remove_namespace(namespace_id).await
    }

    /// Returns once the task is safe: a worker or the backlog has it.
    pub async fn add_task(&self, request: request::AddTaskRequest) -> Result<request::AddTaskResponse, ServiceError> {
        let key = QueueKey {
            namespace_id: namespace_id(&request.namespace_id)?,
            task_type: TaskType::from_proto(request.task_queue_type())?,
            kind: Kind::from_proto(request.task_queue_kind()),
            name: request.task_queue.clone(),
        };
        let mut task = Task::from_request(request, self.env.now())?;
        for _ in 0..ADD_TRIES {
            match self.partition_for_task(&key)?.add(task).await? {
                Added::Matched => return Ok(request::AddTaskResponse { sync_match: true }),
                Added::Spooled => return Ok(request::AddTaskResponse { sync_match: false }),
                Added::Closed(returned) => task = returned,
            }
        }
        Err(ServiceError::Unavailable(format!("task queue {:?} is being unloaded", key.name)))
    }

    /// Waits for a workflow task or a query. The response is empty if none came in time.
    pub async fn poll_workflow_task_queue(
        &self,
        request: request::PollWorkflowTaskQueueRequest,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        let timeout = request.timeout;
        let poll_request = request.request.unwrap_or_default();
        let queue = poll_request.task_queue.clone().unwrap_or_default();
        let key = queue_key(&request.namespace_id, TaskType::Workflow, &queue)?;
        let mut poll = self.begin_poll(key, workflow_poller(&poll_request), request.poller_id, timeout)?;
        while let Some(delivery) = self.next(&mut poll).await? {
            let dispatched = match delivery {
                Delivery::Task(dispatched) => dispatched,
                Delivery::Query(query) => match self.start_query(&poll.key, query).await {
                    Some(mut response) => {
                        response.backlog_count_hint = self.backlog_count_hint(&poll.key);
                        return Ok(response);
                    }
                    None => continue,
                },
            };
            let task = dispatched.task();
            let start = history::RecordWorkflowTaskStartedRequest {
                namespace_id: request.namespace_id.clone(),
                execution: Some(task.execution()),
                scheduled_event_id: task.scheduled_event_id,
                request_id: self.env.new_uuid().to_string(),
                poll_request: Some(poll_request.clone()),
            };
            let record = |history: Arc<HistoryService>| {
                let start = start.clone();
                async move { Box::pin(history.record_workflow_task_started(start)).await }
            };
            let started = self.record_started(record).await;
            if let Some(mut response) = dispatched.settle(started)? {
                response.backlog_count_hint = self.backlog_count_hint(&poll.key);
                return Ok(response);
            }
        }
        Ok(public::PollWorkflowTaskQueueResponse::default())
    }

    /// Waits for an activity task. The response is empty if none came in time.
    pub async fn poll_activity_task_queue(
        &self,
        request: request::PollActivityTaskQueueRequest,
    ) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
        let timeout = request.timeout;
        let poll_request = request.request.unwrap_or_default();
        let queue = poll_request.task_queue.clone().unwrap_or_default();
        let key = queue_key(&request.namespace_id, TaskType::Activity, &queue)?;
        let mut poll = self.begin_poll(key, activity_poller(&poll_request), request.poller_id, timeout)?;
        while let Some(dispatched) = self.next_task(&mut poll).await? {
            let task = dispatched.task();
            let start = history::RecordActivityTaskStartedRequest {
                namespace_id: request.namespace_id.clone(),
                execution: Some(task.execution()),
                scheduled_event_id: task.scheduled_event_id,
                attempt: task.attempt,
                stamp: task.stamp,
                request_id: self.env.new_uuid().to_string(),
                poll_request: Some(poll_request.clone()),
            };
            let record = |history: Arc<HistoryService>| {
                let start = start.clone();
                async move { Box::pin(history.record_activity_task_started(start)).await }
            };
            let started = self.record_started(record).await;
            if let Some(response) = dispatched.settle(started)? {
                return Ok(response);
            }
        }
        Ok(public::PollActivityTaskQueueResponse::default())
    }

    /// Records a task's start in history. Retries the same request after a transient failure: if the first call took
    /// effect, only its retry gets the task, and no other poll ever would.
    pub(super) async fn record_started<T, F: Future<Output = Result<T, ServiceError>>>(
        &self,
        record: impl Fn(Arc<HistoryService>) -> F,
    ) -> Result<T, ServiceError> {
        for pause in RECORD_PAUSES {
            let history = self.peers.history()?;
            match record(history).await {
                Err(error) if error.is_transient() => tokio::time::sleep(self.env.jittered(pause)).await,
                answered => return answered,
            }
        }
        record(self.peers.history()?).await
    }

    /// Ends a poll that the frontend releases; no effect if it has ended.
    pub async fn cancel_outstanding_poll(
        &self,
        request: request::CancelOutstandingPollRequest,
    ) -> Result<request::CancelOutstandingPollResponse, ServiceError> {
        self.polls.cancel(&request.poller_id);
        Ok(request::CancelOutstandingPollResponse {})
    }

    /// Drops the sticky queue of a worker that leaves: its tasks go to the worker's normal queue at once, and so do
    /// later ones, unless the worker polls it again.
    pub fn release_sticky_queue(&self, namespace_id: NamespaceId, name: String) {
        let key = QueueKey { namespace_id, name, task_type: TaskType::Workflow, kind: Kind::Sticky };
        if let Some(partition) = self.queues.find(&key) {
            partition.release();
        }
    }

    pub async fn describe_task_queue(
        &self,
        request: request::DescribeTaskQueueRequest,
    ) -> Result<public::DescribeTaskQueueResponse, ServiceError> {
        let describe = request.request.unwrap_or_default();
        if describe.task_queue_type() == TaskQueueType::Nexus {
            return Ok(describe::of_nexus_tasks(&describe));
        }
        let queue = describe.task_queue.clone().unwrap_or_default();
        let key = queue_key(&request.namespace_id, TaskType::from_proto(describe.task_queue_type())?, &queue)?;
        if describe.api_mode() == DescribeTaskQueueMode::Enhanced {
            return self.describe_all_types(key, &describe).await;
        }
        self.describe_one_type(&key, &describe).await
    }

    #[expect(deprecated, reason = "older tools ask for the status of the queue")]
    async fn describe_one_type(
        &self,
        key: &QueueKey,
        request: &public::DescribeTaskQueueRequest,
    ) -> Result<public::DescribeTaskQueueResponse, ServiceError> {
        let partition = self.loaded(key).await?;
        let (state, now) = (partition.state(), describe::Now::of(&self.env));
        let mut response = public::DescribeTaskQueueResponse {
            pollers: describe::pollers(&state, now),
            effective_rate_limit: Some(describe::rate_limit(&state)),
            versioning_info: Some(describe::unversioned()),
            ..public::DescribeTaskQueueResponse::default()
        };
        if request.report_stats {
            response.stats = Some(describe::stats(&state, now));
            response.stats_by_priority_key = describe::stats_by_priority(&state, now);
        }
        if request.include_task_queue_status {
            response.task_queue_status = Some(describe::status(&state));
        }
        Ok(response)
    }

    #[expect(deprecated, reason = "the CLI still asks in this way")]
    async fn describe_all_types(
        &self,
        key: QueueKey,
        request: &public::DescribeTaskQueueRequest,
    ) -> Result<public::DescribeTaskQueueResponse, ServiceError> {
        let mut types = taskqueue::TaskQueueVersionInfo::default();
        for task_type in [TaskType::Workflow, TaskType::Activity] {
            let asked = &request.task_queue_types;
            if !asked.is_empty() && !asked.contains(&task_type.number()) {
                continue;
            }
            let partition = self.loaded(&QueueKey { task_type, ..key.clone() }).await?;
            let (state, now) = (partition.state(), describe::Now::of(&self.env));
            let described = taskqueue::TaskQueueTypeInfo {
                pollers: if request.report_pollers { describe::pollers(&state, now) } else { Vec::new() },
                stats: request.report_stats.then(|| describe::stats(&state, now)),
            };
            types.types_info.insert(task_type.number(), described);
        }
        // Unversioned workers are under the empty build id.
        let versions_info = [(String::new(), types)].into();
        Ok(public::DescribeTaskQueueResponse { versions_info, ..public::DescribeTaskQueueResponse::default() })
    }

    pub(super) fn begin_poll(
        &self,
        key: QueueKey,
        poller: Poller,
        poller_id: String,
        timeout: Option<prost_types::Duration>,
    ) -> Result<Poll, ServiceError> {
        let poller_id = if poller_id.is_empty() { self.env.new_uuid().to_string() } else { poller_id };
        let outstanding = self.polls.begin(poller_id)?;
        let timeout = timeout.and_then(|timeout| Duration::try_from(timeout).ok()).unwrap_or(Duration::MAX);
        let wait = self.config.long_poll().min(timeout.saturating_sub(ANSWER_MARGIN));
        Ok(Poll { key, poller, deadline: Instant::now() + wait, outstanding })
    }

    /// The next task for a poll of a queue without queries; `None` if the poll ended.
    pub(super) async fn next_task(&self, poll: &mut Poll) -> Result<Option<Dispatched>, ServiceError> {
        match self.next(poll).await? {
            None => Ok(None),
            Some(Delivery::Task(dispatched)) => Ok(Some(dispatched)),
            Some(Delivery::Query(_)) => Err(ServiceError::Internal("only workflows are queried".into())),
        }
    }

    /// The poll's next delivery; `None` if the poll ended.
    pub(super) async fn next(&self, poll: &mut Poll) -> Result<Option<Delivery>, ServiceError> {
        while !poll.outstanding.is_cancelled() {
            let partition = self.queues.load(&poll.key)?;
            match partition.poll(&poll.poller, poll.deadline, &mut poll.outstanding.cancelled).await {
                Polled::Found(delivery) => return Ok(Some(delivery)),
                Polled::Empty => return Ok(None),
                Polled::Closed => {}
            }
        }
        Ok(None)
    }

    /// Only its worker's polls load a sticky queue: without them it has no worker.
    pub(super) fn partition_for_task(&self, key: &QueueKey) -> Result<Arc<Partition>, ServiceError> {
        match key.kind {
            Kind::Normal => self.queues.load(key),
            Kind::Sticky => self.queues.find(key).ok_or(ServiceError::StickyWorkerUnavailable),
        }
    }

    async fn loaded(&self, key: &QueueKey) -> Result<Arc<Partition>, ServiceError> {
        let partition = self.queues.load(key)?;
        partition.loaded().await;
        Ok(partition)
    }

    #[cfg(test)]
    pub(super) fn n_loaded_queues(&self) -> usize {
        self.queues.n_loaded()
    }

    /// Polls that wait: on the node, and on one queue.
    #[cfg(test)]
    pub(super) fn n_waiting_polls(&self, key: &QueueKey) -> (usize, usize) {
        let on_queue = self.queues.find(key).map_or(0, |partition| partition.state().n_waiting_polls());
        (self.polls.n_outstanding(), on_queue)
    }

    pub(super) fn backlog_count_hint(&self, key: &QueueKey) -> i64 {
        self.queues.find(key).map_or(0, |partition| partition.backlog_count_hint())
    }
}

fn queue_key(namespace: &str, task_type: TaskType, queue: &taskqueue::TaskQueue) -> Result<QueueKey, ServiceError> {
    let (namespace_id, kind) = (namespace_id(namespace)?, Kind::from_proto(queue.kind()));
    Ok(QueueKey { namespace_id, name: queue.name.clone(), task_type, kind })
}

#[expect(deprecated, reason = "older SDKs send their version this way")]
fn workflow_poller(request: &public::PollWorkflowTaskQueueRequest) -> Poller {
    Poller {
        identity: request.identity.clone(),
        tasks_per_second: None,
        version_capabilities: request.worker_version_capabilities.clone(),
        deployment_options: request.deployment_options.clone(),
        normal_queue: request.task_queue.as_ref().map(|queue| queue.normal_name.clone()).unwrap_or_default(),
    }
}

#[expect(deprecated, reason = "older SDKs send their version this way")]
fn activity_poller(request: &public::PollActivityTaskQueueRequest) -> Poller {
    Poller {
        identity: request.identity.clone(),
        tasks_per_second: request.task_queue_metadata.as_ref().and_then(|metadata| metadata.max_tasks_per_second),
        version_capabilities: request.worker_version_capabilities.clone(),
        deployment_options: request.deployment_options.clone(),
        normal_queue: String::new(),
    }
}
