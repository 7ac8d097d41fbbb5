//! transact: lock a run, load it, decide, submit, wait until durable, reply. Deletions, schedules and jobs build their
//! own submissions; every submission goes through the committer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cluster::env::Env;
use cluster::errors::ServiceError;
use persistence::error::StoreError;
use persistence::stores::executions::{CurrentWrite, DamagedRow, RunWrite};
use persistence::stores::history::{EventBatch, HistoryStore, NewNode};
use proto::temporal::api::history::v1::HistoryEvent;
use thiserror::Error;
use tracing::error;
use workflow::{
    Branch, CurrentRun, Decision, ExecutionKey, ExecutionState, Facts, Input, Limits, NamespaceId, Rejection, Reply,
    Timestamp, Transition,
};

use super::cache::{CurrentSlot, Execution, Slot};
use super::committer::{Closed, CurrentCommit, Permit, RunCommit, Submission};
use super::damaged::is_end;
use super::shard::Shard;
use super::size;
use super::tally::{StatusChange, counted_status};
use super::warnings::warn_of_growth;

/// How often an append is sent; it is idempotent, so an unknown outcome is simply tried again.
const APPEND_TRIES_MAX: u32 = 5;

/// A history node that is to be written.
struct PendingNode {
    txn_id: i64,
    prev_txn_id: i64,
    events: EventBatch,
}

#[derive(Debug, Error)]
pub(crate) enum TransactError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("workflow execution not found for workflow ID {:?} and run ID {:?}", .0.workflow_id, .0.run_id.to_string())]
    NotFound(ExecutionKey),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Closed(#[from] Closed),
    #[error("cannot read the namespace: {0}")]
    Namespace(ServiceError),
    #[error("cannot remove a damaged run: {0}")]
    Erasing(ServiceError),
    /// Our bug, met by one input of one run; the shard and its other runs go on.
    #[error("an internal invariant was broken")]
    Panicked,
}

impl Shard {
    /// Applies an input to a run.
    pub(crate) async fn transact(&self, key: &ExecutionKey, input: Input) -> Result<Reply, TransactError> {
        let is_end = is_end(&input);
        match self.transact_then(key, input, |_, reply| reply).await {
            // Not even its state can be read: erasing the run is the requested end.
            Err(TransactError::Store(StoreError::Corrupt(problem))) if is_end => {
                // Boxed: the rare case must not enlarge the future of every transition.
                Box::pin(self.erase(key, &problem)).await.map_err(TransactError::Erasing)?;
                Ok(Reply::Done)
            }
            outcome => outcome,
        }
    }

    /// As `transact`; `then` runs under the run's lock.
    pub(crate) async fn transact_then<T>(
        &self,
        key: &ExecutionKey,
        input: Input,
        then: impl FnOnce(&mut Execution, Reply) -> T,
    ) -> Result<T, TransactError> {
        let is_timer = matches!(input, Input::Due(_));
        let retention = self.retention(key.namespace_id).await?;
        let permit = self.committer.reserve().await?;
        let slot = self.slots.run(key);
        let (submitted, outcome) = {
            // Held for the decision only, not for the commit: the next transition of this run may join the same batch.
            let mut execution = slot.execution.lock().await;
            let (current, damaged) = match self.load(key, &mut execution).await {
                Err(TransactError::Store(StoreError::Corrupt(problem))) if is_end(&input) => {
                    Box::pin(self.salvage(key, &mut execution, &problem)).await?
                }
                loaded => (loaded?, Vec::new()),
            };
            let input = execution.updates.attach_waiting(input);
            match self.decide(&current, input, &self.facts(key.namespace_id, retention))?.and_then(size::checked) {
                Ok(Decision::Changed(next)) => {
                    let (reply, mut kept) = self.keep(&slot, &mut execution, *next);
                    kept.damaged = damaged;
                    execution.submitted = self.submit(permit, kept);
                    (Some(execution.submitted), execution.conclude(reply, then))
                }
                // The permit is returned: a caller that waits for other submissions must not hold one.
                Ok(Decision::Unchanged(reply)) => {
                    drop(permit);
                    execution.forget_salvaged(&damaged);
                    self.slots.touch(&slot, &current);
                    (None, execution.conclude(reply, then))
                }
                Err(rejection) => {
                    drop(permit);
                    execution.forget_salvaged(&damaged);
                    self.slots.touch(&slot, &current);
                    (None, Err(rejection))
                }
            }
        };
        match submitted {
            Some(submitted) => self.committer.durable(submitted).await?,
            // A reply without a change still reports a state, which must be durable and not stale after a lost lease.
            // Only a timer that found nothing to do reports to no caller.
            None if is_timer => {}
            None => self.committer.confirmed().await?,
        }
        Ok(outcome?)
    }

