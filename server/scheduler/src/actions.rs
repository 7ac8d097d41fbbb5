//! Requests of a schedule to history: start, cancel and terminate a run. All are idempotent.

use cluster::search_attributes::attribute::{Attribute, SCHEDULED_BY_ID, SCHEDULED_START_TIME};
use cluster::search_attributes::payload;
use persistence::stores::visibility::value::{Value, ValueType};
use proto::everrow::history as request;
use proto::temporal::api::common::v1::{SearchAttributes, WorkflowExecution};
use proto::temporal::api::enums::v1::{ScheduleOverlapPolicy, WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::Timestamp;

use super::schedule::{Carried, Schedule, Start, Stop};

const CANCEL_REASON: &str = "cancelled by schedule overlap policy";
const TERMINATE_REASON: &str = "terminated by schedule overlap policy";

impl Schedule {
    fn start_workflow(&self) -> Option<&NewWorkflowExecutionInfo> {
        let Action::StartWorkflow(start) = self.definition.action.as_ref()?.action.as_ref()?;
        Some(start)
    }

    /// The run's workflow id, unique per second: times of a schedule are at least one second apart.
    pub fn workflow_id(&self, start: &Start) -> String {
        let own = self.start_workflow().map_or("", |action| &action.workflow_id);
        if self.policies().keep_original_workflow_id {
            return own.to_owned();
        }
        format!("{own}-{}", prost_types::Timestamp::from(nominal_second(start)))
    }

    /// The start request to history; `None` if the schedule has no action.
    pub fn start_request(&self, start: &Start, namespace: &str) -> Option<request::StartWorkflowExecutionRequest> {
        let action = self.start_workflow()?.clone();
        // Overlapping runs do not carry results over to each other.
        let is_beside = self.overlap_policy(start.overlap_policy) == ScheduleOverlapPolicy::AllowAll;
        let carried = if is_beside { Carried::default() } else { self.carried.clone() };
        let may_come_again = start.is_manual || self.policies().keep_original_workflow_id;
        let reuse =
            if may_come_again { WorkflowIdReusePolicy::AllowDuplicate } else { WorkflowIdReusePolicy::RejectDuplicate };
        Some(request::StartWorkflowExecutionRequest {
            namespace_id: self.key.namespace_id.to_string(),
            request: Some(public::StartWorkflowExecutionRequest {
                namespace: namespace.to_owned(),
                workflow_id: self.workflow_id(start),
                workflow_type: action.workflow_type,
                task_queue: action.task_queue,
                input: action.input,
                workflow_execution_timeout: action.workflow_execution_timeout,
                workflow_run_timeout: action.workflow_run_timeout,
                workflow_task_timeout: action.workflow_task_timeout,
                identity: self.identity(namespace),
                request_id: format!("{}-{}", self.key.run_id, start.id),
                workflow_id_reuse_policy: reuse.into(),
                workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
                retry_policy: action.retry_policy.map(workflow::retry_policy_with_defaults),
                memo: action.memo,
                search_attributes: Some(self.with_origin(action.search_attributes, start)),
                header: action.header,
                continued_failure: carried.continued_failure,
                last_completion_result: carried.last_completion_result,
                user_metadata: action.user_metadata,
                priority: action.priority,
                ..Default::default()
            }),
            parent: None,
            schedule_id: self.key.schedule_id.to_string(),
        })
    }

    pub fn cancel_request(
        &self,
        execution: &WorkflowExecution,
        namespace: &str,
    ) -> request::RequestCancelWorkflowExecutionRequest {
        request::RequestCancelWorkflowExecutionRequest {
            namespace_id: self.key.namespace_id.to_string(),
            request: Some(public::RequestCancelWorkflowExecutionRequest {
                namespace: namespace.to_owned(),
                workflow_execution: Some(newest_of(execution)),
                identity: self.identity(namespace),
                request_id: format!("{}-{:?}-{}", self.key.run_id, Stop::Cancel, execution.run_id),
                first_execution_run_id: execution.run_id.clone(),
                reason: CANCEL_REASON.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    pub fn terminate_request(
        &self,
        execution: &WorkflowExecution,
        namespace: &str,
    ) -> request::TerminateWorkflowExecutionRequest {
        request::TerminateWorkflowExecutionRequest {
            namespace_id: self.key.namespace_id.to_string(),
            request: Some(public::TerminateWorkflowExecutionRequest {
                namespace: namespace.to_owned(),
                workflow_execution: Some(newest_of(execution)),
                reason: TERMINATE_REASON.to_owned(),
                identity: self.identity(namespace),
                first_execution_run_id: execution.run_id.clone(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn identity(&self, namespace: &str) -> String {
        format!("temporal-scheduler-{namespace}-{}", self.key.schedule_id)
    }

    /// The run's search attributes, plus the schedule's id and the nominal time.
    fn with_origin(&self, attributes: Option<SearchAttributes>, start: &Start) -> SearchAttributes {
        let mut attributes = attributes.unwrap_or_default();
        let origin = [
            (SCHEDULED_START_TIME, ValueType::Datetime, Value::Datetime(nominal_second(start))),
            (SCHEDULED_BY_ID, ValueType::Keyword, Value::Keyword(self.key.schedule_id.to_string())),
        ];
        for (name, value_type, value) in origin {
            let attribute = Attribute::Indexed { name: name.to_owned(), value_type };
            attributes.indexed_fields.insert(name.to_owned(), payload::encode(&attribute, &value));
        }
        attributes
    }
}

fn nominal_second(start: &Start) -> Timestamp {
    const NANOS_PER_SECOND: i64 = 1_000_000_000;
    Timestamp(start.nominal_at.0.div_euclid(NANOS_PER_SECOND) * NANOS_PER_SECOND)
}

/// The newest run of the chain that the schedule started.
fn newest_of(execution: &WorkflowExecution) -> WorkflowExecution {
    WorkflowExecution { workflow_id: execution.workflow_id.clone(), run_id: String::new() }
}
