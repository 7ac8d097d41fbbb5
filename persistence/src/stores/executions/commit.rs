//! A commit: all changes that the owner of a shard makes in one conditional batch.
//!
//! A batch may name a row only once. So the writes of one run are merged here, the later one winning, and the tasks
//! of one queue share a row.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use prost::Message;
use proto::everrow::record;
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::{
    Activity, ChangedItems, Child, CurrentRun, ExecutionKey, ExecutionState, ExternalRequest, NamespaceId, RunId,
    Timer, TransferTask, Update, VisibilityTask, Weigh,
};

use super::jobs::{JobWrite, put_jobs};
use super::keys::{self, ItemKind, RowKind};
use super::queue_rows::ROW_FORMAT;
use super::timers::{QueuedTimer, TimerKey, put_timers};
use super::{DamagedRow, QueuedTask, RunCounts};
use crate::engine::{Batch, Condition, KeyRange, Row};
use crate::stores::rows;
use crate::stores::shards::{self, COMMIT_ID, RANGE_ID, RangeId, SHARD, ShardId, ShardRecord};
use crate::table::Value;

/// Request ids in one row: with ids of the greatest length it stays under half a MiB.
const SIGNAL_REQUESTS_MAX: usize = 256;
/// Fewer deletes stay single: a range costs more than a row, and every row of the batch is checked against it.
const WAITED_RANGE_MIN: usize = 8;

/// Approximate bytes of a small row's key and record besides user data.
pub(super) const ROW_OVERHEAD: usize = 256;

/// The changes of one batch. Only the lease is checked: its holder is the only writer of the partition.
#[derive(Debug)]
pub struct ShardCommit {
    pub shard: ShardId,
    pub range_id: RangeId,
    /// Grows with each commit: shows afterwards whether this one was applied.
    pub commit_id: i64,
    pub runs: Vec<RunWrite>,
    pub current: Vec<CurrentWrite>,
    pub schedules: Vec<ScheduleWrite>,
    /// All rows of these runs are deleted, even those that `runs` names.
    pub deleted_runs: Vec<ExecutionKey>,
    /// Rows to delete, of damaged runs in `runs` and of queues.
    pub damaged_rows: Vec<DamagedRow>,
    /// Ascending by task id.
    pub transfer: Vec<QueuedTask<TransferTask>>,
    /// Ascending by task id.
    pub visibility: Vec<QueuedTask<VisibilityTask>>,
    pub jobs: Vec<JobWrite>,
    /// Run counts after this commit, of namespaces whose runs changed status.
    pub counts: Vec<(NamespaceId, RunCounts)>,
    /// Namespaces that have no runs in the shard any more, and will have none.
    pub left_namespaces: Vec<NamespaceId>,
    pub timers: Vec<QueuedTimer>,
    /// Timer rows left by removed namespaces; may have duplicates.
    pub left_timers: Vec<TimerKey>,
    /// A checkpoint.
    pub shard_record: Option<ShardRecord>,
    /// For the next owner: the last closed runs, oldest first. Empty: the stored row stays.
    pub closed_runs: Vec<RunId>,
    /// Completed transfer tasks: rows whose last task is among them are deleted.
    pub completed_transfer: Option<RangeInclusive<i64>>,
    /// Completed visibility tasks, likewise.
    pub completed_visibility: Option<RangeInclusive<i64>>,
    pub completed_timers: Option<RangeInclusive<TimerKey>>,
}

/// One transition of a run. The same run may appear several times in a commit.
#[derive(Debug)]
pub struct RunWrite {
    pub state: Arc<ExecutionState>,
    pub changed: ChangedItems,
}

/// Sets the newest run of a workflow; `None` deletes it.
#[derive(Debug)]
pub struct CurrentWrite {
    pub namespace_id: NamespaceId,
    pub workflow_id: Arc<str>,
    pub run: Option<CurrentRun>,
}

/// The new state of a schedule; `None` deletes it. The same one may appear several times in a commit.
#[derive(Debug, Clone)]
pub struct ScheduleWrite {
    pub namespace_id: NamespaceId,
    pub schedule_id: Arc<str>,
    pub version: i64,
    pub schedule: Option<Arc<record::Schedule>>,
}

/// Version of a run after its first transition.
const FIRST_VERSION: i64 = 1;

/// All writes of one run in a commit.
struct MergedRun {
    state: Arc<ExecutionState>,
    is_new: bool,
    has_new_properties: bool,
    /// By event id. They stay as long as the run.
    signal_requests: BTreeMap<i64, Arc<String>>,
    items: BTreeMap<(ItemKind, i64), Option<Item>>,
}

