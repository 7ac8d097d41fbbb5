//! Draft: a state being changed, the events being recorded and the tasks being created. `record` is the only way to add
//! an event: it applies the event as it appends it.

use std::sync::Arc;

use prost::Message;
use proto::temporal::api::common::v1::Link;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::sdk::v1::{EventGroupMarker, UserMetadata};

use crate::activity;
use crate::apply::apply;
use crate::branch::Branch;
use crate::child;
use crate::close;
use crate::events::{comes_last, kind, may_be_ignored};
use crate::facts::Facts;
use crate::ids::{EventId, ExecutionKey};
use crate::listing::{self, Listed};
use crate::outcome::{ChangedItems, Notice, Reply, Transition};
use crate::speculative;
use crate::start;
use crate::state::ExecutionState;
use crate::tasks::{Task, TimerTask, TransferTask};
use crate::time::Timestamp;
use crate::workflow_task;

/// A transition's history node ends with the event that brings it to this many bytes; the next begins another.
///
/// Equal to `Limits::transaction_size`, so an ordinary transition is one node. A reset reapplies later events, and the
/// end of a run also records buffered ones: these may have more. A node, with its last event, stays below the 16 MiB
/// that a store takes in one batch.
const NODE_BYTES: i64 = 4 << 20;

pub(crate) struct Draft<'a> {
    pub state: ExecutionState,
    pub facts: &'a Facts,
    events: Vec<HistoryEvent>,
    node: NodeInProgress,
    /// Indices into `events` at which a further node begins.
    cuts: Vec<usize>,
    /// Events buffered by this transition; those of earlier ones are in `state.unrecorded.buffered_events`.
    waiting: Vec<HistoryEvent>,
    tasks: Vec<Task>,
    new_run: Option<Box<Transition>>,
    notices: Vec<Notice>,
    /// Visibility before this transition; `None` in the run's first.
    before: Option<Listed>,
}

/// The history node that the next event joins.
#[derive(Default)]
struct NodeInProgress {
    first_event_id: i64,
    bytes: i64,
}

/// An event to be recorded, with optional metadata.
pub(crate) struct Entry {
    pub what: Attributes,
    /// Event time, if not now.
    pub at: Option<Timestamp>,
    pub links: Vec<Link>,
    pub annotation: Annotation,
}

/// Metadata that a client or a workflow attached to an event for its readers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Annotation {
    pub user_metadata: Option<UserMetadata>,
    pub event_group_markers: Vec<EventGroupMarker>,
}

impl From<Attributes> for Entry {
    fn from(what: Attributes) -> Self {
        Self { what, at: None, links: Vec::new(), annotation: Annotation::default() }
    }
}

impl<'a> Draft<'a> {
    pub(crate) fn new(state: &ExecutionState, facts: &'a Facts) -> Self {
        let is_born = state.unrecorded.db_record_version > 0;
        let before = is_born.then(|| Listed::new(state));
        Self { before, ..Self::around(state.clone(), facts, Vec::new()) }
    }

    /// A run forked from another run's history: nothing of it is stored yet.
    pub(crate) fn from_part(replayed: &ExecutionState, facts: &'a Facts) -> Self {
        Self::around(replayed.clone(), facts, Vec::new())
    }

    /// Starts a run: its first event creates its state.
    pub(crate) fn begin(key: ExecutionKey, first: Entry, facts: &'a Facts) -> Self {
        let branch = Branch::root(key.run_id);
        let event = event(first, EventId::FIRST, facts.now, facts.failover_version);
        let state = start::apply_started(key, Arc::new(branch), &event);
        let node = NodeInProgress { first_event_id: EventId::FIRST.0, bytes: state.history_size };
        Self { node, ..Self::around(state, facts, vec![event]) }
    }

    fn around(state: ExecutionState, facts: &'a Facts, events: Vec<HistoryEvent>) -> Self {
        let (waiting, tasks, notices) = (Vec::new(), Vec::new(), Vec::new());
        let (node, cuts) = (NodeInProgress::default(), Vec::new());
        Self { state, facts, events, node, cuts, waiting, tasks, new_run: None, notices, before: None }
    }

    /// Run time is monotonic: not before the run's last change, even if the clock stepped back or is another node's.
    pub(crate) fn now(&self) -> Timestamp {
        self.state.unrecorded.last_updated_at.into_iter().fold(self.facts.now, Timestamp::max)
    }

    /// Failover version of events recorded now. Never decreases, even if the caller's version is older than the run's.
    pub(crate) fn version(&self) -> i64 {
        self.facts.failover_version.max(self.state.last_version())
    }

