//! Queries on a run. Without a pending workflow task a query goes to a worker directly; otherwise it waits for the
//! pending or the next workflow task, so that it sees every change acknowledged before it.

use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::matching;
use proto::history::History;
use proto::temporal::api::common::v1::{Link, WorkflowExecution, WorkflowType, link};
use proto::temporal::api::enums::v1::{QueryRejectCondition, TaskQueueKind};
use proto::temporal::api::query::v1::QueryRejected;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::time::Instant;
use workflow::{EventId, ExecutionKey, ExecutionState, Input, Rejection, Status, Sticky, WorkflowTask};

use super::describe::{normal_queue, proto_duration, shown_status};
use super::query_buffer::{Answer, BufferedQuery, QueryBuffer, TaskAttempt};
use super::shard::Shard;
use super::transact::TransactError;
use crate::peers::Peers;

/// From this attempt on a workflow task is assumed to fail permanently, and a query's replay with it.
const FAILING_ATTEMPT: i32 = 3;

/// A query and its caller's deadline.
pub(crate) struct Query {
    pub(crate) request: public::QueryWorkflowRequest,
    pub(crate) deadline: Instant,
}

/// How a query is answered.
#[derive(Debug, PartialEq)]
enum Route {
    /// The caller's reject condition applies, or the run is paused.
    Rejected,
    /// By a worker now: the last workflow task has seen every earlier event.
    Direct,
    /// With a workflow task, or once none is pending.
    Buffered,
}

enum Waited {
    Answered(Answer),
    /// No workflow task is pending any more.
    Released,
}

impl Shard {
    pub(crate) async fn query(
        &self,
        key: &ExecutionKey,
        query: Query,
        peers: &Peers,
    ) -> Result<public::QueryWorkflowResponse, ServiceError> {
        let deadline = query.deadline;
        let answer = tokio::time::timeout_at(deadline, Box::pin(self.answer(key, &query, peers))).await;
        let response = answer.unwrap_or_else(|_| Err(ServiceError::query_timed_out()))?;
        let verb = if response.query_rejected.is_some() { "rejected" } else { "processed" };
        let link = link::Workflow {
            namespace: query.request.namespace,
            workflow_id: key.workflow_id.to_string(),
            run_id: key.run_id.to_string(),
            reason: format!("Query {verb}"),
        };
        Ok(public::QueryWorkflowResponse {
            link: Some(Link { variant: Some(link::Variant::Workflow(link)) }),
            ..response
        })
    }

    async fn answer(
        &self,
        key: &ExecutionKey,
        query: &Query,
        peers: &Peers,
    ) -> Result<public::QueryWorkflowResponse, ServiceError> {
        let slot = self.slots.run(key);
        let (status, route, buffered, submitted) = {
            let mut execution = slot.execution.lock().await;
            let state = self.load(key, &mut execution).await?;
            self.slots.touch(&slot, &state);
            let route = self.route(&state, query);
            let buffered = match route {
                Ok(Route::Buffered) => {
                    let content = query.request.query.clone().unwrap_or_default();
                    Some(slot.queries.push(self.env.new_uuid().to_string(), content, in_flight(&state)))
                }
                Ok(Route::Direct | Route::Rejected) | Err(_) => None,
            };
            (shown_status(&state), route, buffered, execution.submitted)
        };
        self.committer.confirmed_lately(submitted).await.map_err(TransactError::from)?;
        if route? == Route::Rejected {
            let query_rejected = Some(QueryRejected { status: status.into() });
            return Ok(public::QueryWorkflowResponse { query_rejected, ..Default::default() });
        }
        if let Some(buffered) = buffered
            && let Waited::Answered(answer) = self.wait(key, &slot.queries, buffered?).await?
        {
            return Ok(public::QueryWorkflowResponse { query_result: answer?, ..Default::default() });
        }
        self.ask_worker(key, query, peers).await
    }

    fn route(&self, state: &ExecutionState, query: &Query) -> Result<Route, ServiceError> {
        let is_rejected = match query.request.query_reject_condition() {
            QueryRejectCondition::Unspecified | QueryRejectCondition::None => false,
            QueryRejectCondition::NotOpen => !state.is_running(),
            QueryRejectCondition::NotCompletedCleanly => !state.is_running() && state.status != Status::Completed,
        };
        if is_rejected || (state.is_running() && state.paused().is_some()) {
            return Ok(Route::Rejected);
        }
        check_was_begun(state)?;
        if state.waits_for_first_task() {
            let begins_at = state.started.started_at + state.started.first_task_backoff;
            let patience = query.deadline.saturating_duration_since(Instant::now());
            if begins_at > self.env.now() + patience {
                return Err(ServiceError::WorkflowNotReady("Workflow task is not scheduled yet.".into()));
            }
        }
        if state.workflow_task_attempt >= FAILING_ATTEMPT {
            let message = "Unable to query workflow due to Workflow Task in failed state.";
            return Err(ServiceError::WorkflowNotReady(message.into()));
        }
        Ok(if has_nothing_under_way(state) { Route::Direct } else { Route::Buffered })
    }

