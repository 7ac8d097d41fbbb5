//! Update-with-start: an update for the run that is open, or for one that is started with it; both or none.

use std::sync::Arc;

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::enums::v1::WorkflowIdConflictPolicy;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_request::operation::Operation;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_response::Response;
use proto::temporal::api::workflowservice::v1::execute_multi_operation_response::response::Response as OneResponse;
use workflow::{AdmitUpdate, CurrentRun, Rejection};

use super::describe::shown_status;
use super::links::LinkedRun;
use super::service::{FOLLOWED_RUNS_MAX, Service, namespace_id};
use super::shard::Shard;
use super::start::{Joined, StartRequest, StartedRun};
use super::start_requests::{joined_response, start_request, start_response};
use super::transact::TransactError;
use super::update::{Reached, Waiter, response, stage_of};
use super::updates::{Abort, Found};

impl Service {
    pub async fn execute_multi_operation(
        &self,
        request: request::ExecuteMultiOperationRequest,
    ) -> Result<public::ExecuteMultiOperationResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let (start, update) = start_and_update(request.request.unwrap_or_default())?;
        let namespace = start.namespace.clone();
        let mut start = start_request(namespace_id, start);
        let update_request = Arc::new(update.request.unwrap_or_default());
        start.update = Some(Arc::clone(&update_request));
        let shard = self.ownership.shard(namespace_id, &start.workflow_id).await?;
        let stage = stage_of(update.wait_policy);
        let mut was_closed = false;
        for _ in 0..FOLLOWED_RUNS_MAX {
            let mut run = shard.join_or_start(&start).await?;
            let key = start.key(run.run_id);
            let Some(waiter) = run.waiter.take() else { return Err(not_started()) };
            let was_over = matches!(waiter.found, Found::Recorded(_));
            match shard.wait_for_update(&key, waiter, stage).await? {
                Ok(reached) if was_over => return Ok(recorded(&namespace, &start, &run, reached)),
                Ok(reached) => return Ok(both(&namespace, &start, run, reached)),
                Err(abort) if run.is_new => return Err(ServiceError::operations([None, Some(abort.into())])),
                // Another run may take it: the next of the chain, or, once, one that is started for it.
                Err(Abort::Continued) => {}
                Err(Abort::Closed) if !was_closed => was_closed = true,
                Err(Abort::Closed) => {
                    let message = ServiceError::from(Abort::Closed).to_string();
                    return Err(update_failed(ServiceError::Aborted(message)));
                }
                Err(abort @ Abort::TaskFailed) => return Err(update_failed(abort.into())),
            }
        }
        Err(update_failed(Abort::Continued.into()))
    }
}

/// The two operations, in the only valid order.
fn start_and_update(
    request: public::ExecuteMultiOperationRequest,
) -> Result<(public::StartWorkflowExecutionRequest, public::UpdateWorkflowExecutionRequest), ServiceError> {
    let mut operations = request.operations.into_iter().filter_map(|operation| operation.operation);
    match (operations.next(), operations.next(), operations.next()) {
        (Some(Operation::StartWorkflow(start)), Some(Operation::UpdateWorkflow(update)), None) => Ok((start, update)),
        _ => Err(ServiceError::InvalidArgument("Operations have to be exactly [Start, Update].".into())),
    }
}

fn both(
    namespace: &str,
    start: &StartRequest,
    run: StartedRun,
    reached: Reached,
) -> public::ExecuteMultiOperationResponse {
    let update = start.update.as_deref().cloned().unwrap_or_default();
    let update = response(namespace, &start.key(run.run_id), &update, reached);
    let linked = LinkedRun { namespace: namespace.to_owned(), workflow_id: &start.workflow_id, run_id: run.run_id };
    let started = if run.is_new {
        start_response(&run, linked, start.start.request_id.clone())
    } else {
        joined_response(&run, Some(linked.start_link()))
    };
    responses(started, update)
}

/// The response for an update that had completed before the request: it has no links.
fn recorded(
    namespace: &str,
    start: &StartRequest,
    run: &StartedRun,
    reached: Reached,
) -> public::ExecuteMultiOperationResponse {
    let update = start.update.as_deref().cloned().unwrap_or_default();
    let update = response(namespace, &start.key(run.run_id), &update, reached);
    let update = public::UpdateWorkflowExecutionResponse { link: None, ..update };
    responses(joined_response(run, None), update)
}

