//! Clustering keys of a shard's partition, encoded and decoded in one place.

use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use uuid::Uuid;
use workflow::{ExecutionKey, NamespaceId, Timestamp};

use super::TimerKey;
use crate::engine::KeyRange;
use crate::table::Value;

/// Kind of a row: the first clustering column. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// The newest run of a workflow.
    Current = 1,
    /// The state of a run, or one of its items.
    Run = 2,
    TransferQueue = 3,
    TimerQueue = 4,
    VisibilityQueue = 5,
    /// Run counts of a namespace, by status.
    Counts = 6,
    /// A schedule; its id is in the workflow id column.
    Schedule = 7,
    /// A job of the shard, or its progress; its id is in the workflow id column.
    Job = 8,
    /// The last closed runs, as a former owner of the shard left them.
    ClosedRuns = 9,
}

/// Kind of a run's row: its `sort_key`. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKind {
    State = 0,
    /// How the run was started.
    Started = 1,
    Activity = 2,
    Timer = 3,
    /// Request ids of signals; consecutive ones of a commit share a row.
    SignalRequest = 4,
    BufferedEvent = 5,
    Child = 6,
    ExternalSignal = 7,
    ExternalCancel = 8,
    Update = 9,
    /// The memo and the search attributes, if there are any.
    Properties = 10,
}

/// Kind of a job's row: its `sort_key`. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobPart {
    Progress = 0,
    Job = 1,
}

impl ItemKind {
    pub(super) fn from_sort_key(sort_key: i64) -> Option<Self> {
        const ALL: [ItemKind; 11] = [
            ItemKind::State,
            ItemKind::Started,
            ItemKind::Activity,
            ItemKind::Timer,
            ItemKind::SignalRequest,
            ItemKind::BufferedEvent,
            ItemKind::Child,
            ItemKind::ExternalSignal,
            ItemKind::ExternalCancel,
            ItemKind::Update,
            ItemKind::Properties,
        ];
        ALL.into_iter().find(|kind| *kind as i64 == sort_key)
    }
}

pub(super) fn current(namespace_id: NamespaceId, workflow_id: &Arc<str>) -> Vec<Value> {
    let mut key = workflow(RowKind::Current, namespace_id, workflow_id);
    key.extend([Value::Uuid(Uuid::nil()), Value::Bigint(0), Value::Bigint(0)]);
    key
}

/// The prefix that all rows of a run have.
pub(super) fn run(key: &ExecutionKey) -> Vec<Value> {
    let mut prefix = workflow(RowKind::Run, key.namespace_id, &key.workflow_id);
    prefix.push(Value::Uuid(key.run_id.0));
    prefix
}

pub(super) fn item(key: &ExecutionKey, kind: ItemKind, id: i64) -> Vec<Value> {
    let mut row = run(key);
    row.extend([Value::Bigint(kind as i64), Value::Bigint(id)]);
    row
}

/// All items of a kind that a run has, up to this one.
pub(super) fn items_up_to(key: &ExecutionKey, kind: ItemKind, last_id: i64) -> KeyRange {
    let mut lower = run(key);
    lower.push(Value::Bigint(kind as i64));
    KeyRange { lower: Bound::Included(lower), upper: Bound::Included(item(key, kind, last_id)) }
}

/// The row of an immediate queue that ends with this task.
pub(super) fn immediate(queue_kind: RowKind, last_task_id: i64) -> Vec<Value> {
    queue(queue_kind, 0, last_task_id)
}

pub(super) fn counts(namespace_id: NamespaceId) -> Vec<Value> {
    let mut key = workflow(RowKind::Counts, namespace_id, &Arc::from(""));
    key.extend([Value::Uuid(Uuid::nil()), Value::Bigint(0), Value::Bigint(0)]);
    key
}

pub(super) fn schedule(namespace_id: NamespaceId, schedule_id: &Arc<str>) -> Vec<Value> {
    let mut key = workflow(RowKind::Schedule, namespace_id, schedule_id);
    key.extend([Value::Uuid(Uuid::nil()), Value::Bigint(0), Value::Bigint(0)]);
    key
}