enum Item {
    Activity(Arc<Activity>),
    Timer(Arc<Timer>),
    Child(Arc<Child>),
    ExternalRequest(Arc<ExternalRequest>),
    BufferedEvent(Arc<HistoryEvent>),
    Update(Arc<Update>),
}

impl ShardCommit {
    /// Whether no run, schedule, job, namespace, damaged row or checkpoint is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let changes_no_run = self.runs.is_empty() && self.current.is_empty() && self.deleted_runs.is_empty();
        let changes_no_other = self.schedules.is_empty() && self.jobs.is_empty() && self.left_namespaces.is_empty();
        changes_no_run && changes_no_other && self.damaged_rows.is_empty() && self.shard_record.is_none()
    }

    /// An empty commit.
    #[must_use]
    pub fn new(shard: ShardId, range_id: RangeId, commit_id: i64) -> Self {
        Self {
            shard,
            range_id,
            commit_id,
            runs: Vec::new(),
            current: Vec::new(),
            schedules: Vec::new(),
            deleted_runs: Vec::new(),
            damaged_rows: Vec::new(),
            transfer: Vec::new(),
            visibility: Vec::new(),
            jobs: Vec::new(),
            counts: Vec::new(),
            left_namespaces: Vec::new(),
            timers: Vec::new(),
            left_timers: Vec::new(),
            shard_record: None,
            closed_runs: Vec::new(),
            completed_transfer: None,
            completed_visibility: None,
            completed_timers: None,
        }
    }

    pub(super) fn to_batch(&self) -> Batch {
        let mut batch = Batch::new(shards::partition(self.shard));
        let equals = Some(Value::Bigint(self.range_id.0));
        batch.conditions.push(Condition::Static { column: RANGE_ID, equals });
        batch.statics.push((COMMIT_ID, Value::Bigint(self.commit_id)));
        if let Some(record) = &self.shard_record {
            batch.statics.push((SHARD, record.to_value()));
        }
        put_runs(&mut batch, &self.runs, &self.deleted_runs);
        put_current(&mut batch, &self.current);
        put_schedules(&mut batch, &self.schedules);
        put_tasks(&mut batch, RowKind::TransferQueue, &self.transfer, |tasks| {
            rows::to_value(&record::TransferTasks { tasks: tasks.iter().map(rows::tasks::encode_transfer).collect() })
        });
        put_tasks(&mut batch, RowKind::VisibilityQueue, &self.visibility, |tasks| {
            let tasks = tasks.iter().map(rows::tasks::encode_visibility).collect();
            rows::to_value(&record::VisibilityTasks { tasks })
        });
        put_jobs(&mut batch, &self.jobs);
        if !self.closed_runs.is_empty() {
            let values = vec![Value::Bigint(0), rows::to_value(&rows::closed_runs::encode(&self.closed_runs))];
            batch.puts.push(Row { key: keys::closed_runs(), values });
        }
        batch.puts.extend(self.counts.iter().map(counts_row));
        let is_counted = |left: &&NamespaceId| self.counts.iter().any(|(counted, _)| counted == *left);
        let uncounted = self.left_namespaces.iter().filter(|left| !is_counted(left));
        batch.deletes.extend(uncounted.map(|left| keys::counts(*left)));
        put_timers(&mut batch, &self.timers);
        let left_timers: BTreeSet<TimerKey> = self.left_timers.iter().copied().collect();
        batch.deletes.extend(left_timers.into_iter().map(keys::timer));
        delete_damaged(&mut batch, &self.damaged_rows);
        let completed = [
            (RowKind::TransferQueue, &self.completed_transfer),
            (RowKind::VisibilityQueue, &self.completed_visibility),
        ];
        for (kind, tasks) in completed {
            batch.range_deletes.extend(tasks.iter().map(|tasks| keys::immediate_range(kind, tasks)));
        }
        batch.range_deletes.extend(self.completed_timers.iter().map(keys::timer_range));
        batch
    }
}

impl RunWrite {
    /// Bytes that it adds to a batch: at least what its rows take, so that a bound on it bounds the batch. Every row
    /// counts with its whole key; so it bounds the number of rows as well.
    #[must_use]
    pub fn size_estimate(&self) -> usize {
        Self::size_of(&self.state, &self.changed)
    }

    /// The size estimate of a write that is not made yet.
    #[must_use]
    pub fn size_of(state: &ExecutionState, changed: &ChangedItems) -> usize {
        let row = ROW_OVERHEAD + state.key.workflow_id.len();
        let mut size = row + state.state_row_size();
        if state.unrecorded.db_record_version == FIRST_VERSION {
            size += row + state.started_row_size();
        }
        let ChangedItems {
            activities,
            timers,
            children,
            external_signals,
            external_cancels,
            signal_request_ids,
            updates,
            properties,
            buffered_events,
        } = changed;
        if *properties {
            size += row + state.memo.encoded_len() + state.search_attributes.encoded_len();
        }
        size += items_size(row, activities)
            + items_size(row, timers)
            + items_size(row, children)
            + items_size(row, external_signals)
            + items_size(row, external_cancels)
            + items_size(row, updates)
            + items_size(row, signal_request_ids)
            + items_size(row, buffered_events);
        size
    }
}

