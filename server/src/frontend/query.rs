//! Queries of a run, and workers' responses to them.

use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::{history, matching};
use proto::temporal::api::enums::v1::{QueryRejectCondition, QueryResultType};
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, Deadline, patiently};
use super::long_calls::LongCall;
use super::validate::{self, invalid, sizes, token};

/// Longest query timeout, whatever the caller's deadline.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// Margin before the caller's deadline, so that it gets our error and not a timeout.
const TAIL_ROOM: Duration = Duration::from_millis(100);

pub(super) async fn query(
    frontend: &Frontend,
    call: Call<public::QueryWorkflowRequest>,
) -> Result<public::QueryWorkflowResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let _place = frontend.long_calls.enter(namespace.id, LongCall::QueryWorkflow)?;
    let checked = checked(call.request)?;
    let queried = patiently(&frontend.env, call.deadline, || async {
        let ask = history::QueryWorkflowRequest {
            namespace_id: namespace.id.to_string(),
            request: Some(checked.clone()),
            timeout: timeout(call.deadline).try_into().ok(),
        };
        frontend.peers.history()?.query_workflow(ask).await
    });
    frontend.unless_closing(queried).await
}

pub(super) async fn respond(
    frontend: &Frontend,
    call: Call<public::RespondQueryTaskCompletedRequest>,
) -> Result<public::RespondQueryTaskCompletedResponse, ServiceError> {
    let mut checked = call.request;
    let token = token::decode_query(&checked.task_token)?;
    let namespace = frontend.enter_by_id(&checked.namespace, &token.namespace_id).await?;
    if let Err(error) = sizes::blob(checked.query_result.as_ref()) {
        checked = public::RespondQueryTaskCompletedRequest {
            completed_type: QueryResultType::Failed.into(),
            error_message: error.to_string(),
            ..public::RespondQueryTaskCompletedRequest::default()
        };
    }
    let ask = matching::RespondQueryTaskCompletedRequest {
        namespace_id: namespace.id.to_string(),
        token: Some(token),
        request: Some(checked),
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.matching()?.respond_query_task_completed(ask.clone()).await
    })
    .await
}

fn checked(mut request: public::QueryWorkflowRequest) -> Result<public::QueryWorkflowRequest, ServiceError> {
    validate::execution(request.execution.as_ref())?;
    let query = request.query.as_ref().ok_or_else(|| invalid("WorkflowQuery is not set on request."))?;
    if query.query_type.is_empty() {
        return Err(invalid("QueryType is not set on request."));
    }
    sizes::blob(query.query_args.as_ref())?;
    if request.query_reject_condition() == QueryRejectCondition::Unspecified {
        request.set_query_reject_condition(QueryRejectCondition::None);
    }
    Ok(request)
}

fn timeout(deadline: Deadline) -> Duration {
    deadline.remaining().map_or(TIMEOUT_MAX, |left| left.saturating_sub(TAIL_ROOM).min(TIMEOUT_MAX))
}
