//! The schedules of a shard: loaded, decided upon, committed like runs. `queues/schedule.rs` runs the decided actions.

use std::sync::Arc;

use cluster::errors::ServiceError;
use cluster::metrics::schedules::{Scheduled, count_scheduled};
use persistence::stores::executions::ScheduleWrite;
use persistence::stores::visibility::record::Record;
use prost::Message as _;
use proto::temporal::api::schedule::v1 as public;
use scheduler::decide::{self, Decision, Input, Refusal};
use scheduler::schedule::{Counts, Created, Schedule};
use scheduler::stored;
use tokio::sync::MutexGuard;
use workflow::{ExecutionKey, NamespaceId, Task, TimerTask, VisibilityTask};

use super::cache::{KeptSchedule, KnownSchedule, ScheduleSlot};
use super::committer::{Permit, ScheduleCommit, Submission};
use super::listing::removed_record;
use super::shard::Shard;
use super::transact::TransactError;

/// Schedules of a namespace that are read and deleted per page.
const DELETED_AT_ONCE: usize = 100;

impl Shard {
    /// Creates a schedule, or returns the one that the same request created.
    pub(crate) async fn create_schedule(
        &self,
        created: Created,
        patch: Option<public::SchedulePatch>,
    ) -> Result<Arc<Schedule>, ServiceError> {
        let (namespace_id, schedule_id) = (created.key.namespace_id, Arc::clone(&created.key.schedule_id));
        let slot = self.slots.schedule(namespace_id, &schedule_id);
        let _one_at_a_time = slot.acting.lock().await;
        if let Some(earlier) = self.load_schedule(&slot, namespace_id, &schedule_id).await?.0 {
            if !earlier.is_over {
                self.committer.confirmed().await.map_err(TransactError::from)?;
                let is_same = earlier.requests.create == created.request_id;
                return if is_same { Ok(earlier) } else { Err(already_registered(&schedule_id)) };
            }
            // Removed from visibility here: its own timer will find the new schedule in its place.
            self.delete_visibility(&earlier.task_key(), removed_record(earlier.visible())).await?;
        }
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let kept = slot.kept.lock().await;
        let decision = decide::create(created, patch, self.env.now());
        let schedule = self.keep_schedule((&slot, kept), permit, None, decision).await?;
        Ok(schedule)
    }

    /// Applies an input to a schedule and returns the result.
    pub(crate) async fn change_schedule(
        &self,
        slot: &Arc<ScheduleSlot>,
        (namespace_id, schedule_id): (NamespaceId, &Arc<str>),
        input: Input,
    ) -> Result<Arc<Schedule>, ServiceError> {
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let mut kept = slot.kept.lock().await;
        let loaded = self.load_kept(&mut kept, namespace_id, schedule_id).await?;
        let current = match loaded.filter(|schedule| !schedule.is_over) {
            Some(current) => current,
            None => {
                drop((kept, permit));
                self.committer.confirmed().await.map_err(TransactError::from)?;
                return Err(ServiceError::schedule_not_found(schedule_id));
            }
        };
        match decide::decide(&current, input, self.env.now()) {
            Ok(Some(decision)) => self.keep_schedule((slot, kept), permit, Some(&current), decision).await,
            Ok(None) | Err(Refusal::Known) => {
                drop((kept, permit));
                self.committer.confirmed().await.map_err(TransactError::from)?;
                Ok(current)
            }
            Err(refusal) => {
                drop((kept, permit));
                self.committer.confirmed().await.map_err(TransactError::from)?;
                Err(refused(&refusal))
            }
        }
    }

    /// A schedule that exists and is not over.
    pub(crate) async fn read_schedule(
        &self,
        namespace_id: NamespaceId,
        schedule_id: &Arc<str>,
    ) -> Result<Arc<Schedule>, ServiceError> {
        let slot = self.slots.schedule(namespace_id, schedule_id);
        let (schedule, submitted) = self.load_schedule(&slot, namespace_id, schedule_id).await?;
        self.committer.confirmed_lately(submitted).await.map_err(TransactError::from)?;
        let found = schedule.filter(|schedule| !schedule.is_over);
        found.ok_or_else(|| ServiceError::schedule_not_found(schedule_id))
    }

