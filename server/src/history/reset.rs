//! Reset: a new run begins with a prefix of the base run's history; the current run is terminated in the same commit.

use std::sync::Arc;

use cluster::errors::ServiceError;
use persistence::error::StoreError;
use persistence::stores::history::{Cursor, Node};
use proto::temporal::api::history::v1::HistoryEvent;
use tokio::sync::MutexGuard;
use workflow::{
    CurrentRun, Decision, EventId, ExecutionKey, ExecutionState, Facts, Input, Reapplied, Rejection, Reset, RunId,
    Status, Terminate, Timestamp, Transition, UpdateOptions,
};

use super::cache::{Execution, Slot};
use super::committer::Permit;
use super::shard::Shard;
use super::size;
use super::transact::{Kept, TransactError, current_run, unknown_to_others};

/// Nodes read from the store at once.
const PAGE_NODES: usize = 128;
/// Events that are reapplied to the new run: as many as a run may have signals.
const REAPPLIED_MAX: usize = 10_000;

pub(crate) struct ResetRequest {
    pub(crate) base: ExecutionKey,
    /// The first event of the base that the new run does not have.
    pub(crate) point: EventId,
    pub(crate) reason: String,
    pub(crate) request_id: String,
    pub(crate) reapplied: Reapplied,
    /// Option changes applied to the new run before it begins.
    pub(crate) options: Vec<UpdateOptions>,
}

/// A locked run and its state, which is durable.
struct Held<'a> {
    slot: &'a Arc<Slot>,
    execution: MutexGuard<'a, Execution>,
    state: Arc<ExecutionState>,
}

/// The prefix of the base's history that the new run begins with.
struct Prefix {
    batches: Vec<Vec<HistoryEvent>>,
    last_txn_id: i64,
}

/// The events to reapply to the new run.
struct Later {
    events: Vec<HistoryEvent>,
    /// The reset point lies inside a batch of events.
    cuts_batch: bool,
    /// The runs that the base continued as lead to the current one.
    leads_to_current: bool,
}

/// The transitions of a reset: the base's, the current run's if it is another one and open, and the new run's.
struct Decided {
    base: Vec<Transition>,
    current: Option<Transition>,
    new_run: Transition,
}

impl Shard {
    /// Returns the new run's id, or that of the run which the same request made before.
    pub(crate) async fn reset(&self, request: ResetRequest) -> Result<RunId, ServiceError> {
        let base_key = &request.base;
        let current_slot = self.slots.current(base_key.namespace_id, &base_key.workflow_id);
        let _one_at_a_time = current_slot.starting.lock().await;
        let retention = self.retention(base_key.namespace_id).await?;
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let base_slot = self.slots.run(base_key);
        let mut base = self.hold(base_key, &base_slot).await?;
        check_point(&base.state, request.point)?;
        let newest = self.find_current(base_key.namespace_id, &base_key.workflow_id).await?;
        // Lock order: the younger run last, as everywhere.
        let other = newest.as_ref().map(|run| run.run_id).filter(|run_id| *run_id != base_key.run_id);
        let other = other.map(|run_id| ExecutionKey { run_id, ..base_key.clone() });
        let other_slot = other.as_ref().map(|key| self.slots.run(key));
        let mut current = match (&other, &other_slot) {
            (Some(key), Some(slot)) => Some(self.hold(key, slot).await?),
            (None, _) | (_, None) => None,
        };
        let youngest = &current.as_ref().unwrap_or(&base).state;
        if youngest.unrecorded.reset_request_id == request.request_id {
            let made = youngest.key.run_id;
            drop((base, current, permit));
            self.committer.confirmed().await.map_err(TransactError::from)?;
            return Ok(made);
        }

        let prefix = self.prefix(&base.state, request.point).await?;
        let mut later = self.later(&base.state, &request, newest.as_ref()).await?;
        if let Some(current) = current.as_ref().filter(|_| later.leads_to_current) {
            self.add_later(&current.state, EventId::FIRST, &request, &mut later).await?;
        }

        // The new run's own events come after the base's events: their times must not go back.
        let now = base.state.unrecorded.last_updated_at.into_iter().fold(self.env.now(), Timestamp::max);
        let facts = self.facts_at(now, base_key.namespace_id, retention);
        let states = (base.state.as_ref(), current.as_ref().map(|current| current.state.as_ref()));
        let decided = decide(states, prefix, later, &request, &facts)?;
        size::check(decided.base.iter().chain(&decided.current).chain([&decided.new_run]))?;
        self.stores.history.fork(&base.state.branch, request.point, facts.new_run_id).await?;

        let run_id = facts.new_run_id;
        let submitted = self.keep_reset(permit, decided, &mut base, current.as_mut());
        drop((base, current));
        self.committer.durable(submitted).await.map_err(TransactError::from)?;
        Ok(run_id)
    }

