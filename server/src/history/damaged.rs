//! Damaged rows of a shard. A run that has some is terminated with its readable part, or removed by its keys; all other
//! requests to it are refused with `DataLoss`. The shard's own rows are rebuilt or skipped.

use std::ops::Bound;
use std::sync::Arc;

use cluster::errors::ServiceError;
use cluster::search_attributes::attribute::NAMESPACE_DIVISION;
use persistence::error::StoreError;
use persistence::stores::executions::{CurrentWrite, DamagedRow, ExecutionStore, RunCounts};
use persistence::stores::shards::ShardId;
use persistence::stores::visibility::Index;
use persistence::stores::visibility::record::Record;
use tracing::error;
use workflow::{CurrentRun, ExecutionKey, ExecutionState, Input, NamespaceId, RunId};

use super::cache::Execution;
use super::committer::{CurrentCommit, DeletedRun, Submission};
use super::describe::public_status;
use super::listing::removed_record;
use super::shard::Shard;
use super::tally::{StatusChange, counted_status};
use super::transact::{TransactError, current_run};

/// Page size of the scan for a run among those of a segment that started in its millisecond.
const STARTED_TOGETHER: usize = 1000;

/// A damaged run accepts only inputs that end it.
pub(super) fn is_end(input: &Input) -> bool {
    matches!(input, Input::Terminate(_) | Input::Delete)
}

impl Shard {
    /// Returns the readable part of the run as its state, and the rows to remove with the commit that ends it.
    pub(super) async fn salvage(
        &self,
        key: &ExecutionKey,
        execution: &mut Execution,
        problem: &str,
    ) -> Result<(Arc<ExecutionState>, Vec<DamagedRow>), TransactError> {
        let salvaged = self.stores.executions.salvage_run(self.id, key).await?;
        let salvaged = salvaged.ok_or_else(|| TransactError::NotFound(key.clone()))?;
        let n_rows = salvaged.damaged.len();
        error!(execution = %key, problem, n_rows, "ending a damaged run; the content of its damaged rows is lost");
        let state = Arc::new(salvaged.state);
        execution.state = Some(Arc::clone(&state));
        execution.current = Some(self.slots.current(key.namespace_id, &key.workflow_id));
        Ok((state, salvaged.damaged))
    }

    /// Rebuilds the damaged current row of a workflow from its newest run. The next change of the workflow's current
    /// run replaces the row.
    pub(super) async fn rebuild_current(
        &self,
        namespace_id: NamespaceId,
        workflow_id: &Arc<str>,
        problem: &str,
    ) -> Result<Option<CurrentRun>, ServiceError> {
        let executions = &self.stores.executions;
        let newest = executions.newest_run(self.id, namespace_id, workflow_id).await?;
        error!(%namespace_id, %workflow_id, problem, ?newest, "current row is damaged; using the newest run");
        let Some(key) = newest else { return Ok(None) };
        let state = load_or_salvage(executions, self.id, &key).await?;
        Ok(state.as_ref().map(current_run))
    }

    /// Removes a run whose state cannot be read: its rows by their keys, its visibility entry by its visibility record.
    pub(super) async fn erase(&self, key: &ExecutionKey, problem: &str) -> Result<(), ServiceError> {
        let current_slot = self.slots.current(key.namespace_id, &key.workflow_id);
        let _one_at_a_time = current_slot.starting.lock().await;
        self.erase_alone(key, problem).await
    }

    /// As `erase`, for a caller that holds `CurrentSlot::starting`.
    pub(super) async fn erase_alone(&self, key: &ExecutionKey, problem: &str) -> Result<(), ServiceError> {
        error!(execution = %key, problem, "removing a run whose state cannot be read");
        let record = self.find_listed(key).await?;
        // The server's own runs are not counted.
        let is_counted = |record: &&Record| !record.search_attributes.indexed_fields.contains_key(NAMESPACE_DIVISION);
        let before = match &record {
            Some(record) => Some(record).filter(is_counted).map(|record| record.status),
            // Not in visibility yet, but counted since its first commit.
            None => {
                let newest = self.find_current(key.namespace_id, &key.workflow_id).await?;
                newest.filter(|newest| newest.run_id == key.run_id).map(|newest| public_status(newest.status))
            }
        };
        if let Some(record) = record {
            self.delete_visibility(key, removed_record(record)).await?;
        }
        self.erase_rows(key, StatusChange { before, after: None }).await?;
        match self.delete_history(key).await {
            Err(ServiceError::DataLoss(problem)) => {
                error!(execution = %key, problem, "cannot find the history of a removed run; leaving it");
                Ok(())
            }
            deleted => deleted,
        }
    }

