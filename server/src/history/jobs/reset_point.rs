//! The reset point of a batch: an event in the history of the run, or of an earlier run.

use bytes::Bytes;
use cluster::errors::ServiceError;
use cluster::namespaces::Namespace;
use proto::everrow::history as request;
use proto::temporal::api::batch::v1::BatchOperationReset;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::common::v1::reset_options::Target;
use proto::temporal::api::enums::v1::{EventType, HistoryEventFilterType, ResetType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::Timestamp;

use crate::peers::HistoryService;

/// Events per read.
const PAGE: i32 = 256;

pub(super) struct Request<'a> {
    pub(super) history: &'a HistoryService,
    pub(super) namespace: &'a Namespace,
    pub(super) now: Timestamp,
}

/// Events and the page token of the next ones.
type Page = (Vec<HistoryEvent>, Bytes);

impl Request<'_> {
    /// The run to reset, and the event to reset it to.
    pub(super) async fn find(
        &self,
        reset: &BatchOperationReset,
        execution: WorkflowExecution,
    ) -> Result<(WorkflowExecution, i64), ServiceError> {
        let by_type = match reset.reset_type() {
            ResetType::FirstWorkflowTask => Some(Target::FirstWorkflowTask(())),
            ResetType::LastWorkflowTask => Some(Target::LastWorkflowTask(())),
            ResetType::Unspecified => None,
        };
        let (target, current_run_only) = match &reset.options {
            Some(options) => (options.target.clone(), options.current_run_only),
            None => (by_type, false),
        };
        match target {
            Some(Target::FirstWorkflowTask(())) => Ok((execution.clone(), self.first(&execution).await?)),
            Some(Target::LastWorkflowTask(())) => Ok((execution.clone(), self.last(&execution).await?)),
            Some(Target::WorkflowTaskId(event_id)) => Ok((execution, event_id)),
            Some(Target::BuildId(build_id)) => self.of_build(execution, &build_id, current_run_only).await,
            None => Err(ServiceError::InvalidArgument("provided reset target is not supported.".into())),
        }
    }

    /// The completion of the first workflow task; without one, the event after its scheduling.
    async fn first(&self, execution: &WorkflowExecution) -> Result<i64, ServiceError> {
        let mut scheduled = None;
        let mut token = Bytes::new();
        loop {
            let (events, next) = self.forth(execution, token).await?;
            for event in events {
                if event.event_type() == EventType::WorkflowTaskCompleted {
                    return Ok(event.event_id);
                }
                if event.event_type() == EventType::WorkflowTaskScheduled && scheduled.is_none() {
                    scheduled = Some(event.event_id + 1);
                }
            }
            if next.is_empty() {
                return scheduled.ok_or_else(no_task);
            }
            token = next;
        }
    }

    /// The last workflow task's completion; without one, the event after the first scheduling.
    async fn last(&self, execution: &WorkflowExecution) -> Result<i64, ServiceError> {
        let mut scheduled = None;
        let mut token = Bytes::new();
        loop {
            let (events, next) = self.back(execution, token).await?;
            for event in events {
                if event.event_type() == EventType::WorkflowTaskCompleted {
                    return Ok(event.event_id);
                }
                if event.event_type() == EventType::WorkflowTaskScheduled {
                    scheduled = Some(event.event_id + 1);
                }
            }
            if next.is_empty() {
                return scheduled.ok_or_else(no_task);
            }
            token = next;
        }
    }

    /// The first workflow task that a build completed, possibly in an earlier run.
    async fn of_build(
        &self,
        execution: WorkflowExecution,
        build_id: &str,
        current_run_only: bool,
    ) -> Result<(WorkflowExecution, i64), ServiceError> {
        let (namespace, run) = (self.namespace.name.clone(), Some(execution.clone()));
        let request = Some(public::DescribeWorkflowExecutionRequest { namespace, execution: run });
        let ask = request::DescribeWorkflowExecutionRequest { namespace_id: self.namespace_id(), request };
        let described = self.history.describe_workflow_execution(ask).await?.workflow_execution_info;
        let points = described.and_then(|info| info.auto_reset_points).unwrap_or_default().points;
        let refused = |why: &str| Err(ServiceError::FailedPrecondition(format!("Reset point for {build_id} {why}")));
        let Some(point) = points.into_iter().find(|point| point.build_id == build_id) else {
            return Err(ServiceError::FailedPrecondition(format!("Can't find reset point for {build_id}")));
        };
        if !point.resettable {
            return refused("is not resettable");
        }
        if point.expire_time.is_some_and(|at| Timestamp::from(at) < self.now) {
            return refused("is expired");
        }
        if point.run_id != execution.run_id && current_run_only {
            return refused("points to previous run and CurrentRunOnly is set");
        }
        let event_id = point.first_workflow_task_completed_id;
        Ok((WorkflowExecution { run_id: point.run_id, ..execution }, event_id))
    }

    async fn forth(&self, execution: &WorkflowExecution, token: Bytes) -> Result<Page, ServiceError> {
        let request = public::GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace.name.clone(),
            execution: Some(execution.clone()),
            maximum_page_size: PAGE,
            next_page_token: token,
            history_event_filter_type: HistoryEventFilterType::AllEvent.into(),
            ..Default::default()
        };
        let (namespace_id, request) = (self.namespace_id(), Some(request));
        let (shows_unwritten, follows_next_run) = (false, true);
        let ask =
            request::GetWorkflowExecutionHistoryRequest { namespace_id, request, shows_unwritten, follows_next_run };
        let page = self.history.get_workflow_execution_history(ask).await?;
        let mut history = page.history.unwrap_or_default();
        history.encoded.extend(page.raw_history.into_iter().map(|blob| blob.data));
        let events = history.into_events().map_err(|error| ServiceError::DataLoss(error.to_string()))?;
        Ok((events, page.next_page_token))
    }

    async fn back(&self, execution: &WorkflowExecution, token: Bytes) -> Result<Page, ServiceError> {
        let request = public::GetWorkflowExecutionHistoryReverseRequest {
            namespace: self.namespace.name.clone(),
            execution: Some(execution.clone()),
            maximum_page_size: PAGE,
            next_page_token: token,
        };
        let (namespace_id, request) = (self.namespace_id(), Some(request));
        let ask = request::GetWorkflowExecutionHistoryReverseRequest { namespace_id, request };
        let page = self.history.get_workflow_execution_history_reverse(ask).await?;
        let events = page.history.unwrap_or_default().into_events();
        Ok((events.map_err(|error| ServiceError::DataLoss(error.to_string()))?, page.next_page_token))
    }

    fn namespace_id(&self) -> String {
        self.namespace.id.to_string()
    }
}

fn no_task() -> ServiceError {
    ServiceError::FailedPrecondition("unable to find any scheduled or completed task".into())
}
