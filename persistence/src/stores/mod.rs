//! The stores give rows a meaning. Written once, on the wide-row contract, so that every engine has all stores.

use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::{Availability, Engine};

pub mod shards;
pub mod executions;
pub mod history;
pub mod task_queues;
pub mod namespaces;
pub mod cluster;
pub mod queues;
pub mod nexus;
pub mod visibility;
mod rows;

/// All stores of one engine. Cheap to clone: each holds the engine and nothing else.
#[derive(Clone)]
pub struct Stores {
    pub shards: shards::ShardStore,
    pub executions: executions::ExecutionStore,
    pub history: history::HistoryStore,
    pub task_queues: task_queues::TaskQueueStore,
    pub namespaces: namespaces::NamespaceStore,
    pub cluster: cluster::ClusterStore,
    pub queues: queues::QueueStore,
    pub nexus_endpoints: nexus::NexusEndpointStore,
    pub visibility: visibility::VisibilityStore,
    /// Whether the engine serves.
    pub availability: watch::Receiver<Availability>,
}

impl Stores {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        let availability = engine.availability();
        Self {
            availability,
            shards: shards::ShardStore::new(Arc::clone(&engine)),
            executions: executions::ExecutionStore::new(Arc::clone(&engine)),
            history: history::HistoryStore::new(Arc::clone(&engine)),
            task_queues: task_queues::TaskQueueStore::new(Arc::clone(&engine)),
            namespaces: namespaces::NamespaceStore::new(Arc::clone(&engine)),
            cluster: cluster::ClusterStore::new(Arc::clone(&engine)),
            queues: queues::QueueStore::new(Arc::clone(&engine)),
            nexus_endpoints: nexus::NexusEndpointStore::new(Arc::clone(&engine)),
            visibility: visibility::VisibilityStore::new(engine),
        }
    }
}
