//! Executions in memory, one lock each. A run has at most one slot, and a slot with a commit in flight is never
//! dropped: the commit holds it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use prost::Message;
use scheduler::schedule::Schedule;
use workflow::{CurrentRun, ExecutionKey, ExecutionState, NamespaceId, RunId};

use super::events::RecentEvents;
use super::query_buffer::QueryBuffer;
use super::updates::Updates;

/// In-memory state of one run.
#[derive(Default)]
pub(crate) struct Slot {
    /// Held for loading and for a decision, not for the commit of the decision.
    pub(crate) execution: tokio::sync::Mutex<Execution>,
    pub(crate) queries: QueryBuffer,
    /// Bytes in memory; zero until known.
    weight: AtomicU32,
    kept: Kept,
}

/// The slot's last cache insert.
#[derive(Default)]
struct Kept {
    /// Weight at that insert; zero if none, or after `Slots::forget`.
    weight: AtomicU32,
    /// `HotExecutions::bytes_inserted` at that insert.
    at: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Execution {
    /// `None` until it is loaded.
    pub(crate) state: Option<Arc<ExecutionState>>,
    /// Submission that produced this state; a reply that depends on the state waits for its commit.
    pub(crate) submitted: u64,
    pub(crate) recent: RecentEvents,
    pub(crate) updates: Updates,
    /// Deleted by `submitted`; the store may still have it.
    pub(crate) is_deleted: bool,
    /// Held so that a workflow id without a run id resolves from memory for as long as the run is in memory.
    pub(crate) current: Option<Arc<CurrentSlot>>,
}

impl Execution {
    /// Later lookups do not find the run.
    pub(crate) fn delete(&mut self, submitted: u64) {
        *self = Self { submitted, is_deleted: true, ..Self::default() };
    }
}

/// The newest run of a workflow id.
#[derive(Default)]
pub(crate) struct CurrentSlot {
    /// Serializes starts, resets and deletions of one workflow id.
    pub(crate) starting: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
pub(crate) enum Known {
    #[default]
    Unread,
    Absent,
    Run(CurrentRun),
}

impl CurrentSlot {
    pub(crate) fn known(&self) -> Known {
        self.known.lock().expect("no holder of this lock can panic").clone()
    }

    pub(crate) fn newest(&self) -> Option<RunId> {
        match self.known() {
            Known::Run(run) => Some(run.run_id),
            Known::Absent | Known::Unread => None,
        }
    }

    /// Sets the run that a decision produced; always newer than the stored one.
    pub(crate) fn set(&self, run: CurrentRun) {
        *self.known.lock().expect("no holder of this lock can panic") = Known::Run(run);
    }

    /// The newest run is deleted; earlier runs do not replace it.
    pub(crate) fn forget(&self) {
        *self.known.lock().expect("no holder of this lock can panic") = Known::Absent;
    }

