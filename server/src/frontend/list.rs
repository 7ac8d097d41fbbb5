//! Listing and counting runs. The older calls are converted to a visibility query here.

use cluster::errors::ServiceError;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::filter::v1::StartTimeFilter;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::{
    list_closed_workflow_executions_request, list_open_workflow_executions_request,
};

use super::Frontend;
use super::call::{Call, Deadline, patiently};
use super::validate::invalid;
use crate::peers::{Among, ListPage, ListRequest};

const PAGE_MAX: i32 = 1000;
/// For archived runs.
const ARCHIVE_PAGE_MAX: i32 = 10_000;

pub(super) async fn list(
    frontend: &Frontend,
    call: Call<public::ListWorkflowExecutionsRequest>,
) -> Result<public::ListWorkflowExecutionsResponse, ServiceError> {
    let public::ListWorkflowExecutionsRequest { namespace, page_size, next_page_token, query, .. } = call.request;
    let asked = Asked { namespace, page_size, next_page_token, query };
    let ListPage { executions, next_page_token } = asked.answer(frontend, call.deadline).await?;
    Ok(public::ListWorkflowExecutionsResponse { executions, next_page_token })
}

pub(super) async fn scan(
    frontend: &Frontend,
    call: Call<public::ScanWorkflowExecutionsRequest>,
) -> Result<public::ScanWorkflowExecutionsResponse, ServiceError> {
    let public::ScanWorkflowExecutionsRequest { namespace, page_size, next_page_token, query, .. } = call.request;
    let asked = Asked { namespace, page_size, next_page_token, query };
    let ListPage { executions, next_page_token } = asked.answer(frontend, call.deadline).await?;
    Ok(public::ScanWorkflowExecutionsResponse { executions, next_page_token })
}

pub(super) async fn open(
    frontend: &Frontend,
    call: Call<public::ListOpenWorkflowExecutionsRequest>,
) -> Result<public::ListOpenWorkflowExecutionsResponse, ServiceError> {
    use list_open_workflow_executions_request::Filters;
    let request = call.request;
    let mut terms = vec!["ExecutionStatus = 'Running'".to_owned()];
    terms.extend(span("StartTime", request.start_time_filter)?);
    terms.extend(request.filters.map(|filter| match filter {
        Filters::ExecutionFilter(execution) => equals("WorkflowId", &execution.workflow_id),
        Filters::TypeFilter(workflow_type) => equals("WorkflowType", &workflow_type.name),
    }));
    let asked = Asked {
        namespace: request.namespace,
        page_size: request.maximum_page_size,
        next_page_token: request.next_page_token,
        query: terms.join(" AND "),
    };
    let ListPage { executions, next_page_token } = asked.answer(frontend, call.deadline).await?;
    Ok(public::ListOpenWorkflowExecutionsResponse { executions, next_page_token })
}

pub(super) async fn closed(
    frontend: &Frontend,
    call: Call<public::ListClosedWorkflowExecutionsRequest>,
) -> Result<public::ListClosedWorkflowExecutionsResponse, ServiceError> {
    use list_closed_workflow_executions_request::Filters;
    let request = call.request;
    let mut terms = vec!["ExecutionStatus != 'Running'".to_owned()];
    terms.extend(span("CloseTime", request.start_time_filter)?);
    terms.extend(match request.filters {
        None => None,
        Some(Filters::ExecutionFilter(execution)) => Some(equals("WorkflowId", &execution.workflow_id)),
        Some(Filters::TypeFilter(workflow_type)) => Some(equals("WorkflowType", &workflow_type.name)),
        Some(Filters::StatusFilter(filter)) => Some(equals("ExecutionStatus", &status_name(filter.status)?)),
    });
    let asked = Asked {
        namespace: request.namespace,
        page_size: request.maximum_page_size,
        next_page_token: request.next_page_token,
        query: terms.join(" AND "),
    };
    let ListPage { executions, next_page_token } = asked.answer(frontend, call.deadline).await?;
    Ok(public::ListClosedWorkflowExecutionsResponse { executions, next_page_token })
}

/// There is no archive.
pub(super) async fn archived(
    frontend: &Frontend,
    call: Call<public::ListArchivedWorkflowExecutionsRequest>,
) -> Result<public::ListArchivedWorkflowExecutionsResponse, ServiceError> {
    frontend.enter(&call.request.namespace).await?;
    if call.request.page_size > ARCHIVE_PAGE_MAX {
        return Err(invalid(format!("PageSize is larger than allowed {ARCHIVE_PAGE_MAX}.")));
    }
    Err(invalid("Cluster is not configured for visibility archival."))
}

pub(super) async fn count(
    frontend: &Frontend,
    call: Call<public::CountWorkflowExecutionsRequest>,
) -> Result<public::CountWorkflowExecutionsResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    patiently(&frontend.env, call.deadline, || async {
        let visibility = frontend.peers.visibility()?;
        visibility.count(namespace.id, &namespace.custom_attributes, Among::Runs, &call.request.query).await
    })
    .await
}

/// Parameters of all list calls.
struct Asked {
    namespace: String,
    page_size: i32,
    next_page_token: bytes::Bytes,
    query: String,
}

impl Asked {
    async fn answer(self, frontend: &Frontend, deadline: Deadline) -> Result<ListPage, ServiceError> {
        let namespace = frontend.enter(&self.namespace).await?;
        let page_size = if self.page_size <= 0 { PAGE_MAX } else { self.page_size.min(PAGE_MAX) };
        let request = ListRequest {
            namespace_id: namespace.id,
            custom: namespace.custom_attributes.clone(),
            among: Among::Runs,
            query: self.query,
            page_size: usize::try_from(page_size).expect("it is positive"),
            token: self.next_page_token,
        };
        patiently(&frontend.env, deadline, || async { frontend.peers.visibility()?.list(request.clone()).await }).await
    }
}

/// The status as queries spell it. An unknown number is left for the query parser to refuse.
fn status_name(number: i32) -> Result<String, ServiceError> {
    let status = WorkflowExecutionStatus::try_from(number);
    if matches!(status, Ok(WorkflowExecutionStatus::Unspecified | WorkflowExecutionStatus::Running)) {
        return Err(invalid("StatusFilter must be specified and must be not Running."));
    }
    Ok(status.map_or_else(|_| number.to_string(), |status| status.as_str_name().to_owned()))
}

fn equals(name: &str, value: &str) -> String {
    format!("{name} = '{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn span(name: &str, filter: Option<StartTimeFilter>) -> Result<Option<String>, ServiceError> {
    let filter = filter.unwrap_or_default();
    match (filter.earliest_time, filter.latest_time) {
        (Some(from), Some(to)) if (from.seconds, from.nanos) > (to.seconds, to.nanos) => {
            Err(invalid("EarliestTime in StartTimeFilter should not be larger than LatestTime."))
        }
        (Some(from), Some(to)) => Ok(Some(format!("{name} BETWEEN '{from}' AND '{to}'"))),
        (Some(from), None) => Ok(Some(format!("{name} >= '{from}'"))),
        (None, Some(to)) => Ok(Some(format!("{name} <= '{to}'"))),
        (None, None) => Ok(None),
    }
}
