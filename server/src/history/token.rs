//! Tokens that clients hand back: of tasks and of history pages. They are input like any other, and checked as such.

use std::sync::Arc;

use bytes::Bytes;
use cluster::errors::ServiceError;
use prost::Message;
use proto::everrow::history::{HistoryPageToken, TaskToken};
use uuid::Uuid;
use workflow::{ActivityRef, EventId, ExecutionKey, NamespaceId, RunId, TaskRef, Timestamp};

/// A task token with parsed ids. The run checks whether its task is still valid.
pub(crate) struct ParsedToken {
    pub(crate) namespace_id: NamespaceId,
    pub(crate) workflow_id: Arc<str>,
    /// `None` in a by-id call: the current run.
    pub(crate) run_id: Option<RunId>,
    pub(crate) task: TaskRef,
    activity_id: String,
}

impl ParsedToken {
    /// By scheduled event, or by activity id if the token has no event.
    pub(crate) fn activity(&self) -> ActivityRef {
        if self.task.scheduled_event_id.0 == 0 {
            ActivityRef::Id(self.activity_id.clone())
        } else {
            ActivityRef::Task(self.task)
        }
    }
}

pub(crate) fn task_token(token: &TaskToken) -> Bytes {
    token.encode_to_vec().into()
}

pub(crate) fn parse_task_token(namespace_id: NamespaceId, token: &Bytes) -> Result<ParsedToken, ServiceError> {
    let invalid = || ServiceError::InvalidArgument("Error deserializing task token".into());
    let token = TaskToken::decode(token.clone()).map_err(|_| invalid())?;
    if token.workflow_id.is_empty() {
        return Err(ServiceError::InvalidArgument("WorkflowId is not set on request.".into()));
    }
    if Uuid::parse_str(&token.namespace_id).ok() != Some(namespace_id.0) {
        let message = "Operation requested with a token from a different namespace.";
        return Err(ServiceError::InvalidArgument(message.into()));
    }
    let task = TaskRef {
        scheduled_event_id: EventId(token.scheduled_event_id),
        attempt: (token.attempt > 0).then_some(token.attempt),
        started_event_id: (token.started_event_id > 0).then_some(EventId(token.started_event_id)),
        started_at: (token.started_at > 0).then_some(Timestamp(token.started_at)),
    };
    let (workflow_id, activity_id) = (Arc::from(token.workflow_id), token.activity_id);
    Ok(ParsedToken { namespace_id, workflow_id, run_id: run_id(&token.run_id)?, task, activity_id })
}

pub(crate) fn page_token(token: &HistoryPageToken) -> Bytes {
    token.encode_to_vec().into()
}

/// A page token that belongs to this run; tokens of other runs and namespaces are refused.
pub(crate) fn parse_page_token(
    namespace_id: NamespaceId,
    execution: (&str, Option<RunId>),
    token: &Bytes,
) -> Result<(HistoryPageToken, ExecutionKey), ServiceError> {
    let invalid = || ServiceError::InvalidArgument("Invalid NextPageToken.".into());
    let token = HistoryPageToken::decode(token.clone()).map_err(|_| invalid())?;
    let is_ours = Uuid::parse_str(&token.namespace_id).ok() == Some(namespace_id.0) && token.workflow_id == execution.0;
    let run_id = run_id(&token.run_id).ok().flatten().filter(|_| is_ours).ok_or_else(invalid)?;
    if token.next_event_id < 1 || token.end_event_id < token.next_event_id {
        return Err(invalid());
    }
    if execution.1.is_some_and(|asked| asked != run_id) {
        let message = "RunId in the request does not match the NextPageToken.";
        return Err(ServiceError::InvalidArgument(message.into()));
    }
    let workflow_id = Arc::from(token.workflow_id.as_str());
    Ok((token, ExecutionKey { namespace_id, workflow_id, run_id }))
}

/// Empty is "the current one".
pub(crate) fn run_id(text: &str) -> Result<Option<RunId>, ServiceError> {
    if text.is_empty() {
        return Ok(None);
    }
    let uuid = Uuid::parse_str(text).map_err(|_| ServiceError::InvalidArgument("Invalid RunId.".into()))?;
    Ok(Some(RunId(uuid)))
}

#[cfg(test)]
mod tests;
