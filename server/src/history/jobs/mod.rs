//! Jobs: background work of a shard on a client's request: batch operations and namespace removal. The request and its
//! progress are rows of the shard, so the next owner resumes where the last one stopped.
//!
//! All jobs of a namespace are in one shard, which can thus limit how many run. See docs/decisions/0012-batches.md.

mod runner;
mod batch;
mod pace;
mod operation;
mod reset_point;
mod removal;
mod service;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cluster::errors::ServiceError;
use persistence::stores::executions::{JobKey, JobWrite};
use proto::everrow::record;
use proto::temporal::api::enums::v1::BatchOperationState;
use tokio::sync::Notify;
use workflow::Timestamp;

use super::committer::{Permit, Submission};
use super::shard::Shard;
use super::transact::TransactError;

pub(crate) use self::runner::run_jobs;

/// The shard's jobs, including ended ones until they are deleted.
pub(crate) struct Jobs {
    progress: Mutex<BTreeMap<JobKey, record::JobProgress>>,
    /// Results of a batch's current page, which its row does not count yet. Locked after `progress`.
    uncounted: Mutex<BTreeMap<JobKey, Counts>>,
    /// The last submitted change; set under the lock of `progress`.
    submitted: AtomicU64,
    wake: Notify,
}

/// Operations that a batch has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) n_complete: i64,
    pub(super) n_failed: i64,
}

impl Counts {
    pub(super) fn add_to(self, progress: &mut record::JobProgress) {
        progress.n_complete += self.n_complete;
        progress.n_failed += self.n_failed;
    }
}

/// The decided change of a job.
pub(super) enum Decided {
    /// The job is new.
    Start(Arc<record::Job>, record::JobProgress),
    Become(record::JobProgress),
    Forget,
    Nothing,
}

impl Jobs {
    pub(crate) fn new(progress: BTreeMap<JobKey, record::JobProgress>) -> Self {
        let uncounted = Mutex::default();
        Self { progress: Mutex::new(progress), uncounted, submitted: AtomicU64::new(0), wake: Notify::new() }
    }

    pub(super) fn find(&self, key: &JobKey) -> Option<record::JobProgress> {
        self.lock().get(key).cloned()
    }

    /// As `find`, including operations that the row does not count yet.
    pub(super) fn find_counted(&self, key: &JobKey) -> Option<record::JobProgress> {
        let jobs = self.lock();
        let mut progress = jobs.get(key).cloned()?;
        self.uncounted().get(key).copied().unwrap_or_default().add_to(&mut progress);
        Some(progress)
    }

    /// Counts a finished operation of a batch.
    pub(super) fn count(&self, key: &JobKey, succeeded: bool) {
        let mut uncounted = self.uncounted();
        let counts = uncounted.entry(key.clone()).or_default();
        if succeeded {
            counts.n_complete += 1;
        } else {
            counts.n_failed += 1;
        }
    }

    /// Takes the counts that the job's row lacks. The caller writes or discards them.
    pub(super) fn take_uncounted(&self, key: &JobKey) -> Counts {
        self.uncounted().remove(key).unwrap_or_default()
    }

    fn uncounted(&self) -> MutexGuard<'_, BTreeMap<JobKey, Counts>> {
        self.uncounted.lock().expect("nobody panics while holding it")
    }

    /// The jobs for which `wanted` holds.
    pub(super) fn select(
        &self,
        mut wanted: impl FnMut(&JobKey, &record::JobProgress) -> bool,
    ) -> Vec<(JobKey, record::JobProgress)> {
        let jobs = self.lock();
        let selected = jobs.iter().filter(|(key, progress)| wanted(key, progress));
        selected.map(|(key, progress)| (key.clone(), progress.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobKey, record::JobProgress>> {
        self.progress.lock().expect("nobody panics while holding it")
    }
}

impl Shard {
    /// Applies the change that `decide` chooses in view of all jobs of the shard, and returns once it is durable.
    pub(super) async fn change_job(
        &self,
        key: &JobKey,
        decide: impl FnOnce(&BTreeMap<JobKey, record::JobProgress>) -> Result<Decided, ServiceError>,
    ) -> Result<(), ServiceError> {
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let decided = {
            let mut jobs = self.jobs.lock();
            decide(&jobs).map(|decided| self.submit_job(permit, &mut jobs, key, decided))
        };
        match decided {
            Ok(Some(submitted)) => self.committer.durable(submitted).await.map_err(TransactError::from)?,
            Ok(None) => return Ok(()),
            Err(refusal) => {
                self.confirm_jobs().await?;
                return Err(refusal);
            }
        }
        self.jobs.wake.notify_one();
        Ok(())
    }

    /// Called under the lock of all jobs, so that rows change in the same order as memory.
    fn submit_job(
        &self,
        permit: Permit<'_>,
        jobs: &mut BTreeMap<JobKey, record::JobProgress>,
        key: &JobKey,
        decided: Decided,
    ) -> Option<u64> {
        let (job, progress) = match decided {
            Decided::Start(job, progress) => (Some(job), Some(progress)),
            Decided::Become(progress) => (None, Some(progress)),
            Decided::Forget => (None, None),
            Decided::Nothing => return None,
        };
        match &progress {
            Some(progress) => jobs.insert(key.clone(), progress.clone()),
            None => jobs.remove(key),
        };
        let write = JobWrite { key: key.clone(), job, progress };
        let submitted = self.committer.submit(permit, Submission { job: Some(write), ..Submission::default() });
        self.jobs.submitted.store(submitted, Ordering::Release);
        Some(submitted)
    }

    /// Returns once the job state in memory is durable and the lease is confirmed: only then may a reply show it.
    pub(super) async fn confirm_jobs(&self) -> Result<(), ServiceError> {
        let submitted = self.jobs.submitted.load(Ordering::Acquire);
        self.committer.confirmed_lately(submitted).await.map_err(TransactError::from)?;
        Ok(())
    }

    /// Updates a job's progress. False: the job is no longer open.
    pub(super) async fn advance_job(
        &self,
        key: &JobKey,
        change: impl FnOnce(&mut record::JobProgress),
    ) -> Result<bool, ServiceError> {
        let mut is_open_still = false;
        let decide = |jobs: &BTreeMap<JobKey, record::JobProgress>| {
            let Some(progress) = jobs.get(key).filter(|progress| is_open(progress)) else {
                return Ok(Decided::Nothing);
            };
            is_open_still = true;
            let mut progress = progress.clone();
            change(&mut progress);
            Ok(Decided::Become(progress))
        };
        self.change_job(key, decide).await?;
        Ok(is_open_still)
    }

    /// Deletion time of a job that ends now: after the retention, like a run.
    pub(super) async fn forget_job_at(&self, key: &JobKey) -> Result<Timestamp, ServiceError> {
        Ok(self.env.now() + self.namespaces.retention(key.namespace_id).await?)
    }
}

pub(super) fn is_open(progress: &record::JobProgress) -> bool {
    progress.state() == BatchOperationState::Running
}

/// Closes the job.
pub(super) fn close(progress: &mut record::JobProgress, state: BatchOperationState, at: (Timestamp, Timestamp)) {
    let (now, forget_at) = at;
    progress.set_state(state);
    progress.closed_at = Some(now.0);
    progress.forget_at = Some(forget_at.0);
}
