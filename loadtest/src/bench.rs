//! Client operations of scenarios: start, signal, update, query, list and await workflows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use proto::temporal::api::common::v1::{Payloads, WorkflowExecution};
use proto::temporal::api::enums::v1::{HistoryEventFilterType, UpdateWorkflowExecutionLifecycleStage as Stage};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::query::v1::WorkflowQuery;
use proto::temporal::api::update::v1::{Input, Meta, Request as UpdateRequest, WaitPolicy, outcome};
use proto::temporal::api::workflowservice::v1 as api;
use tokio::sync::watch;
use uuid::Uuid;

use crate::client::{Client, POLL_TIMEOUT};
use crate::plan::Plan;
use crate::progress::END_SIGNAL;
use crate::script::Script;
use crate::verify::{Finished, Sample};
use crate::{commands, payload};

const IDENTITY: &str = "everrow-stress";
const ADD_SIGNAL: &str = "add";

pub(crate) struct Bench {
    pub(crate) client: Client,
    pub(crate) plan: Plan,
    /// Makes ids unique to this run of the driver.
    pub(crate) mark: String,
    pub(crate) padding: Bytes,
    pub(crate) sample: Sample,
    /// Workers wait until it is open.
    pub(crate) gate: watch::Sender<bool>,
    n_workflows: AtomicU64,
}

/// A workflow that was started.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) namespace: String,
    pub(crate) workflow_id: String,
    pub(crate) run_id: String,
    pub(crate) script: Script,
}

impl Bench {
    pub(crate) fn new(client: Client, plan: Plan) -> Self {
        Self {
            client,
            mark: Uuid::new_v4().simple().to_string()[..8].to_owned(),
            padding: vec![b'.'; plan.payload_bytes].into(),
            sample: Sample::new(plan.histories),
            gate: watch::channel(true).0,
            n_workflows: AtomicU64::new(0),
            plan,
        }
    }

    /// How many workflows were started, without children and further runs.
    pub(crate) fn n_workflows(&self) -> u64 {
        self.n_workflows.load(Ordering::Relaxed)
    }

    pub(crate) fn task_queue(&self, n: usize) -> String {
        format!("stress-{}-{n}", self.mark)
    }

    /// Namespace and task queue, round robin.
    fn place(&self, n: u64) -> (String, String) {
        let n = usize::try_from(n).unwrap_or_default();
        let namespaces = &self.plan.place.namespaces;
        let namespace = namespaces[n % namespaces.len()].clone();
        (namespace, self.task_queue(n / namespaces.len() % self.plan.place.task_queues))
    }

    pub(crate) async fn start(&self, script: Script) -> Result<Started> {
        let n = self.n_workflows.fetch_add(1, Ordering::Relaxed);
        let (namespace, task_queue) = self.place(n);
        let request = api::StartWorkflowExecutionRequest {
            namespace: namespace.clone(),
            workflow_id: format!("stress-{}-{n}", self.mark),
            workflow_type: commands::workflow_type(),
            task_queue: commands::queue(&task_queue),
            input: Some(payload::padded(script.to_string(), &self.padding)),
            identity: IDENTITY.into(),
            request_id: Uuid::new_v4().to_string(),
            ..Default::default()
        };
        let send = |mut service: crate::client::Service, request| async move {
            service.start_workflow_execution(request).await
        };
        let answer = self.client.call(&request, send).await.context("start")?;
        Ok(Started { namespace, workflow_id: request.workflow_id, run_id: answer.run_id, script })
    }

