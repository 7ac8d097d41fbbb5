//! State of a partition and its changes, which are made under the partition's lock and never await.
//!
//! `now` is `Partition::now`, the monotonic clock: setting the wall clock changes no rate or wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::record;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use tokio::sync::oneshot;
use workflow::Timestamp;

use super::backlog::{Backlog, Limits};
use super::backlog_hint::BacklogHint;
use super::config::MatchingConfig;
use super::dispatch::{Delivery, Dispatched, Origin, PollSender, Verdict};
use super::matcher::{Matcher, PollerKey, Priority, Rank};
use super::partition::Partition;
use super::pollers::{Poller, PollerHistory};
use super::queries::{Query, QueryTask};
use super::rate::{Meter, RateLimit};
use super::task::{Kind, Task};

pub(super) struct State {
    phase: Phase,
    kind: Kind,
    config: Arc<MatchingConfig>,
    matcher: Matcher<Task, PollSender>,
    /// Queries that wait for a poller. They go before all tasks, because a caller waits for the answer. By number, so
    /// the oldest goes first and one whose caller gave up is found at once.
    queries: BTreeMap<u64, Query>,
    pub(super) backlog: Backlog,
    /// Tasks that wait to be written.
    spool: VecDeque<Unwritten>,
    /// Backlog tasks whose start could not be recorded, by retry time.
    delayed: BTreeMap<(Timestamp, Rank), Task>,
    pub(super) pollers: PollerHistory,
    hint: BacklogHint,
    /// Of a sticky queue: its worker's normal queue. `None` if the worker did not name it.
    normal_queue: Option<String>,
    pub(super) rates: Rates,
    /// `None` while the keeper runs: it checks everything before it sleeps.
    keeper: Option<Sleep>,
    touched_at: Timestamp,
    finished_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The queue's record is not read yet. Pollers and new tasks are matched all the same.
    Loading,
    Open,
    /// Closes once waiting tasks are written.
    Draining,
    Closed,
}

#[derive(Debug, Clone, Copy)]
struct Sleep {
    wakes_at: Timestamp,
    /// Earliest next read or checkpoint.
    store_at: Timestamp,
}

pub(super) struct Rates {
    pub(super) limit: RateLimit,
    throttled_until: Option<Timestamp>,
    pub(super) added: Meter,
    pub(super) dispatched: Meter,
}

/// Outcome of offering a task.
pub(super) enum Offered {
    /// A poller got it.
    Handed(oneshot::Receiver<Verdict>),
    /// In memory, which is all that a sticky queue promises.
    Kept,
    /// To be written; the keeper answers.
    Waiting(oneshot::Receiver<Result<(), ServiceError>>),
    /// The partition accepts no more.
    Closed(Task),
}

/// Outcome of a sync match attempt.
enum HandOver {
    Done(oneshot::Receiver<Verdict>),
    NoPoller(Task),
}

pub(super) struct Unwritten {
    pub(super) task: Task,
    pub(super) waiter: Waiter,
}

/// Recipient of the write's acknowledgement.
pub(super) enum Waiter {
    Adder(oneshot::Sender<Result<(), ServiceError>>),
    /// The backlog, which still has it at this rank.
    Respooled(Rank),
}

impl Rates {
    pub(super) fn is_throttled(&self) -> bool {
        self.throttled_until.is_some()
    }
}

impl State {
    pub(super) fn new(kind: Kind, config: Arc<MatchingConfig>, pollers: PollerHistory, now: Timestamp) -> Self {
        let page = config.backlog_page.max(1);
        let limits = Limits { page, in_memory: config.backlog_in_memory.max(page.saturating_mul(2)) };
        let phase = match kind {
            Kind::Normal => Phase::Loading,
            Kind::Sticky => Phase::Open,
        };
        let (added, dispatched) = (Meter::default(), Meter::default());
        Self {
            phase,
            kind,
            config,
            matcher: Matcher::new(),
            queries: BTreeMap::new(),
            backlog: Backlog::new(limits),
            spool: VecDeque::new(),
            delayed: BTreeMap::new(),
            pollers,
            hint: BacklogHint::default(),
            normal_queue: None,
            rates: Rates { limit: RateLimit::none(now), throttled_until: None, added, dispatched },
            keeper: None,
            touched_at: now,
            finished_at: now,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The queue's record was read; its tasks are read later.
    pub(super) fn loaded(&mut self, subqueues: &[record::Subqueue]) {
        self.backlog.restore(subqueues);
        if self.phase == Phase::Loading {
            self.phase = Phase::Open;
        }
    }

    pub(super) fn drain(&mut self) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Draining;
        }
    }

