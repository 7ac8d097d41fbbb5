//! A client and a worker by hand: each step of a run is one call, so that a test decides on their order.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::common::v1::{Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{QueryResultType, TaskQueueKind, TaskQueueType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::query::v1::{WorkflowQuery, WorkflowQueryResult};
use proto::temporal::api::taskqueue::v1::{StickyExecutionAttributes, TaskQueue};
use proto::temporal::api::workflowservice::v1 as public;
use tonic::Status;
use tonic::transport::Channel;

use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;

use crate::commands::{self, text};
use crate::given::{Given, NAMESPACE, within};

/// Longer than anything that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The server is to have the processors meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// One workflow and the task queue of the same name. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ByHand {
    client: WorkflowServiceClient<Channel>,
    namespace: String,
    pub(crate) name: String,
}

impl ByHand {
    pub(crate) fn new(given: &Given, name: &str) -> Self {
        Self::elsewhere(given, NAMESPACE, name)
    }

    /// In another namespace than the one that every test finds.
    pub(crate) fn elsewhere(given: &Given, namespace: &str, name: &str) -> Self {
        Self { client: given.client(), namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn client(&self) -> WorkflowServiceClient<Channel> {
        self.client.clone()
    }

    pub(crate) fn execution(&self) -> WorkflowExecution {
        WorkflowExecution { workflow_id: self.name.clone(), run_id: String::new() }
    }

    pub(crate) fn queue(&self) -> TaskQueue {
        TaskQueue { name: self.name.clone(), kind: TaskQueueKind::Normal.into(), ..Default::default() }
    }

    pub(crate) fn sticky_queue(&self) -> TaskQueue {
        let name = format!("{}-sticky", self.name);
        TaskQueue { name, kind: TaskQueueKind::Sticky.into(), normal_name: self.name.clone() }
    }

    pub(crate) fn start_request(&self) -> public::StartWorkflowExecutionRequest {
        public::StartWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_id: self.name.clone(),
            workflow_type: Some(WorkflowType { name: "by hand".into() }),
            task_queue: Some(self.queue()),
            identity: "client".into(),
            ..Default::default()
        }
    }

    pub(crate) async fn start(&self) -> String {
        self.client().start_workflow_execution(self.start_request()).await.expect("a start").into_inner().run_id
    }

    /// A sticky worker is asked only once it is known to poll.
    pub(crate) async fn until_polled(&self, queue: TaskQueue) {
        let request = public::DescribeTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: Some(queue),
            task_queue_type: TaskQueueType::Workflow.into(),
            ..Default::default()
        };
        let is_polled = async || {
            let described = self.client().describe_task_queue(request.clone()).await.expect("a description");
            !described.into_inner().pollers.is_empty()
        };
        let began = Instant::now();
        while !is_polled().await {
            assert!(began.elapsed() < PATIENCE, "nobody polls");
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    pub(crate) async fn signal(&self, name: &str) {
        let signal = public::SignalWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_execution: Some(self.execution()),
            signal_name: name.into(),
            ..Default::default()
        };
        self.client().signal_workflow_execution(signal).await.expect("a signal");
    }

    pub(crate) async fn terminate(&self) {
        let terminate = public::TerminateWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_execution: Some(self.execution()),
            ..Default::default()
        };
        self.client().terminate_workflow_execution(terminate).await.expect("a termination");
    }

    /// The next workflow task or query of the run's own queue.
    pub(crate) async fn poll(&self) -> public::PollWorkflowTaskQueueResponse {
        self.poll_queue(self.queue()).await
    }

