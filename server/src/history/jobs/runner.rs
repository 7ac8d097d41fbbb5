//! The loop that runs a shard's jobs and deletes ended ones after their retention.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
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

/// Interrupted attempts at one page, under one owner of the shard, after which a batch fails. It keeps its counts.
const BREAKS_MAX: u32 = 10;
/// Attempts at one page, over all owners of the shard, after which a batch fails: the batch itself may crash its owner.
/// Repeated restarts of a node during one slow page must not use them up.
const ATTEMPTS_MAX: u32 = 50;

/// From a failed deletion of an ended job to the next attempt.
const FORGET_RETRY: Duration = Duration::from_secs(60);

/// A running job.
struct Running {
    handle: AbortHandle,
    /// Set when the job is stopped.
    stop: watch::Sender<bool>,
    /// Interrupted attempts at this place before this one.
    n_breaks: u32,
    /// How far it was when this attempt began.
    place: Bytes,
    /// Distinguishes the job from another with the same key.
    started_at: i64,
}

impl Running {
    /// Interrupted attempts at the place that it has come to by now.
    fn n_breaks_at(&self, progress: &record::JobProgress) -> u32 {
        if progress.place == self.place { self.n_breaks + 1 } else { 1 }
    }
}

/// Runs the shard's jobs until the shard is closed.
pub(crate) async fn run_jobs(shard: Arc<Shard>, peers: Peers) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<JobKey, Running> = HashMap::new();
    loop {
        // A deleted job is aborted. A stopped one starts no more operations and counts those in flight.
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
                Some(job) => job.n_breaks_at(&progress),
                None => 0,
            };
            let (stop, stopped) = watch::channel(false);
            let handle = tasks.spawn(attempt(Arc::clone(&shard), peers.clone(), key.clone(), (n_breaks, stopped)));
            let record::JobProgress { place, started_at, .. } = progress;
            running.insert(key, Running { handle, stop, n_breaks, place, started_at });
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
        warn!(shard = shard.id.0, job = %key.job_id, n_breaks, %error, "job interrupted; retrying");
    }
}

async fn run(
    shard: &Arc<Shard>,
    peers: &Peers,
    key: &JobKey,
    (n_breaks, stop): (u32, watch::Receiver<bool>),
) -> Result<(), ServiceError> {
    // A job is in memory before its row is durable, and another job's end may wake this loop in between.
    shard.confirm_jobs().await?;
    let job = shard.stores.executions.load_job(shard.id, key).await?.unwrap_or_default();
    match job.work {
        Some(Work::Batch(_)) if n_breaks >= BREAKS_MAX || n_attempts(shard, key).await? > ATTEMPTS_MAX => {
            fail(shard, key, "no progress: every attempt at the same page broke off").await
        }
        Some(Work::Batch(request)) => match batch::run(shard, peers, (key, stop), request).await {
            // Permanent: the next attempt's query would fail the same way.
            Err(error @ (ServiceError::InvalidArgument(_) | ServiceError::NamespaceNotFound { .. })) => {
                fail(shard, key, &error.to_string()).await
            }
            outcome => outcome,
        },
        Some(Work::NamespaceRemoval(wanted)) => removal::run(shard, peers, key, &wanted).await,
        None => fail(shard, key, "nobody knows what it was to do").await,
    }
}

/// Records another attempt of a batch and returns the attempts since its last progress.
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

/// Deletes jobs that are due; returns when the next one is.
async fn forget_due(shard: &Shard) -> Option<Timestamp> {
    let now = shard.env.now();
    let ended = shard.jobs.select(|_, progress| progress.forget_at.is_some());
    let mut next = None;
    for (key, progress) in ended {
        let forget_at = Timestamp(progress.forget_at.unwrap_or_default());
        if forget_at > now {
            next = Some(next.map_or(forget_at, |next: Timestamp| next.min(forget_at)));
        } else if let Err(error) = shard.change_job(&key, |_| Ok(Decided::Forget)).await {
            warn!(shard = shard.id.0, job = %key.job_id, %error, "cannot delete ended job; retrying later");
            let retry_at = now + FORGET_RETRY;
            next = Some(next.map_or(retry_at, |next: Timestamp| next.min(retry_at)));
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

#[cfg(test)]
mod tests;
