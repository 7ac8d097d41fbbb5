//! The removal of a namespace with everything in it. Each step finds what is left to do, so an interrupted removal
//! simply restarts.

use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use futures_util::StreamExt as _;
use persistence::stores::executions::{JobKey, TimerKey};
use proto::everrow::record;
use tracing::info;
use workflow::{ExecutionKey, Input, NamespaceId, Timestamp};

use super::Decided;
use crate::history::committer::{LeftNamespace, Submission};
use crate::history::service::span;
use crate::history::shard::Shard;
use crate::history::transact::TransactError;
use crate::peers::Peers;

/// Concurrent run deletions.
const AT_ONCE: usize = 32;
/// Timer rows per read and per delete.
const TIMER_PAGE: usize = 256;
/// A run is read again after this long, in case the notification of its deletion was missed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The removal job has an empty id: there is one per namespace, and no client can name it.
pub(super) const JOB_ID: &str = "";

pub(super) async fn run(
    shard: &Arc<Shard>,
    peers: &Peers,
    key: &JobKey,
    wanted: &record::NamespaceRemoval,
) -> Result<(), ServiceError> {
    let namespace_id = key.namespace_id;
    match shard.namespaces.retire(namespace_id).await {
        Ok(_) => empty(shard, peers, key, wanted).await?,
        // Removed by an earlier attempt that did not delete the job.
        Err(ServiceError::NamespaceNotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    info!(namespace = %namespace_id, "namespace removed; deleting its removal job");
    shard.change_job(key, |_| Ok(Decided::Forget)).await
}

async fn empty(
    shard: &Arc<Shard>,
    peers: &Peers,
    key: &JobKey,
    wanted: &record::NamespaceRemoval,
) -> Result<(), ServiceError> {
    let namespace_id = key.namespace_id;
    let is_other = |other: &JobKey| other.namespace_id == namespace_id && other != key;
    for (other, _) in shard.jobs.select(|other, _| is_other(other)) {
        shard.change_job(&other, |_| Ok(Decided::Forget)).await?;
    }
    // Before the runs, so that schedules start no new ones.
    peers.history()?.delete_schedules(namespace_id).await?;
    peers.history()?.empty_namespace(namespace_id).await?;
    peers.matching()?.remove_namespace(namespace_id).await?;
    peers.visibility()?.remove_namespace(namespace_id).await?;
    let since = shard.env.now();
    shard.advance_job(key, |progress| progress.emptied_at = progress.emptied_at.or(Some(since.0))).await?;
    let emptied_at = shard.jobs.find(key).and_then(|progress| progress.emptied_at).map_or(since, Timestamp);
    let delay = span(wanted.delay).unwrap_or_default();
    shard.env.sleep_until(emptied_at + delay).await;
    shard.namespaces.remove(namespace_id).await
}

impl Shard {
    /// Deletes everything that the shard stores of a namespace in which nothing starts any more.
    pub(crate) async fn empty_namespace(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        self.delete_runs(namespace_id).await?;
        self.delete_timers(namespace_id).await
    }

    async fn delete_runs(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        let mut after = None;
        let mut found_any = false;
        loop {
            let runs = self.stores.executions.runs(self.id, namespace_id, after.as_ref()).await?;
            if runs.is_empty() {
                // Runs started meanwhile may sort before the cursor: scans again.
                if !found_any {
                    return Ok(());
                }
                (after, found_any) = (None, false);
                continue;
            }
            found_any = true;
            after = runs.last().cloned();
            let mut deletions = futures_util::stream::iter(runs)
                .map(|key| async move { Box::pin(self.delete_and_wait(&key)).await })
                .buffer_unordered(AT_ONCE);
            while let Some(deleted) = deletions.next().await {
                deleted?;
            }
        }
    }

    /// Deletes as a client would, so the run's parent and children are notified. Returns once the run is not found.
    async fn delete_and_wait(&self, key: &ExecutionKey) -> Result<(), ServiceError> {
        match self.transact(key, Input::Delete).await {
            Ok(_) => {}
            Err(TransactError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let waiting = self.waiters.listen(key);
        loop {
            let changed = waiting.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.read(key).await {
                Ok(_) => {}
                Err(ServiceError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, changed).await;
        }
    }

    /// Timer rows may remain for years after their runs. Deletes the tally of runs with them.
    async fn delete_timers(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        let mut after = TimerKey { fires_at: Timestamp(i64::MIN), task_id: i64::MIN };
        loop {
            let rows = self.stores.executions.timer_rows(self.id, namespace_id, after, TIMER_PAGE).await?;
            if !rows.of_namespace.is_empty() || rows.next.is_none() {
                self.leave(LeftNamespace { namespace_id, timers: rows.of_namespace }).await?;
            }
            match rows.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }

    async fn leave(&self, left: LeftNamespace) -> Result<(), ServiceError> {
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let submission = Submission { left: Some(left), ..Submission::default() };
        let submitted = self.committer.submit(permit, submission);
        self.committer.durable(submitted).await.map_err(TransactError::from)?;
        Ok(())
    }
}
