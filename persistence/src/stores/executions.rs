//! Executions: runs with their pending items, the newest run of each workflow, and the shard's queues; all in the
//! shard's one partition, so that one conditional batch changes them together.

use std::ops::Bound;
use std::sync::Arc;

use proto::everrow::record;
use workflow::{CurrentRun, ExecutionKey, ExecutionState, NamespaceId, RunId, TransferTask, VisibilityTask};

use crate::engine::{Continuation, Engine, KeyRange, Outcome, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::stores::shards::{self, ShardId};
use crate::table::Value;

mod keys;
mod commit;
mod counts;
mod jobs;
mod timers;
mod dead_letter;
mod queue_rows;
mod run_rows;

pub use commit::{CurrentWrite, RunWrite, ScheduleWrite, ShardCommit};
pub use counts::RunCounts;
pub use dead_letter::DeadLetter;
pub use jobs::{JobKey, JobWrite};
pub use keys::{ItemKind, RowKind};
pub use queue_rows::{DamagedQueueRow, QueuePage};
pub use run_rows::{DamagedRow, Salvaged};
pub use timers::{QueuedTimer, TimerKey, TimerRows};

/// Rows of a run per read: all, save for runs with very many pending items.
const RUN_PAGE: usize = 2048;

/// Workflow ids per read: a few hundred KiB.
const WORKFLOW_ID_PAGE: usize = 2048;

/// Attempts to read a run whose rows disagree. A reader whose lease was lost may see half of what the new owner writes
/// between two pages, but not repeatedly.
const RUN_READS: usize = 3;

/// A task of one of the shard's queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTask<T> {
    pub task_id: i64,
    pub key: ExecutionKey,
    pub task: T,
}

/// Workflows that have a run, in the order of their keys.
#[derive(Debug)]
pub struct WorkflowIdPage {
    pub ids: Vec<(NamespaceId, Arc<str>)>,
    pub next: Option<Continuation>,
}

#[derive(Clone)]
pub struct ExecutionStore {
    engine: Arc<dyn Engine>,
}