    /// Waits for the end of a workflow, through all its runs, and checks its result.
    pub(crate) async fn outcome(&self, started: &Started, expected: u64) -> Result<Finished> {
        let mut runs = vec![started.run_id.clone()];
        loop {
            let run_id = runs.last().cloned().unwrap_or_default();
            let close = self.close_event(started, run_id).await?;
            match close.attributes {
                Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(continued)) => {
                    ensure!(runs.len() < started.script.n_runs(), "{} continued too often", started.workflow_id);
                    runs.push(continued.new_execution_run_id);
                }
                Some(Attributes::WorkflowExecutionCompletedEventAttributes(completed)) => {
                    let result: Option<u64> = payload::read(completed.result.as_ref());
                    let id = &started.workflow_id;
                    ensure!(result == Some(expected), "{id} returned {result:?} instead of {expected}");
                    ensure!(runs.len() == started.script.n_runs(), "{id} continued {} times", runs.len() - 1);
                    return Ok(Finished { started: started.clone(), runs, result: expected, gathered: None });
                }
                _ => bail!("{} ended with {:?}", started.workflow_id, close.event_type),
            }
        }
    }

    async fn close_event(&self, started: &Started, run_id: String) -> Result<HistoryEvent> {
        let mut request = api::GetWorkflowExecutionHistoryRequest {
            namespace: started.namespace.clone(),
            execution: Some(WorkflowExecution { workflow_id: started.workflow_id.clone(), run_id }),
            wait_new_event: true,
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            ..Default::default()
        };
        loop {
            let page = self.history_page(&request).await?;
            if let Some(event) = page.history.and_then(|history| history.events.into_iter().next_back()) {
                return Ok(event);
            }
            ensure!(!page.next_page_token.is_empty(), "{} ended without an event", started.workflow_id);
            request.next_page_token = page.next_page_token;
        }
    }

    pub(crate) async fn history_page(
        &self,
        request: &api::GetWorkflowExecutionHistoryRequest,
    ) -> Result<api::GetWorkflowExecutionHistoryResponse> {
        let send = |mut service: crate::client::Service, request| async move {
            service.get_workflow_execution_history(request).await
        };
        self.client.call_within(POLL_TIMEOUT, request, send).await.context("history")
    }

    /// Adds to the sum of a workflow that gathers.
    pub(crate) async fn add(&self, started: &Started, value: u64) -> Result<()> {
        self.signal(started, ADD_SIGNAL, value).await
    }

    /// Ends the gathering of a workflow.
    pub(crate) async fn end(&self, started: &Started) -> Result<()> {
        self.signal(started, END_SIGNAL, 0).await
    }

    async fn signal(&self, started: &Started, name: &str, value: u64) -> Result<()> {
        let request = api::SignalWorkflowExecutionRequest {
            namespace: started.namespace.clone(),
            workflow_execution: started.execution(),
            signal_name: name.into(),
            input: Some(payload::padded(value, &self.padding)),
            identity: IDENTITY.into(),
            request_id: Uuid::new_v4().to_string(),
            ..Default::default()
        };
        let send = |mut service: crate::client::Service, request| async move {
            service.signal_workflow_execution(request).await
        };
        self.client.call(&request, send).await.context("signal").map(drop)
    }

    /// Sends an update that adds to the sum; returns its result.
    pub(crate) async fn update(&self, started: &Started, value: u64) -> Result<u64> {
        let input = Input { name: ADD_SIGNAL.into(), args: Some(payload::json(value)), ..Default::default() };
        let meta = Meta { update_id: Uuid::new_v4().to_string(), identity: IDENTITY.into() };
        let request = api::UpdateWorkflowExecutionRequest {
            namespace: started.namespace.clone(),
            workflow_execution: started.execution(),
            wait_policy: Some(WaitPolicy { lifecycle_stage: Stage::Completed.into() }),
            request: Some(UpdateRequest { meta: Some(meta), input: Some(input), ..Default::default() }),
            ..Default::default()
        };
        let send = |mut service: crate::client::Service, request| async move {
            service.update_workflow_execution(request).await
        };
        loop {
            // The same update id again: a repeated request returns the outcome of the same update.
            let answer = self.client.call_within(POLL_TIMEOUT, &request, send).await.context("update")?;
            match answer.outcome.and_then(|outcome| outcome.value) {
                Some(outcome::Value::Success(result)) => return number(Some(&result)).context("update"),
                Some(outcome::Value::Failure(failure)) => bail!("the update failed: {}", failure.message),
                None => {}
            }
        }
    }

    /// The sum that the workflow returns to a query.
    pub(crate) async fn query(&self, started: &Started) -> Result<u64> {
        let request = api::QueryWorkflowRequest {
            namespace: started.namespace.clone(),
            execution: started.execution(),
            query: Some(WorkflowQuery { query_type: "sum".into(), ..Default::default() }),
            ..Default::default()
        };
        let send = |mut service: crate::client::Service, request| async move { service.query_workflow(request).await };
        let answer = self.client.call(&request, send).await.context("query")?;
        number(answer.query_result.as_ref()).context("query")
    }

    /// Run ids on the first page of a list.
    pub(crate) async fn list(&self, namespace: &str, query: String) -> Result<Vec<String>> {
        let request = api::ListWorkflowExecutionsRequest { namespace: namespace.into(), query, ..Default::default() };
        let send = |mut service: crate::client::Service, request| async move {
            service.list_workflow_executions(request).await
        };
        let answer = self.client.call(&request, send).await.context("list")?;
        let executions = answer.executions.into_iter().filter_map(|listed| listed.execution);
        Ok(executions.map(|execution| execution.run_id).collect())
    }
}

fn number(payloads: Option<&Payloads>) -> Result<u64> {
    payload::read(payloads).context("the answer is no number")
}

impl Started {
    pub(crate) fn execution(&self) -> Option<WorkflowExecution> {
        Some(WorkflowExecution { workflow_id: self.workflow_id.clone(), run_id: self.run_id.clone() })
    }
}

/// Shared by workers, the load and the view.
pub(crate) type SharedBench = Arc<Bench>;