    /// Records an event at once, or buffers an event of a `waits` kind until no workflow task is in flight.
    pub(crate) fn record(&mut self, entry: impl Into<Entry>) {
        let entry = entry.into();
        assert!(self.state.is_running(), "nothing happens to a closed run");
        if self.state.workflow_task.is_speculative() {
            // The task's events precede all events that come after it was scheduled.
            speculative::make_normal(self, speculative::worker_of(&entry.what));
        }
        if kind(&entry.what).waits {
            // The id is assigned when it is recorded.
            self.waiting.push(event(entry, EventId(0), self.now(), self.version()));
        } else {
            let event = event(entry, self.state.next_event_id, self.now(), self.version());
            self.append(event);
        }
    }

    /// Whether events are buffered until the workflow task in flight ends.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.state.unrecorded.buffered_events.is_empty()
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &HistoryEvent> {
        let earlier = self.state.unrecorded.buffered_events.iter().map(|(_, event)| event);
        earlier.chain(&self.waiting)
    }

    /// Removes a buffered event.
    pub(crate) fn forget_waiting(&mut self, is_it: impl Fn(&HistoryEvent) -> bool) -> Option<HistoryEvent> {
        let earlier = self.state.unrecorded.buffered_events.iter().find(|(_, event)| is_it(event)).map(|(id, _)| id);
        if let Some(id) = earlier {
            return self.state.unrecorded.buffered_events.remove(id).map(Arc::unwrap_or_clone);
        }
        let position = self.waiting.iter().position(is_it)?;
        Some(self.waiting.remove(position))
    }

    /// Records all buffered events.
    pub(crate) fn flush(&mut self) {
        let earlier: Vec<i64> = self.state.unrecorded.buffered_events.iter().map(|(id, _)| id).collect();
        let earlier = earlier.into_iter().filter_map(|id| self.state.unrecorded.buffered_events.remove(id));
        let mut all: Vec<HistoryEvent> = earlier.map(Arc::unwrap_or_clone).collect();
        all.append(&mut self.waiting);
        // The sort is stable: within each half the order of arrival stays.
        all.sort_by_key(|event| comes_last(event.event_type()));
        for mut event in all {
            assert_eq!(event.event_id, 0, "an event that waited has no id yet");
            event.event_id = self.state.next_event_id.0;
            event.version = self.version();
            activity::wire_started_event(&self.state, &mut event);
            child::wire_started_event(&self.state, &mut event);
            self.append(event);
        }
        assert!(!self.has_waiting(), "all that waited is recorded");
    }

    pub(crate) fn transfer(&mut self, task: TransferTask) {
        self.tasks.push(Task::Transfer(task));
    }

    pub(crate) fn timer(&mut self, fires_at: Timestamp, task: TimerTask) {
        self.tasks.push(Task::Timer { fires_at, task });
    }

    /// The draft deletes the run.
    pub(crate) fn is_to_be_deleted(&self) -> bool {
        self.tasks.iter().any(|task| matches!(task, Task::Transfer(TransferTask::Delete { .. })))
    }

    /// Adds a notice to publish once the transition is durable.
    pub(crate) fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// Adds the run that follows this one, created in the same commit.
    pub(crate) fn continue_in(&mut self, new_run: Box<Transition>) {
        assert!(self.new_run.is_none(), "one run follows another");
        assert!(new_run.new_run.is_none(), "a run that was just born is not followed yet");
        self.new_run = Some(new_run);
    }

    /// Closes the draft: buffered events are recorded, kept for a task in flight, or dropped if the run closed.
    pub(crate) fn finish(mut self, reply: Reply) -> Box<Transition> {
        if self.waiting_is_too_much() {
            workflow_task::force_close(&mut self);
        }
        if !self.state.is_running() {
            // A closing run drops events that came too late for its last workflow task.
            self.drop_waiting();
            if self.closes_now() {
                close::follow_up(&mut self);
            }
        } else if self.state.workflow_task.is_running() {
            self.keep_waiting();
        } else {
            self.flush();
        }
        self.list();
        self.state.unrecorded.db_record_version += 1;
        self.state.unrecorded.last_updated_at = Some(self.now());
        self.check_finished();
        let changed = ChangedItems {
            activities: self.state.activities.take_touched(),
            timers: self.state.timers.take_touched(),
            children: self.state.children.take_touched(),
            external_signals: self.state.external_signals.take_touched(),
            external_cancels: self.state.external_cancels.take_touched(),
            signal_request_ids: self.state.signal_request_ids.take_touched(),
            updates: self.state.updates.take_touched(),
            properties: self.has_new_properties(),
            buffered_events: self.state.unrecorded.buffered_events.take_touched(),
        };
        if !self.events.is_empty() {
            self.notices.push(Notice::HistoryGrew);
        }
        let Self { state, events, cuts, tasks, new_run, notices, .. } = self;
        Box::new(Transition { state, events, cuts, changed, tasks, new_run, notices, reply })
    }

