//! Deleting a run: its rows in one commit, then its history. What a crash leaves in between, the queue task that asked for
//! it finds when it is done again.

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
    /// Deletes a run that is closed. Doing it again does what is left to do.
    pub(crate) async fn delete(&self, key: &ExecutionKey) -> Result<(), ServiceError> {
        let current_slot = self.slots.current(key.namespace_id, &key.workflow_id);
        // Nobody starts or resets this workflow meanwhile, and runs that share history are deleted one by one: so the
        // last of them sees that nobody needs what they shared.
        let _one_at_a_time = current_slot.starting.lock().await;
        let found = match self.find_run(key).await {
            Err(ServiceError::DataLoss(problem)) => return Box::pin(self.erase_alone(key, &problem)).await,
            found => found?,
        };
        match found {
            Some(state) if state.is_running() => return Ok(()),
            Some(state) => {
                // First, because its state tells where lists have it.
                self.unlist(key, removed(&state)).await?;
                self.delete_rows(key).await?;
                if self.queues.is_listing_behind() {
                    // A change that was only in the store may have been told in between.
                    self.unlist(key, removed(&state)).await?;
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

    /// Deletes what no other run of the workflow shares.
    pub(super) async fn delete_history(&self, key: &ExecutionKey) -> Result<(), ServiceError> {
        let history = &self.stores.history;
        let branch = history.branch_of(key.run_id).await?;
        for other in history.branches(branch.tree_id).await? {
            let other_key = ExecutionKey { run_id: RunId(other.branch_id), ..key.clone() };
            // A reset that broke off before its commit: nobody will ever read what it forked.
            if other.branch_id != branch.branch_id && !self.exists(&other_key).await? {
                history.delete(&other).await?;
            }
        }
        history.delete(&branch).await?;
        Ok(())
    }

    async fn exists(&self, key: &ExecutionKey) -> Result<bool, ServiceError> {
        match self.find_run(key).await {
            // Damaged, but there: it may still be ended with what it shares.
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

    /// A run may be deleted under a reader's hands: then what is missing of its history is not damaged.
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
