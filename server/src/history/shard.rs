//! Shard: a partition of all workflows, owned under a lease, with the owner's state in memory.

use std::sync::Arc;
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::namespaces::NamespaceRegistry;
use cluster::segments::Segments;
use persistence::stores::Stores;
use persistence::stores::shards::{Claim, ShardId, ShardRecord};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;
use workflow::NamespaceId;

use super::cache::{HotExecutions, Slots};
use super::committer::{CommitLoop, Committer, LEASE_AGE_MAX};
use super::config::HistoryConfig;
use super::damaged;
use super::durability::LeaseSeen;
use super::identity::IdClock;
use super::jobs::Jobs;
use super::queues::Queues;
use super::tally::Tally;
use super::waiters::Waiters;
use super::workflow_ids::WorkflowIds;

/// A shard under one lease. When the lease is lost the object is dropped, and with it all that was in memory.
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) env: Env,
    pub(crate) stores: Stores,
    pub(crate) namespaces: Arc<NamespaceRegistry>,
    pub(crate) config: Arc<HistoryConfig>,
    pub(crate) slots: Slots,
    pub(crate) workflow_ids: WorkflowIds,
    pub(crate) ids: Arc<IdClock>,
    pub(crate) committer: Committer,
    pub(crate) queues: Arc<Queues>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) jobs: Jobs,
    pub(crate) segments: Segments,
    stop: watch::Sender<bool>,
}

/// Parts that all shards of a node share.
#[derive(Clone)]
pub(crate) struct ShardParts {
    pub(crate) env: Env,
    pub(crate) stores: Stores,
    pub(crate) namespaces: Arc<NamespaceRegistry>,
    pub(crate) config: Arc<HistoryConfig>,
    pub(crate) hot: HotExecutions,
    pub(crate) segments: Segments,
    /// Names this node in the lease.
    pub(crate) owner: String,
    /// Other nodes may want the same shards.
    pub(crate) is_store_shared: bool,
}

/// Shortest lead that is logged: clocks of nodes usually differ by less.
const LEAD_REPORTED: Duration = Duration::from_secs(1);

/// Hashes fall into this many slices, which shards share evenly: a later split moves whole slices.
const SLICES: u64 = 1 << 14;

impl Shard {
    /// Takes the lease. Returns the shard and the task that commits for it.
    pub(crate) async fn acquire(id: ShardId, parts: &ShardParts) -> Result<(Arc<Self>, JoinHandle<()>), ServiceError> {
        let claim = Claim { owner: parts.owner.clone(), nonce: parts.env.new_uuid() };
        let lease_asked = LeaseSeen::now(&parts.env);
        let acquired = parts.stores.shards.acquire(id, claim.clone()).await?;
        if parts.is_store_shared && !acquired.was_free {
            // The former holder may still serve reads from its last state; nothing newer is committed until it stops.
            tokio::time::sleep(LEASE_AGE_MAX + LEASE_AGE_MAX / 10).await;
        }
        let env = own_time(id, &parts.env, &acquired.shard);
        let ids = Arc::new(IdClock::new(acquired.range_id));
        let executions = &parts.stores.executions;
        let closed_runs = damaged::load_closed_runs(executions, id).await?;
        let queues = Arc::new(Queues::new(&acquired.shard, closed_runs, parts.config.queue_tasks_in_memory));
        let waiters = Arc::new(Waiters::default());
        let tally = Arc::new(Tally::new(damaged::load_counts(executions, id).await?));
        let jobs = Jobs::new(executions.load_progress(id).await?);
        let (stop, stopped) = watch::channel(false);
        let commit_loop = CommitLoop {
            shard_id: id,
            range_id: acquired.range_id,
            claim,
            env: env.clone(),
            stores: parts.stores.clone(),
            ids: Arc::clone(&ids),
            queues: Arc::clone(&queues),
            waiters: Arc::clone(&waiters),
            tally: Arc::clone(&tally),
            config: Arc::clone(&parts.config),
            is_store_shared: parts.is_store_shared,
            lease_asked,
        };
        let (committer, task) = commit_loop.spawn(stopped);
        let generation = u64::try_from(acquired.range_id.0).unwrap_or_default() << 20 | u64::from(id.0.unsigned_abs());
        let shard = Self {
            id,
            env,
            stores: parts.stores.clone(),
            namespaces: Arc::clone(&parts.namespaces),
            config: Arc::clone(&parts.config),
            slots: Slots::new(generation, parts.hot.clone()),
            workflow_ids: WorkflowIds::new(parts.config.workflow_ids_bytes),
            ids,
            committer,
            queues,
            waiters,
            tally,
            jobs,
            segments: parts.segments.clone(),
            stop,
        };
        Ok((Arc::new(shard), task))
    }

    /// Commits pending submissions, then stops the committer.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// Shard time continues from the last owner's: stored times (queue levels, times of runs) may be ahead of the wall
/// clock, if that was set back or is another node's.
fn own_time(id: ShardId, env: &Env, record: &ShardRecord) -> Env {
    let (env, lead) = env.with_own_time(record.updated_at.max(record.timer_acked.fires_at));
    if lead >= LEAD_REPORTED {
        warn!(shard = id.0, ?lead, "shard time is ahead of the wall clock; it runs 1/16 slower until they meet");
    }
    env
}

/// The shard, from 1 to `n_shards`, that a workflow lives in. Part of the stored layout: it never changes.
pub(crate) fn shard_of(namespace_id: NamespaceId, workflow_id: &str, n_shards: i32) -> ShardId {
    // FNV-1a, with a final mix because its high bits are weak on short strings.
    let bytes = namespace_id.0.as_bytes().iter().chain(workflow_id.as_bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let slice = (mixed >> 32) % SLICES;
    let shard = slice * u64::from(n_shards.unsigned_abs()) / SLICES;
    ShardId(1 + i32::try_from(shard).expect("fewer shards than slices"))
}