    /// Fills in the stored run, unless a decision set it first.
    pub(crate) fn fill(&self, run: Option<CurrentRun>) -> Known {
        let mut known = self.known.lock().expect("no holder of this lock can panic");
        if matches!(*known, Known::Unread) {
            *known = run.map_or(Known::Absent, Known::Run);
        }
        known.clone()
    }
}

/// In-memory state of one schedule.
#[derive(Default)]
pub(crate) struct ScheduleSlot {
    /// Serializes the schedule's actions with each other and with reports of closed runs.
    pub(crate) acting: tokio::sync::Mutex<()>,
    /// Held for a decision and for loading.
    pub(crate) kept: tokio::sync::Mutex<KeptSchedule>,
}

#[derive(Default)]
pub(crate) struct KeptSchedule {
    pub(crate) known: KnownSchedule,
    /// Submission that produced this state.
    pub(crate) submitted: u64,
}

#[derive(Clone, Default)]
pub(crate) enum KnownSchedule {
    #[default]
    Unread,
    Absent,
    Schedule(Arc<Schedule>),
}

/// LRU cache of executions over all shards of the node, weighed in bytes.
#[derive(Clone)]
pub(crate) struct HotExecutions {
    cache: Cache<(u64, ExecutionKey), Arc<Slot>>,
    /// Total bytes ever inserted; used as a logical clock for the throttle.
    bytes_inserted: Arc<AtomicU64>,
    bytes_max: u64,
}

/// Throttles LRU promotion: a slot is re-inserted into moka only after 1/4 of the cache has turned over since its last
/// insert. The order is inexact, but a promotion per use costs more than the use. While the active runs fit in that
/// quarter (2000 of the usual size in the default cache), each is inserted once; beyond that, repeatedly.
const PROMOTION_PART: u64 = 4;

impl HotExecutions {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let weigh = |_: &(u64, ExecutionKey), slot: &Arc<Slot>| slot.kept.weight.load(Ordering::Relaxed);
        // LRU, not moka's frequency-based default: a new run is busy, and a formerly busy run may wait for weeks.
        let policy = EvictionPolicy::lru();
        let cache = Cache::builder().max_capacity(bytes_max).weigher(weigh).eviction_policy(policy).build();
        Self { cache, bytes_inserted: Arc::default(), bytes_max }
    }

    /// Promotes the slot. Skips the insert if the last one is recent: the cache evicts a slot only after a whole
    /// capacity of later inserts.
    fn keep(&self, key: impl FnOnce() -> (u64, ExecutionKey), slot: &Arc<Slot>) {
        let (weight, kept) = (slot.weight.load(Ordering::Relaxed), slot.kept.weight.load(Ordering::Relaxed));
        let since = self.bytes_inserted.load(Ordering::Relaxed).saturating_sub(slot.kept.at.load(Ordering::Relaxed));
        let is_weighed = weight <= kept && weight >= kept / 2;
        if is_weighed && since < self.bytes_max / PROMOTION_PART {
            return;
        }
        // A quarter of headroom, so that small growth needs no new insert.
        let weight = weight.saturating_add(weight / 4);
        slot.kept.weight.store(weight, Ordering::Relaxed);
        let bytes_inserted = self.bytes_inserted.fetch_add(u64::from(weight), Ordering::Relaxed);
        slot.kept.at.store(bytes_inserted, Ordering::Relaxed);
        self.cache.insert(key(), Arc::clone(slot));
    }
}

/// The slots of one shard under one lease.
pub(crate) struct Slots {
    /// Separates this lease's slots from those of an earlier lease still in moka.
    generation: u64,
    hot: HotExecutions,
    runs: Live<ExecutionKey, Slot>,
    currents: Live<(NamespaceId, Arc<str>), CurrentSlot>,
    schedules: Live<(NamespaceId, Arc<str>), ScheduleSlot>,
}

impl Slots {
    pub(crate) fn new(generation: u64, hot: HotExecutions) -> Self {
        Self { generation, hot, runs: Live::default(), currents: Live::default(), schedules: Live::default() }
    }

    /// `runs` has every slot that the cache holds, so the cache is not read first.
    pub(crate) fn run(&self, key: &ExecutionKey) -> Arc<Slot> {
        self.runs.get_or_default(key)
    }

    pub(crate) fn current(&self, namespace_id: NamespaceId, workflow_id: &Arc<str>) -> Arc<CurrentSlot> {
        self.currents.get_or_default(&(namespace_id, Arc::clone(workflow_id)))
    }

    pub(crate) fn schedule(&self, namespace_id: NamespaceId, schedule_id: &Arc<str>) -> Arc<ScheduleSlot> {
        self.schedules.get_or_default(&(namespace_id, Arc::clone(schedule_id)))
    }