    /// The visibility record of a schedule.
    pub(super) async fn visible_schedule(&self, key: &ExecutionKey) -> Result<Record, ServiceError> {
        let schedule = self.read_schedule(key.namespace_id, &key.workflow_id).await?;
        if schedule.key.run_id == key.run_id {
            Ok(schedule.visible())
        } else {
            Err(ServiceError::schedule_not_found(&key.workflow_id))
        }
    }

    /// Deletes a schedule that is over: from visibility first, because the schedule names its segment there. The caller
    /// holds `acting`.
    pub(super) async fn delete_finished_schedule(
        &self,
        slot: &Arc<ScheduleSlot>,
        schedule: &Schedule,
    ) -> Result<(), ServiceError> {
        assert!(schedule.is_over, "only what is over is deleted");
        let (namespace_id, schedule_id) = (schedule.key.namespace_id, Arc::clone(&schedule.key.schedule_id));
        self.delete_visibility(&schedule.task_key(), removed_record(schedule.visible())).await?;
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let mut kept = slot.kept.lock().await;
        let write = ScheduleWrite { namespace_id, schedule_id, version: schedule.version, schedule: None };
        let (slot, key) = (Arc::clone(slot), schedule.task_key());
        let commit = ScheduleCommit { slot, write, key, tasks: Vec::new(), bytes: 0 };
        kept.known = KnownSchedule::Absent;
        kept.submitted = self.committer.submit(permit, Submission { schedule: Some(commit), ..Submission::default() });
        let submitted = kept.submitted;
        drop(kept);
        Ok(self.committer.durable(submitted).await.map_err(TransactError::from)?)
    }

    /// Deletes all schedules that a namespace has in this shard.
    pub(crate) async fn delete_schedules(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        loop {
            let ids = self.stores.executions.schedule_ids(self.id, namespace_id, DELETED_AT_ONCE).await?;
            if ids.is_empty() {
                return Ok(());
            }
            for schedule_id in &ids {
                let slot = self.slots.schedule(namespace_id, schedule_id);
                let _one_at_a_time = slot.acting.lock().await;
                let over = match self.change_schedule(&slot, (namespace_id, schedule_id), Input::Delete).await {
                    Ok(schedule) => Some(schedule),
                    Err(ServiceError::NotFound(_)) => self.load_schedule(&slot, namespace_id, schedule_id).await?.0,
                    Err(error) => return Err(error),
                };
                if let Some(schedule) = over {
                    self.delete_finished_schedule(&slot, &schedule).await?;
                }
            }
        }
    }

    /// The schedule from memory or the store, if there is one, and the submission that last changed it.
    pub(super) async fn load_schedule(
        &self,
        slot: &ScheduleSlot,
        namespace_id: NamespaceId,
        schedule_id: &Arc<str>,
    ) -> Result<(Option<Arc<Schedule>>, u64), ServiceError> {
        let mut kept = slot.kept.lock().await;
        Ok((self.load_kept(&mut kept, namespace_id, schedule_id).await?, kept.submitted))
    }

    async fn load_kept(
        &self,
        kept: &mut KeptSchedule,
        namespace_id: NamespaceId,
        schedule_id: &Arc<str>,
    ) -> Result<Option<Arc<Schedule>>, ServiceError> {
        match &kept.known {
            KnownSchedule::Schedule(schedule) => return Ok(Some(Arc::clone(schedule))),
            KnownSchedule::Absent => return Ok(None),
            KnownSchedule::Unread => {}
        }
        let found = self.stores.executions.load_schedule(self.id, namespace_id, schedule_id).await?;
        let Some((version, record)) = found else {
            kept.known = KnownSchedule::Absent;
            return Ok(None);
        };
        let damaged = || ServiceError::DataLoss(format!("schedule {namespace_id}/{schedule_id} cannot be read"));
        let decoded = stored::decode((namespace_id, Arc::clone(schedule_id)), version, record);
        let schedule = Arc::new(decoded.ok_or_else(damaged)?);
        kept.known = KnownSchedule::Schedule(Arc::clone(&schedule));
        Ok(Some(schedule))
    }