    /// The run's state, from memory or from the store.
    pub(super) async fn load(
        &self,
        key: &ExecutionKey,
        execution: &mut Execution,
    ) -> Result<Arc<ExecutionState>, TransactError> {
        if let Some(state) = &execution.state {
            return Ok(Arc::clone(state));
        }
        if execution.is_deleted {
            self.committer.durable(execution.submitted).await?;
            return Err(TransactError::NotFound(key.clone()));
        }
        let loaded = self.stores.executions.load_run(self.id, key).await?;
        let state = Arc::new(loaded.ok_or_else(|| TransactError::NotFound(key.clone()))?);
        execution.state = Some(Arc::clone(&state));
        execution.current = Some(self.slots.current(key.namespace_id, &key.workflow_id));
        Ok(state)
    }

    /// Runs the core's transition. A panic there is our bug: it fails this one request, and the state stays unchanged.
    fn decide(
        &self,
        state: &ExecutionState,
        input: Input,
        facts: &Facts,
    ) -> Result<Result<Decision, Rejection>, TransactError> {
        let decide = || {
            let decision = workflow::transition(state, input, facts);
            if let (true, Ok(Decision::Changed(next))) = (cfg!(debug_assertions), &decision) {
                next.state.check();
            }
            decision
        };
        catch_unwind(AssertUnwindSafe(decide)).map_err(|_| {
            error!(execution = %state.key, "a transition panicked; the run is left as it was");
            TransactError::Panicked
        })
    }

    pub(super) fn facts(&self, namespace_id: NamespaceId, retention: Duration) -> Facts {
        self.facts_at(self.env.now(), namespace_id, retention)
    }

    pub(super) fn facts_at(&self, now: Timestamp, namespace_id: NamespaceId, retention: Duration) -> Facts {
        Facts {
            now,
            failover_version: 0,
            new_run_id: self.env.new_run_id(now),
            new_request_id: self.env.new_uuid(),
            retention,
            segment: self.segments.current(namespace_id, now),
            limits: Limits {
                suggest_continue_as_new_count: self.config.suggest_continue_as_new_events,
                ..Limits::default()
            },
        }
    }

    pub(super) async fn retention(&self, namespace_id: NamespaceId) -> Result<Duration, TransactError> {
        self.namespaces.retention(namespace_id).await.map_err(TransactError::Namespace)
    }

    /// Applies a transition to the run in memory, and returns the reply and what must be committed.
    fn keep(&self, slot: &Arc<Slot>, execution: &mut Execution, mut next: Transition) -> (Reply, Kept) {
        let new_run = next.new_run.take();
        let reply = std::mem::replace(&mut next.reply, Reply::Done);
        let key = next.state.key.clone();
        let closes = !next.state.is_running() && execution.state.as_ref().is_some_and(|state| state.is_running());
        let mut current = closes.then(|| current_run(&next.state));
        let mut runs = vec![self.keep_one(slot, execution, next)];
        let mut created = None;
        if let Some(next) = new_run {
            current = Some(current_run(&next.state));
            let slot = self.slots.run(&next.state.key);
            runs.push(self.keep_one(&slot, &mut unknown_to_others(&slot), *next));
            created = Some(slot);
        }
        let of_workflow = || self.slots.current(key.namespace_id, &key.workflow_id);
        let current_slot = Arc::clone(execution.current.get_or_insert_with(of_workflow));
        // An open run is the newest of its id; one that is not must not replace the current run.
        let is_newest = current_slot.newest().is_none_or(|newest| newest == key.run_id);
        let current = current.filter(|_| is_newest).map(|run| (current_slot, run));
        (reply, Kept { runs, current, created, damaged: Vec::new() })
    }

