//! Requests between parent and child runs, and resolution of the namespaces that a workflow's commands name.

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::common::v1::Header;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{ChildClosed, EventId, ExecutionState, Input, KnownNamespaces, NamespaceId, OtherNamespaces, Rejection};

use super::service::{Service, Target, namespace_id};
use super::shard::Shard;
use super::token;
use super::transact::TransactError;

impl Service {
    /// Schedules a child's first workflow task: the parent has recorded its start.
    pub async fn schedule_first_workflow_task(
        &self,
        request: request::ScheduleFirstWorkflowTaskRequest,
    ) -> Result<request::ScheduleFirstWorkflowTaskResponse, ServiceError> {
        let (shard, key) = self.find(&Target::new(namespace_id(&request.namespace_id)?, request.execution)?).await?;
        shard.transact(&key, Input::ScheduleFirstTask).await?;
        Ok(request::ScheduleFirstWorkflowTaskResponse {})
    }

    /// Records a child's close in its parent, or in the run that the parent was reset to.
    pub async fn record_child_execution_completed(
        &self,
        request: request::RecordChildExecutionCompletedRequest,
    ) -> Result<request::RecordChildExecutionCompletedResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let (shard, mut key) = self.find(&Target::new(namespace_id, request.parent)?).await?;
        let invalid = |what: &str| ServiceError::InvalidArgument(format!("{what} is not set on the request"));
        let end = request.completion_event.and_then(|event| event.attributes);
        let initiated_event_id = EventId(request.initiated_event_id);
        let mut closed = ChildClosed {
            initiated_event_id,
            initiated_version: request.initiated_version,
            execution: request.child.ok_or_else(|| invalid("Child"))?,
            first_run_id: token::run_id(&request.child_first_run_id)?.ok_or_else(|| invalid("ChildFirstRunId"))?,
            end: end.ok_or_else(|| invalid("CompletionEvent"))?,
            header: None,
        };
        for _ in 0..RESETS_MAX {
            let state = shard.read(&key).await?;
            if let Some(run_id) = state.unrecorded.reset_run_id.filter(|_| !state.is_running()) {
                key.run_id = run_id;
                continue;
            }
            closed.header = unrecorded_header(&shard, &state, initiated_event_id).await?;
            match shard.transact(&key, Input::ChildClosed(Box::new(closed.clone()))).await {
                // The parent closed after the read, perhaps by a reset.
                Err(TransactError::Rejected(Rejection::ExecutionClosed)) if state.is_running() => {}
                recorded => return Ok(recorded.map(|_| request::RecordChildExecutionCompletedResponse {})?),
            }
        }
        Err(ServiceError::Internal("The chain of resets is too long to iterate.".into()))
    }
}

/// Maximum number of resets followed from a parent.
const RESETS_MAX: usize = 100;

/// The header of the initiated event, if the child's start is not recorded yet.
async fn unrecorded_header(
    shard: &Shard,
    state: &ExecutionState,
    initiated_event_id: EventId,
) -> Result<Option<Header>, ServiceError> {
    let child = state.children.get(initiated_event_id.0);
    let Some(child) = child.filter(|child| child.started.is_none()) else { return Ok(None) };
    let event = shard.event(state, child.initiated_batch_id, initiated_event_id).await?;
    match event.attributes {
        Some(Attributes::StartChildWorkflowExecutionInitiatedEventAttributes(initiated)) => Ok(initiated.header),
        _ => Err(ServiceError::DataLoss(format!("event {initiated_event_id} of {} initiates no child", state.key))),
    }
}

impl Shard {
    /// Resolves the namespaces that the commands of a workflow task name. A missing one fails the call, not the task:
    /// it may exist on the next attempt.
    pub(super) async fn known_namespaces(
        &self,
        own: NamespaceId,
        commands: &[Command],
    ) -> Result<KnownNamespaces, ServiceError> {
        let is_allowed = self.config.cross_namespace_commands;
        let others = if is_allowed { OtherNamespaces::Allowed } else { OtherNamespaces::Refused };
        let mut known = KnownNamespaces { others, ..KnownNamespaces::default() };
        for name in commands.iter().filter_map(named_namespace) {
            if known.own.is_empty() {
                known.own.clone_from(&self.namespaces.by_id(own).await?.name);
            }
            if !name.is_empty() && !known.by_name.contains_key(name) {
                let id = self.namespaces.by_name(name).await?.id;
                known.by_name.insert(name.to_owned(), id);
            }
        }
        Ok(known)
    }
}

/// The name in a command that is about another workflow; empty for the run's own namespace.
#[expect(deprecated, reason = "workers still name a namespace")]
fn named_namespace(command: &Command) -> Option<&str> {
    let what = command.attributes.as_ref()?;
    if let CommandAttributes::StartChildWorkflowExecutionCommandAttributes(start) = what {
        Some(&start.namespace)
    } else if let CommandAttributes::RequestCancelExternalWorkflowExecutionCommandAttributes(cancel) = what {
        Some(&cancel.namespace)
    } else if let CommandAttributes::SignalExternalWorkflowExecutionCommandAttributes(signal) = what {
        Some(&signal.namespace)
    } else {
        None
    }
}
