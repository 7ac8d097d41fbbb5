//! Deleting a run: its visibility entry, its rows in one commit, then its history. After a crash in between, the
//! retried queue task deletes the rest.

use std::sync::Arc;

use cluster::errors::ServiceError;
use persistence::error::StoreError;
use persistence::stores::executions::CurrentWrite;
use workflow::{ExecutionKey, ExecutionState, RunId};

use super::committer::{CurrentCommit, DeletedRun, Submission};
use super::listing::removed;
use super::shard::Shard;
use super::tally::{StatusChange, counted_status};
use super::transact::TransactError;

impl Shard {
    /// Deletes a closed run. Idempotent: a retry deletes what is left.
    pub(crate) async fn delete(&self, key: &ExecutionKey) -> Result<(), ServiceError> {
        let current_slot = self.slots.current(key.namespace_id, &key.workflow_id);
        // Excludes starts and resets of this workflow, and serializes deletions of runs that share history, so that the
        // last deletion finds the shared history unused.
        let _one_at_a_time = current_slot.starting.lock().await;
        let found = match self.find_run(key).await {
            Err(ServiceError::DataLoss(problem)) => return Box::pin(self.erase_alone(key, &problem)).await,
            found => found?,
        };
        match found {
            Some(state) if state.is_running() => return Ok(()),
            Some(state) => {
                // First, because the state locates the visibility entry.
                self.delete_visibility(key, removed(&state)).await?;
                self.delete_rows(key).await?;
                if self.queues.is_listing_behind() {
                    // A task that was only in the store may have written the entry again.
                    self.delete_visibility(key, removed(&state)).await?;
                }
            }
            None => {}
        }
        self.delete_history(key).await
    }

    async fn delete_rows(&self, key: &ExecutionKey) -> Result<(), ServiceError> {
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let slot = self.slots.run(key);
        let mut execution = slot.execution.lock().await;
        let state = match self.load(key, &mut execution).await {
            Ok(state) => state,
            Err(TransactError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        assert!(!state.is_running(), "a run that is over stays so");
        let newest = self.find_current(key.namespace_id, &key.workflow_id).await?;
        let current = newest.filter(|newest| newest.run_id == key.run_id).map(|_| {
            let slot = self.slots.current(key.namespace_id, &key.workflow_id);
            let (namespace_id, workflow_id) = (key.namespace_id, key.workflow_id.clone());
            CurrentCommit { slot, write: CurrentWrite { namespace_id, workflow_id, run: None } }
        });
        if let Some(current) = &current {
            current.slot.forget();
        }
        let status = StatusChange { before: counted_status(&state), after: None };
        let deleted = Some(DeletedRun { slot: slot.clone(), key: key.clone(), status });
        let submitted = self.committer.submit(permit, Submission { current, deleted, ..Submission::default() });
        execution.delete(submitted);
        drop(execution);
        self.slots.forget(key, &slot);
        self.committer.durable(submitted).await.map_err(TransactError::from)?;
        Ok(())
    }

    /// Deletes history that no other run of the workflow shares.
    pub(super) async fn delete_history(&self, key: &ExecutionKey) -> Result<(), ServiceError> {
        let history = &self.stores.history;
        let branch = history.branch_of(key.run_id).await?;
        for other in history.branches(branch.tree_id).await? {
            let other_key = ExecutionKey { run_id: RunId(other.branch_id), ..key.clone() };
            // Left by a reset that failed before its commit: its fork is never read.
            if other.branch_id != branch.branch_id && !self.exists(&other_key).await? {
                history.delete(&other).await?;
            }
        }
        history.delete(&branch).await?;
        Ok(())
    }

    async fn exists(&self, key: &ExecutionKey) -> Result<bool, ServiceError> {
        match self.find_run(key).await {
            // Damaged, but present: ending it may still need the shared history.
            Err(ServiceError::DataLoss(_)) => Ok(true),
            found => Ok(found?.is_some()),
        }
    }

    async fn find_run(&self, key: &ExecutionKey) -> Result<Option<Arc<ExecutionState>>, ServiceError> {
        let slot = self.slots.run(key);
        let mut execution = slot.execution.lock().await;
        match self.load(key, &mut execution).await {
            Ok(state) => Ok(Some(state)),
            Err(TransactError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// If the run was deleted during a read, its missing history is `NotFound`, not damage.
    pub(super) async fn unless_deleted<T>(
        &self,
        key: &ExecutionKey,
        read: Result<T, StoreError>,
    ) -> Result<T, ServiceError> {
        if let Err(StoreError::Corrupt(_)) = &read {
            self.read(key).await?;
        }
        Ok(read?)
    }
}