    /// Keeps the slot in memory for as long as the cache has room for its state and its recent events.
    pub(crate) fn keep(&self, slot: &Arc<Slot>, state: &ExecutionState, events_bytes: usize) {
        slot.weight.store(u32::try_from(weight(state) + events_bytes).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.hot.keep(|| (self.generation, state.key.clone()), slot);
    }

    /// Evicts the slot from the cache; existing references stay valid.
    pub(crate) fn forget(&self, key: &ExecutionKey, slot: &Slot) {
        slot.kept.weight.store(0, Ordering::Relaxed);
        self.hot.cache.invalidate(&(self.generation, key.clone()));
    }

    /// Promotes a run that was used without a change. `state` is the loaded state.
    pub(crate) fn touch(&self, slot: &Arc<Slot>, state: &ExecutionState) {
        if slot.weight.load(Ordering::Relaxed) == 0 {
            self.keep(slot, state, 0);
            return;
        }
        self.hot.keep(|| (self.generation, state.key.clone()), slot);
    }
}

/// Estimated bytes of a state in memory, close enough to keep the cache under its limit.
fn weight(state: &ExecutionState) -> usize {
    /// State, start record, slot, and entries in the maps and the cache, measured with a heap profile.
    const STATE: usize = 4864;
    const ITEM: usize = 512;
    let again = state.started.again.as_ref().and_then(|again| again.input.as_ref());
    let n_items = state.activities.len() + state.timers.len() + state.children.len() + state.updates.len();
    let n_ids = state.signal_request_ids.len() + state.external_signals.len() + state.external_cancels.len();
    STATE + ITEM * (n_items + n_ids) + state.mutable_state_size() + again.map_or(0, Message::encoded_len)
}

/// Weak map: at most one value per key while references exist.
struct Live<K, V> {
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    all: HashMap<K, Weak<V>>,
    /// Heap bytes of the keys of all entries, live and dead.
    key_bytes: usize,
    /// Dead entries are swept when the map reaches either limit; the sweep is amortized O(1) per insertion.
    sweep_at: usize,
    sweep_at_bytes: usize,
}

const SWEEP_MIN: usize = 1024;
/// Clients choose the keys, even of workflows that do not exist: bounded by count alone, 1024 keys could take GiBs.
const SWEEP_MIN_BYTES: usize = 256 << 10;

/// A key that clients choose.
trait ChosenKey: Hash + Eq + Clone {
    /// Heap bytes behind the key.
    fn bytes(&self) -> usize;
}

impl ChosenKey for ExecutionKey {
    fn bytes(&self) -> usize {
        self.workflow_id.len()
    }
}

impl ChosenKey for (NamespaceId, Arc<str>) {
    fn bytes(&self) -> usize {
        self.1.len()
    }
}

impl<K, V> Default for Live<K, V> {
    fn default() -> Self {
        let (sweep_at, sweep_at_bytes) = (SWEEP_MIN, SWEEP_MIN_BYTES);
        Self { entries: Mutex::new(Entries { all: HashMap::new(), key_bytes: 0, sweep_at, sweep_at_bytes }) }
    }
}

impl<K: ChosenKey, V> Entries<K, V> {
    fn sweep(&mut self) {
        self.all.retain(|_, value| value.strong_count() > 0);
        self.key_bytes = self.all.keys().map(ChosenKey::bytes).sum();
        self.sweep_at = SWEEP_MIN.max(2 * self.all.len());
        self.sweep_at_bytes = SWEEP_MIN_BYTES.max(2 * self.key_bytes);
    }
}

impl<K: ChosenKey, V: Default> Live<K, V> {
    fn get_or_default(&self, key: &K) -> Arc<V> {
        let mut entries = self.entries.lock().expect("no holder of this lock can panic");
        if let Some(value) = entries.all.get(key).and_then(Weak::upgrade) {
            return value;
        }
        if entries.all.len() >= entries.sweep_at || entries.key_bytes >= entries.sweep_at_bytes {
            entries.sweep();
        }
        let value = Arc::new(V::default());
        if entries.all.insert(key.clone(), Arc::downgrade(&value)).is_none() {
            entries.key_bytes += key.bytes();
        }
        value
    }
}

#[cfg(test)]
mod tests;