/// Size of the rows of changed items; deleted ones have only a key.
fn items_size<V: Weigh>(row: usize, changed: &[(i64, Option<Arc<V>>)]) -> usize {
    let held: usize = changed.iter().filter_map(|(_, item)| item.as_ref()).map(|item| item.bytes()).sum();
    row * changed.len() + held
}

fn put_runs(batch: &mut Batch, runs: &[RunWrite], deleted: &[ExecutionKey]) {
    let mut merged = merge(runs);
    for key in deleted {
        merged.remove(key);
        batch.range_deletes.push(KeyRange::prefix(keys::run(key)));
    }
    for (key, run) in merged {
        run.put(&key, batch);
    }
}

/// Skips rows that a run puts or deletes in this commit: a batch names a row once.
fn delete_damaged(batch: &mut Batch, damaged: &[DamagedRow]) {
    for DamagedRow(key) in damaged {
        let is_named = batch.puts.iter().any(|row| row.key == *key) || batch.deletes.contains(key);
        if !is_named {
            batch.deletes.push(key.clone());
        }
    }
}

fn merge(runs: &[RunWrite]) -> BTreeMap<ExecutionKey, MergedRun> {
    let mut merged: BTreeMap<ExecutionKey, MergedRun> = BTreeMap::new();
    for RunWrite { state, changed } in runs {
        let version = state.unrecorded.db_record_version;
        assert!(version >= FIRST_VERSION, "run {} is written at version {version}", state.key);
        let run = match merged.get_mut(&state.key) {
            Some(run) => {
                let earlier = run.state.unrecorded.db_record_version;
                assert!(version > earlier, "run {} is written at {version} after {earlier}", state.key);
                run.state = Arc::clone(state);
                run
            }
            None => merged.entry(state.key.clone()).or_insert(MergedRun {
                state: Arc::clone(state),
                is_new: version == FIRST_VERSION,
                has_new_properties: false,
                signal_requests: BTreeMap::new(),
                items: BTreeMap::new(),
            }),
        };
        run.change(changed);
    }
    merged
}

impl MergedRun {
    fn change(&mut self, changed: &ChangedItems) {
        let ChangedItems {
            activities,
            timers,
            children,
            external_signals,
            external_cancels,
            signal_request_ids,
            updates,
            properties,
            buffered_events,
        } = changed;
        self.has_new_properties |= properties;
        self.change_items(ItemKind::Activity, activities, Item::Activity);
        self.change_items(ItemKind::Timer, timers, Item::Timer);
        self.change_items(ItemKind::Child, children, Item::Child);
        self.change_items(ItemKind::ExternalSignal, external_signals, Item::ExternalRequest);
        self.change_items(ItemKind::ExternalCancel, external_cancels, Item::ExternalRequest);
        self.signal_requests.extend(signal_request_ids.iter().map(|(event_id, request_id)| {
            let request_id = request_id.as_ref().expect("a signal's request id is never removed");
            (*event_id, Arc::clone(request_id))
        }));
        self.change_items(ItemKind::BufferedEvent, buffered_events, Item::BufferedEvent);
        self.change_items(ItemKind::Update, updates, Item::Update);
    }

    fn change_items<V>(&mut self, kind: ItemKind, changed: &[(i64, Option<Arc<V>>)], item: fn(Arc<V>) -> Item) {
        for (id, change) in changed {
            self.items.insert((kind, *id), change.clone().map(item));
        }
    }

    fn put(mut self, key: &ExecutionKey, batch: &mut Batch) {
        batch.range_deletes.extend(self.take_waited(key));
        let version = self.state.unrecorded.db_record_version;
        let mut put = |kind, id, data| {
            let values = vec![Value::Bigint(version), data];
            batch.puts.push(Row { key: keys::item(key, kind, id), values });
        };
        put(ItemKind::State, 0, rows::to_value(&rows::run::encode(&self.state)));
        if self.is_new {
            put(ItemKind::Started, 0, rows::to_value(&rows::started::encode(&self.state.started)));
        }
        if self.has_new_properties {
            put(ItemKind::Properties, 0, rows::to_value(&rows::run::encode_properties(&self.state)));
        }
        for (first_event_id, request_ids) in side_by_side(self.signal_requests) {
            let requests = rows::to_value(&record::SignalRequests { request_ids });
            put(ItemKind::SignalRequest, first_event_id, requests);
        }
        for ((kind, id), item) in self.items {
            match item {
                Some(item) => put(kind, id, item.to_value()),
                // An item created and removed in this batch never had a row: no tombstone.
                None if self.is_new => {}
                None => batch.deletes.push(keys::item(key, kind, id)),
            }
        }
    }
}