    /// Never waits. Others find what was kept only after the submission, so that they find its number too.
    pub(super) fn submit(&self, permit: Permit<'_>, kept: Kept) -> u64 {
        let Kept { runs, current, created, damaged } = kept;
        let key = runs[0].write.state.key.clone();
        let commit = current.as_ref().map(|(slot, run)| CurrentCommit {
            slot: Arc::clone(slot),
            write: CurrentWrite {
                namespace_id: key.namespace_id,
                workflow_id: Arc::clone(&key.workflow_id),
                run: Some(run.clone()),
            },
        });
        // Locked until its number is set: once submitted, the run's first task may load it at any moment.
        let mut born = created.as_deref().map(unknown_to_others);
        let submitted =
            self.committer.submit(permit, Submission { runs, current: commit, damaged, ..Submission::default() });
        if let Some(born) = &mut born {
            born.submitted = submitted;
            born.current = current.as_ref().map(|(slot, _)| Arc::clone(slot));
        }
        if let Some((slot, run)) = current {
            self.workflow_ids.add(key.namespace_id, &key.workflow_id);
            slot.set(run);
        }
        submitted
    }

    pub(super) fn keep_one(&self, slot: &Arc<Slot>, execution: &mut Execution, next: Transition) -> RunCommit {
        let Transition { mut state, events, cuts, changed, tasks, notices, .. } = next;
        warn_of_growth(execution.state.as_deref(), &state, (&events, &changed));
        let update_progress = execution.updates.follow(&state, notices);
        let status =
            StatusChange { before: execution.state.as_deref().and_then(counted_status), after: counted_status(&state) };
        let mut append = None;
        if !events.is_empty() {
            let (earlier, last) = self.number_nodes(&mut state, events, &cuts);
            for node in earlier.iter().chain([&last]) {
                execution.recent.push(node.events.events().clone(), self.config.recent_events_bytes);
            }
            append = Some(self.append(&state, earlier, last));
        }
        let state = Arc::new(state);
        execution.state = Some(Arc::clone(&state));
        self.slots.keep(slot, &state, execution.recent.bytes());
        let write = RunWrite { state, changed };
        let bytes = size::of_run(&write.state, &write.changed, tasks.len());
        RunCommit { slot: Arc::clone(slot), write, tasks, status, append, update_progress, bytes }
    }

    /// The nodes of a transition's events, nearly always one, chained to the run's last node. Sets the task ids.
    fn number_nodes(
        &self,
        state: &mut ExecutionState,
        mut events: Vec<HistoryEvent>,
        cuts: &[usize],
    ) -> (Vec<PendingNode>, PendingNode) {
        let mut txn_id = self.ids.take(1 + cuts.len() + events.len());
        let mut number = |events: &mut [HistoryEvent]| {
            for (task_id, event) in (txn_id + 1..).zip(&mut *events) {
                event.task_id = task_id;
            }
            let prev_txn_id = std::mem::replace(&mut state.unrecorded.last_txn_id, txn_id);
            let node = PendingNode { txn_id, prev_txn_id, events: EventBatch::encode(events) };
            txn_id += 1 + events.len() as i64;
            node
        };
        let mut earlier = Vec::new();
        let mut rest = events.as_mut_slice();
        let mut begin = 0;
        for &cut in cuts {
            let (node, behind) = rest.split_at_mut(cut - begin);
            earlier.push(number(node));
            (rest, begin) = (behind, cut);
        }
        (earlier, number(rest))
    }