    /// Whether tasks and pollers are accepted.
    pub(super) fn is_open(&self) -> bool {
        match self.phase {
            Phase::Loading | Phase::Open => true,
            Phase::Draining | Phase::Closed => false,
        }
    }

    pub(super) fn is_polled_within(&self, span: Duration, now: Timestamp) -> bool {
        self.matcher.n_pollers() > 0 || self.pollers.has_seen_within(span, now)
    }

    pub(super) fn was_polled_within(&self, span: Duration, now: Timestamp) -> bool {
        self.matcher.n_pollers() > 0 || self.pollers.was_polled_within(span, now)
    }

    /// Gives a new task to a poller, or to the backlog.
    pub(super) fn offer(
        &mut self,
        partition: &Arc<Partition>,
        task: Task,
        now: Timestamp,
    ) -> Result<Offered, ServiceError> {
        self.touched_at = now;
        let task = match self.hand_over(partition, task, now) {
            HandOver::Done(verdict) => return Ok(Offered::Handed(verdict)),
            HandOver::NoPoller(task) => task,
        };
        match self.kind {
            Kind::Normal => self.spool(task),
            Kind::Sticky => self.keep(task),
        }
    }

    /// `None` if the partition accepts no more.
    pub(super) fn add_poller(&mut self, sender: PollSender, poller: &Poller, now: Timestamp) -> Option<PollerKey> {
        if !self.is_open() {
            return None;
        }
        self.touched_at = now;
        self.pollers.saw(poller, now);
        // Sticky queues only: the tasks of a normal queue are in the store, and stay there.
        if self.kind == Kind::Sticky && self.normal_queue.is_none() && !poller.normal_queue.is_empty() {
            self.normal_queue = Some(poller.normal_queue.clone());
        }
        self.rates.limit.set(poller.tasks_per_second, now);
        Some(self.matcher.add_poller(sender))
    }

    pub(super) fn remove_poller(&mut self, key: PollerKey, now: Timestamp) {
        self.touched_at = now;
        self.matcher.remove_poller(key);
    }

    pub(super) fn ask(&mut self, partition: &Arc<Partition>, query: Query, now: Timestamp) {
        self.touched_at = now;
        if query.is_awaited() {
            self.queries.insert(query.number, query);
            self.match_queries(partition);
        }
    }

    pub(super) fn withdraw_query(&mut self, query: u64) {
        self.queries.remove(&query);
    }

    pub(super) fn is_asked(&self, query: u64) -> bool {
        self.queries.contains_key(&query)
    }

    /// No rate limit applies to queries: they start nothing.
    fn match_queries(&mut self, partition: &Arc<Partition>) {
        while !self.queries.is_empty()
            && let Some(poller) = self.matcher.take_poller()
        {
            let Some((number, query)) = self.queries.pop_first() else { return };
            let unsent = poller.send(Some(Delivery::Query(QueryTask::new(Arc::clone(partition), query))));
            // The poll ended concurrently.
            if let Err(Some(Delivery::Query(unsent))) = unsent {
                self.queries.insert(number, unsent.reclaim());
            }
        }
    }

    /// Hands queries, then backlog tasks to pollers as long as there are both, and the rate limit allows it.
    pub(super) fn match_all(&mut self, partition: &Arc<Partition>, now: Timestamp) {
        self.match_queries(partition);
        self.match_tasks(partition, now);
        self.retract_hint(now);
    }

    /// The `backlog_count_hint` of an answer that leaves now: tasks that another poll would get at once. A task that
    /// was handed to a poll is not counted, though its start may not be recorded yet.
    pub(super) fn backlog_count_hint(&mut self, time: Timestamp, now: Timestamp) -> i64 {
        self.drop_expired(time, now);
        // Both wait while a rate limit holds them apart: these tasks are for the polls that wait already.
        let n_tasks = self.matcher.n_tasks().saturating_sub(self.matcher.n_pollers());
        if n_tasks > 0 && self.kind == Kind::Sticky {
            self.hint.gave_positive(now);
        }
        i64::try_from(n_tasks).unwrap_or(i64::MAX)
    }

    /// Answers the waiting polls empty if their worker may have an outdated positive hint.
    fn retract_hint(&mut self, now: Timestamp) {
        if self.retraction_at().is_none_or(|at| at > now) {
            return;
        }
        self.hint.retracted();
        self.answer_polls_empty();
    }

    /// When to retract a positive hint; `None` while no poll waits, or there is a backlog.
    fn retraction_at(&self) -> Option<Timestamp> {
        let is_idle = self.matcher.n_pollers() > 0 && self.matcher.n_tasks() == 0;
        if is_idle { self.hint.retract_at() } else { None }
    }