    /// Applies a decision to the schedule in memory, and waits until it is durable.
    async fn keep_schedule(
        &self,
        (slot, mut kept): (&Arc<ScheduleSlot>, MutexGuard<'_, KeptSchedule>),
        permit: Permit<'_>,
        before: Option<&Schedule>,
        decision: Decision,
    ) -> Result<Arc<Schedule>, ServiceError> {
        let Decision { schedule, timer } = decision;
        let mut tasks = Vec::new();
        tasks.extend(timer.map(|fires_at| Task::Timer { fires_at, task: TimerTask::Schedule }));
        tasks.extend(listed_change(before, &schedule).map(Task::Visibility));
        let record = stored::encode(&schedule);
        let bytes = record.encoded_len();
        let write = ScheduleWrite {
            namespace_id: schedule.key.namespace_id,
            schedule_id: Arc::clone(&schedule.key.schedule_id),
            version: schedule.version,
            schedule: Some(Arc::new(record)),
        };
        let (slot, key) = (Arc::clone(slot), schedule.task_key());
        let commit = ScheduleCommit { slot, write, key, tasks, bytes };
        let schedule = Arc::new(schedule);
        kept.known = KnownSchedule::Schedule(Arc::clone(&schedule));
        kept.submitted = self.committer.submit(permit, Submission { schedule: Some(commit), ..Submission::default() });
        let submitted = kept.submitted;
        drop(kept);
        self.committer.durable(submitted).await.map_err(TransactError::from)?;
        count_change(before.map(|before| before.counts).unwrap_or_default(), schedule.counts);
        Ok(schedule)
    }
}

/// The visibility task for a change, if visibility is affected.
fn listed_change(before: Option<&Schedule>, now: &Schedule) -> Option<VisibilityTask> {
    let Some(before) = before else {
        return Some(VisibilityTask { is_first: true, replaced: [].into(), version: 0, is_schedule: true });
    };
    let [old, new] = [before, now].map(Schedule::visible_attributes);
    let is_same = old == new && before.memo == now.memo && before.list_info() == now.list_info();
    if is_same || now.is_over {
        return None;
    }
    let names = old.indexed_fields.keys().chain(new.indexed_fields.keys());
    let other = names.filter(|name| old.indexed_fields.get(*name) != new.indexed_fields.get(*name));
    let replaced =
        other.map(|name| (name.clone(), old.indexed_fields.get(name).cloned().unwrap_or_default())).collect();
    Some(VisibilityTask { is_first: false, replaced, version: 0, is_schedule: true })
}

/// Adds the increase of a schedule's own counts to the metrics of all schedules.
fn count_change(before: Counts, now: Counts) {
    count_scheduled(Scheduled::ActionSuccess, now.actions - before.actions);
    count_scheduled(Scheduled::MissedCatchupWindow, now.missed_catchup_window - before.missed_catchup_window);
    count_scheduled(Scheduled::OverlapSkipped, now.overlap_skipped - before.overlap_skipped);
    count_scheduled(Scheduled::BufferOverrun, now.buffer_dropped - before.buffer_dropped);
}

fn already_registered(schedule_id: &str) -> ServiceError {
    ServiceError::AlreadyStarted {
        message: format!("schedule {schedule_id:?} is already registered"),
        start_request_id: String::new(),
        run_id: String::new(),
        first_run_id: String::new(),
    }
}

fn refused(refusal: &Refusal) -> ServiceError {
    match refusal {
        Refusal::Conflict => ServiceError::FailedPrecondition(refusal.to_string()),
        Refusal::TooEarly | Refusal::Known => ServiceError::Unavailable(refusal.to_string()),
    }
}
