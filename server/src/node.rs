//! The composition root: opens the store, builds the services, serves them, and shuts everything down. The only file
//! that depends on all services.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::membership::{self, Cluster, Heartbeat, JoinError};
use cluster::metrics::endpoint::Endpoint;
use cluster::namespaces::NamespaceRegistry;
use cluster::segments::Segments;
use persistence::counted::{Counted, Counts};
use persistence::error::StoreError;
use persistence::stores::Stores;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::info;

use crate::config::{Config, ConfigError, EngineKind};
use crate::frontend::{Defined, Frontend};
use crate::peers::Peers;
use crate::{history, matching, visibility};

pub(crate) mod descriptors;
pub(crate) mod engine;
mod serving;

/// Drain timeout at shutdown. Waiting calls (polls, queries, updates, new events) are released at once, so the
/// remaining calls are about to end, or wait for their client.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(400);

/// A running node.
pub struct Node {
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    metrics_address: Option<SocketAddr>,
    counts: Arc<Counts>,
    frontend: Frontend,
    health: HealthReporter,
    services: Services,
    stop: watch::Sender<bool>,
    serving: JoinSet<()>,
    /// Tasks that run until the node stops: store health, metrics, heartbeat.
    background: JoinSet<()>,
}

struct Services {
    peers: Peers,
    history: Arc<history::service::Service>,
    matching: Arc<matching::service::Service>,
    visibility: Arc<visibility::service::Service>,
}

/// Start-up error, for the operator.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot open the store ({place}): {error}")]
    Store { place: String, error: StoreError },
    #[error("{0}")]
    Schema(String),
    #[error("{0}")]
    OtherCluster(String),
    #[error("cannot listen on {address}: {error}; use another address, or stop what listens there")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot start: {0}")]
    Service(#[from] ServiceError),
}

impl Node {
    /// Starts all services of this node, and returns once they answer.
    pub async fn start(config: Config, env: Env) -> Result<Self, StartError> {
        config.check()?;
        // Bound first, so that a port in use is found before the store is touched.
        let (incoming, address) = serving::bind(config.frontend.listen)?;
        let http = config.http.address.map(serving::bind).transpose()?;
        let metrics = match config.metrics.address {
            Some(address) => {
                let bound = Endpoint::bind(address).await;
                Some(bound.map_err(|error| StartError::Listen { address, error })?)
            }
            None => None,
        };
        let opened = engine::open(&config.store, &env).await?;
        let (engine, counts) = Counted::new(opened.engine);
        let stores = Stores::new(engine);
        let failed = |error| StartError::Store { place: opened.place.clone(), error };
        let cluster = match membership::join(&stores.cluster, &config.cluster, opened.kind, &env).await {
            Ok(cluster) => Arc::new(cluster),
            Err(JoinError::Store(error)) => return Err(failed(error)),
            Err(error @ JoinError::OtherShards { .. }) => return Err(StartError::OtherCluster(error.to_string())),
        };
        let namespaces = Arc::new(NamespaceRegistry::new(stores.namespaces.clone(), env.clone()));
        namespaces.ensure(&config.cluster.namespaces, &cluster.name).await?;
        let attributes = config.cluster.search_attributes.iter().map(|(name, kind)| (name.clone(), kind.0)).collect();
        for name in &config.cluster.namespaces {
            namespaces.define(name, &attributes).await?;
        }

        let http_address = http.as_ref().map(|(_, address)| *address);
        let services = Services::start(&config, &env, (&stores, &namespaces), &cluster, address);
        let defined = Defined {
            nexus_endpoints: stores.nexus_endpoints.clone(),
            changing_endpoints: Arc::default(),
            clusters: stores.cluster.clone(),
            own_address: address.to_string(),
            own_http_address: http_address.map(|address| address.to_string()).unwrap_or_default(),
        };
        let frontend = Frontend::new(env.clone(), services.peers.clone(), namespaces, Arc::clone(&cluster), defined);
        let (stop, stopped) = watch::channel(false);
        let (health, api) = serving::public_api(frontend.clone(), &stores.availability).await;
        let mut serving = JoinSet::new();
        let connections_max = descriptors::connections(config.frontend.connections_max);
        let ledger = serving::Ledger::new(config.frontend.buffer_bytes, connections_max);
        if let Some((incoming, _)) = http {
            let gateway = serving::gateway(&api, &config.http);
            serving.spawn(serving::serve_http(gateway, incoming, Arc::clone(&ledger), stopped.clone()));
        }
        serving.spawn(serving::serve_grpc(api, incoming, ledger, stopped.clone()));
        let mut background = JoinSet::new();
        background.spawn(serving::follow_store(health.clone(), stores.availability.clone(), stopped.clone()));
        let metrics_address = metrics.as_ref().map(Endpoint::address);
        if let Some(metrics) = metrics {
            background.spawn(metrics.serve(stopped.clone()));
        }
        background.spawn(Heartbeat::new(stores.cluster, env, &cluster, address.to_string()).run(stopped));
        Ok(Self {
            address,
            http_address,
            metrics_address,
            counts,
            frontend,
            health,
            services,
            stop,
            serving,
            background,
        })
    }

