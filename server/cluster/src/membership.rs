//! This node among the others of its cluster: what the cluster is, checked at every start, and the node's heartbeat.

use std::time::Duration;

use persistence::error::StoreError;
use persistence::stores::cluster::ClusterStore;
use proto::everrow::record;
use thiserror::Error;
use tokio::sync::watch;
use tracing::warn;
use uuid::Uuid;

use crate::config::ClusterConfig;
use crate::env::Env;
use crate::version;

/// Between two heartbeats, before jitter. A node is missed after a few of them.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// The last heartbeat of a node that leaves is a courtesy, not worth a wait.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Clusters tell their writes apart by the failover version's remainder, so there is room for so many.
const FAILOVER_VERSION_INCREMENT: i64 = 10;
const INITIAL_FAILOVER_VERSION: i64 = 1;

/// What all nodes of a cluster agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: Uuid,
    pub name: String,
    pub n_shards: i32,
    pub initial_failover_version: i64,
    pub failover_version_increment: i64,
    /// The kind of store, as clients are told.
    pub store: &'static str,
}

#[derive(Debug, Error)]
pub enum JoinError {
    #[error(
        "the data was made with {recorded} shards and the configuration says {configured}; set cluster.shards (or \
         --shards) to {recorded}, or use an empty store"
    )]
    OtherShards { recorded: i32, configured: i32 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Finds the cluster that the store belongs to, or makes this its first start.
pub async fn join(
    store: &ClusterStore,
    config: &ClusterConfig,
    engine: &'static str,
    env: &Env,
) -> Result<Cluster, JoinError> {
    let first = record::Cluster {
        cluster_id: env.new_uuid().as_bytes().to_vec().into(),
        n_shards: config.shards,
        failover_version_increment: FAILOVER_VERSION_INCREMENT,
        initial_failover_version: INITIAL_FAILOVER_VERSION,
        is_connection_enabled: true,
        ..record::Cluster::default()
    };
    let recorded = store.get_or_create(&config.name, first).await?;
    if recorded.n_shards != config.shards {
        return Err(JoinError::OtherShards { recorded: recorded.n_shards, configured: config.shards });
    }
    let id = Uuid::from_slice(&recorded.cluster_id)
        .map_err(|error| StoreError::Corrupt(format!("cluster {}: its id: {error}", config.name)))?;
    Ok(Cluster {
        id,
        name: config.name.clone(),
        n_shards: recorded.n_shards,
        initial_failover_version: recorded.initial_failover_version,
        failover_version_increment: recorded.failover_version_increment,
        store: engine,
    })
}

/// The heartbeat of one node, as long as it lives.
pub struct Heartbeat {
    pub store: ClusterStore,
    pub env: Env,
    pub host_id: Uuid,
    pub member: record::Member,
}

impl Heartbeat {
    #[must_use]
    pub fn new(store: ClusterStore, env: Env, cluster: &Cluster, address: String) -> Self {
        let member = record::Member {
            cluster_id: cluster.id.as_bytes().to_vec().into(),
            address,
            services: ["frontend", "history", "matching"].map(str::to_owned).to_vec(),
            started_at: env.now().0,
            version: version::EVERROW.into(),
            is_draining: false,
        };
        let host_id = env.new_uuid();
        Self { store, env, host_id, member }
    }

    /// Beats until told to stop, then takes the node off the list.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        loop {
            if let Err(error) = self.store.heartbeat(self.host_id, self.env.now(), &self.member).await {
                warn!(%error, "cannot write the node's heartbeat");
            }
            tokio::select! {
                () = tokio::time::sleep(self.env.jittered(HEARTBEAT_EVERY)) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        match tokio::time::timeout(LEAVE_TIMEOUT, self.store.leave(self.host_id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cannot take the node off the list"),
            Err(_) => warn!("cannot take the node off the list in time"),
        }
    }
}

#[cfg(test)]
mod tests;
