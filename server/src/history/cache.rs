//! Executions in memory, one lock each. A run has at most one slot, however many ask for it, and a slot with a commit
//! in flight is never forgotten: the commit holds it.

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

/// A run as the shard's owner knows it.
#[derive(Default)]
pub(crate) struct Slot {
    /// The one async lock of the server: held for a decision and for loading, never for a commit.
    pub(crate) execution: tokio::sync::Mutex<Execution>,
    pub(crate) queries: QueryBuffer,
    /// What it takes, in bytes; zero until that is known.
    weight: AtomicU32,
    kept: Kept,
}

/// How the cache knows a slot.
#[derive(Default)]
struct Kept {
    /// The weight that it has there; zero if it is not there.
    weight: AtomicU32,
    /// What the cache had taken in when it was last told of the slot.
    at: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Execution {
    /// `None` until it is loaded.
    pub(crate) state: Option<Arc<ExecutionState>>,
    /// The submission that brought it to this state; whoever tells of the state first waits for its commit.
    pub(crate) submitted: u64,
    pub(crate) recent: RecentEvents,
    pub(crate) updates: Updates,
    /// By the submission; the store may still have it.
    pub(crate) is_deleted: bool,
    /// Held, so that requests which name only the workflow find the run for as long as it is in memory.
    pub(crate) current: Option<Arc<CurrentSlot>>,
}

impl Execution {
    /// From here on nobody finds the run any more.
    pub(crate) fn delete(&mut self, submitted: u64) {
        *self = Self { submitted, is_deleted: true, ..Self::default() };
    }
}

/// The newest run of a workflow id.
#[derive(Default)]
pub(crate) struct CurrentSlot {
    /// Starts of one workflow id come one after the other.
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
        self.known.lock().expect("nobody panics while holding it").clone()
    }

    pub(crate) fn newest(&self) -> Option<RunId> {
        match self.known() {
            Known::Run(run) => Some(run.run_id),
            Known::Absent | Known::Unread => None,
        }
    }

    /// What a decision made of it. Always newer than what the store tells.
    pub(crate) fn set(&self, run: CurrentRun) {
        *self.known.lock().expect("nobody panics while holding it") = Known::Run(run);
    }

    /// The newest run is deleted, and the ones before it do not take its place.
    pub(crate) fn forget(&self) {
        *self.known.lock().expect("nobody panics while holding it") = Known::Absent;
    }

    /// What the store told, unless a decision was quicker.
    pub(crate) fn fill(&self, run: Option<CurrentRun>) -> Known {
        let mut known = self.known.lock().expect("nobody panics while holding it");
        if matches!(*known, Known::Unread) {
            *known = run.map_or(Known::Absent, Known::Run);
        }
        known.clone()
    }
}

/// A schedule as the shard's owner knows it.
#[derive(Default)]
pub(crate) struct ScheduleSlot {
    /// Held while what a schedule decided is done: others who act for it, or tell how its runs ended, wait.
    pub(crate) acting: tokio::sync::Mutex<()>,
    /// Held for a decision and for loading.
    pub(crate) kept: tokio::sync::Mutex<KeptSchedule>,
}

#[derive(Default)]
pub(crate) struct KeptSchedule {
    pub(crate) known: KnownSchedule,
    /// The submission that brought it to this state.
    pub(crate) submitted: u64,
}

#[derive(Clone, Default)]
pub(crate) enum KnownSchedule {
    #[default]
    Unread,
    Absent,
    Schedule(Arc<Schedule>),
}

/// Executions that stay in memory, weighed in bytes, over all shards of the node.
#[derive(Clone)]
pub(crate) struct HotExecutions {
    cache: Cache<(u64, ExecutionKey), Arc<Slot>>,
    /// A clock that goes by the bytes which the cache is told of.
    taken_in: Arc<AtomicU64>,
    bytes_max: u64,
}

/// A slot is out of date by no more than this part of what the cache holds: its order is not exact, but to tell it of every
/// use costs more than the use. While the part is larger than what all runs under way take together (2000 of them, of the usual size
/// in the usual cache), each is told of once; beyond that, again and again.
const UNTOLD_PART: u64 = 4;

