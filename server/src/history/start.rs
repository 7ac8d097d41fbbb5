//! Starting a run: the shard owner decides from its cached current run, and the write joins the group commit.

use std::collections::HashMap;
use std::sync::Arc;

use cluster::errors::ServiceError;
use persistence::error::StoreError;
use proto::temporal::api::common::v1::{Payload, Payloads};
use proto::temporal::api::enums::v1::{WorkflowExecutionStatus, WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use proto::temporal::api::update::v1::Request;
use proto::temporal::api::workflow::v1::OnConflictOptions;
use workflow::{
    CurrentRun, Decision, ExecutionKey, Input, Join, NamespaceId, Rejection, Reply, RunId, Signal, Start,
    StartDecision, StartPolicy, Status, Terminate, WorkflowTaskStarted, decide_start,
};

use super::cache::{CurrentSlot, Known};
use super::describe::shown_status;
use super::shard::Shard;
use super::size;
use super::transact::{Kept, TransactError, current_run, unknown_to_others};
use super::update::Waiter;

/// Attempts of a start or signal-with-start; each that finds its run closed in between decides again.
const TRIES_MAX: usize = 8;

#[derive(Clone)]
pub(crate) struct StartRequest {
    pub(crate) namespace_id: NamespaceId,
    pub(crate) workflow_id: Arc<str>,
    pub(crate) start: Start,
    pub(crate) reuse: WorkflowIdReusePolicy,
    pub(crate) conflict: WorkflowIdConflictPolicy,
    /// Parts of the start that it attaches to the open run that it uses.
    pub(crate) on_conflict: Option<OnConflictOptions>,
    /// An update that is admitted, in memory, to the run when it starts.
    pub(crate) update: Option<Arc<Request>>,
}

/// The record that an open run keeps of a start that found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    Nothing,
    Request,
}

/// The run that answers the request.
pub(crate) struct StartedRun {
    pub(crate) run_id: RunId,
    pub(crate) first_run_id: RunId,
    /// As clients see it: a paused run has a status of its own.
    pub(crate) status: WorkflowExecutionStatus,
    pub(crate) is_new: bool,
    pub(crate) joined_by: Joined,
    /// For the update that the run was started with.
    pub(super) waiter: Option<Waiter>,
    /// The first workflow task, if it was started eagerly for the caller.
    pub(crate) task: Option<Box<WorkflowTaskStarted>>,
}

impl Shard {
    pub(crate) async fn start(&self, request: StartRequest) -> Result<StartedRun, ServiceError> {
        let current_slot = self.slots.current(request.namespace_id, &request.workflow_id);
        let _one_at_a_time = current_slot.starting.lock().await;
        self.start_in_turn(&current_slot, &request).await
    }