    /// Never waits, so that a cancelled request cannot leave a reset half kept.
    fn keep_reset(
        &self,
        permit: Permit<'_>,
        decided: Decided,
        base: &mut Held<'_>,
        mut current: Option<&mut Held<'_>>,
    ) -> u64 {
        let key = decided.new_run.state.key.clone();
        let newest = current_run(&decided.new_run.state);
        let mut runs = Vec::new();
        for next in decided.base {
            runs.push(self.keep_one(base.slot, &mut base.execution, next));
        }
        if let (Some(next), Some(current)) = (decided.current, &mut current) {
            runs.push(self.keep_one(current.slot, &mut current.execution, next));
        }
        let slot = self.slots.run(&key);
        runs.push(self.keep_one(&slot, &mut unknown_to_others(&slot), decided.new_run));
        let current_slot = self.slots.current(key.namespace_id, &key.workflow_id);
        let kept = Kept { runs, current: Some((current_slot, newest)), created: Some(slot), damaged: Vec::new() };
        let submitted = self.submit(permit, kept);
        base.execution.submitted = submitted;
        if let Some(current) = current {
            current.execution.submitted = submitted;
        }
        submitted
    }

    /// Locks a run and waits until its state is durable: its history is read from the store.
    async fn hold<'a>(&self, key: &ExecutionKey, slot: &'a Arc<Slot>) -> Result<Held<'a>, ServiceError> {
        let mut execution = slot.execution.lock().await;
        let state = self.load(key, &mut execution).await?;
        self.committer.durable(execution.submitted).await.map_err(TransactError::from)?;
        Ok(Held { slot, execution, state })
    }

    async fn prefix(&self, base: &ExecutionState, point: EventId) -> Result<Prefix, ServiceError> {
        let mut prefix = Prefix { batches: Vec::new(), last_txn_id: 0 };
        let take = |node: Node| {
            prefix.last_txn_id = node.txn_id;
            prefix.batches.push(node.events.decode()?);
            Ok(())
        };
        self.nodes(base, (EventId::FIRST, point), take).await?;
        Ok(prefix)
    }

    /// The events to reapply from after the point, of the base and of the closed runs that it continued as.
    async fn later(
        &self,
        base: &Arc<ExecutionState>,
        request: &ResetRequest,
        newest: Option<&CurrentRun>,
    ) -> Result<Later, ServiceError> {
        let newest = newest.map(|newest| newest.run_id);
        let mut later = Later { events: Vec::new(), cuts_batch: false, leads_to_current: false };
        self.add_later(base, request.point, request, &mut later).await?;
        let mut run = Arc::clone(base);
        loop {
            let next = run.closed.as_ref().filter(|_| run.status == Status::ContinuedAsNew);
            let next = next.and_then(|closed| closed.new_run_id);
            let is_current = newest == Some(run.key.run_id);
            later.leads_to_current = is_current || (next.is_some() && next == newest);
            let Some(run_id) = next.filter(|_| !later.leads_to_current) else { return Ok(later) };
            run = match self.read(&ExecutionKey { run_id, ..base.key.clone() }).await {
                Ok(state) => state,
                // It was deleted after its retention, and its events with it.
                Err(ServiceError::NotFound(_)) => return Ok(later),
                Err(error) => return Err(error),
            };
            self.add_later(&run, EventId::FIRST, request, &mut later).await?;
        }
    }

    async fn add_later(
        &self,
        run: &ExecutionState,
        from: EventId,
        request: &ResetRequest,
        later: &mut Later,
    ) -> Result<(), ServiceError> {
        let take = |node: Node| {
            later.cuts_batch |= node.first_event_id < from;
            let events = node.events.decode()?;
            later.events.extend(events.into_iter().filter(|event| request.reapplied.includes(event)));
            Ok(())
        };
        self.nodes(run, (from, run.next_event_id), take).await?;
        if later.events.len() > REAPPLIED_MAX {
            return Err(ServiceError::InvalidArgument(format!(
                "more than {REAPPLIED_MAX} events came after the reset point"
            )));
        }
        Ok(())
    }

    /// Passes every node of `[from, to)`, trimmed to that range, to `take`.
    async fn nodes(
        &self,
        run: &ExecutionState,
        (from, to): (EventId, EventId),
        mut take: impl FnMut(Node) -> Result<(), StoreError>,
    ) -> Result<(), ServiceError> {
        let mut next = (from < to).then_some(Cursor::from(from));
        while let Some(cursor) = next {
            let page = self.stores.history.read(&run.branch, cursor, to, PAGE_NODES).await?;
            page.nodes.into_iter().try_for_each(&mut take)?;
            next = page.next;
        }
        Ok(())
    }
}