    /// Starts writing the history nodes at once, beside the batch in flight: they count once a commit names the last.
    fn append(
        &self,
        state: &ExecutionState,
        earlier: Vec<PendingNode>,
        last: PendingNode,
    ) -> tokio::task::JoinHandle<Result<(), StoreError>> {
        let (history, env) = (self.stores.history.clone(), self.env.clone());
        let branch = Arc::clone(&state.branch);
        tokio::spawn(async move {
            for node in earlier.into_iter().chain([last]) {
                append_node(&history, &env, &branch, &node).await?;
            }
            Ok(())
        })
    }
}

async fn append_node(history: &HistoryStore, env: &Env, branch: &Branch, node: &PendingNode) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        let PendingNode { txn_id, prev_txn_id, events } = node;
        let new = NewNode { txn_id: *txn_id, prev_txn_id: *prev_txn_id, events };
        let Err(error) = history.append(branch, new).await else { return Ok(()) };
        tries += 1;
        if tries == APPEND_TRIES_MAX || matches!(error, StoreError::TooLarge(_)) {
            return Err(error);
        }
        tokio::time::sleep(env.jittered(super::queues::backoff(tries))).await;
    }
}

impl Execution {
    /// Drops salvaged state: only the commit that ends a damaged run may build on it.
    fn forget_salvaged(&mut self, damaged: &[DamagedRow]) {
        if !damaged.is_empty() {
            self.state = None;
        }
    }

    fn conclude<T>(&mut self, reply: Reply, then: impl FnOnce(&mut Self, Reply) -> T) -> Result<T, Rejection> {
        // The run exceeded a limit: its termination is committed, and the caller gets the reason.
        if let Reply::Terminated { message } = reply {
            return Err(Rejection::InvalidArgument(message));
        }
        self.updates.note_sent(&reply);
        Ok(then(self, reply))
    }
}

/// A transition that is applied in memory, and not submitted yet.
pub(super) struct Kept {
    pub(super) runs: Vec<RunCommit>,
    /// The newest run of the workflow id, if this commit replaces or closes it.
    pub(super) current: Option<(Arc<CurrentSlot>, CurrentRun)>,
    /// A run that begins with this commit.
    pub(super) created: Option<Arc<Slot>>,
    pub(super) damaged: Vec<DamagedRow>,
}

/// Locks a run that is being created: no other caller can know its id yet.
pub(super) fn unknown_to_others(slot: &Slot) -> tokio::sync::MutexGuard<'_, Execution> {
    slot.execution.try_lock().expect("a run that is being born has no other visitor")
}

pub(super) fn current_run(state: &ExecutionState) -> CurrentRun {
    let joined = state.known_requests.iter().filter(|_| !state.is_running());
    CurrentRun {
        joined_request_ids: joined.map(|known| known.request_id.clone()).collect(),
        run_id: state.key.run_id,
        status: state.status,
        started_at: state.started.began_at(),
        request_id: state.unrecorded.start_request_id.clone(),
        version: state.version_history.last().map_or(0, |item| item.version),
    }
}

impl From<TransactError> for ServiceError {
    fn from(error: TransactError) -> Self {
        match error {
            TransactError::Rejected(rejection) => rejection.into(),
            TransactError::NotFound(_) => Self::NotFound(error.to_string()),
            TransactError::Store(error) => error.into(),
            TransactError::Namespace(error) | TransactError::Erasing(error) => error,
            // Retryable: nothing was applied, or a repeated request finds that it was.
            TransactError::Closed(Closed::LeaseLost | Closed::Shutdown) => Self::Unavailable(error.to_string()),
            // Their texts end with the store's error.
            TransactError::Closed(Closed::GivenUp(_) | Closed::Unresolved(_)) => {
                Self::Store(StoreError::Unavailable(error.to_string()))
            }
            TransactError::Panicked => Self::Internal(error.to_string()),
        }
    }
}
