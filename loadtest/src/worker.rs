//! Lean workers: pollers of workflow tasks (also on a sticky queue, as in SDKs) and of activity tasks. A workflow
//! follows its script; an activity returns a number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::{QueryResultType, TaskQueueKind};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::query::v1::WorkflowQueryResult;
use proto::temporal::api::taskqueue::v1::{StickyExecutionAttributes, TaskQueue};
use proto::temporal::api::workflowservice::v1 as api;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::bench::SharedBench;
use crate::client::{Client, POLL_TIMEOUT, Service};
use crate::progress::{Place, Progress};
use crate::{commands, payload, script, updates};

/// Tasks in progress per worker.
const ANSWERING_MAX: usize = 512;
/// Runs whose progress a worker caches. After an eviction it reads the history again.
const REMEMBERED_MAX: usize = 20_000;
const STICKY_TIMEOUT: Duration = Duration::from_secs(10);

/// One worker on one task queue of one namespace.
#[derive(Clone)]
pub(crate) struct Worker {
    bench: SharedBench,
    client: Client,
    namespace: String,
    task_queue: String,
    sticky_queue: String,
    identity: String,
    remembered: Arc<Mutex<HashMap<String, Progress>>>,
    answering: Arc<Semaphore>,
}

/// Starts the pollers of all places; they end when the set is dropped.
pub(crate) fn start_all(bench: &SharedBench, client: &Client) -> JoinSet<()> {
    let mut pollers = JoinSet::new();
    for namespace in &bench.plan.place.namespaces {
        for n in 0..bench.plan.place.task_queues {
            let worker = Worker::new(bench, client, namespace, n);
            for _ in 0..bench.plan.place.pollers {
                pollers.spawn(worker.clone().poll_workflow_tasks(TaskQueueKind::Normal));
                pollers.spawn(worker.clone().poll_workflow_tasks(TaskQueueKind::Sticky));
                pollers.spawn(worker.clone().poll_activity_tasks());
            }
        }
    }
    pollers
}

impl Worker {
    fn new(bench: &SharedBench, client: &Client, namespace: &str, n: usize) -> Self {
        let task_queue = bench.task_queue(n);
        Self {
            bench: Arc::clone(bench),
            client: client.clone(),
            namespace: namespace.to_owned(),
            sticky_queue: format!("{task_queue}-sticky"),
            identity: format!("everrow-stress@{task_queue}"),
            task_queue,
            remembered: Arc::default(),
            answering: Arc::new(Semaphore::new(ANSWERING_MAX)),
        }
    }

    async fn wait_for_gate(&self) {
        // The worker holds the bench, and so the gate: the channel cannot close.
        let _ = self.bench.gate.subscribe().wait_for(|is_open| *is_open).await;
    }