    async fn erase_rows(&self, key: &ExecutionKey, status: StatusChange) -> Result<(), ServiceError> {
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let slot = self.slots.run(key);
        let mut execution = slot.execution.lock().await;
        let newest = self.find_current(key.namespace_id, &key.workflow_id).await?;
        let current = newest.filter(|newest| newest.run_id == key.run_id).map(|_| {
            let slot = self.slots.current(key.namespace_id, &key.workflow_id);
            let (namespace_id, workflow_id) = (key.namespace_id, key.workflow_id.clone());
            CurrentCommit { slot, write: CurrentWrite { namespace_id, workflow_id, run: None } }
        });
        if let Some(current) = &current {
            current.slot.forget();
        }
        let deleted = Some(DeletedRun { slot: slot.clone(), key: key.clone(), status });
        let submitted = self.committer.submit(permit, Submission { current, deleted, ..Submission::default() });
        execution.delete(submitted);
        drop(execution);
        self.slots.forget(key, &slot);
        self.committer.durable(submitted).await.map_err(TransactError::from)?;
        Ok(())
    }

    /// The run's visibility record. The run id contains the millisecond of its start, which bounds the index scan.
    async fn find_listed(&self, key: &ExecutionKey) -> Result<Option<Record>, ServiceError> {
        let Some(started) = key.run_id.started_within() else { return Ok(None) };
        let index = Index::Started(Bound::Included(*started.start()), Bound::Included(*started.end()));
        for segment in self.stores.visibility.segments(key.namespace_id).await? {
            let (place, mut after) = ((key.namespace_id, segment.id), None);
            loop {
                let page = self.stores.visibility.scan(place, &index, after, STARTED_TOGETHER).await?;
                let found = page.runs.into_iter().find(|run| run.run_id == key.run_id);
                if let Some(record) = found.and_then(|run| run.record) {
                    return Ok(Some(record));
                }
                let Some(next) = page.next else { break };
                after = Some(next);
            }
        }
        Ok(None)
    }
}

/// The runs that closed last. They only save reads, so a damaged row is skipped.
pub(super) async fn load_closed_runs(executions: &ExecutionStore, shard: ShardId) -> Result<Vec<RunId>, StoreError> {
    match executions.load_closed_runs(shard).await {
        Err(StoreError::Corrupt(problem)) => {
            error!(shard = shard.0, problem, "row of closed runs is damaged; continuing without it");
            Ok(Vec::new())
        }
        loaded => loaded,
    }
}

/// The counts of the shard's runs. If the row of a namespace is damaged, its runs are recounted.
pub(super) async fn load_counts(
    executions: &ExecutionStore,
    shard: ShardId,
) -> Result<Vec<(NamespaceId, RunCounts)>, StoreError> {
    let mut counts = Vec::new();
    for (namespace_id, stored) in executions.load_counts(shard).await? {
        let of_namespace = match stored {
            Some(stored) => stored,
            None => {
                error!(shard = shard.0, %namespace_id, "row of run counts is damaged; counting the namespace's runs");
                count_runs(executions, shard, namespace_id).await?
            }
        };
        counts.push((namespace_id, of_namespace));
    }
    Ok(counts)
}

async fn count_runs(
    executions: &ExecutionStore,
    shard: ShardId,
    namespace_id: NamespaceId,
) -> Result<RunCounts, StoreError> {
    let mut counts = RunCounts::default();
    let mut last: Option<ExecutionKey> = None;
    loop {
        let keys = executions.runs(shard, namespace_id, last.as_ref()).await?;
        let Some(after) = keys.last().cloned() else { return Ok(counts) };
        for key in &keys {
            let state = load_or_salvage(executions, shard, key).await?;
            counts.change(None, state.as_ref().and_then(counted_status));
        }
        last = Some(after);
    }
}

/// The stored run, or its readable part.
async fn load_or_salvage(
    executions: &ExecutionStore,
    shard: ShardId,
    key: &ExecutionKey,
) -> Result<Option<ExecutionState>, StoreError> {
    match executions.load_run(shard, key).await {
        Err(StoreError::Corrupt(_)) => match executions.salvage_run(shard, key).await {
            // Nothing to salvage: it can only be removed.
            Err(StoreError::Corrupt(_)) => Ok(None),
            salvaged => Ok(salvaged?.map(|salvaged| salvaged.state)),
        },
        loaded => loaded,
    }
}