impl HotExecutions {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let weigh = |_: &(u64, ExecutionKey), slot: &Arc<Slot>| slot.kept.weight.load(Ordering::Relaxed);
        // The latest, not the most popular: a run that is new is busy, and one that was busy may wait for weeks.
        let policy = EvictionPolicy::lru();
        let cache = Cache::builder().max_capacity(bytes_max).weigher(weigh).eviction_policy(policy).build();
        Self { cache, taken_in: Arc::default(), bytes_max }
    }

    /// The slot is in use. The cache need not hear of it if it was told a moment ago: until others have filled the whole of it,
    /// it lets go of nothing that came before them.
    fn keep(&self, key: impl FnOnce() -> (u64, ExecutionKey), slot: &Arc<Slot>) {
        let (weight, kept) = (slot.weight.load(Ordering::Relaxed), slot.kept.weight.load(Ordering::Relaxed));
        let since = self.taken_in.load(Ordering::Relaxed).saturating_sub(slot.kept.at.load(Ordering::Relaxed));
        let is_weighed = weight <= kept && weight >= kept / 2;
        if is_weighed && since < self.bytes_max / UNTOLD_PART {
            return;
        }
        // With a quarter more than it takes, so that it may grow a little before it is weighed again.
        let weight = weight.saturating_add(weight / 4);
        slot.kept.weight.store(weight, Ordering::Relaxed);
        let taken_in = self.taken_in.fetch_add(u64::from(weight), Ordering::Relaxed);
        slot.kept.at.store(taken_in, Ordering::Relaxed);
        self.cache.insert(key(), Arc::clone(slot));
    }
}

/// The slots of one shard under one lease.
pub(crate) struct Slots {
    /// Tells this lease's slots from those of an earlier one that moka still holds.
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

    /// Whatever the cache holds is found here, too; to ask the cache first would only cost.
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

    /// Lets go of a slot; whoever still holds it goes on with it.
    pub(crate) fn forget(&self, key: &ExecutionKey, slot: &Slot) {
        slot.kept.weight.store(0, Ordering::Relaxed);
        self.hot.cache.invalidate(&(self.generation, key.clone()));
    }

    /// The run is used without a change: it stays in memory like one that changed. `state` is what was loaded.
    pub(crate) fn touch(&self, slot: &Arc<Slot>, state: &ExecutionState) {
        if slot.weight.load(Ordering::Relaxed) == 0 {
            self.keep(slot, state, 0);
            return;
        }
        self.hot.keep(|| (self.generation, state.key.clone()), slot);
    }
}

/// About how many bytes a state takes in memory, near enough to keep the cache under its ceiling.
fn weight(state: &ExecutionState) -> usize {
    /// The state, how it was started, its slot, and its places in the maps and in the cache; as a heap profile tells.
    const STATE: usize = 4864;
    const ITEM: usize = 512;
    let again = state.started.again.as_ref().and_then(|again| again.input.as_ref());
    let n_items = state.activities.len() + state.timers.len() + state.children.len() + state.updates.len();
    let n_ids = state.signal_request_ids.len() + state.external_signals.len() + state.external_cancels.len();
    STATE + ITEM * (n_items + n_ids) + state.mutable_state_size() + again.map_or(0, Message::encoded_len)
}

/// At most one value per key for as long as anybody holds it.
struct Live<K, V> {
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    all: HashMap<K, Weak<V>>,
    /// What the keys of all entries, live and dead, take beside the map.
    key_bytes: usize,
    /// Dead entries are swept out when the map has grown to either; so a sweep costs each insertion a constant.
    sweep_at: usize,
    sweep_at_bytes: usize,
}

const SWEEP_MIN: usize = 1024;
/// Keys are the clients' choice, also those of workflows that do not exist: counted alone, a thousand of them could take GiBs.
const SWEEP_MIN_BYTES: usize = 256 << 10;

/// A key that clients choose.
trait ChosenKey: Hash + Eq + Clone {
    /// What it points to takes this.
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
        let mut entries = self.entries.lock().expect("nobody panics while holding it");
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