impl MergedRun {
    /// Deletes of buffered events as one range, if there are many: one tombstone instead of one each.
    fn take_waited(&mut self, key: &ExecutionKey) -> Option<KeyRange> {
        let waited = |kind: &(ItemKind, i64), item: &Option<Item>| kind.0 == ItemKind::BufferedEvent && item.is_none();
        let (_, last) = *self.items.iter().rev().find(|(kind, item)| waited(kind, item))?.0;
        let n_waited = self.items.iter().filter(|(kind, item)| waited(kind, item)).count();
        let first_waiting = self.state.unrecorded.buffered_events.iter().next().map(|(place, _)| place);
        // Places are never reused, so later events lie outside the range; earlier ones may still be buffered.
        if self.is_new || n_waited < WAITED_RANGE_MIN || first_waiting.is_some_and(|place| place <= last) {
            return None;
        }
        self.items.retain(|kind, item| !waited(kind, item));
        Some(keys::items_up_to(key, ItemKind::BufferedEvent, last))
    }
}

/// Groups the request ids of consecutive events, each group with its first event id.
fn side_by_side(requests: BTreeMap<i64, Arc<String>>) -> Vec<(i64, Vec<String>)> {
    let mut lots: Vec<(i64, Vec<String>)> = Vec::new();
    for (event_id, request_id) in requests {
        let request_id = Arc::unwrap_or_clone(request_id);
        match lots.last_mut() {
            Some((first, lot)) if *first + lot.len() as i64 == event_id && lot.len() < SIGNAL_REQUESTS_MAX => {
                lot.push(request_id);
            }
            _ => lots.push((event_id, vec![request_id])),
        }
    }
    lots
}

impl Item {
    fn to_value(&self) -> Value {
        match self {
            Self::Activity(activity) => rows::to_value(&rows::items::encode_activity(activity)),
            Self::Timer(timer) => rows::to_value(&rows::items::encode_timer(timer)),
            Self::Child(child) => rows::to_value(&rows::items::encode_child(child)),
            Self::ExternalRequest(request) => rows::to_value(&rows::items::encode_external(request)),
            Self::BufferedEvent(event) => rows::to_value(event.as_ref()),
            Self::Update(update) => rows::to_value(&rows::items::encode_update(update)),
        }
    }
}

fn put_current(batch: &mut Batch, writes: &[CurrentWrite]) {
    let mut newest = BTreeMap::new();
    for CurrentWrite { namespace_id, workflow_id, run } in writes {
        newest.insert((*namespace_id, workflow_id), run);
    }
    for ((namespace_id, workflow_id), run) in newest {
        let key = keys::current(namespace_id, workflow_id);
        match run {
            Some(run) => {
                let values = vec![Value::Bigint(run.version), rows::to_value(&rows::run::encode_current(run))];
                batch.puts.push(Row { key, values });
            }
            None => batch.deletes.push(key),
        }
    }
}

fn put_schedules(batch: &mut Batch, writes: &[ScheduleWrite]) {
    let mut newest = BTreeMap::new();
    for write in writes {
        newest.insert((write.namespace_id, &write.schedule_id), write);
    }
    for ((namespace_id, schedule_id), write) in newest {
        let key = keys::schedule(namespace_id, schedule_id);
        match &write.schedule {
            Some(schedule) => {
                let values = vec![Value::Bigint(write.version), rows::to_value(schedule.as_ref())];
                batch.puts.push(Row { key, values });
            }
            None => batch.deletes.push(key),
        }
    }
}

/// The row's key is its last task id: a range delete up to the ack level then never drops a task that is not done.
fn put_tasks<T>(
    batch: &mut Batch,
    queue: RowKind,
    tasks: &[QueuedTask<T>],
    encode: impl FnOnce(&[QueuedTask<T>]) -> Value,
) {
    let Some(last) = tasks.last() else { return };
    assert!(tasks.is_sorted_by(|one, next| one.task_id < next.task_id), "tasks of a queue are not in order");
    batch.puts.push(Row {
        key: keys::immediate(queue, last.task_id),
        values: vec![Value::Bigint(ROW_FORMAT), encode(tasks)],
    });
}

fn counts_row((namespace_id, counts): &(NamespaceId, RunCounts)) -> Row {
    Row { key: keys::counts(*namespace_id), values: vec![Value::Bigint(0), rows::to_value(&counts.encode())] }
}
