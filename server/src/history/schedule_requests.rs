//! Schedule requests of peers: converts a request to an input of a schedule, and a schedule to a response.

use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::history as request;
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use scheduler::decide::{Closed, Input, Update};
use scheduler::schedule::{Created, Key, Schedule};
use tracing::debug;
use workflow::{NamespaceId, RunId, Timestamp};

use super::queues::schedule::run_actions;
use super::service::{Service, namespace_id};

/// How long a describe waits for decided actions. A start takes a few commits; one that cannot be done yet is shown as
/// not done.
const ACTIONS_WAIT_MAX: Duration = Duration::from_secs(1);
/// Bytes of a conflict token. A shorter one counts as none.
const TOKEN_BYTES: usize = 8;

impl Service {
    pub async fn create_schedule(
        &self,
        request: request::CreateScheduleRequest,
    ) -> Result<public::CreateScheduleResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let schedule_id: Arc<str> = request.schedule_id.into();
        let shard = self.ownership.shard(namespace_id, &schedule_id).await?;
        let listed_in = shard.segments.current(namespace_id, shard.env.now());
        // Not a `new_run_id`, which encodes the start time: the creation time is decided later.
        let run_id = RunId(shard.env.new_uuid());
        let created = Created {
            key: Key { namespace_id, schedule_id, run_id, listed_in },
            definition: request.schedule.unwrap_or_default(),
            memo: request.memo.unwrap_or_default(),
            search_attributes: request.search_attributes.unwrap_or_default(),
            request_id: request.request_id,
        };
        let schedule = shard.create_schedule(created, request.initial_patch).await?;
        Ok(public::CreateScheduleResponse { conflict_token: schedule.conflict_token() })
    }

    pub async fn describe_schedule(
        &self,
        request: request::DescribeScheduleRequest,
    ) -> Result<public::DescribeScheduleResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let schedule_id: Arc<str> = request.schedule_id.into();
        let shard = self.ownership.shard(namespace_id, &schedule_id).await?;
        let schedule = shard.read_schedule(namespace_id, &schedule_id).await?;
        if !schedule.has_actions() {
            return Ok(schedule.described());
        }
        // As in the reference, a describe shows the actions that were decided before it. Actions are idempotent, so
        // either this request or the schedule's timer may run them.
        let key = schedule.task_key();
        let acting = Box::pin(run_actions(&shard, &self.peers, &key));
        if let Ok(Err(error)) = tokio::time::timeout(ACTIONS_WAIT_MAX, acting).await {
            debug!(schedule = %schedule_id, %error, "schedule actions failed; describing the schedule without them");
        }
        Ok(shard.read_schedule(namespace_id, &schedule_id).await?.described())
    }

    pub async fn update_schedule(
        &self,
        request: request::UpdateScheduleRequest,
    ) -> Result<public::UpdateScheduleResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let token = request.conflict_token.first_chunk::<TOKEN_BYTES>().copied().map_or(0, i64::from_be_bytes);
        let input = Input::Update(Box::new(Update {
            definition: request.schedule.unwrap_or_default(),
            search_attributes: request.search_attributes,
            memo: request.memo,
            conflict_token: token,
            request_id: request.request_id,
        }));
        self.change_schedule(namespace_id, request.schedule_id, input).await?;
        Ok(public::UpdateScheduleResponse {})
    }

    pub async fn patch_schedule(
        &self,
        request: request::PatchScheduleRequest,
    ) -> Result<public::PatchScheduleResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let input = Input::Patch { patch: request.patch.unwrap_or_default(), request_id: request.request_id };
        self.change_schedule(namespace_id, request.schedule_id, input).await?;
        Ok(public::PatchScheduleResponse {})
    }

    pub async fn delete_schedule(
        &self,
        request: request::DeleteScheduleRequest,
    ) -> Result<public::DeleteScheduleResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        self.change_schedule(namespace_id, request.schedule_id, Input::Delete).await?;
        Ok(public::DeleteScheduleResponse {})
    }

    /// Deletes all schedules of a namespace, and returns when none is left.
    pub async fn delete_schedules(&self, namespace_id: NamespaceId) -> Result<(), ServiceError> {
        for shard in self.ownership.all().await? {
            shard.delete_schedules(namespace_id).await?;
        }
        Ok(())
    }

    pub async fn list_schedule_matching_times(
        &self,
        request: request::ListScheduleMatchingTimesRequest,
    ) -> Result<public::ListScheduleMatchingTimesResponse, ServiceError> {
        let (namespace_id, request) = (namespace_id(&request.namespace_id)?, request.request.unwrap_or_default());
        let schedule = self.read_schedule(namespace_id, request.schedule_id).await?;
        let (Some(from), Some(to)) = (request.start_time, request.end_time) else {
            return Err(not_a_query());
        };
        let invalid = |error: String| ServiceError::InvalidArgument(format!("invalid schedule: {error}"));
        let spec = schedule.spec().map_err(invalid)?;
        let times = schedule.matching_times(&spec, Timestamp::from(from), Timestamp::from(to));
        let start_time = times.map_err(|error| ServiceError::InvalidArgument(error.to_string()))?;
        Ok(public::ListScheduleMatchingTimesResponse { start_time })
    }

    pub async fn record_scheduled_run_closed(
        &self,
        request: request::RecordScheduledRunClosedRequest,
    ) -> Result<request::RecordScheduledRunClosedResponse, ServiceError> {
        let namespace_id = namespace_id(&request.namespace_id)?;
        let execution = WorkflowExecution { workflow_id: request.workflow_id, run_id: request.first_run_id };
        let closed = closed(execution, request.completion_event.unwrap_or_default())?;
        let schedule_id: Arc<str> = request.schedule_id.into();
        let shard = self.ownership.shard(namespace_id, &schedule_id).await?;
        let slot = shard.slots.schedule(namespace_id, &schedule_id);
        // Waits for actions in progress: the schedule may not have recorded this run's start yet.
        let _after_the_start = slot.acting.lock().await;
        shard.change_schedule(&slot, (namespace_id, &schedule_id), Input::RunClosed(Box::new(closed))).await?;
        Ok(request::RecordScheduledRunClosedResponse {})
    }

    async fn read_schedule(
        &self,
        namespace_id: NamespaceId,
        schedule_id: String,
    ) -> Result<Arc<Schedule>, ServiceError> {
        let schedule_id: Arc<str> = schedule_id.into();
        self.ownership.shard(namespace_id, &schedule_id).await?.read_schedule(namespace_id, &schedule_id).await
    }

    async fn change_schedule(
        &self,
        namespace_id: NamespaceId,
        schedule_id: String,
        input: Input,
    ) -> Result<Arc<Schedule>, ServiceError> {
        let schedule_id: Arc<str> = schedule_id.into();
        let shard = self.ownership.shard(namespace_id, &schedule_id).await?;
        let slot = shard.slots.schedule(namespace_id, &schedule_id);
        shard.change_schedule(&slot, (namespace_id, &schedule_id), input).await
    }
}