    fn has_new_properties(&self) -> bool {
        let (memo, search_attributes) = (&self.state.memo, &self.state.search_attributes);
        match &self.before {
            Some(before) => before.has_other_properties(&self.state),
            None => !memo.fields.is_empty() || !search_attributes.indexed_fields.is_empty(),
        }
    }

    /// Adds a visibility task if the run's visibility changed.
    fn list(&mut self) {
        if self.before.is_none() {
            self.state.unrecorded.listing.started_in = self.facts.segment;
        }
        if self.closes_now() {
            self.state.unrecorded.listing.closed_in = Some(self.facts.segment);
        }
        let change = match &self.before {
            Some(before) => before.change(&self.state),
            None => Some(listing::first(&self.state)),
        };
        self.tasks.extend(change.map(Task::Visibility));
    }

    /// Asserts the postconditions of a transition. The full state is checked in debug builds only.
    fn check_finished(&self) {
        assert!(self.waiting.is_empty(), "every event is recorded, kept or dropped");
        if let Some(last) = self.events.last() {
            assert_eq!(last.event_id, self.state.last_event_id().0, "the state covers all recorded events");
        }
        let follower = self.new_run.as_ref().map(|new_run| new_run.state.key.run_id);
        // A change after the close, such as a deletion, creates no new run.
        let named = self.state.closed.as_ref().filter(|_| self.closes_now()).and_then(|closed| closed.new_run_id);
        assert_eq!(follower, named, "a run that says it is followed is, and no other");
        if let (None, Some(within)) = (&self.before, self.state.key.run_id.started_within()) {
            assert!(within.contains(&self.state.started.began_at()), "the id of a new run encodes its start time");
        }
        if cfg!(debug_assertions) {
            self.state.check();
        }
    }

    /// This draft records the run's close event.
    fn closes_now(&self) -> bool {
        let last = self.events.last().map(|event| EventId(event.event_id));
        last.is_some() && last == self.state.closed.as_ref().map(|closed| closed.event_id)
    }

    fn waiting_is_too_much(&self) -> bool {
        if !self.state.workflow_task.is_running() || self.waiting.is_empty() {
            return false;
        }
        let n_events = self.state.unrecorded.buffered_events.len() + self.waiting.len();
        let size = self.state.unrecorded.buffered_events.bytes()
            + self.waiting.iter().map(Message::encoded_len).sum::<usize>();
        n_events > self.facts.limits.buffered_events || size > self.facts.limits.buffered_events_size
    }

    fn keep_waiting(&mut self) {
        assert!(self.state.workflow_task.is_running(), "events wait only for a task in flight");
        let unrecorded = &mut self.state.unrecorded;
        for event in self.waiting.drain(..) {
            unrecorded.last_waiting_place += 1;
            let previous = unrecorded.buffered_events.insert(unrecorded.last_waiting_place, event);
            assert!(previous.is_none(), "each waiting event has its own place in the line");
        }
    }

    fn drop_waiting(&mut self) {
        assert!(!self.state.is_running(), "only a closed run needs no events any more");
        self.waiting.clear();
        let ids: Vec<i64> = self.state.unrecorded.buffered_events.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.state.unrecorded.buffered_events.remove(id);
        }
    }

    fn append(&mut self, event: HistoryEvent) {
        assert_eq!(event.event_id, self.state.next_event_id.0, "events have no gap");
        if self.events.is_empty() || self.node.bytes >= NODE_BYTES {
            if !self.events.is_empty() {
                self.cuts.push(self.events.len());
            }
            self.node = NodeInProgress { first_event_id: event.event_id, bytes: 0 };
        }
        let size_before = self.state.history_size;
        apply(&mut self.state, &event, EventId(self.node.first_event_id));
        self.node.bytes += self.state.history_size - size_before;
        self.events.push(event);
    }
}

fn event(entry: Entry, id: EventId, now: Timestamp, version: i64) -> HistoryEvent {
    HistoryEvent {
        event_id: id.0,
        event_time: Some(entry.at.unwrap_or(now).into()),
        event_type: kind(&entry.what).event_type.into(),
        version,
        // Assigned by the committer, in commit order.
        task_id: 0,
        worker_may_ignore: may_be_ignored(&entry.what),
        user_metadata: entry.annotation.user_metadata,
        links: entry.links,
        principal: None,
        event_group_markers: entry.annotation.event_group_markers,
        attributes: Some(entry.what),
    }
}