fn check_point(base: &ExecutionState, point: EventId) -> Result<(), ServiceError> {
    if point <= EventId::FIRST || point >= base.next_event_id {
        let message = "Workflow task finish ID must be > 1 && <= workflow last event ID.";
        return Err(ServiceError::InvalidArgument(message.into()));
    }
    Ok(())
}

fn decide(
    (base, current): (&ExecutionState, Option<&ExecutionState>),
    prefix: Prefix,
    later: Later,
    request: &ResetRequest,
    facts: &Facts,
) -> Result<Decided, ServiceError> {
    let mut changes = vec![change(base, Input::LeaveTo(facts.new_run_id), facts)?];
    let is_open = |run: &ExecutionState| run.is_running();
    let end = |run: &ExecutionState| change(run, terminate(&request.reason), facts);
    let ended_base =
        Some(&changes[0].state).filter(|_| current.is_none()).filter(|run| is_open(run)).map(end).transpose()?;
    let ended_current = current.filter(|run| is_open(run)).map(end).transpose()?;

    let mut events = later.events;
    // Termination writes the events that were buffered during the workflow task just before the close event.
    if let Some(ended) = ended_base.as_ref().or(ended_current.as_ref().filter(|_| later.leads_to_current)) {
        events.extend(ended.events.iter().filter(|event| request.reapplied.includes(event)).cloned());
    }
    let replayed = replay(base, prefix, request.point, facts)?;
    // A cut inside a batch is valid only where a workflow task is pending: after a retried attempt, which is written in
    // one batch with its completion.
    if later.cuts_batch && replayed.workflow_task.scheduled().is_none() {
        return Err(inside_batch(base, request.point));
    }
    let new_run = new_run(base, &replayed, events, request, facts)?;
    changes.extend(ended_base);
    Ok(Decided { base: changes, current: ended_current, new_run })
}

/// The new run's state after replay of the prefix.
fn replay(
    base: &ExecutionState,
    prefix: Prefix,
    point: EventId,
    facts: &Facts,
) -> Result<ExecutionState, ServiceError> {
    let key = ExecutionKey { run_id: facts.new_run_id, ..base.key.clone() };
    let branch = base.branch.fork(point, facts.new_run_id);
    let mut replayed = workflow::replay(key, branch, &prefix.batches)
        .map_err(|error| ServiceError::DataLoss(format!("history of {} cannot be replayed: {error}", base.key)))?;
    replayed.unrecorded.last_txn_id = prefix.last_txn_id;
    Ok(replayed)
}

fn new_run(
    base: &ExecutionState,
    replayed: &ExecutionState,
    events: Vec<HistoryEvent>,
    request: &ResetRequest,
    facts: &Facts,
) -> Result<Transition, ServiceError> {
    let reset = Reset {
        base_run_id: base.key.run_id,
        reason: request.reason.clone(),
        request_id: request.request_id.clone(),
        start_request_id: base.unrecorded.start_request_id.clone(),
        schedule_id: base.unrecorded.schedule_id.clone(),
        events,
        options: request.options.clone(),
    };
    Ok(*workflow::reset(replayed, reset, facts)?)
}

fn change(run: &ExecutionState, input: Input, facts: &Facts) -> Result<Transition, Rejection> {
    match workflow::transition(run, input, facts)? {
        Decision::Changed(next) => Ok(*next),
        Decision::Unchanged(_) => unreachable!("an open run ends, and a base is left"),
    }
}

fn terminate(reason: &str) -> Input {
    Input::Terminate(Terminate {
        reason: reason.to_owned(),
        details: None,
        identity: "history-resetter".into(),
        first_run_id: None,
        links: Vec::new(),
        sender: None,
    })
}

fn inside_batch(base: &ExecutionState, point: EventId) -> ServiceError {
    let last = EventId(point.0 - 1);
    let version = base.version_history.iter().find(|item| last <= item.event_id).map_or(0, |item| item.version);
    ServiceError::InvalidArgument(format!(
        "StateRebuilder unable to Rebuild mutable state to event ID: {last}, version: {version}, \
         this event must be at the boundary"
    ))
}
