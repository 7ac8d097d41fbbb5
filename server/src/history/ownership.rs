//! Shard ownership: acquires this node's shards, serves them, reacquires those that were lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use persistence::engine::Availability;
use persistence::stores::executions::RunCounts;
use persistence::stores::shards::ShardId;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{error, info, warn};
use workflow::NamespaceId;

use super::committer::stopped;
use super::jobs;
use super::queues::{self, Pool};
use super::shard::{Shard, ShardParts, shard_of};
use super::workflow_ids::run_filter_builds;
use crate::peers::Peers;

/// How long a request waits for its shard to be acquired.
const SHARD_WAIT: Duration = Duration::from_secs(5);
/// Base pause before a lost shard is reacquired, so that two nodes which both want it do not fight at full speed.
const RETAKE_PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct Ownership {
    n_shards: i32,
    /// Indexed by shard id - 1.
    shards: Vec<watch::Receiver<Option<Arc<Shard>>>>,
    keepers: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
}

impl Ownership {
    /// Starts to acquire all shards; requests wait for theirs.
    pub(crate) fn start(n_shards: i32, parts: &ShardParts, peers: &Peers) -> Self {
        assert!(n_shards > 0, "there is a shard");
        let pool = Pool::new(parts.config.task_pool_size);
        let (stop, stopped) = watch::channel(false);
        let mut keepers = JoinSet::new();
        keepers.spawn(watch_clock(parts.env.clone(), stopped.clone()));
        let shards = (1..=n_shards).map(|id| {
            let (publish, shard) = watch::channel(None);
            let keeper = Keeper {
                id: ShardId(id),
                parts: parts.clone(),
                peers: peers.clone(),
                pool: pool.clone(),
                publish,
                stop: stopped.clone(),
            };
            keepers.spawn(keeper.run());
            shard
        });
        let shards = shards.collect();
        Self { n_shards, shards, keepers: Mutex::new(keepers), stop }
    }

    /// The shard that a workflow lives in.
    pub(crate) async fn shard(&self, namespace_id: NamespaceId, workflow_id: &str) -> Result<Arc<Shard>, ServiceError> {
        let id = shard_of(namespace_id, workflow_id, self.n_shards);
        self.taken(usize::try_from(id.0 - 1).expect("shards count from 1")).await
    }

    /// The shard that a namespace's jobs are in.
    pub(crate) async fn job_shard(&self, namespace_id: NamespaceId) -> Result<Arc<Shard>, ServiceError> {
        self.shard(namespace_id, "").await
    }

    /// The shard at this index, once acquired.
    async fn taken(&self, index: usize) -> Result<Arc<Shard>, ServiceError> {
        let mut shard = self.shards[index].clone();
        let taken = tokio::time::timeout(SHARD_WAIT, shard.wait_for(Option::is_some)).await;
        let unavailable = || ServiceError::Unavailable(format!("shard {} is not available", index + 1));
        let taken = taken.map_err(|_| unavailable())?.map_err(|_| unavailable())?;
        taken.clone().ok_or_else(unavailable)
    }

    /// All shards of this node, once acquired.
    pub(crate) async fn all(&self) -> Result<Vec<Arc<Shard>>, ServiceError> {
        let mut all = Vec::new();
        for index in 0..self.shards.len() {
            all.push(self.taken(index).await?);
        }
        Ok(all)
    }

    /// How many runs of a namespace this node's shards have, by status.
    pub(crate) async fn count(&self, namespace_id: NamespaceId) -> Result<RunCounts, ServiceError> {
        let mut counts = RunCounts::default();
        for index in 0..self.shards.len() {
            counts.merge(&self.taken(index).await?.tally.of(namespace_id));
        }
        Ok(counts)
    }

    /// Commits pending submissions, writes the last checkpoints, and releases all shards.
    pub(crate) async fn shutdown(&self) {
        self.stop.send_replace(true);
        let mut keepers = std::mem::take(&mut *self.keepers.lock().expect("nobody panics while holding it"));
        while keepers.join_next().await.is_some() {}
    }
}

/// Watches the wall clock until the node stops.
async fn watch_clock(env: Env, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        () = env.watch_clock() => {}
        () = stopped(&mut stop) => {}
    }
}

/// Keeps one shard acquired for the node's lifetime.
struct Keeper {
    id: ShardId,
    parts: ShardParts,
    peers: Peers,
    pool: Pool,
    publish: watch::Sender<Option<Arc<Shard>>>,
    stop: watch::Receiver<bool>,
}

impl Keeper {
    async fn run(mut self) {
        let mut tries = 0;
        while !*self.stop.borrow() {
            match Shard::acquire(self.id, &self.parts).await {
                Ok((shard, committing)) => {
                    tries = 0;
                    self.keep(shard, committing).await;
                }
                Err(error) => {
                    warn!(shard = self.id.0, %error, "cannot acquire the shard; retrying");
                    tries += 1;
                }
            }
            if self.store_returns().await {
                tries = 0;
            }
            let pause = self.parts.env.jittered(RETAKE_PAUSE + queues::backoff(tries));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stopped(&mut self.stop) => {}
            }
        }
    }

    /// Waits while the store is down; `false` if it is up. Backoff alone could double the length of an outage.
    async fn store_returns(&mut self) -> bool {
        let mut store = self.parts.stores.availability.clone();
        let is_down = *store.borrow() != Availability::Up;
        if is_down {
            tokio::select! {
                _ = store.wait_for(|availability| *availability == Availability::Up) => {}
                () = stopped(&mut self.stop) => {}
            }
        }
        is_down
    }

    /// Serves the shard until its lease is lost or the node stops.
    async fn keep(&mut self, shard: Arc<Shard>, committing: tokio::task::JoinHandle<()>) {
        let mut runners = JoinSet::new();
        runners.spawn(queues::run_transfer(Arc::clone(&shard), self.peers.clone(), self.pool.clone()));
        runners.spawn(queues::run_timers(Arc::clone(&shard), self.peers.clone(), self.pool.clone()));
        runners.spawn(queues::run_visibility(Arc::clone(&shard), self.peers.clone()));
        runners.spawn(run_filter_builds(Arc::clone(&shard)));
        runners.spawn(jobs::run_jobs(Arc::clone(&shard), self.peers.clone()));
        self.publish.send_replace(Some(Arc::clone(&shard)));
        let closed = tokio::select! {
            // Biased: when the committer ends, the runners end too, and that is not an error.
            biased;
            closed = shard.committer.ended() => closed,
            // A shard cannot serve without all of its runners: it is closed and reacquired.
            Some(ended) = runners.join_next() => {
                error!(shard = self.id.0, error = ?ended.err(), "shard runner exited; reacquiring the shard");
                shard.stop();
                shard.committer.ended().await
            }
            () = stopped(&mut self.stop) => {
                self.publish.send_replace(None);
                shard.stop();
                shard.committer.ended().await
            }
        };
        self.publish.send_replace(None);
        info!(shard = self.id.0, %closed, "shard closed");
        // Runners end with the committer; their tasks in flight are in the store, and the next owner resumes them.
        while runners.join_next().await.is_some() {}
        if let Err(error) = committing.await {
            warn!(shard = self.id.0, %error, "committer task failed");
        }
    }
}