fn responses(
    started: public::StartWorkflowExecutionResponse,
    updated: public::UpdateWorkflowExecutionResponse,
) -> public::ExecuteMultiOperationResponse {
    let responses = [OneResponse::StartWorkflow(started), OneResponse::UpdateWorkflow(updated)];
    let responses = responses.map(|response| Response { response: Some(response) }).into();
    public::ExecuteMultiOperationResponse { responses }
}

impl Shard {
    /// Admits the update to the run that answers the request, or starts a run with it.
    async fn join_or_start(&self, request: &StartRequest) -> Result<StartedRun, ServiceError> {
        for _ in 0..FOLLOWED_RUNS_MAX {
            let current_slot = self.slots.current(request.namespace_id, &request.workflow_id);
            let _one_at_a_time = current_slot.starting.lock().await;
            let current = self.current_run(&current_slot, request.namespace_id, &request.workflow_id).await?;
            if let Some(current) = current
                && self.joins(request, &current).await?
            {
                match self.join(request, &current).await {
                    Err(TransactError::Rejected(Rejection::ExecutionClosed)) => continue,
                    Err(error) => return Err(wrapped(error.into(), update_failed)),
                    Ok(run) => return Ok(run),
                }
            }
            return self.start_in_turn(&current_slot, request).await.map_err(|error| wrapped(error, start_failed));
        }
        Err(ServiceError::Unavailable("the workflow's runs close faster than they can be updated".into()))
    }

    /// The newest run takes the update if it has completed it; or, while it is open, if it has the update, this request
    /// started it or the policy is `UseExisting`. A closed run that only accepted the update never completes it.
    async fn joins(&self, request: &StartRequest, current: &CurrentRun) -> Result<bool, ServiceError> {
        let update = request.update.as_deref().and_then(|update| update.meta.as_ref());
        let update_id = update.map_or("", |meta| meta.update_id.as_str());
        let key = request.key(current.run_id);
        let may_join =
            current.request_id == request.start.request_id || request.conflict == WorkflowIdConflictPolicy::UseExisting;
        let joins_if_open = match self.find_update(&key, update_id).await? {
            Some(Waiter { found: Found::Recorded(_), .. }) => return Ok(true),
            Some(Waiter { found: Found::Pending(_), .. }) => true,
            None => may_join,
        };
        Ok(joins_if_open && self.read(&key).await?.is_running())
    }

    async fn join(&self, request: &StartRequest, current: &CurrentRun) -> Result<StartedRun, TransactError> {
        let update = request.update.clone().unwrap_or_default();
        let admit = AdmitUpdate { request: update, first_run_id: None, waiting: Vec::new() };
        let key = request.key(current.run_id);
        let waiter = self.admit_update(&key, admit).await?;
        let state = self.load(&key, &mut *waiter.slot.execution.lock().await).await?;
        Ok(StartedRun {
            run_id: key.run_id,
            first_run_id: state.started.first_run_id,
            status: shown_status(&state),
            is_new: false,
            joined_by: Joined::Nothing,
            waiter: Some(waiter),
            task: None,
        })
    }
}

/// Leaves a retryable error unwrapped, so that clients retry the whole request.
fn wrapped(error: ServiceError, wrap: fn(ServiceError) -> ServiceError) -> ServiceError {
    if matches!(error, ServiceError::Unavailable(_) | ServiceError::Store(_) | ServiceError::ShardOwnershipLost(_)) {
        error
    } else {
        wrap(error)
    }
}

fn start_failed(error: ServiceError) -> ServiceError {
    ServiceError::operations([Some(error), Some(ServiceError::OperationAborted)])
}

fn update_failed(error: ServiceError) -> ServiceError {
    ServiceError::operations([Some(ServiceError::OperationAborted), Some(error)])
}

/// The request had started a run, which closed without completing the update.
fn not_started() -> ServiceError {
    start_failed(ServiceError::Unavailable("Workflow was not started: the request started a run that is over".into()))
}
