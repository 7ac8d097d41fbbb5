//! Update requests of clients: send an update to a run, wait for its progress, poll it later.

use std::sync::Arc;

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::link::workflow_event::{Reference, RequestIdReference};
use proto::temporal::api::common::v1::{Link, link};
use proto::temporal::api::enums::v1::{
    EventType, ResourceExhaustedCause, ResourceExhaustedScope, UpdateWorkflowExecutionLifecycleStage as Stage,
};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::update::v1::outcome::Value;
use proto::temporal::api::update::v1::{Outcome, Request, UpdateRef, WaitPolicy};
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{AdmitUpdate, ExecutionKey, Input, RecordedAt, Rejection};

use super::cache::{Execution, Slot};
use super::reading::LONG_POLL;
use super::service::{FOLLOWED_RUNS_MAX, Service, Target, namespace_id};
use super::shard::Shard;
use super::token;
use super::transact::TransactError;
use super::updates::{Abort, Found, Progress};
use super::worker_tasks::execution_of;

/// A wait for an update; its slot keeps the run in memory.
pub(super) struct Waiter {
    pub(super) slot: Arc<Slot>,
    pub(super) found: Found,
}

/// The stage that an update has reached.
pub(super) struct Reached {
    pub(super) stage: Stage,
    pub(super) outcome: Option<Outcome>,
}

impl Service {
    pub async fn update_workflow_execution(
        &self,
        request: request::UpdateWorkflowExecutionRequest,
    ) -> Result<public::UpdateWorkflowExecutionResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let target = Target::new(namespace_id, request.workflow_execution)?;
        let update = Arc::new(request.request.unwrap_or_default());
        let admit = AdmitUpdate {
            request: Arc::clone(&update),
            first_run_id: token::run_id(&request.first_execution_run_id)?,
            waiting: Vec::new(),
        };
        let stage = stage_of(request.wait_policy);
        let mut previous = None;
        for _ in 0..FOLLOWED_RUNS_MAX {
            let (shard, key) = self.find(&target).await?;
            let waiter = match shard.admit_update(&key, admit.clone()).await {
                // The run closed between the lookup and the request: retried with the run that followed, if any.
                Err(TransactError::Rejected(Rejection::ExecutionClosed))
                    if target.run_id.is_none() && previous.as_ref() != Some(&key) =>
                {
                    previous = Some(key);
                    continue;
                }
                waiter => waiter?,
            };
            match shard.wait_for_update(&key, waiter, stage).await? {
                Ok(reached) => return Ok(response(&request.namespace, &key, &update, reached)),
                Err(Abort::Continued) => previous = Some(key),
                Err(abort) => return Err(abort.into()),
            }
        }
        Err(Abort::Continued.into())
    }

    pub async fn poll_workflow_execution_update(
        &self,
        request: request::PollWorkflowExecutionUpdateRequest,
    ) -> Result<public::PollWorkflowExecutionUpdateResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let named = request.update_ref.unwrap_or_default();
        let (shard, key) = self.find(&Target::new(namespace_id, named.workflow_execution)?).await?;
        let Some(waiter) = shard.find_update(&key, &named.update_id).await? else {
            return Err(ServiceError::NotFound(format!("update {:?} not found", named.update_id)));
        };
        let reached = shard.wait_for_update(&key, waiter, stage_of(request.wait_policy)).await??;
        Ok(public::PollWorkflowExecutionUpdateResponse {
            outcome: reached.outcome,
            stage: reached.stage.into(),
            update_ref: Some(update_ref(&key, &named.update_id)),
        })
    }
}

impl Shard {
    /// Admits an update to a run, or finds it there.
    pub(super) async fn admit_update(&self, key: &ExecutionKey, admit: AdmitUpdate) -> Result<Waiter, TransactError> {
        let slot = self.slots.run(key);
        let request = Arc::clone(&admit.request);
        let found =
            self.transact_then(key, Input::AdmitUpdate(admit), |execution, _| execution.admit(&request)).await?;
        Ok(Waiter { slot, found })
    }

    pub(super) async fn find_update(
        &self,
        key: &ExecutionKey,
        update_id: &str,
    ) -> Result<Option<Waiter>, ServiceError> {
        let slot = self.slots.run(key);
        let (found, submitted) = {
            let mut execution = slot.execution.lock().await;
            let state = self.load(key, &mut execution).await?;
            self.slots.touch(&slot, &state);
            (execution.updates.find(&state, update_id), execution.submitted)
        };
        self.committer.confirmed_lately(submitted).await.map_err(TransactError::from)?;
        Ok(found.map(|found| Waiter { slot, found }))
    }

