//! Task tokens, which workers return with their responses.

use cluster::errors::ServiceError;
use prost::Message as _;
use prost::bytes::Bytes;
use proto::everrow::history::TaskToken;
use proto::everrow::matching::QueryTaskToken;
use uuid::Uuid;
use workflow::NamespaceId;

use super::{identity, invalid, proper_run_id, run_id};

/// A task token that names a namespace, a workflow, and a task of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckedToken {
    pub(crate) namespace_id: NamespaceId,
    pub(crate) token: TaskToken,
    pub(crate) origin: Origin,
}

/// Which server made a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Ours,
    /// Made by another server of the same API, or by hand: no task of ours has it.
    Foreign,
}

/// The fields that the reference's tokens share with ours: those of the run. The others differ.
#[derive(Clone, PartialEq, prost::Message)]
struct ForeignToken {
    #[prost(string, tag = "1")]
    namespace_id: String,
    #[prost(string, tag = "2")]
    workflow_id: String,
    #[prost(string, tag = "3")]
    run_id: String,
}

/// Decodes a token. Clients can forge one, so its content is looked up before it is trusted.
pub(crate) fn decode(bytes: &[u8]) -> Result<CheckedToken, ServiceError> {
    if bytes.is_empty() {
        return Err(invalid("Task token not set on request."));
    }
    let (token, origin) = match TaskToken::decode(bytes) {
        Ok(token) => (token, Origin::Ours),
        Err(_) => (foreign(bytes)?, Origin::Foreign),
    };
    if token.namespace_id.is_empty() {
        return Err(invalid("Namespace not set on request."));
    }
    let not_found = || ServiceError::NamespaceNotFound { namespace: token.namespace_id.clone() };
    let namespace_id = Uuid::try_parse(&token.namespace_id).map(NamespaceId).map_err(|_| not_found())?;
    if token.workflow_id.is_empty() {
        return Err(invalid("WorkflowId is not set on request."));
    }
    run_id(&token.run_id)?;
    Ok(CheckedToken { namespace_id, token, origin })
}

fn foreign(bytes: &[u8]) -> Result<TaskToken, ServiceError> {
    let token = ForeignToken::decode(bytes).ok();
    let names_a_run =
        |token: &ForeignToken| Uuid::try_parse(&token.namespace_id).is_ok() && !token.workflow_id.is_empty();
    let ForeignToken { namespace_id, workflow_id, run_id } =
        token.filter(names_a_run).ok_or_else(|| invalid("Error deserializing task token."))?;
    Ok(TaskToken { namespace_id, workflow_id, run_id, ..TaskToken::default() })
}

/// Decodes a query's token. Clients can forge one, but a query is found only by its random id.
pub(crate) fn decode_query(bytes: &[u8]) -> Result<QueryTaskToken, ServiceError> {
    if bytes.is_empty() {
        return Err(invalid("Task token not set on request."));
    }
    let token = QueryTaskToken::decode(bytes).map_err(|_| invalid("Error deserializing task token."))?;
    if token.task_queue.is_empty() || token.task_id.is_empty() {
        return Err(invalid("Invalid TaskToken."));
    }
    Ok(token)
}

/// The activity of a call by id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivityById<'a> {
    pub(crate) namespace_id: NamespaceId,
    pub(crate) workflow_id: &'a str,
    pub(crate) run_id: &'a str,
    pub(crate) activity_id: &'a str,
    pub(crate) identity: &'a str,
}

/// The token of a call by id: it names the activity, but no attempt.
pub(crate) fn by_id(call: ActivityById<'_>) -> Result<Bytes, ServiceError> {
    if call.activity_id.is_empty() {
        return Err(invalid("ActivityId is not set on request."));
    }
    identity(call.identity)?;
    if call.workflow_id.is_empty() {
        // A standalone activity: none exists.
        return Err(ServiceError::NotFound(format!("activity not found for ID: {}", call.activity_id)));
    }
    proper_run_id(call.run_id)?;
    let token = TaskToken {
        namespace_id: call.namespace_id.to_string(),
        workflow_id: call.workflow_id.into(),
        run_id: call.run_id.into(),
        activity_id: call.activity_id.into(),
        ..TaskToken::default()
    };
    Ok(token.encode_to_vec().into())
}