    fn match_tasks(&mut self, partition: &Arc<Partition>, now: Timestamp) {
        self.rates.throttled_until = None;
        loop {
            self.drop_expired(partition.env().now(), now);
            if !self.matcher.has_pair() || !self.take_token(now) {
                return;
            }
            let Some((rank, task, poller)) = self.matcher.pair() else { return };
            let dispatched = Dispatched::new(Arc::clone(partition), task, Origin::Backlog(rank));
            // The poll ended concurrently: the task stays.
            if let Err(Some(Delivery::Task(unsent))) = poller.send(Some(Delivery::Task(dispatched))) {
                self.matcher.add_task(rank, unsent.reclaim());
                self.rates.limit.give_back();
            }
        }
    }

    pub(super) fn finish(&mut self, rank: Rank, now: Timestamp) {
        self.finished_at = now;
        self.backlog.finish(rank);
        if self.kind == Kind::Sticky {
            // A sticky queue has no rows to delete.
            let done = self.backlog.done();
            self.backlog.deleted(&done);
        }
    }

    /// Whether there is work before the keeper's next wakeup.
    pub(super) fn wants_keeper(&self, now: Timestamp) -> bool {
        self.keeper.is_some_and(|keeper| self.next_moment(now, keeper.store_at) < keeper.wakes_at)
    }

    /// Returns the task if this partition is closed.
    pub(super) fn give_back(&mut self, rank: Rank, task: Task) -> Option<Task> {
        if self.phase == Phase::Closed {
            return Some(task);
        }
        self.matcher.add_task(rank, task);
        None
    }

    pub(super) fn delay(&mut self, rank: Rank, task: Task, until: Timestamp) {
        self.delayed.insert((until, rank), task);
    }

    pub(super) fn respool(&mut self, rank: Rank, task: Task) {
        self.spool.push_back(Unwritten { task, waiter: Waiter::Respooled(rank) });
    }