    /// Waits until the update reaches the stage, at most for `LONG_POLL`; then returns the stage that it has reached.
    pub(super) async fn wait_for_update(
        &self,
        key: &ExecutionKey,
        waiter: Waiter,
        stage: Stage,
    ) -> Result<Result<Reached, Abort>, ServiceError> {
        let Waiter { slot: _held, found } = waiter;
        let mut progress = match found {
            Found::Recorded(at) => {
                let outcome = Some(self.update_outcome(key, at).await?);
                return Ok(Ok(Reached { stage: Stage::Completed, outcome }));
            }
            Found::Pending(progress) => progress,
        };
        let waited = tokio::select! {
            waited = tokio::time::timeout(LONG_POLL, progress.wait_for(|progress| has_reached(progress, stage))) => {
                waited.map(|reached| reached.map(|reached| reached.clone()))
            }
            closed = self.committer.ended() => return Err(TransactError::from(closed).into()),
        };
        let reached = match waited {
            Ok(Ok(reached)) => reached,
            Ok(Err(_)) => return Err(ServiceError::Unavailable("workflow update was aborted".into())),
            Err(_) => progress.borrow().clone(),
        };
        Ok(match reached {
            Progress::Admitted => Ok(Reached { stage: Stage::Admitted, outcome: None }),
            Progress::Accepted => Ok(Reached { stage: Stage::Accepted, outcome: None }),
            Progress::Completed(outcome) => {
                Ok(Reached { stage: Stage::Completed, outcome: Some(outcome.as_ref().clone()) })
            }
            Progress::Aborted(abort) => Err(abort),
        })
    }

    async fn update_outcome(&self, key: &ExecutionKey, at: RecordedAt) -> Result<Outcome, ServiceError> {
        let state = self.read(key).await?;
        let event = self.event(&state, at.batch_id, at.event_id).await?;
        match event.attributes {
            Some(Attributes::WorkflowExecutionUpdateCompletedEventAttributes(completed)) => {
                Ok(completed.outcome.unwrap_or_default())
            }
            _ => Err(ServiceError::DataLoss(format!("event {} of {key} completes no update", at.event_id.0))),
        }
    }
}

impl Execution {
    /// Admits an update, unless the run has it already.
    pub(super) fn admit(&mut self, request: &Arc<Request>) -> Found {
        let state = Arc::clone(self.state.as_ref().expect("a run that takes an update is in memory"));
        self.updates.admit(&state, request)
    }
}

fn has_reached(progress: &Progress, stage: Stage) -> bool {
    match progress {
        Progress::Completed(_) | Progress::Aborted(_) => true,
        Progress::Accepted => stage != Stage::Completed,
        Progress::Admitted => matches!(stage, Stage::Unspecified | Stage::Admitted),
    }
}

pub(super) fn stage_of(policy: Option<WaitPolicy>) -> Stage {
    policy.map_or(Stage::Unspecified, |policy| policy.lifecycle_stage())
}

pub(super) fn response(
    namespace: &str,
    key: &ExecutionKey,
    request: &Request,
    reached: Reached,
) -> public::UpdateWorkflowExecutionResponse {
    let update_id = request.meta.as_ref().map_or("", |meta| meta.update_id.as_str());
    public::UpdateWorkflowExecutionResponse {
        update_ref: Some(update_ref(key, update_id)),
        link: link_to(namespace, key, request, &reached),
        stage: reached.stage.into(),
        outcome: reached.outcome,
    }
}

fn update_ref(key: &ExecutionKey, update_id: &str) -> UpdateRef {
    UpdateRef { workflow_execution: Some(execution_of(key)), update_id: update_id.to_owned() }
}

/// Links to the event that accepted the update; a failed update may have none, so it links to the workflow.
fn link_to(namespace: &str, key: &ExecutionKey, request: &Request, reached: &Reached) -> Option<Link> {
    if matches!(reached.stage, Stage::Unspecified | Stage::Admitted) {
        return None;
    }
    let (namespace, execution) = (namespace.to_owned(), execution_of(key));
    let (workflow_id, run_id) = (execution.workflow_id, execution.run_id);
    let has_failed = matches!(&reached.outcome, Some(Outcome { value: Some(Value::Failure(_)) }));
    let variant = if has_failed {
        let reason = "Update rejected".to_owned();
        link::Variant::Workflow(link::Workflow { namespace, workflow_id, run_id, reason })
    } else {
        let event_type = EventType::WorkflowExecutionUpdateAccepted.into();
        let reference = RequestIdReference { request_id: request.request_id.clone(), event_type };
        let reference = Some(Reference::RequestIdRef(reference));
        link::Variant::WorkflowEvent(link::WorkflowEvent { namespace, workflow_id, run_id, reference })
    };
    Some(Link { variant: Some(variant) })
}

impl From<Abort> for ServiceError {
    fn from(abort: Abort) -> Self {
        match abort {
            Abort::Closed => Self::NotFound("workflow update was aborted by closing workflow".into()),
            Abort::Continued => Self::ResourceExhausted {
                cause: ResourceExhaustedCause::BusyWorkflow,
                scope: ResourceExhaustedScope::Namespace,
                message: "workflow operation can not be applied because workflow is closing".into(),
            },
            Abort::TaskFailed => Self::WorkflowNotReady(
                "Unable to perform workflow execution update due to unexpected workflow task failure.".into(),
            ),
        }
    }
}
