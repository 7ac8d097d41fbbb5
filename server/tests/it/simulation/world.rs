//! A node without a network: the services of one process on the model engine. Clients reach it through a handle that
//! survives a crash.

use std::sync::{Arc, Mutex};

use cluster::env::{Env, SimulatedWall};
use cluster::errors::ServiceError;
use cluster::namespaces::NamespaceRegistry;
use cluster::search_attributes::custom::CustomAttributes;
use cluster::segments::Segments;
use persistence::engine::Engine;
use persistence::model::Model;
use persistence::stores::Stores;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::workflow::v1::WorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;
use server::history::config::HistoryConfig;
use server::peers::{Among, ListRequest, Peers};
use server::{history, matching, visibility};
use tokio::task::JoinSet;
use workflow::NamespaceId;

use super::client::{self, Sent, pause_after};
use super::worker;

pub(super) const NAMESPACE_ID: &str = "11111111-2222-4333-8444-555555555555";
pub(super) const N_SHARDS: i32 = 2;
const N_WORKERS: usize = 6;

pub(super) struct World {
    pub(super) wall: SimulatedWall,
    handle: Handle,
    workers: JoinSet<()>,
}

/// The services of the node's present life.
#[derive(Clone)]
pub(super) struct Handle {
    services: Arc<Mutex<Services>>,
}

#[derive(Clone)]
pub(super) struct Services {
    pub(super) history: Arc<history::service::Service>,
    pub(super) matching: Arc<matching::service::Service>,
    peers: Peers,
}

impl World {
    pub(super) async fn start(model: &Arc<Model>, seed: u64) -> Self {
        Self::start_as(model, seed, HistoryConfig::default()).await
    }

    pub(super) async fn start_as(model: &Arc<Model>, seed: u64, config: HistoryConfig) -> Self {
        Self::start_at(&SimulatedWall::new(), model, (seed, config)).await
    }

    /// A world whose wall clock runs already.
    pub(super) async fn start_at(wall: &SimulatedWall, model: &Arc<Model>, life: (u64, HistoryConfig)) -> Self {
        let services = Services::start_with((model, wall), life, new_matching);
        let handle = Handle { services: Arc::new(Mutex::new(services)) };
        let mut world = Self { wall: wall.clone(), handle, workers: JoinSet::new() };
        world.hire_workers();
        world
    }