    /// Signals the run that is open, or starts one that begins with the signal.
    pub(crate) async fn signal_with_start(
        &self,
        mut request: StartRequest,
        signal: Signal,
    ) -> Result<StartedRun, ServiceError> {
        request.start.signal = Some(signal.clone());
        for _ in 0..TRIES_MAX {
            let existing = {
                let current_slot = self.slots.current(request.namespace_id, &request.workflow_id);
                let _one_at_a_time = current_slot.starting.lock().await;
                let current = self.current_run(&current_slot, request.namespace_id, &request.workflow_id).await?;
                match current.filter(|current| request.joins(current)) {
                    Some(current) => self.existing(&request, current.run_id).await?,
                    None => self.start_in_turn(&current_slot, &request).await?,
                }
            };
            if existing.is_new {
                return Ok(existing);
            }
            // Only a new run has the signal already.
            match self.transact(&request.key(existing.run_id), Input::SignalAndBegin(signal.clone())).await {
                Ok(_) => return Ok(existing),
                Err(TransactError::Rejected(Rejection::ExecutionClosed)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Unavailable("the workflow's runs close faster than it can be signaled".into()))
    }

    /// Starts a run, or finds the one that answers the request; the caller holds `starting`.
    pub(super) async fn start_in_turn(
        &self,
        current_slot: &CurrentSlot,
        request: &StartRequest,
    ) -> Result<StartedRun, ServiceError> {
        for _ in 0..TRIES_MAX {
            let current = self.current_run(current_slot, request.namespace_id, &request.workflow_id).await?;
            let open = current.as_ref().filter(|current| current.status == Status::Running);
            if let Some(run) = self.joined_before(request, open.map(|open| open.run_id)).await? {
                return Ok(run);
            }
            let created = match decide_start(current.as_ref(), request.policy()) {
                StartDecision::Create => self.create(request, None).await?,
                StartDecision::TerminateAndCreate(run_id) => self.create(request, Some(run_id)).await?,
                StartDecision::SameRequest(run_id) => {
                    let run = self.existing(request, run_id).await?;
                    let task = self.eager_task(&request.key(run_id), &request.start).await?;
                    return Ok(StartedRun { is_new: true, joined_by: Joined::Nothing, task, ..run });
                }
                // As in the reference, a signal-with-start then starts a run: its signal must arrive.
                StartDecision::JoinedBefore(_) if request.start.signal.is_some() => self.create(request, None).await?,
                StartDecision::JoinedBefore(run_id) => {
                    let run = self.existing(request, run_id).await?;
                    return Ok(StartedRun { joined_by: Joined::Request, ..run });
                }
                StartDecision::UseExisting(run_id) => self.use_existing(request, run_id).await?,
                StartDecision::AlreadyStarted { message, run_id, start_request_id } => {
                    let existing = self.existing(request, run_id).await?;
                    let (run_id, first_run_id) = (run_id.to_string(), existing.first_run_id.to_string());
                    return Err(ServiceError::AlreadyStarted { message, start_request_id, run_id, first_run_id });
                }
            };
            if let Some(run) = created {
                return Ok(run);
            }
        }
        Err(ServiceError::Unavailable("the workflow's runs close faster than they can be replaced".into()))
    }

    /// The open run, if a start with this request id joined it.
    async fn joined_before(
        &self,
        request: &StartRequest,
        open: Option<RunId>,
    ) -> Result<Option<StartedRun>, ServiceError> {
        let Some(run_id) = open.filter(|_| request.start.signal.is_none()) else { return Ok(None) };
        let key = request.key(run_id);
        let slot = self.slots.run(&key);
        let state = self.load(&key, &mut *slot.execution.lock().await).await?;
        if !workflow::is_known(&state, &request.start.request_id) {
            return Ok(None);
        }
        let run = self.existing(request, run_id).await?;
        Ok(Some(StartedRun { joined_by: Joined::Request, ..run }))
    }

    /// The newest run of a workflow id.
    pub(crate) async fn find_current(
        &self,
        namespace_id: NamespaceId,
        workflow_id: &Arc<str>,
    ) -> Result<Option<CurrentRun>, ServiceError> {
        let slot = self.slots.current(namespace_id, workflow_id);
        self.current_run(&slot, namespace_id, workflow_id).await
    }

    /// As `find_current`, with its slot at hand.
    pub(super) async fn current_run(
        &self,
        slot: &CurrentSlot,
        namespace_id: NamespaceId,
        workflow_id: &Arc<str>,
    ) -> Result<Option<CurrentRun>, ServiceError> {
        let known = match slot.known() {
            Known::Unread => slot.fill(self.load_current(namespace_id, workflow_id).await?),
            known @ (Known::Absent | Known::Run(_)) => known,
        };
        Ok(match known {
            Known::Run(run) => Some(run),
            Known::Absent | Known::Unread => None,
        })
    }

    async fn load_current(
        &self,
        namespace_id: NamespaceId,
        workflow_id: &Arc<str>,
    ) -> Result<Option<CurrentRun>, ServiceError> {
        if !self.workflow_ids.may_have(namespace_id, workflow_id) {
            return Ok(None);
        }
        let stored = match self.stores.executions.load_current(self.id, namespace_id, workflow_id).await {
            Err(StoreError::Corrupt(problem)) => {
                Box::pin(self.rebuild_current(namespace_id, workflow_id, &problem)).await?
            }
            stored => stored?,
        };
        if stored.is_none() {
            self.workflow_ids.record_miss(|| self.tally.n_runs());
        }
        Ok(stored)
    }

    /// Creates a run and terminates the replaced one, if any, in the same commit. `None`: the replaced run closed in
    /// between, perhaps with a successor, so the start must be decided again.
    async fn create(
        &self,
        request: &StartRequest,
        replaced: Option<RunId>,
    ) -> Result<Option<StartedRun>, ServiceError> {
        let retention = self.retention(request.namespace_id).await?;
        let permit = self.committer.reserve().await.map_err(TransactError::from)?;
        let facts = self.facts(request.namespace_id, retention);
        let key = request.key(facts.new_run_id);
        let mut next = workflow::start(key.clone(), request.start.clone(), None, &facts)?;
        size::check([next.as_ref()])?;
        let reply = std::mem::replace(&mut next.reply, Reply::Done);
        let task = if let Reply::Started { task, .. } = reply { task } else { None };

        let replaced = replaced.map(|run_id| request.key(run_id));
        let replaced_slot = replaced.as_ref().map(|key| self.slots.run(key));
        let mut runs = Vec::new();
        let mut replaced_execution = None;
        if let (Some(key), Some(slot)) = (&replaced, &replaced_slot) {
            let mut execution = slot.execution.lock().await;
            let state = self.load(key, &mut execution).await?;
            match workflow::transition(&state, Input::Terminate(replacement_terminate(facts.new_run_id)), &facts) {
                Ok(Decision::Changed(ended)) => {
                    size::check([ended.as_ref(), next.as_ref()])?;
                    runs.push(self.keep_one(slot, &mut execution, *ended));
                }
                Ok(Decision::Unchanged(_)) | Err(Rejection::ExecutionClosed) => return Ok(None),
                Err(rejection) => return Err(rejection.into()),
            }
            replaced_execution = Some(execution);
        }

        // No await from the first `keep_one` to the submission: a cancelled request must not leave a start half kept.
        let current = current_run(&next.state);
        let slot = self.slots.run(&key);
        let mut execution = unknown_to_others(&slot);
        runs.push(self.keep_one(&slot, &mut execution, *next));
        let found = request.update.as_ref().map(|update| execution.admit(update));
        drop(execution);
        let waiter = found.map(|found| Waiter { slot: Arc::clone(&slot), found });
        let current_slot = self.slots.current(request.namespace_id, &request.workflow_id);
        let kept = Kept { runs, current: Some((current_slot, current)), created: Some(slot), damaged: Vec::new() };
        let submitted = self.submit(permit, kept);
        if let Some(replaced) = &mut replaced_execution {
            replaced.submitted = submitted;
        }
        drop(replaced_execution);
        self.committer.durable(submitted).await.map_err(TransactError::from)?;
        let run_id = key.run_id;
        let joined_by = Joined::Nothing;
        let status = WorkflowExecutionStatus::Running;
        Ok(Some(StartedRun { run_id, first_run_id: run_id, status, is_new: true, joined_by, waiter, task }))
    }

    /// Uses the open run and attaches what the start's conflict options name. `None`: it closed in between.
    async fn use_existing(&self, request: &StartRequest, run_id: RunId) -> Result<Option<StartedRun>, ServiceError> {
        // As in the reference, a start that joins an open run reports it as running, even if it is paused.
        let status = WorkflowExecutionStatus::Running;
        let Some(options) = &request.on_conflict else {
            let existing = self.existing(request, run_id).await?;
            return Ok(Some(StartedRun { status, ..existing }));
        };
        let start = &request.start;
        let input = Join {
            request_id: if options.attach_request_id { start.request_id.clone() } else { String::new() },
            callbacks: if options.attach_completion_callbacks { start.callbacks.clone() } else { Vec::new() },
            links: if options.attach_links { start.links.clone() } else { Vec::new() },
        };
        match self.transact(&request.key(run_id), Input::Join(input)).await {
            Ok(_) => {}
            Err(TransactError::Rejected(Rejection::ExecutionClosed)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let existing = self.existing(request, run_id).await?;
        let joined_by = if options.attach_request_id { Joined::Request } else { Joined::Nothing };
        Ok(Some(StartedRun { joined_by, status, ..existing }))
    }

    /// An existing run, once its state is durable.
    async fn existing(&self, request: &StartRequest, run_id: RunId) -> Result<StartedRun, ServiceError> {
        let key = request.key(run_id);
        let slot = self.slots.run(&key);
        let state = self.load(&key, &mut *slot.execution.lock().await).await?;
        self.slots.touch(&slot, &state);
        self.committer.confirmed().await.map_err(TransactError::from)?;
        let first_run_id = state.started.first_run_id;
        let (joined_by, status) = (Joined::Nothing, shown_status(&state));
        Ok(StartedRun { run_id, first_run_id, status, is_new: false, joined_by, waiter: None, task: None })
    }
}

impl StartRequest {
    /// A signal-with-start goes to the open run, unless it is to replace it. If it created that run itself, the run
    /// deduplicates the signal; if a plain start with the same request id did, the signal must not be lost.
    fn joins(&self, current: &CurrentRun) -> bool {
        current.status == Status::Running && self.conflict != WorkflowIdConflictPolicy::TerminateExisting
    }

    fn policy(&self) -> StartPolicy<'_> {
        StartPolicy {
            workflow_id: &self.workflow_id,
            request_id: &self.start.request_id,
            reuse: self.reuse,
            conflict: self.conflict,
        }
    }

    pub(super) fn key(&self, run_id: RunId) -> ExecutionKey {
        ExecutionKey { namespace_id: self.namespace_id, workflow_id: Arc::clone(&self.workflow_id), run_id }
    }
}

fn replacement_terminate(by: RunId) -> Terminate {
    let detail = Payload {
        metadata: HashMap::from([("encoding".to_owned(), b"json/plain".to_vec().into())]),
        data: format!("\"terminated by new runID: {by}\"").into(),
        ..Default::default()
    };
    Terminate {
        reason: "TerminateIfRunning WorkflowIdReusePolicy".into(),
        details: Some(Payloads { payloads: vec![detail] }),
        identity: "history-service".into(),
        first_run_id: None,
        links: Vec::new(),
        sender: None,
    }
}