/// In the reference this call is a workflow query, and fails as one.
fn not_a_query() -> ServiceError {
    let message = "missing or invalid query".to_owned();
    let failure_info = Some(FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo::default()));
    let failure = Failure { message: message.clone(), source: "GoSDK".to_owned(), failure_info, ..Failure::default() };
    ServiceError::QueryFailed { message, failure: Some(Box::new(failure)) }
}

/// Converts a run's close event for its schedule.
fn closed(execution: WorkflowExecution, end: HistoryEvent) -> Result<Closed, ServiceError> {
    let ended = |status| Closed { execution: execution.clone(), status, result: None, failure: None };
    match end.attributes {
        Some(Attributes::WorkflowExecutionCompletedEventAttributes(end)) => {
            Ok(Closed { result: end.result, ..ended(WorkflowExecutionStatus::Completed) })
        }
        Some(Attributes::WorkflowExecutionFailedEventAttributes(end)) => {
            Ok(Closed { failure: end.failure, ..ended(WorkflowExecutionStatus::Failed) })
        }
        Some(Attributes::WorkflowExecutionTimedOutEventAttributes(_)) => Ok(ended(WorkflowExecutionStatus::TimedOut)),
        Some(Attributes::WorkflowExecutionCanceledEventAttributes(_)) => Ok(ended(WorkflowExecutionStatus::Canceled)),
        Some(Attributes::WorkflowExecutionTerminatedEventAttributes(_)) => {
            Ok(ended(WorkflowExecutionStatus::Terminated))
        }
        _ => Err(ServiceError::Internal(format!("{} did not end with an end", execution.workflow_id))),
    }
}