impl ExecutionStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Applies all of a commit, or nothing of it.
    ///
    /// # Errors
    /// `LeaseLost` if another owner has the shard. After `OutcomeUnknown`, the `commit_id` that `ShardStore::reacquire`
    /// returns shows whether this commit was the last one.
    pub async fn commit(&self, commit: &ShardCommit) -> Result<(), StoreError> {
        match self.engine.write(commit.to_batch()).await? {
            Outcome::Applied => Ok(()),
            Outcome::Refused(_) => Err(StoreError::LeaseLost(commit.shard.to_string())),
        }
    }

    /// # Errors
    /// `Corrupt` if the rows of the run do not make up a state.
    pub async fn load_run(&self, shard: ShardId, key: &ExecutionKey) -> Result<Option<ExecutionState>, StoreError> {
        let mut malformed = None;
        for _ in 0..RUN_READS {
            let rows = self.run_rows(shard, key).await?;
            if rows.is_empty() {
                return Ok(None);
            }
            match run_rows::decode(key, rows) {
                Ok(state) => return Ok(Some(state)),
                Err(error) => malformed = Some(error),
            }
        }
        let malformed = malformed.expect("a run is read at least once");
        Err(malformed.at(format_args!("{shard}, run {key}")))
    }

    /// The readable part of a damaged run, so that it can be ended.
    ///
    /// # Errors
    /// `Corrupt` if the readable rows do not make up a state.
    pub async fn salvage_run(&self, shard: ShardId, key: &ExecutionKey) -> Result<Option<Salvaged>, StoreError> {
        let rows = self.run_rows(shard, key).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        run_rows::salvage(key, rows).map(Some).map_err(|bad| bad.at(format_args!("{shard}, run {key}")))
    }

    /// # Errors
    /// `Corrupt` if the row does not decode.
    pub async fn load_current(
        &self,
        shard: ShardId,
        namespace_id: NamespaceId,
        workflow_id: &Arc<str>,
    ) -> Result<Option<CurrentRun>, StoreError> {
        let range = KeyRange::prefix(keys::current(namespace_id, workflow_id));
        let page = self.engine.read(Slice::new(shards::partition(shard), range, 1)).await?;
        page.rows
            .into_iter()
            .next()
            .map(decode_current)
            .transpose()
            .map_err(|bad| bad.at(format_args!("{shard}, current run of {namespace_id}/{workflow_id}")))
    }

    /// A page of the workflows of all namespaces, after an earlier page.
    ///
    /// # Errors
    /// `Corrupt` if a row does not name a workflow.
    pub async fn workflow_ids(
        &self,
        shard: ShardId,
        after: Option<Continuation>,
    ) -> Result<WorkflowIdPage, StoreError> {
        let slice = Slice::new(shards::partition(shard), keys::all_current(), WORKFLOW_ID_PAGE);
        let page = self.engine.read(Slice { after, ..slice }).await?;
        let ids = page.rows.into_iter().map(|row| match row.key.as_slice() {
            [_, Value::Uuid(namespace_id), Value::Text(id), ..] => Ok((NamespaceId(*namespace_id), Arc::clone(id))),
            key => Err(Malformed::new("a row without a workflow").at(format_args!("{shard}, {key:?}"))),
        });
        Ok(WorkflowIdPage { ids: ids.collect::<Result<_, _>>()?, next: page.next })
    }

    /// A schedule and its version.
    ///
    /// # Errors
    /// `Corrupt` if the row does not decode.
    pub async fn load_schedule(
        &self,
        shard: ShardId,
        namespace_id: NamespaceId,
        schedule_id: &Arc<str>,
    ) -> Result<Option<(i64, record::Schedule)>, StoreError> {
        let range = KeyRange::prefix(keys::schedule(namespace_id, schedule_id));
        let page = self.engine.read(Slice::new(shards::partition(shard), range, 1)).await?;
        page.rows
            .into_iter()
            .next()
            .map(|row| rows::versioned(row.values).and_then(|(version, data)| Ok((version, rows::from_value(data)?))))
            .transpose()
            .map_err(|bad| bad.at(format_args!("{shard}, schedule {namespace_id}/{schedule_id}")))
    }

    /// Ids of at most `limit` schedules of a namespace in the shard.
    ///
    /// # Errors
    /// `Corrupt` if a row has no such key.
    pub async fn schedule_ids(
        &self,
        shard: ShardId,
        namespace_id: NamespaceId,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let slice = Slice::new(shards::partition(shard), keys::schedules(namespace_id), limit);
        let page = self.engine.read(slice).await?;
        let ids = page.rows.into_iter().map(|row| match row.key.get(2) {
            Some(Value::Text(id)) => Ok(Arc::clone(id)),
            _ => Err(Malformed::new("a schedule without an id").at(format_args!("{shard}, {:?}", row.key))),
        });
        ids.collect()
    }

    /// Transfer tasks after this one, from at most `limit_rows` rows; a row has all tasks of one commit.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read_transfer(
        &self,
        shard: ShardId,
        after_task_id: i64,
        limit_rows: usize,
    ) -> Result<QueuePage<QueuedTask<TransferTask>>, StoreError> {
        let decode = |row| {
            let record: record::TransferTasks = rows::from_value(row)?;
            record.tasks.into_iter().map(rows::tasks::decode_transfer).collect()
        };
        self.read_immediate((shard, RowKind::TransferQueue), after_task_id, limit_rows, decode).await
    }

    /// Visibility tasks after this one, likewise.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read_visibility(
        &self,
        shard: ShardId,
        after_task_id: i64,
        limit_rows: usize,
    ) -> Result<QueuePage<QueuedTask<VisibilityTask>>, StoreError> {
        let decode = |row| {
            let record: record::VisibilityTasks = rows::from_value(row)?;
            record.tasks.into_iter().map(rows::tasks::decode_visibility).collect()
        };
        self.read_immediate((shard, RowKind::VisibilityQueue), after_task_id, limit_rows, decode).await
    }

    async fn read_immediate<T>(
        &self,
        (shard, queue): (ShardId, RowKind),
        after_task_id: i64,
        limit_rows: usize,
        decode: impl Fn(Value) -> Decoded<Vec<QueuedTask<T>>>,
    ) -> Result<QueuePage<QueuedTask<T>>, StoreError> {
        let range = keys::immediate_after(queue, after_task_id);
        let page = self.engine.read(Slice::new(shards::partition(shard), range, limit_rows)).await?;
        let mut last_before = None;
        Ok(queue_rows::decode_page(queue, page, |(_, last_task_id), data| {
            let mut tasks = decode(data)?;
            check_ids(&tasks, last_before.replace(last_task_id), last_task_id)?;
            tasks.retain(|task| task.task_id > after_task_id);
            Ok(tasks)
        }))
    }

    /// The last closed runs, as written at the last release of the shard; none if it was never released.
    ///
    /// # Errors
    /// `Corrupt` if the row does not decode.
    pub async fn load_closed_runs(&self, shard: ShardId) -> Result<Vec<RunId>, StoreError> {
        let slice = Slice::new(shards::partition(shard), KeyRange::prefix(keys::closed_runs()), 1);
        let Some(row) = self.engine.read(slice).await?.rows.pop() else { return Ok(Vec::new()) };
        let decoded = rows::versioned(row.values)
            .and_then(|(_, data)| rows::from_value(data))
            .and_then(|closed| rows::closed_runs::decode(&closed));
        decoded.map_err(|bad| bad.at(format_args!("{shard}, closed runs")))
    }

    /// Run counts of each namespace in the shard. `None`: the row is damaged, the runs must be counted.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn load_counts(&self, shard: ShardId) -> Result<Vec<(NamespaceId, Option<RunCounts>)>, StoreError> {
        let mut slice = Slice::new(shards::partition(shard), keys::all_counts(), RUN_PAGE);
        let mut counts = Vec::new();
        loop {
            let page = self.engine.read(slice.clone()).await?;
            for row in page.rows {
                let Some(Value::Uuid(namespace_id)) = row.key.get(1) else { continue };
                let decoded = rows::versioned(row.values).and_then(|(_, data)| rows::from_value(data));
                counts.push((NamespaceId(*namespace_id), decoded.ok().map(|record| RunCounts::decode(&record))));
            }
            if page.next.is_none() {
                return Ok(counts);
            }
            slice.after = page.next;
        }
    }

    /// A page of a namespace's runs in key order, after this one.
    ///
    /// # Errors
    /// `Corrupt` if a row does not name a run.
    pub async fn runs(
        &self,
        shard: ShardId,
        namespace_id: NamespaceId,
        after: Option<&ExecutionKey>,
    ) -> Result<Vec<ExecutionKey>, StoreError> {
        let mut range = keys::runs(namespace_id);
        if let Some(after) = after {
            range.lower = Bound::Excluded(keys::run(after));
        }
        let page = self.engine.read(Slice::new(shards::partition(shard), range, RUN_PAGE)).await?;
        let mut runs: Vec<ExecutionKey> = Vec::new();
        for row in page.rows {
            let [_, _, Value::Text(workflow_id), Value::Uuid(run_id), ..] = row.key.as_slice() else {
                return Err(Malformed::new("a row without a run").at(format_args!("{shard}, {:?}", row.key)));
            };
            if runs.last().is_none_or(|last| last.run_id.0 != *run_id) {
                runs.push(ExecutionKey { namespace_id, workflow_id: Arc::clone(workflow_id), run_id: RunId(*run_id) });
            }
        }
        Ok(runs)
    }

    /// The run of a workflow that started last, found by row keys: for a workflow whose current row is damaged.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn newest_run(
        &self,
        shard: ShardId,
        namespace_id: NamespaceId,
        workflow_id: &Arc<str>,
    ) -> Result<Option<ExecutionKey>, StoreError> {
        let range = keys::runs_of(namespace_id, workflow_id);
        let mut slice = Slice::new(shards::partition(shard), range, RUN_PAGE);
        let mut newest = None;
        loop {
            let page = self.engine.read(slice.clone()).await?;
            let ids = page.rows.iter().filter_map(|row| match row.key.get(3) {
                Some(Value::Uuid(id)) => Some(RunId(*id)),
                _ => None,
            });
            let started = |id: RunId| (id.started_within().map(|within| *within.start()), id.0);
            newest = newest.into_iter().chain(ids).max_by_key(|id| started(*id));
            if page.next.is_none() {
                let key = |run_id| ExecutionKey { namespace_id, workflow_id: Arc::clone(workflow_id), run_id };
                return Ok(newest.map(key));
            }
            slice.after = page.next;
        }
    }

    async fn run_rows(&self, shard: ShardId, key: &ExecutionKey) -> Result<Vec<Row>, StoreError> {
        let mut slice = Slice::new(shards::partition(shard), KeyRange::prefix(keys::run(key)), RUN_PAGE);
        let mut rows = Vec::new();
        loop {
            let page = self.engine.read(slice.clone()).await?;
            rows.extend(page.rows);
            if page.next.is_none() {
                return Ok(rows);
            }
            slice.after = page.next;
        }
    }
}

/// Checks that a row's key is its last task id and that its ids follow the previous row's: the queue relies on both.
fn check_ids<T>(tasks: &[QueuedTask<T>], last_before: Option<i64>, last_task_id: i64) -> Decoded<()> {
    let is_ascending = tasks.is_sorted_by(|one, next| one.task_id < next.task_id);
    let is_named = tasks.last().is_some_and(|last| last.task_id == last_task_id);
    let is_behind = tasks.first().is_some_and(|first| last_before.is_none_or(|before| first.task_id > before));
    if is_ascending && is_named && is_behind { Ok(()) } else { Err(Malformed::new("tasks that are not of this row")) }
}

/// The last two clustering columns.
fn place_of(row: &Row) -> Decoded<(i64, i64)> {
    match row.key.as_slice() {
        [.., Value::Bigint(sort_key), Value::Bigint(id)] => Ok((*sort_key, *id)),
        key => Err(Malformed::new(format!("a row with the key {key:?}"))),
    }
}

fn decode_current(row: Row) -> Decoded<CurrentRun> {
    let (version, data) = rows::versioned(row.values)?;
    rows::run::decode_current(version, rows::from_value(data)?)
}