    /// A second history service that wants the same shards; matching is the first one's, which is not in dispute.
    pub(super) async fn start_rival(&self, model: &Arc<Model>, seed: u64) -> Self {
        let matching = self.handle.services().matching;
        let services = Services::start_with((model, &self.wall), (seed, HistoryConfig::default()), |_, _, _| matching);
        let handle = Handle { services: Arc::new(Mutex::new(services)) };
        Self { wall: self.wall.clone(), handle, workers: JoinSet::new() }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The process is gone from one moment to the next, and another takes its place. What it had sent to the store may
    /// still arrive there.
    pub(super) async fn crash_and_restart(mut self, model: &Arc<Model>, seed: u64) -> Self {
        self.workers.abort_all();
        while self.workers.join_next().await.is_some() {}
        let successor = Services::start(model, &self.wall, seed);
        let dead = std::mem::replace(&mut *self.handle.services.lock().unwrap(), successor);
        // The two services hold each other; without this the dead would go on working.
        dead.peers.clear();
        drop(dead);
        self.hire_workers();
        self
    }

    pub(super) async fn stop(self) {
        let services = self.handle.services();
        services.matching.shutdown().await;
        self.stop_history().await;
    }

    /// For a rival, whose matching belongs to another.
    pub(super) async fn stop_history(mut self) {
        self.workers.abort_all();
        while self.workers.join_next().await.is_some() {}
        self.handle.services().history.shutdown().await;
    }

    /// Waits until every run that was started is closed.
    pub(super) async fn all_closed(&self, sent: &Sent) {
        for workflow_id in sent.workflow_ids() {
            let closed = async {
                loop {
                    let status = self.describe(workflow_id).await.status();
                    if status != WorkflowExecutionStatus::Running {
                        break;
                    }
                    self.wait_for_close(workflow_id).await;
                }
            };
            let patience = std::time::Duration::from_secs(3600);
            let outcome = tokio::time::timeout(patience, closed).await;
            if outcome.is_err() {
                let events = self.history(workflow_id).await;
                let last = &events[events.len().saturating_sub(3)..];
                panic!("{workflow_id} is stuck: {:?}, last events {last:?}", self.described(workflow_id).await);
            }
        }
    }

    pub(super) async fn describe(&self, workflow_id: &str) -> WorkflowExecutionInfo {
        self.described(workflow_id).await.workflow_execution_info.unwrap()
    }

    async fn described(&self, workflow_id: &str) -> public::DescribeWorkflowExecutionResponse {
        loop {
            match self.try_describe(workflow_id).await {
                Ok(described) => return described,
                Err(error) => pause_after(&error).await,
            }
        }
    }

    pub(super) async fn try_describe(
        &self,
        workflow_id: &str,
    ) -> Result<public::DescribeWorkflowExecutionResponse, ServiceError> {
        let request = request::DescribeWorkflowExecutionRequest {
            namespace_id: NAMESPACE_ID.into(),
            request: Some(public::DescribeWorkflowExecutionRequest {
                execution: Some(execution(workflow_id)),
                ..Default::default()
            }),
        };
        self.handle.services().history.describe_workflow_execution(request).await
    }

    pub(super) async fn history(&self, workflow_id: &str) -> Vec<HistoryEvent> {
        client::history(&self.handle, execution(workflow_id)).await
    }

    /// All runs that a query returns.
    pub(super) async fn listed(&self, query: &str) -> Vec<WorkflowExecutionInfo> {
        let request = ListRequest {
            namespace_id: NamespaceId(NAMESPACE_ID.parse().unwrap()),
            custom: CustomAttributes::default(),
            among: Among::Runs,
            query: query.to_owned(),
            page_size: 1000,
            token: Default::default(),
        };
        loop {
            match self.handle.services().peers.visibility().unwrap().list(request.clone()).await {
                Ok(page) => {
                    assert!(page.next_page_token.is_empty(), "a world has fewer runs");
                    return page.executions;
                }
                Err(error) => pause_after(&error).await,
            }
        }
    }

    async fn wait_for_close(&self, workflow_id: &str) {
        let request = public::GetWorkflowExecutionHistoryRequest {
            execution: Some(execution(workflow_id)),
            wait_new_event: true,
            history_event_filter_type: proto::temporal::api::enums::v1::HistoryEventFilterType::CloseEvent.into(),
            ..Default::default()
        };
        let request = request::GetWorkflowExecutionHistoryRequest {
            namespace_id: NAMESPACE_ID.into(),
            request: Some(request),
            shows_unwritten: false,
            follows_next_run: true,
        };
        // An error is only a reason to look again.
        let _ = self.handle.services().history.get_workflow_execution_history(request).await;
    }

    fn hire_workers(&mut self) {
        for _ in 0..N_WORKERS {
            self.workers.spawn(worker::run_workflow_tasks(self.handle.services()));
            self.workers.spawn(worker::run_activities(self.handle.services()));
        }
    }
}

impl Handle {
    pub(super) fn services(&self) -> Services {
        self.services.lock().unwrap().clone()
    }
}

impl Services {
    fn start(model: &Arc<Model>, wall: &SimulatedWall, seed: u64) -> Self {
        Self::start_with((model, wall), (seed, HistoryConfig::default()), new_matching)
    }

    fn start_with(
        (model, wall): (&Arc<Model>, &SimulatedWall),
        (seed, config): (u64, HistoryConfig),
        matching: impl FnOnce(Env, Peers, Stores) -> Arc<matching::service::Service>,
    ) -> Self {
        let env = Env::simulated_by(wall, seed);
        let engine: Arc<dyn Engine> = Arc::clone(model) as Arc<dyn Engine>;
        let stores = Stores::new(engine);
        let peers = Peers::default();
        let segments = Segments::new(env.clone());
        peers.set_visibility(visibility::service::Service::start(visibility::service::Parts {
            env: env.clone(),
            store: stores.visibility.clone(),
            segments: segments.clone(),
            peers: peers.clone(),
        }));
        let history = history::service::Service::start(history::service::Parts {
            env: env.clone(),
            stores: stores.clone(),
            namespaces: Arc::new(NamespaceRegistry::new(stores.namespaces.clone(), env.clone())),
            peers: peers.clone(),
            config,
            segments,
            n_shards: N_SHARDS,
            owner: format!("node-{seed}"),
            is_store_shared: true,
        });
        let matching = matching(env, peers.clone(), stores);
        peers.set_history(Arc::clone(&history));
        peers.set_matching(Arc::clone(&matching));
        Self { history, matching, peers }
    }
}

fn new_matching(env: Env, peers: Peers, stores: Stores) -> Arc<matching::service::Service> {
    matching::service::Service::new(env, peers, stores.task_queues, Default::default())
}

pub(super) fn execution(workflow_id: &str) -> WorkflowExecution {
    WorkflowExecution { workflow_id: workflow_id.to_owned(), run_id: String::new() }
}
