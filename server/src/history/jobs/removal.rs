//! The removal of a namespace with everything in it. Each step finds what is left to do, so that a removal that broke off
//! simply begins again.

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

/// Runs that are being deleted at once.
const AT_ONCE: usize = 32;
/// Rows of timers looked at, and deleted, at once.
const TIMER_PAGE: usize = 256;
/// A run is looked at again after this, should nobody have told that it is gone.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The job of a namespace's removal has no id of its own: there is one for each namespace, and no client can name it.
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
        // The last step was done, and not noted.
        Err(ServiceError::NamespaceNotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    info!(namespace = %namespace_id, "the namespace is gone");
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
    // Before the runs, so that they start nothing any more.
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
    /// Deletes all that the shard has of a namespace in which nothing begins any more.
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
                // What began meanwhile may stand before the place that was reached.
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

    /// As a client would: the run's parent and children hear of its end. Returns when no row of it is left.
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

    /// Timers outlive their runs, some by years; and with the namespace goes the tally of its runs.
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
