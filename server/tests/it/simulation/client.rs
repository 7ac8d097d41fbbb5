//! Clients of the simulation: start workflows and signal them, and repeat a request until it is answered for certain.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinSet;

use super::worker::{task_queue, text};
use super::world::{Handle, NAMESPACE_ID, World, execution};

/// What was acknowledged: the run of each workflow, and the request ids of its signals.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) workflows: BTreeMap<String, SentTo>,
}

pub(super) struct SentTo {
    pub(super) run_id: String,
    pub(super) n_activities: usize,
    pub(super) signals: Vec<String>,
}

impl Sent {
    pub(super) fn workflow_ids(&self) -> impl Iterator<Item = &str> {
        self.workflows.keys().map(String::as_str)
    }
}

pub(super) struct Clients {
    running: JoinSet<(String, SentTo)>,
}

impl Clients {
    pub(super) fn start(world: &World, n_workflows: usize, n_activities: usize, n_signals: usize) -> Self {
        Self::start_on(&[world], n_workflows, n_activities, n_signals)
    }

    /// Each request goes to the next of the nodes, as do its repetitions.
    pub(super) fn start_on(nodes: &[&World], n_workflows: usize, n_activities: usize, n_signals: usize) -> Self {
        let mut running = JoinSet::new();
        for n in 0..n_workflows {
            let nodes = nodes.iter().map(|node| node.handle()).collect();
            let client = Client { nodes, workflow_id: format!("workflow-{n}"), n_tries: n };
            running.spawn(client.run(n_activities, n_signals));
        }
        Self { running }
    }

    pub(super) async fn all_acknowledged(self) -> Sent {
        Sent { workflows: self.running.join_all().await.into_iter().collect() }
    }
}

struct Client {
    nodes: Vec<Handle>,
    workflow_id: String,
    n_tries: usize,
}

impl Client {
    async fn run(mut self, n_activities: usize, n_signals: usize) -> (String, SentTo) {
        let run_id = self.start(n_activities, n_signals).await;
        let mut signals = Vec::new();
        for n in 0..n_signals {
            let request_id = format!("{}-signal-{n}", self.workflow_id);
            self.signal(&request_id).await;
            signals.push(request_id);
        }
        (self.workflow_id, SentTo { run_id, n_activities, signals })
    }

    async fn start(&mut self, n_activities: usize, n_signals: usize) -> String {
        let request = start_request(&self.workflow_id, "simulated", &format!("{n_activities} {n_signals}"));
        loop {
            match self.next_node().services().history.start_workflow_execution(request.clone()).await {
                Ok(response) => return response.run_id,
                Err(error) => pause_after(&error).await,
            }
        }
    }

    async fn signal(&mut self, request_id: &str) {
        let request = signal_request(&self.workflow_id, request_id);
        loop {
            match self.next_node().services().history.signal_workflow_execution(request.clone()).await {
                Ok(_) => return,
                Err(error) => pause_after(&error).await,
            }
        }
    }

    fn next_node(&mut self) -> Handle {
        self.n_tries += 1;
        self.nodes[self.n_tries % self.nodes.len()].clone()
    }
}

fn start_request(workflow_id: &str, kind: &str, input: &str) -> request::StartWorkflowExecutionRequest {
    let request = public::StartWorkflowExecutionRequest {
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: kind.into() }),
        task_queue: Some(task_queue()),
        input: Some(text(input)),
        request_id: format!("{workflow_id}-start"),
        ..Default::default()
    };
    request::StartWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    }
}

fn signal_request(workflow_id: &str, request_id: &str) -> request::SignalWorkflowExecutionRequest {
    let request = public::SignalWorkflowExecutionRequest {
        workflow_execution: Some(execution(workflow_id)),
        signal_name: "go on".into(),
        request_id: request_id.to_owned(),
        ..Default::default()
    };
    request::SignalWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    }
}

/// Starts a workflow of some type, until that is acknowledged. Its run.
pub(super) async fn start(node: &Handle, workflow_id: &str, kind: &str, input: &str) -> String {
    let request = start_request(workflow_id, kind, input);
    loop {
        match node.services().history.start_workflow_execution(request.clone()).await {
            Ok(started) => return started.run_id,
            Err(error) => pause_after(&error).await,
        }
    }
}

/// Signals the newest run, until that is acknowledged.
pub(super) async fn signal(node: &Handle, workflow_id: &str, request_id: &str) {
    let request = signal_request(workflow_id, request_id);
    while let Err(error) = node.services().history.signal_workflow_execution(request.clone()).await {
        pause_after(&error).await;
    }
}

/// The whole history of a run, however often it must be asked for.
pub(super) async fn history(node: &Handle, execution: WorkflowExecution) -> Vec<HistoryEvent> {
    let mut events = Vec::new();
    let mut next_page_token = bytes::Bytes::new();
    loop {
        let request = public::GetWorkflowExecutionHistoryRequest {
            execution: Some(execution.clone()),
            next_page_token: next_page_token.clone(),
            maximum_page_size: 50,
            ..Default::default()
        };
        let request = request::GetWorkflowExecutionHistoryRequest {
            namespace_id: NAMESPACE_ID.into(),
            request: Some(request),
            shows_unwritten: false,
            follows_next_run: true,
        };
        let page = match node.services().history.get_workflow_execution_history(request).await {
            Ok(page) => page,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        events.extend(page.history.unwrap_or_default().into_events().unwrap());
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            return events;
        }
    }
}

/// A certain refusal would be a falsehood here: every request of these clients can be granted.
pub(super) async fn pause_after(error: &ServiceError) {
    assert!(error.is_transient(), "refused: {error:?}");
    tokio::time::sleep(Duration::from_millis(20)).await;
}
