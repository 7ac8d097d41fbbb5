//! Membership in the cluster: the cluster's record, checked at every start, and the node's heartbeat.

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

/// Interval of heartbeats, before jitter.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// Timeout of the row's deletion at shutdown, which is best effort.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Clusters distinguish their writes by the failover version modulo this, so there may be 10.
const FAILOVER_VERSION_INCREMENT: i64 = 10;
const INITIAL_FAILOVER_VERSION: i64 = 1;

/// Properties that all nodes of a cluster share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: Uuid,
    pub name: String,
    pub n_shards: i32,
    pub initial_failover_version: i64,
    pub failover_version_increment: i64,
    /// The kind of store, as reported to clients.
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

/// Reads the store's cluster, or creates it at the first start.
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

/// The heartbeat of this node while it runs.
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

    /// Writes heartbeats until `stop`, then deletes the membership row.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        loop {
            if let Err(error) = self.store.heartbeat(self.host_id, self.env.now(), &self.member).await {
                warn!(%error, "heartbeat write failed; retrying at the next heartbeat");
            }
            tokio::select! {
                () = tokio::time::sleep(self.env.jittered(HEARTBEAT_EVERY)) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        match tokio::time::timeout(LEAVE_TIMEOUT, self.store.leave(self.host_id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cannot delete membership row"),
            Err(_) => warn!("cannot delete membership row in time"),
        }
    }
}

#[cfg(test)]
mod tests;