    async fn poll_workflow_tasks(self, kind: TaskQueueKind) {
        let task_queue = match kind {
            TaskQueueKind::Sticky => self.sticky(),
            TaskQueueKind::Normal | TaskQueueKind::Unspecified | TaskQueueKind::WorkerCommands => {
                commands::queue(&self.task_queue)
            }
        };
        let request = api::PollWorkflowTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue,
            identity: self.identity.clone(),
            ..Default::default()
        };
        let send = |mut service: Service, request| async move { service.poll_workflow_task_queue(request).await };
        loop {
            self.wait_for_gate().await;
            // Permanent errors are retried, too: a worker must survive server restarts.
            let Ok(task) = self.client.call_within(POLL_TIMEOUT, &request, send).await else { continue };
            if !task.task_token.is_empty() {
                let Ok(permit) = Arc::clone(&self.answering).acquire_owned().await else { return };
                let worker = self.clone();
                tokio::spawn(async move {
                    worker.answer_workflow_tasks(task).await;
                    drop(permit);
                });
            }
        }
    }

    async fn poll_activity_tasks(self) {
        let request = api::PollActivityTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: commands::queue(&self.task_queue),
            identity: self.identity.clone(),
            ..Default::default()
        };
        let send = |mut service: Service, request| async move { service.poll_activity_task_queue(request).await };
        loop {
            self.wait_for_gate().await;
            let Ok(task) = self.client.call_within(POLL_TIMEOUT, &request, send).await else { continue };
            if !task.task_token.is_empty() {
                let Ok(permit) = Arc::clone(&self.answering).acquire_owned().await else { return };
                let worker = self.clone();
                tokio::spawn(async move {
                    worker.answer_activity_task(task).await;
                    drop(permit);
                });
            }
        }
    }

    async fn answer_activity_task(&self, task: api::PollActivityTaskQueueResponse) {
        let number: u64 = payload::read(task.input.as_ref()).unwrap_or_default();
        let request = api::RespondActivityTaskCompletedRequest {
            task_token: task.task_token,
            result: Some(payload::padded(script::answer(number), &self.bench.padding)),
            identity: self.identity.clone(),
            namespace: self.namespace.clone(),
            ..Default::default()
        };
        let send =
            |mut service: Service, request| async move { service.respond_activity_task_completed(request).await };
        // An obsolete task needs no handling; if the workflow is stuck, the operation that waits for it fails.
        let _ = self.client.call(&request, send).await;
    }

    /// Completes a task, and those that the server returns with its completion.
    async fn answer_workflow_tasks(&self, first: api::PollWorkflowTaskQueueResponse) {
        let mut next = Some(first);
        while let Some(task) = next.take() {
            if task.query.is_some() {
                self.answer_query(task).await;
            } else {
                next = self.answer_workflow_task(task).await;
            }
        }
    }

    async fn answer_workflow_task(
        &self,
        mut task: api::PollWorkflowTaskQueueResponse,
    ) -> Option<api::PollWorkflowTaskQueueResponse> {
        let execution = task.workflow_execution.take().unwrap_or_default();
        let mut progress = self.progress(&mut task, &execution).await?;
        let (messages, mut given) = updates::answer(&task.messages);
        given.extend(progress.answer(task.started_event_id, self.place(&execution)));
        let answers = task.queries.into_keys().map(|id| (id, sum_of(&progress))).collect();
        let request = api::RespondWorkflowTaskCompletedRequest {
            task_token: task.task_token,
            commands: given,
            messages,
            query_results: answers,
            identity: self.identity.clone(),
            namespace: self.namespace.clone(),
            sticky_attributes: Some(StickyExecutionAttributes {
                worker_task_queue: self.sticky(),
                schedule_to_start_timeout: commands::span(STICKY_TIMEOUT),
            }),
            return_new_workflow_task: true,
            ..Default::default()
        };
        // Before the response: the next task may arrive on another poll while it is in flight.
        self.remember(execution.run_id, progress);
        let send =
            |mut service: Service, request| async move { service.respond_workflow_task_completed(request).await };
        let answer = self.client.call(&request, send).await.ok()?;
        answer.workflow_task.filter(|task| !task.task_token.is_empty())
    }

    /// A query of a run without workflow task: returns only the state.
    async fn answer_query(&self, mut task: api::PollWorkflowTaskQueueResponse) {
        let execution = task.workflow_execution.take().unwrap_or_default();
        let Some(progress) = self.progress(&mut task, &execution).await else { return };
        let request = api::RespondQueryTaskCompletedRequest {
            task_token: task.task_token,
            completed_type: QueryResultType::Answered.into(),
            query_result: sum_of(&progress).answer,
            namespace: self.namespace.clone(),
            ..Default::default()
        };
        self.remember(execution.run_id, progress);
        let send = |mut service: Service, request| async move { service.respond_query_task_completed(request).await };
        let _ = self.client.call(&request, send).await;
    }

    /// The run as this task's events leave it: from memory, or from the whole history.
    async fn progress(
        &self,
        task: &mut api::PollWorkflowTaskQueueResponse,
        execution: &WorkflowExecution,
    ) -> Option<Progress> {
        let mut events = task.history.take().unwrap_or_default().events;
        let is_whole = events.first().is_some_and(|event| event.event_id == 1);
        let remembered = self.remembered.lock().expect("nobody panics while holding it").remove(&execution.run_id);
        let mut progress = remembered.filter(|progress| !is_whole && progress.is_continued_by(&events));
        let mut next_page_token = std::mem::take(&mut task.next_page_token);
        if progress.is_none() && !is_whole {
            events.clear();
            next_page_token = bytes::Bytes::new();
            events.extend(self.rest_of_history(execution, &mut next_page_token).await?);
        }
        while !next_page_token.is_empty() {
            events.extend(self.rest_of_history(execution, &mut next_page_token).await?);
        }
        // Drops events after the task's started event: a history that was read separately may have them.
        if task.started_event_id > 0 {
            events.retain(|event| event.event_id <= task.started_event_id);
        }
        let progress = progress.get_or_insert_default();
        progress.apply(&events, self.place(execution));
        Some(std::mem::take(progress))
    }

    async fn rest_of_history(
        &self,
        execution: &WorkflowExecution,
        next_page_token: &mut bytes::Bytes,
    ) -> Option<Vec<HistoryEvent>> {
        let request = api::GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace.clone(),
            execution: Some(execution.clone()),
            next_page_token: next_page_token.clone(),
            ..Default::default()
        };
        let send = |mut service: Service, request| async move { service.get_workflow_execution_history(request).await };
        let page = self.client.call(&request, send).await.ok()?;
        *next_page_token = page.next_page_token;
        Some(page.history.unwrap_or_default().events)
    }

    fn remember(&self, run_id: String, progress: Progress) {
        if progress.is_over() {
            return;
        }
        let mut remembered = self.remembered.lock().expect("nobody panics while holding it");
        if remembered.len() >= REMEMBERED_MAX {
            let any = remembered.keys().next().cloned();
            any.and_then(|run_id| remembered.remove(&run_id));
        }
        remembered.insert(run_id, progress);
    }

    fn place<'a>(&'a self, execution: &'a WorkflowExecution) -> Place<'a> {
        Place { workflow_id: &execution.workflow_id, task_queue: &self.task_queue, padding: &self.bench.padding }
    }

    fn sticky(&self) -> Option<TaskQueue> {
        Some(TaskQueue {
            name: self.sticky_queue.clone(),
            kind: TaskQueueKind::Sticky.into(),
            normal_name: self.task_queue.clone(),
        })
    }
}

fn sum_of(progress: &Progress) -> WorkflowQueryResult {
    WorkflowQueryResult {
        result_type: QueryResultType::Answered.into(),
        answer: Some(payload::json(progress.sum())),
        ..Default::default()
    }
}