    /// Returns tasks whose backoff is over to the matcher.
    pub(super) fn resume_delayed(&mut self, now: Timestamp) {
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, rank), task) = first.remove_entry();
            self.matcher.add_task(rank, task);
        }
    }

    /// Adds a task that was written or read.
    pub(super) fn place(&mut self, rank: Rank, task: Task) {
        self.matcher.add_task(rank, task);
    }

    pub(super) fn take_all_spooled(&mut self) -> Vec<Unwritten> {
        self.spool.drain(..).collect()
    }

    /// Takes a batch for one append.
    pub(super) fn take_spooled(&mut self) -> Vec<Unwritten> {
        let n = self.spool.len().min(self.config.spool_batch.max(1));
        self.spool.drain(..n).collect()
    }

    pub(super) fn has_spooled(&self) -> bool {
        !self.spool.is_empty()
    }

    pub(super) fn is_checkpoint_due(&self, now: Timestamp) -> bool {
        self.checkpoint_at().is_some_and(|at| at <= now)
    }

    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        !self.has_waiting() && self.spool.is_empty() && self.idle_at() <= now
    }

    /// Whether it is open, unused for `span`, and without waiting calls and tasks, in the store too.
    pub(super) fn is_unused_for(&self, span: Duration, now: Timestamp) -> bool {
        let has_tasks = self.backlog.n_tasks() > 0 || self.backlog.n_unsaved() > 0 || !self.spool.is_empty();
        self.phase == Phase::Open && !self.has_waiting() && !has_tasks && now.since(self.touched_at) >= span
    }

    #[cfg(test)]
    pub(super) fn n_waiting_polls(&self) -> usize {
        self.matcher.n_pollers()
    }

    /// Whether polls or queries wait.
    fn has_waiting(&self) -> bool {
        self.matcher.n_pollers() > 0 || !self.queries.is_empty()
    }

    /// The keeper has no work now, and neither reads nor checkpoints before `store_at`. Returns its next wakeup.
    pub(super) fn keeper_sleeps(&mut self, now: Timestamp, store_at: Timestamp) -> Timestamp {
        let wakes_at = self.next_moment(now, store_at);
        self.keeper = Some(Sleep { wakes_at, store_at });
        wakes_at
    }

    pub(super) fn keeper_wakes(&mut self) {
        self.keeper = None;
    }

    /// The keeper's next wakeup, if nothing happens before.
    fn next_moment(&self, now: Timestamp, store_at: Timestamp) -> Timestamp {
        // Waiting calls keep the queue loaded, and their end does not wake the keeper: so it checks again later.
        let idle_at = if self.has_waiting() { now + self.config.idle_unload() } else { self.idle_at() };
        let checkpoint_at = self.checkpoint_at().map(|at| at.max(store_at));
        let read_at = self.backlog.next_read().map(|_| store_at);
        let delayed_until = self.delayed.first_key_value().map(|((until, _), _)| *until);
        let moments = [checkpoint_at, read_at, delayed_until, self.rates.throttled_until, self.retraction_at()];
        moments.into_iter().flatten().fold(idle_at, Timestamp::min)
    }

    /// How long the oldest task of this priority has waited.
    pub(super) fn backlog_age(&self, priority: Priority, now: Timestamp) -> Duration {
        self.matcher.first_of(priority).map_or(Duration::ZERO, |task| now.since(task.created_at))
    }

    /// Ends all waiting calls, which retry elsewhere; tasks in memory are in the store too, or are added again.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        let closed = || ServiceError::Unavailable("the task queue was unloaded".into());
        self.fail_queries(&closed);
        self.matcher.clear();
        self.delayed.clear();
        self.spool.clear();
    }

    /// The worker of this sticky queue has left: accepts nothing more, answers the polls empty, sends queries
    /// elsewhere, and returns the waiting tasks.
    pub(super) fn release(&mut self) -> Vec<Task> {
        self.phase = Phase::Closed;
        self.fail_queries(&|| ServiceError::StickyWorkerUnavailable);
        let mut tasks: Vec<Task> = self.matcher.take_tasks().collect();
        tasks.extend(std::mem::take(&mut self.delayed).into_values());
        self.answer_polls_empty();
        tasks
    }

    pub(super) fn normal_queue(&self) -> Option<&str> {
        self.normal_queue.as_deref()
    }

    fn fail_queries(&mut self, error: &dyn Fn() -> ServiceError) {
        std::mem::take(&mut self.queries).into_values().for_each(|query| query.fail(error()));
    }

    fn answer_polls_empty(&mut self) {
        while let Some(poller) = self.matcher.take_poller() {
            // A poll that ended concurrently was answered empty, too.
            drop(poller.send(None));
        }
    }

    /// Sync match.
    fn hand_over(&mut self, partition: &Arc<Partition>, mut task: Task, now: Timestamp) -> HandOver {
        while self.matcher.has_free_poller() && self.take_token(now) {
            let Some(poller) = self.matcher.take_free_poller() else { break };
            let (sender, verdict) = oneshot::channel();
            let dispatched = Dispatched::new(Arc::clone(partition), task, Origin::Adder(sender));
            let Err(Some(Delivery::Task(unsent))) = poller.send(Some(Delivery::Task(dispatched))) else {
                return HandOver::Done(verdict);
            };
            task = unsent.reclaim();
            self.rates.limit.give_back();
        }
        HandOver::NoPoller(task)
    }

    fn spool(&mut self, task: Task) -> Result<Offered, ServiceError> {
        if self.spool.len() >= self.config.spool_waiting {
            return Err(ServiceError::ResourceExhausted {
                cause: ResourceExhaustedCause::SystemOverloaded,
                scope: ResourceExhaustedScope::System,
                message: "Too many outstanding appends to the TaskQueue".into(),
            });
        }
        let (sender, written) = oneshot::channel();
        self.spool.push_back(Unwritten { task, waiter: Waiter::Adder(sender) });
        Ok(Offered::Waiting(written))
    }

    /// Keeps a task in memory only, if history's timer would reschedule it after a crash.
    fn keep(&mut self, task: Task) -> Result<Offered, ServiceError> {
        let rank = if task.expires_at.is_some() { self.backlog.keep(task.level()) } else { None };
        let rank = rank.ok_or(ServiceError::StickyWorkerUnavailable)?;
        self.matcher.add_task(rank, task);
        Ok(Offered::Kept)
    }

    fn take_token(&mut self, now: Timestamp) -> bool {
        match self.rates.limit.take(now) {
            Ok(()) => true,
            Err(ready_at) => {
                self.rates.throttled_until = Some(ready_at);
                false
            }
        }
    }

    /// Drops tasks past their schedule-to-start timeout, which history handles by itself.
    /// `time` is the node's, by which tasks expire.
    fn drop_expired(&mut self, time: Timestamp, now: Timestamp) {
        while let Some((rank, task)) = self.matcher.first_task() {
            if !task.is_expired(time) {
                return;
            }
            self.matcher.remove_task(rank);
            self.finish(rank, now);
        }
    }

    /// At once after `checkpoint_acks` tasks; with fewer, after a quiet time; never with none.
    fn checkpoint_at(&self) -> Option<Timestamp> {
        match self.backlog.n_unsaved() {
            0 => None,
            n if n >= self.config.checkpoint_acks => Some(self.finished_at),
            _ => Some(self.finished_at + self.config.checkpoint_quiet()),
        }
    }

    fn idle_at(&self) -> Timestamp {
        self.touched_at + self.config.idle_unload()
    }
}