    /// Waits until a workflow task brings the answer, or none is pending.
    async fn wait(
        &self,
        key: &ExecutionKey,
        buffer: &QueryBuffer,
        mut query: BufferedQuery<'_>,
    ) -> Result<Waited, ServiceError> {
        let waiting = self.waiters.listen(key);
        loop {
            let changed = waiting.changed();
            tokio::pin!(changed);
            // Armed before the read, so that no commit is missed between the read and the wait.
            changed.as_mut().enable();
            let state = self.read(key).await?;
            if has_nothing_under_way(&state) && !buffer.is_answering() {
                // The last workflow task sent its answers before `is_answering` turned false.
                if let Ok(answer) = query.answer.try_recv() {
                    return Ok(Waited::Answered(answer));
                }
                check_was_begun(&state)?;
                return Ok(Waited::Released);
            }
            tokio::select! {
                biased;
                Ok(answer) = &mut query.answer => return Ok(Waited::Answered(answer)),
                () = changed => {}
            }
        }
    }

    /// Queries a worker through matching: first the sticky one, which has the run in its cache, then any.
    async fn ask_worker(
        &self,
        key: &ExecutionKey,
        query: &Query,
        peers: &Peers,
    ) -> Result<public::QueryWorkflowResponse, ServiceError> {
        let state = self.read(key).await?;
        if let Some(sticky) = &state.unrecorded.sticky {
            let answer = peers.matching()?.query_workflow(to_sticky_queue(key, query, sticky)).await;
            if !matches!(answer, Err(ServiceError::StickyWorkerUnavailable | ServiceError::DeadlineExceeded(_))) {
                return answer;
            }
            match self.transact(key, Input::ResetSticky).await {
                Ok(_) | Err(TransactError::Rejected(Rejection::ExecutionClosed)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let patience = query.deadline.saturating_duration_since(Instant::now());
        let request = to_matching(key, query, (&state.started.task_queue, TaskQueueKind::Normal), patience);
        peers.matching()?.query_workflow(request).await
    }

    /// The query task for a worker that polled this queue; matching adds the query itself.
    pub(crate) async fn query_task(
        &self,
        key: &ExecutionKey,
        polled: &str,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        let state = self.read(key).await?;
        let is_sticky = state.unrecorded.sticky.as_ref().is_some_and(|sticky| sticky.task_queue == polled);
        let (history, next_page_token) = if is_sticky {
            (History::default(), bytes::Bytes::new())
        } else {
            self.task_history(&state, (EventId::FIRST, state.next_event_id), Vec::new()).await?
        };
        Ok(public::PollWorkflowTaskQueueResponse {
            workflow_execution: Some(execution_of(key)),
            workflow_type: Some(WorkflowType { name: state.started.workflow_type.clone() }),
            previous_started_event_id: state.last_completed_started_event_id.map_or(0, |id| id.0),
            attempt: 1,
            history: Some(history),
            next_page_token,
            workflow_execution_task_queue: Some(normal_queue(&state.started.task_queue)),
            ..Default::default()
        })
    }
}

/// Refuses a closed run without a completed workflow task: a worker has nothing to replay.
fn check_was_begun(state: &ExecutionState) -> Result<(), ServiceError> {
    if !state.is_running() && state.last_completed_started_event_id.is_none() {
        let message = "Workflow execution closed before WorkflowTaskStarted event";
        return Err(ServiceError::WorkflowNotReady(message.into()));
    }
    Ok(())
}

fn in_flight(state: &ExecutionState) -> Option<TaskAttempt> {
    let WorkflowTask::Running(scheduled, _) = &state.workflow_task else { return None };
    Some(TaskAttempt { scheduled_event_id: scheduled.event_id, attempt: scheduled.attempt })
}

fn has_nothing_under_way(state: &ExecutionState) -> bool {
    let has_task = state.workflow_task != WorkflowTask::None;
    !state.is_running() || (!has_task && state.last_completed_started_event_id.is_some())
}

fn to_sticky_queue(key: &ExecutionKey, query: &Query, sticky: &Sticky) -> matching::QueryWorkflowRequest {
    // The sticky timeout, not the caller's deadline: a short deadline must not cost the run its sticky worker.
    to_matching(key, query, (&sticky.task_queue, TaskQueueKind::Sticky), sticky.schedule_to_start_timeout)
}

fn to_matching(
    key: &ExecutionKey,
    query: &Query,
    (task_queue, kind): (&str, TaskQueueKind),
    patience: Duration,
) -> matching::QueryWorkflowRequest {
    matching::QueryWorkflowRequest {
        namespace_id: key.namespace_id.to_string(),
        task_queue: task_queue.to_owned(),
        task_queue_kind: kind.into(),
        request: Some(public::QueryWorkflowRequest { execution: Some(execution_of(key)), ..query.request.clone() }),
        timeout: Some(proto_duration(patience)),
    }
}

fn execution_of(key: &ExecutionKey) -> WorkflowExecution {
    WorkflowExecution { workflow_id: key.workflow_id.to_string(), run_id: key.run_id.to_string() }
}
