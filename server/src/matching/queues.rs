//! The task queues that are loaded on this node, each with its keeper.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use futures_util::future::join_all;
use persistence::stores::shards::Claim;
use persistence::stores::task_queues::TaskQueueStore;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::task::JoinSet;
use tracing::{debug, info};
use workflow::{NamespaceId, Timestamp};

use super::config::MatchingConfig;
use super::keeper::Keeper;
use super::partition::{Added, Partition};
use super::pollers::PollerMemory;
use super::task::{QueueKey, Task};

/// Queues per read when a namespace is removed.
const REMOVED_AT_ONCE: usize = 100;

/// Bytes of a queue's name, on average over `loaded_queues`: longer names leave room for fewer queues.
const NAME_BYTES: usize = 100;

/// Minimum time between sweeps: one takes some milliseconds at the limit of loaded queues.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Queues {
    env: Env,
    store: TaskQueueStore,
    config: Arc<MatchingConfig>,
    /// Identifies this process in its leases.
    owner: String,
    loaded: Mutex<Loaded>,
    poller_memory: Arc<PollerMemory>,
}

#[derive(Default)]
struct Loaded {
    partitions: HashMap<QueueKey, Arc<Partition>>,
    /// Sum over the loaded queues.
    name_bytes: usize,
    keepers: JoinSet<()>,
    /// Time of the last sweep.
    swept_at: Option<Timestamp>,
    is_stopped: bool,
}

impl Loaded {
    fn is_full(&self, config: &MatchingConfig) -> bool {
        let name_bytes_max = config.loaded_queues.saturating_mul(NAME_BYTES);
        self.partitions.len() >= config.loaded_queues || self.name_bytes >= name_bytes_max
    }

    /// Unloads unused queues before their idle time, so that names which a client invents do not keep others out. Scans
    /// all queues, so not at every call.
    fn make_room(&mut self, now: Timestamp) {
        if self.swept_at.is_some_and(|at| now.since(at) < SWEEP_INTERVAL) {
            return;
        }
        self.swept_at = Some(now);
        let closed = self.partitions.extract_if(|_, partition| partition.close_if_unused(now));
        self.name_bytes -= closed.map(|(key, _)| key.name.len()).sum::<usize>();
    }
}

impl Queues {
    pub(super) fn new(env: Env, store: TaskQueueStore, config: Arc<MatchingConfig>) -> Arc<Self> {
        let owner = env.new_uuid().to_string();
        Arc::new(Self { env, store, config, owner, loaded: Mutex::default(), poller_memory: Arc::default() })
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    pub(super) fn config(&self) -> Arc<MatchingConfig> {
        Arc::clone(&self.config)
    }

    pub(super) fn poller_memory(&self) -> Arc<PollerMemory> {
        Arc::clone(&self.poller_memory)
    }

    /// The queue's partition, which begins to load if it is absent.
    pub(super) fn load(self: &Arc<Self>, key: &QueueKey) -> Result<Arc<Partition>, ServiceError> {
        let mut loaded = self.loaded();
        if loaded.is_stopped {
            return Err(ServiceError::Unavailable("the matching service is shutting down".into()));
        }
        if let Some(partition) = loaded.partitions.get(key).filter(|partition| !partition.is_closed()) {
            return Ok(Arc::clone(partition));
        }
        if loaded.is_full(&self.config) {
            loaded.make_room(self.env.monotonic());
        }
        if loaded.is_full(&self.config) {
            return Err(ServiceError::ResourceExhausted {
                cause: ResourceExhaustedCause::SystemOverloaded,
                scope: ResourceExhaustedScope::System,
                message: "too many task queues in use".into(),
            });
        }
        let partition = Partition::new(key.clone(), self);
        // A closed partition may still be in the map.
        if loaded.partitions.insert(key.clone(), Arc::clone(&partition)).is_none() {
            loaded.name_bytes += key.name.len();
        }
        // Removes ended keepers, so that the set does not grow with every queue ever loaded.
        while loaded.keepers.try_join_next().is_some() {}
        let keeper = Keeper::new(Arc::clone(&partition), self.store.clone(), self.owner.clone());
        loaded.keepers.spawn(keep(keeper, Arc::clone(&partition), Arc::downgrade(self)));
        Ok(partition)
    }

    /// The queue's partition, if it is loaded.
    pub(super) fn find(&self, key: &QueueKey) -> Option<Arc<Partition>> {
        self.loaded().partitions.get(key).filter(|partition| !partition.is_closed()).cloned()
    }

    /// Adds tasks to a queue all at once, so that they are written together.
    pub(super) async fn add_all(self: &Arc<Self>, key: &QueueKey, tasks: Vec<Task>) {
        let n_tasks = tasks.len();
        let added = tasks.into_iter().map(async |task| self.load(key)?.add(task).await);
        let n_lost =
            join_all(added).await.into_iter().filter(|added| !matches!(added, Ok(Added::Matched | Added::Spooled)));
        match n_lost.count() {
            0 => debug!(queue = %key.name, n_tasks, "sticky worker left; its tasks moved"),
            n_lost => info!(queue = %key.name, n_tasks, n_lost, "sticky worker left; tasks wait for their timeout"),
        }
    }

    /// Deletes all that is stored of a namespace's queues. Taking the lease fences its owner, which closes the queue at
    /// its next statement.
    pub(super) async fn remove_namespace(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        loop {
            let queues = self.store.queues(namespace_id, REMOVED_AT_ONCE).await?;
            if queues.is_empty() {
                return Ok(());
            }
            for queue in queues {
                let claim = Claim { owner: self.owner.clone(), nonce: self.env.new_uuid() };
                let lease = self.store.lease(&queue, claim).await?;
                self.store.delete(&queue, lease.range_id).await?;
                self.store.forget_name(&queue).await?;
            }
        }
    }

    /// Every queue writes its waiting tasks and closes.
    pub(super) async fn stop(&self) {
        let mut keepers = {
            let mut loaded = self.loaded();
            loaded.is_stopped = true;
            for partition in loaded.partitions.values() {
                partition.drain();
            }
            std::mem::take(&mut loaded.keepers)
        };
        while keepers.join_next().await.is_some() {}
    }

    #[cfg(test)]
    pub(super) fn n_loaded(&self) -> usize {
        self.loaded().partitions.len()
    }

    fn forget(&self, partition: &Arc<Partition>) {
        let mut loaded = self.loaded();
        // It may have been loaded again since it was closed.
        if loaded.partitions.get(partition.key()).is_some_and(|current| Arc::ptr_eq(current, partition)) {
            loaded.partitions.remove(partition.key());
            loaded.name_bytes -= partition.key().name.len();
        }
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Weak: the queues own their keepers, not the reverse.
async fn keep(keeper: Keeper, partition: Arc<Partition>, queues: Weak<Queues>) {
    keeper.run().await;
    if let Some(queues) = queues.upgrade() {
        queues.forget(&partition);
    }
}