    pub(crate) async fn poll_queue(&self, queue: TaskQueue) -> public::PollWorkflowTaskQueueResponse {
        let poll = public::PollWorkflowTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: Some(queue),
            identity: "worker".into(),
            ..Default::default()
        };
        let task = self.client().poll_workflow_task_queue(within(PATIENCE, poll)).await.expect("a poll").into_inner();
        assert!(!task.task_token.is_empty(), "something to do came in time");
        task
    }

    pub(crate) fn completion(&self, task_token: Bytes) -> public::RespondWorkflowTaskCompletedRequest {
        public::RespondWorkflowTaskCompletedRequest {
            namespace: self.namespace.clone(),
            task_token,
            identity: "worker".into(),
            ..Default::default()
        }
    }

    pub(crate) async fn respond(
        &self,
        request: public::RespondWorkflowTaskCompletedRequest,
    ) -> Result<public::RespondWorkflowTaskCompletedResponse, Status> {
        self.client().respond_workflow_task_completed(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn complete(&self, task_token: Bytes, commands: Vec<Command>) {
        self.try_complete(task_token, commands).await.expect("a completion");
    }

    pub(crate) async fn try_complete(&self, task_token: Bytes, commands: Vec<Command>) -> Result<(), Status> {
        let request = public::RespondWorkflowTaskCompletedRequest { commands, ..self.completion(task_token) };
        self.respond(request).await.map(|_| ())
    }

    /// Answers the next workflow task.
    pub(crate) async fn work(&self, commands: Vec<Command>) {
        let task = self.poll().await;
        self.complete(task.task_token, commands).await;
    }

    /// Completes a workflow task that brought queries.
    pub(crate) async fn complete_with(&self, task_token: Bytes, query_results: HashMap<String, WorkflowQueryResult>) {
        let request = public::RespondWorkflowTaskCompletedRequest { query_results, ..self.completion(task_token) };
        self.respond(request).await.expect("a completion");
    }

    pub(crate) fn sticky_attributes(&self, patience: Duration) -> StickyExecutionAttributes {
        StickyExecutionAttributes {
            worker_task_queue: Some(self.sticky_queue()),
            schedule_to_start_timeout: patience.try_into().ok(),
        }
    }

    /// Completes a workflow task, and wants the next one on the sticky queue.
    pub(crate) async fn complete_stickily(&self, task_token: Bytes, patience: Duration) {
        let sticky_attributes = Some(self.sticky_attributes(patience));
        let request = public::RespondWorkflowTaskCompletedRequest { sticky_attributes, ..self.completion(task_token) };
        self.respond(request).await.expect("a completion");
    }

    /// A started run whose first workflow task is done.
    pub(crate) async fn begin(&self) {
        self.start().await;
        self.work(Vec::new()).await;
    }

    pub(crate) fn query_request(&self, query_type: &str) -> public::QueryWorkflowRequest {
        let query = WorkflowQuery { query_type: query_type.into(), ..Default::default() };
        public::QueryWorkflowRequest {
            namespace: self.namespace.clone(),
            execution: Some(self.execution()),
            query: Some(query),
            ..Default::default()
        }
    }

    pub(crate) async fn query_within(
        &self,
        timeout: Duration,
        query_type: &str,
    ) -> Result<public::QueryWorkflowResponse, Status> {
        let answer = self.client().query_workflow(within(timeout, self.query_request(query_type))).await;
        answer.map(tonic::Response::into_inner)
    }

    pub(crate) async fn query(&self, query_type: &str) -> Result<public::QueryWorkflowResponse, Status> {
        self.query_within(PATIENCE, query_type).await
    }

    pub(crate) async fn answer(&self, task_token: Bytes, answer: Payloads) -> Result<(), Status> {
        let request = public::RespondQueryTaskCompletedRequest {
            namespace: self.namespace.clone(),
            task_token,
            completed_type: QueryResultType::Answered.into(),
            query_result: Some(answer),
            ..Default::default()
        };
        self.client().respond_query_task_completed(request).await.map(|_| ())
    }

    pub(crate) async fn describe(&self) -> public::DescribeWorkflowExecutionResponse {
        let request = public::DescribeWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            execution: Some(self.execution()),
        };
        self.client().describe_workflow_execution(request).await.expect("a description").into_inner()
    }

    pub(crate) async fn events(&self) -> Vec<HistoryEvent> {
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace.clone(),
            execution: Some(self.execution()),
            ..Default::default()
        };
        let page = self.client().get_workflow_execution_history(request).await.expect("a history").into_inner();
        page.history.unwrap_or_default().events
    }

    /// Waits until a run's history has an event of this name.
    pub(crate) async fn event(&self, name: &str) -> HistoryEvent {
        let found = tokio::time::timeout(PATIENCE, async {
            let mut next_page_token = Bytes::new();
            loop {
                let request = public::GetWorkflowExecutionHistoryRequest {
                    namespace: self.namespace.clone(),
                    execution: Some(self.execution()),
                    wait_new_event: true,
                    next_page_token,
                    ..Default::default()
                };
                let page = self.client().get_workflow_execution_history(request).await.expect("history").into_inner();
                let events = page.history.unwrap_or_default().events;
                if let Some(event) = events.into_iter().find(|event| commands::name(event) == name) {
                    return event;
                }
                next_page_token = page.next_page_token;
                assert!(!next_page_token.is_empty(), "{} is over without {name}", self.name);
            }
        });
        found.await.unwrap_or_else(|_| panic!("{} has no {name}", self.name))
    }
}

/// The same answer to all queries that a workflow task brought.
pub(crate) fn answers(queries: HashMap<String, WorkflowQuery>, answer: &str) -> HashMap<String, WorkflowQueryResult> {
    let result = WorkflowQueryResult {
        result_type: QueryResultType::Answered.into(),
        answer: Some(text(answer)),
        ..Default::default()
    };
    queries.into_keys().map(|id| (id, result.clone())).collect()
}