    /// Where the gRPC API is served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the HTTP/JSON API is served, if it is.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Where the metrics are served, if they are.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Counts of what was sent to the store since the start.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Waits until serving ends unexpectedly, and returns the reason.
    pub async fn failed(&mut self) -> String {
        match self.serving.join_next().await {
            Some(Err(error)) => format!("serving broke off: {error}"),
            Some(Ok(())) | None => "serving ended".into(),
        }
    }

    /// Shuts down: reports `NotServing` to load balancers, releases polls, stops accepting, drains calls, then flushes.
    pub async fn shutdown(mut self) {
        for service in serving::HEALTH_NAMES {
            self.health.set_service_status(service, ServingStatus::NotServing).await;
        }
        self.frontend.release_waiting_calls();
        self.stop.send_replace(true);
        let drained = tokio::time::timeout(DRAIN_TIMEOUT, async { while self.serving.join_next().await.is_some() {} });
        if drained.await.is_err() {
            info!("drain timed out; closing connections with calls under way");
            self.serving.shutdown().await;
        }
        // History first: its last tasks still need the matching service.
        self.services.history.shutdown().await;
        self.services.matching.shutdown().await;
        self.services.visibility.shutdown().await;
        self.services.peers.clear();
        while self.background.join_next().await.is_some() {}
        // The store closes with the last service that holds it, when this is dropped.
    }
}

impl Services {
    fn start(
        config: &Config,
        env: &Env,
        (stores, namespaces): (&Stores, &Arc<NamespaceRegistry>),
        cluster: &Cluster,
        address: SocketAddr,
    ) -> Self {
        let peers = Peers::default();
        let matching = matching::service::Service::new(
            env.clone(),
            peers.clone(),
            stores.task_queues.clone(),
            config.matching.clone(),
        );
        peers.set_matching(Arc::clone(&matching));
        let segments = Segments::new(env.clone());
        let visibility = visibility::service::Service::start(visibility::service::Parts {
            env: env.clone(),
            store: stores.visibility.clone(),
            segments: segments.clone(),
            peers: peers.clone(),
        });
        peers.set_visibility(Arc::clone(&visibility));
        let history = history::service::Service::start(history::service::Parts {
            env: env.clone(),
            stores: stores.clone(),
            namespaces: Arc::clone(namespaces),
            peers: peers.clone(),
            config: config.history.clone(),
            segments,
            n_shards: cluster.n_shards,
            owner: address.to_string(),
            is_store_shared: config.store.engine == EngineKind::Cassandra,
        });
        peers.set_history(Arc::clone(&history));
        Self { peers, history, matching, visibility }
    }
}