/// All schedules that a namespace has in the shard.
pub(super) fn schedules(namespace_id: NamespaceId) -> KeyRange {
    KeyRange::prefix(vec![Value::Int(RowKind::Schedule as i32), Value::Uuid(namespace_id.0)])
}

/// The newest run of every workflow.
pub(super) fn all_current() -> KeyRange {
    KeyRange::prefix(vec![Value::Int(RowKind::Current as i32)])
}

pub(super) fn all_counts() -> KeyRange {
    KeyRange::prefix(vec![Value::Int(RowKind::Counts as i32)])
}

/// One of a job's rows: the request or the progress.
pub(super) fn job(namespace_id: NamespaceId, job_id: &Arc<str>, part: JobPart) -> Vec<Value> {
    let mut key = workflow(RowKind::Job, namespace_id, job_id);
    key.extend([Value::Uuid(Uuid::nil()), Value::Bigint(part as i64), Value::Bigint(0)]);
    key
}

pub(super) fn all_jobs() -> KeyRange {
    KeyRange::prefix(vec![Value::Int(RowKind::Job as i32)])
}

/// All runs of a workflow.
pub(super) fn runs_of(namespace_id: NamespaceId, workflow_id: &Arc<str>) -> KeyRange {
    KeyRange::prefix(workflow(RowKind::Run, namespace_id, workflow_id))
}

/// All runs of a namespace.
pub(super) fn runs(namespace_id: NamespaceId) -> KeyRange {
    KeyRange::prefix(vec![Value::Int(RowKind::Run as i32), Value::Uuid(namespace_id.0)])
}

pub(super) fn closed_runs() -> Vec<Value> {
    queue(RowKind::ClosedRuns, 0, 0)
}

pub(super) fn timer(key: TimerKey) -> Vec<Value> {
    queue(RowKind::TimerQueue, key.fires_at.0, key.task_id)
}

pub(super) fn immediate_range(queue_kind: RowKind, rows: &RangeInclusive<i64>) -> KeyRange {
    let end = |task_id: i64| Bound::Included(immediate(queue_kind, task_id));
    KeyRange { lower: end(*rows.start()), upper: end(*rows.end()) }
}

pub(super) fn immediate_after(queue_kind: RowKind, task_id: i64) -> KeyRange {
    let lower = Bound::Excluded(immediate(queue_kind, task_id));
    KeyRange { lower, upper: Bound::Included(shard_queue(queue_kind)) }
}

pub(super) fn timer_range(rows: &RangeInclusive<TimerKey>) -> KeyRange {
    KeyRange { lower: Bound::Included(timer(*rows.start())), upper: Bound::Included(timer(*rows.end())) }
}

pub(super) fn timers_between(after: TimerKey, before: Timestamp) -> KeyRange {
    let mut upper = shard_queue(RowKind::TimerQueue);
    upper.push(Value::Bigint(before.0));
    KeyRange { lower: Bound::Excluded(timer(after)), upper: Bound::Excluded(upper) }
}

fn workflow(kind: RowKind, namespace_id: NamespaceId, workflow_id: &Arc<str>) -> Vec<Value> {
    let mut key = Vec::with_capacity(6);
    key.extend([Value::Int(kind as i32), Value::Uuid(namespace_id.0), Value::Text(Arc::clone(workflow_id))]);
    key
}

pub(super) fn queue(kind: RowKind, sort_key: i64, id: i64) -> Vec<Value> {
    let mut key = shard_queue(kind);
    key.extend([Value::Bigint(sort_key), Value::Bigint(id)]);
    key
}

/// A queue belongs to the shard, not to a workflow: its workflow columns are empty.
fn shard_queue(kind: RowKind) -> Vec<Value> {
    let mut key = Vec::with_capacity(6);
    key.extend([
        Value::Int(kind as i32),
        Value::Uuid(Uuid::nil()),
        Value::Text(Arc::from("")),
        Value::Uuid(Uuid::nil()),
    ]);
    key
}
