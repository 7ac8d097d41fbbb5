//! Reading a run's history.

use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::history::History;
use proto::temporal::api::enums::v1::HistoryEventFilterType;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, ClientKind, Deadline, patiently};
use super::long_calls::LongCall;
use super::validate;

/// Margin before the caller's deadline at which a long poll returns empty.
const TAIL_ROOM: Duration = Duration::from_secs(1);

pub(super) async fn get(
    frontend: &Frontend,
    call: Call<public::GetWorkflowExecutionHistoryRequest>,
) -> Result<public::GetWorkflowExecutionHistoryResponse, ServiceError> {
    let mut checked = call.request;
    let namespace = frontend.enter(&checked.namespace).await?;
    let calls = checked.wait_new_event.then_some(&frontend.long_calls);
    let _place = calls.map(|calls| calls.enter(namespace.id, LongCall::GetWorkflowExecutionHistory)).transpose()?;
    validate::execution(checked.execution.as_ref())?;
    validate::history_page(&mut checked.maximum_page_size);
    if checked.history_event_filter_type() == HistoryEventFilterType::Unspecified {
        checked.set_history_event_filter_type(HistoryEventFilterType::AllEvent);
    }
    let (waits, nothing_yet) = (checked.wait_new_event, nothing_yet(&checked));
    let ask = request::GetWorkflowExecutionHistoryRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
        // A person must not see events that may never be written.
        shows_unwritten: call.client.kind == ClientKind::Program,
        follows_next_run: call.client.follows_next_run,
    };
    let read = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.get_workflow_execution_history(ask.clone()).await
    });
    if !waits {
        return read.await;
    }
    tokio::select! {
        biased;
        answer = read => answer,
        () = almost(call.deadline), if nothing_yet.is_some() => Ok(nothing_yet.unwrap_or_default()),
        () = frontend.polls.closed() => {
            nothing_yet.ok_or_else(|| ServiceError::Unavailable("the node is shutting down".into()))
        }
    }
}

pub(super) async fn get_reverse(
    frontend: &Frontend,
    call: Call<public::GetWorkflowExecutionHistoryReverseRequest>,
) -> Result<public::GetWorkflowExecutionHistoryReverseResponse, ServiceError> {
    let mut checked = call.request;
    let namespace = frontend.enter(&checked.namespace).await?;
    validate::execution(checked.execution.as_ref())?;
    validate::history_page(&mut checked.maximum_page_size);
    let ask = request::GetWorkflowExecutionHistoryReverseRequest {
        namespace_id: namespace.id.to_string(),
        request: Some(checked),
    };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.get_workflow_execution_history_reverse(ask.clone()).await
    })
    .await
}

/// Response of a long poll without new events: the caller continues from the same page token. Without a token there is
/// always something to return.
fn nothing_yet(
    request: &public::GetWorkflowExecutionHistoryRequest,
) -> Option<public::GetWorkflowExecutionHistoryResponse> {
    (request.wait_new_event && !request.next_page_token.is_empty()).then(|| {
        public::GetWorkflowExecutionHistoryResponse {
            history: Some(History::default()),
            next_page_token: request.next_page_token.clone(),
            ..public::GetWorkflowExecutionHistoryResponse::default()
        }
    })
}

/// Waits until `TAIL_ROOM` before the deadline; never returns without one.
async fn almost(deadline: Deadline) {
    match deadline.remaining() {
        Some(left) => tokio::time::sleep(left.saturating_sub(TAIL_ROOM)).await,
        None => std::future::pending().await,
    }
}
