//! The loop that keeps a shard's jobs going, and forgets those that ended long ago.

use std::collections::HashMap;
use std::sync::Arc;

use cluster::errors::ServiceError;
use persistence::stores::executions::JobKey;
use proto::everrow::record;
use proto::everrow::record::job::Work;
use proto::temporal::api::enums::v1::BatchOperationState;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tracing::warn;
use workflow::Timestamp;

use super::{Decided, batch, close, is_open, removal};
use crate::history::queues::backoff;
use crate::history::shard::Shard;
use crate::peers::Peers;

/// Consecutive breaks under one owner of the shard after which a batch has failed. It keeps the counts of how far it came.
const BREAKS_MAX: u32 = 10;
/// Attempts at one page, over all owners of the shard, after which a batch has failed: what it does may be what takes the
/// owner down. A node that is restarted again and again while a slow batch is at one page must not use them up.
const ATTEMPTS_MAX: u32 = 50;

/// A job that is being done.
struct Running {
    handle: AbortHandle,
    /// Tells it that it was stopped.
    stop: watch::Sender<bool>,
    /// How often it broke off in a row.
    n_breaks: u32,
    /// Tells it from another one of the same name.
    started_at: i64,
}

/// Does the shard's jobs until the shard is closed.
pub(crate) async fn run_jobs(shard: Arc<Shard>, peers: Peers) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<JobKey, Running> = HashMap::new();
    loop {
        // A job that was forgotten is let go in the middle of what it does. One that was stopped begins nothing more by
        // itself, and counts what was under way.
        running.retain(|key, job| {
            let now = shard.jobs.find(key).filter(|now| now.started_at == job.started_at);
            if now.is_none() {
                job.handle.abort();
            }
            let is_wanted = now.as_ref().is_some_and(is_open);
            if !is_wanted {
                job.stop.send_replace(true);
            }
            is_wanted || (now.is_some() && !job.handle.is_finished())
        });
        for (key, progress) in shard.jobs.select(|_, progress| is_open(progress)) {
            let n_breaks = match running.get(&key) {
                Some(job) if !job.handle.is_finished() => continue,
                Some(job) => job.n_breaks + 1,
                None => 0,
            };
            let (stop, stopped) = watch::channel(false);
            let handle = tasks.spawn(attempt(Arc::clone(&shard), peers.clone(), key.clone(), (n_breaks, stopped)));
            running.insert(key, Running { handle, stop, n_breaks, started_at: progress.started_at });
        }
        let next = forget_due(&shard).await;
        tokio::select! {
            () = shard.jobs.wake.notified() => {}
            Some(_) = tasks.join_next() => {}
            () = until(&shard, next) => {}
            _ = shard.committer.ended() => break,
        }
    }
    tasks.shutdown().await;
}

async fn attempt(shard: Arc<Shard>, peers: Peers, key: JobKey, (n_breaks, stop): (u32, watch::Receiver<bool>)) {
    if n_breaks > 0 {
        tokio::time::sleep(shard.env.jittered(backoff(n_breaks + 2))).await;
    }
    let Err(error) = run(&shard, &peers, &key, (n_breaks, stop)).await else { return };
    if shard.committer.is_open() {
        warn!(shard = shard.id.0, job = %key.job_id, n_breaks, %error, "a job broke off; it is tried again");
    }
}

async fn run(
    shard: &Arc<Shard>,
    peers: &Peers,
    key: &JobKey,
    (n_breaks, stop): (u32, watch::Receiver<bool>),
) -> Result<(), ServiceError> {
    // Memory knows of a job before its row is there, and another job's end may have woken us in between.
    shard.confirm_jobs().await?;
    let job = shard.stores.executions.load_job(shard.id, key).await?.unwrap_or_default();
    match job.work {
        Some(Work::Batch(_)) if n_breaks >= BREAKS_MAX || n_attempts(shard, key).await? > ATTEMPTS_MAX => {
            fail(shard, key, "no progress: every attempt at the same page broke off").await
        }
        Some(Work::Batch(request)) => match batch::run(shard, peers, (key, stop), request).await {
            // What cannot be listed now cannot be listed later.
            Err(error @ (ServiceError::InvalidArgument(_) | ServiceError::NamespaceNotFound { .. })) => {
                fail(shard, key, &error.to_string()).await
            }
            outcome => outcome,
        },
        Some(Work::NamespaceRemoval(wanted)) => removal::run(shard, peers, key, &wanted).await,
        None => fail(shard, key, "nobody knows what it was to do").await,
    }
}

/// Notes that a batch is begun once more; how often it was since it last came further.
async fn n_attempts(shard: &Shard, key: &JobKey) -> Result<u32, ServiceError> {
    shard.advance_job(key, |progress| progress.n_attempts = progress.n_attempts.saturating_add(1)).await?;
    Ok(shard.jobs.find(key).map_or(0, |progress| progress.n_attempts))
}

async fn fail(shard: &Shard, key: &JobKey, reason: &str) -> Result<(), ServiceError> {
    warn!(shard = shard.id.0, job = %key.job_id, reason, "job failed");
    let times = (shard.env.now(), shard.forget_job_at(key).await?);
    let change = |progress: &mut record::JobProgress| {
        close(progress, BatchOperationState::Failed, times);
        reason.clone_into(&mut progress.ended_because);
    };
    shard.advance_job(key, change).await.map(|_| ())
}

/// Forgets what is due, and tells when the next is.
async fn forget_due(shard: &Shard) -> Option<Timestamp> {
    let now = shard.env.now();
    let ended = shard.jobs.select(|_, progress| progress.forget_at.is_some());
    let mut next = None;
    for (key, progress) in ended {
        let forget_at = Timestamp(progress.forget_at.unwrap_or_default());
        if forget_at > now {
            next = Some(next.map_or(forget_at, |next: Timestamp| next.min(forget_at)));
        } else if let Err(error) = shard.change_job(&key, |_| Ok(Decided::Forget)).await {
            warn!(shard = shard.id.0, job = %key.job_id, %error, "cannot forget a job");
        }
    }
    next
}

async fn until(shard: &Shard, moment: Option<Timestamp>) {
    match moment {
        Some(moment) => shard.env.sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
