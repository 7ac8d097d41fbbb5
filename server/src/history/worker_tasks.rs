//! Workers' operations on tasks: start, complete, fail, heartbeat. Requests in, `Input` to the run, responses out.

use cluster::errors::ServiceError;
use prost_types::Timestamp as ProtoTimestamp;
use proto::everrow::history as request;
use proto::everrow::history::TaskToken;
use proto::temporal::api::common::v1::{
    ActivityType, Header, Payloads, WorkerVersionCapabilities, WorkerVersionStamp, WorkflowExecution, WorkflowType,
};
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{
    ActivityStarted, CancelActivity, CompleteActivity, CompleteWorkflowTask, EventId, ExecutionKey, FailActivity,
    FailWorkflowTask, Heartbeat, Input, Reply, StartActivity, StartWorkflowTask, Sticky, WorkflowTask,
    WorkflowTaskStarted,
};

use super::describe::{normal_queue, proto_duration};
use super::query_buffer::TaskAttempt;
use super::service::span;
use super::shard::Shard;
use super::token;
use super::transact::TransactError;

/// The version of a polling worker, if it sends a build id.
fn version_of(capabilities: Option<WorkerVersionCapabilities>) -> Option<WorkerVersionStamp> {
    let capabilities = capabilities.filter(|capabilities| !capabilities.build_id.is_empty())?;
    Some(WorkerVersionStamp { build_id: capabilities.build_id, use_versioning: capabilities.use_versioning })
}

/// Request id of a workflow task that is returned with the completion of the one before, without a poll.
const REQUEST_OF_COMPLETION: &str = "request-from-RespondWorkflowTaskCompleted";

impl Shard {
    pub(crate) async fn start_workflow_task(
        &self,
        key: &ExecutionKey,
        request: request::RecordWorkflowTaskStartedRequest,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        let poll = request.poll_request.unwrap_or_default();
        let input = StartWorkflowTask {
            scheduled_event_id: EventId(request.scheduled_event_id),
            request_id: request.request_id,
            identity: poll.identity,
            task_queue: poll.task_queue.unwrap_or_default().name,
            updates: Vec::new(),
            #[expect(deprecated, reason = "older workers still send their version this way")]
            worker_version: version_of(poll.worker_version_capabilities),
        };
        let reply = self.transact(key, Input::StartWorkflowTask(input)).await?;
        if matches!(reply, Reply::WorkflowTaskWithdrawn) {
            return Err(ServiceError::NotFound("No messages for speculative workflow task.".into()));
        }
        let Reply::WorkflowTaskStarted(task) = reply else { return Err(unexpected(key)) };
        self.workflow_task(key, *task).await
    }

    /// The task as the worker gets it, with the history it lacks.
    pub(crate) async fn workflow_task(
        &self,
        key: &ExecutionKey,
        task: WorkflowTaskStarted,
    ) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
        let state = self.read(key).await?;
        let from = if task.is_sticky { EventId(task.previous_started_event_id).next() } else { EventId::FIRST };
        let (history, next_page_token) =
            self.task_history(&state, (from, task.next_event_id), task.transient_events).await?;
        let execution = execution_of(key);
        let token = TaskToken {
            namespace_id: key.namespace_id.to_string(),
            workflow_id: execution.workflow_id.clone(),
            run_id: execution.run_id.clone(),
            scheduled_event_id: task.scheduled_event_id.0,
            started_event_id: task.started_event_id.0,
            attempt: task.attempt,
            started_at: task.started_at.0,
            ..Default::default()
        };
        Ok(public::PollWorkflowTaskQueueResponse {
            task_token: token::task_token(&token),
            workflow_execution: Some(execution),
            workflow_type: Some(WorkflowType { name: task.workflow_type }),
            previous_started_event_id: task.previous_started_event_id,
            started_event_id: task.started_event_id.0,
            attempt: task.attempt,
            history: Some(history),
            next_page_token,
            workflow_execution_task_queue: Some(normal_queue(&task.task_queue)),
            scheduled_time: Some(task.scheduled_at.into()),
            started_time: Some(task.started_at.into()),
            queries: self
                .slots
                .run(key)
                .queries
                .carried_by(TaskAttempt { scheduled_event_id: task.scheduled_event_id, attempt: task.attempt }),
            messages: task.messages,
            ..Default::default()
        })
    }

    /// The first workflow task, if this request started the run with it and it is still running.
    pub(crate) async fn eager_task(
        &self,
        key: &ExecutionKey,
        start: &workflow::Start,
    ) -> Result<Option<Box<WorkflowTaskStarted>>, ServiceError> {
        let state = self.read(key).await?;
        let WorkflowTask::Running(scheduled, running) = &state.workflow_task else { return Ok(None) };
        if !start.is_eager || scheduled.is_transient() || running.request_id != start.request_id {
            return Ok(None);
        }
        // Idempotent, like a repeated poll: the same request id gets the same task.
        let input = StartWorkflowTask {
            scheduled_event_id: scheduled.event_id,
            request_id: start.request_id.clone(),
            identity: start.identity.clone(),
            task_queue: start.task_queue.clone(),
            updates: Vec::new(),
            worker_version: None,
        };
        match self.transact(key, Input::StartWorkflowTask(input)).await {
            Ok(Reply::WorkflowTaskStarted(task)) => Ok(Some(task)),
            Err(TransactError::Rejected(_)) => Ok(None),
            Ok(_) => Err(unexpected(key)),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn complete_workflow_task(
        &self,
        key: &ExecutionKey,
        task: workflow::TaskRef,
        mut request: public::RespondWorkflowTaskCompletedRequest,
    ) -> Result<public::RespondWorkflowTaskCompletedResponse, ServiceError> {
        let namespaces = self.known_namespaces(key.namespace_id, &request.commands).await?;
        let refused_search_attributes = self.admit_search_attributes(key.namespace_id, &mut request.commands).await?;
        #[expect(deprecated, reason = "older workers still send their version this way")]
        let binary_checksum = request.binary_checksum;
        let is_bad_binary = !binary_checksum.is_empty() && {
            let namespace = self.namespaces.by_id(key.namespace_id).await?;
            namespace.check_binary(&binary_checksum).is_err()
        };
        let input = CompleteWorkflowTask {
            task,
            commands: request.commands,
            messages: request.messages,
            updates: Vec::new(),
            identity: request.identity,
            binary_checksum,
            is_bad_binary,
            sticky: request.sticky_attributes.and_then(sticky_of),
            force_new_task: request.force_create_new_workflow_task,
            return_new_task: request.return_new_workflow_task,
            discards_events: request
                .capabilities
                .is_some_and(|capabilities| capabilities.discard_speculative_workflow_task_with_events),
            sdk_metadata: request.sdk_metadata,
            metering_metadata: request.metering_metadata,
            #[expect(deprecated, reason = "older workers still send their version this way")]
            worker_version: request.worker_version_stamp,
            request_id: REQUEST_OF_COMPLETION.to_owned(),
            eager_request_id: self.env.new_uuid(),
            namespaces,
            refused_search_attributes,
        };
        let slot = self.slots.run(key);
        let answering = slot.queries.answering(&self.waiters, key);
        let reply = self.transact(key, Input::CompleteWorkflowTask(Box::new(input))).await?;
        // The results of a refused task rest on changes that were not made: its queries wait for the next task.
        if matches!(reply, Reply::WorkflowTaskCompleted { .. }) {
            answering.deliver(request.query_results);
        }
        drop(answering);
        match reply {
            Reply::WorkflowTaskCompleted { new_task, reset_to, activities } => {
                let mut response = self.tasks_in_answer(key, new_task, activities).await?;
                response.reset_history_event_id = reset_to.map_or(0, |event| event.0);
                Ok(response)
            }
            Reply::BadCommand { message, .. } => Err(ServiceError::InvalidArgument(message)),
            Reply::WorkflowTaskHeartbeatTimedOut => {
                Err(ServiceError::NotFound("workflow task heartbeat timeout".into()))
            }
            Reply::Done
            | Reply::Started { .. }
            | Reply::WorkflowTaskStarted(_)
            | Reply::WorkflowTaskWithdrawn
            | Reply::ActivityStarted(_)
            | Reply::Heartbeat(_)
            | Reply::ActivityOptions(_)
            | Reply::Priority(_)
            | Reply::Terminated { .. } => Err(unexpected(key)),
        }
    }

    /// The response with the tasks that the worker may start at once.
    async fn tasks_in_answer(
        &self,
        key: &ExecutionKey,
        new_task: Option<Box<WorkflowTaskStarted>>,
        activities: Vec<ActivityStarted>,
    ) -> Result<public::RespondWorkflowTaskCompletedResponse, ServiceError> {
        let mut response = public::RespondWorkflowTaskCompletedResponse::default();
        if let Some(task) = new_task {
            response.workflow_task = Some(self.workflow_task(key, *task).await?);
        }
        for activity in activities {
            response.activity_tasks.push(self.activity_task(key, activity).await?);
        }
        Ok(response)
    }

    pub(crate) async fn fail_workflow_task(
        &self,
        key: &ExecutionKey,
        task: workflow::TaskRef,
        request: public::RespondWorkflowTaskFailedRequest,
    ) -> Result<public::RespondWorkflowTaskFailedResponse, ServiceError> {
        let cause = WorkflowTaskFailedCause::try_from(request.cause).unwrap_or(WorkflowTaskFailedCause::Unspecified);
        let input = FailWorkflowTask {
            task,
            cause,
            failure: request.failure,
            identity: request.identity,
            #[expect(deprecated, reason = "older workers still send their version this way")]
            binary_checksum: request.binary_checksum,
        };
        self.transact(key, Input::FailWorkflowTask(input)).await?;
        Ok(public::RespondWorkflowTaskFailedResponse::default())
    }

    pub(crate) async fn start_activity(
        &self,
        key: &ExecutionKey,
        request: request::RecordActivityTaskStartedRequest,
    ) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
        let scheduled_event_id = EventId(request.scheduled_event_id);
        let identity = request.poll_request.unwrap_or_default().identity;
        let (attempt, stamp, request_id) = (request.attempt, request.stamp, request.request_id);
        let input = StartActivity { scheduled_event_id, attempt, stamp, request_id, identity };
        let Reply::ActivityStarted(activity) = self.transact(key, Input::StartActivity(input)).await? else {
            return Err(unexpected(key));
        };
        self.activity_task(key, *activity).await
    }

    async fn activity_task(
        &self,
        key: &ExecutionKey,
        activity: ActivityStarted,
    ) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
        let execution = execution_of(key);
        // The input is stored in history only, which is cached for young runs.
        let (input, header) = self.activity_input(key, &activity).await?;
        let token = TaskToken {
            namespace_id: key.namespace_id.to_string(),
            workflow_id: execution.workflow_id.clone(),
            run_id: execution.run_id.clone(),
            scheduled_event_id: activity.scheduled_event_id.0,
            attempt: activity.attempt,
            activity_id: activity.activity_id.clone(),
            workflow_type: activity.workflow_type.clone(),
            activity_type: activity.activity_type.clone(),
            ..Default::default()
        };
        let moment = |at: workflow::Timestamp| Some(ProtoTimestamp::from(at));
        Ok(public::PollActivityTaskQueueResponse {
            task_token: token::task_token(&token),
            workflow_type: Some(WorkflowType { name: activity.workflow_type }),
            workflow_execution: Some(execution),
            activity_type: Some(ActivityType { name: activity.activity_type }),
            activity_id: activity.activity_id,
            header,
            input,
            heartbeat_details: activity.heartbeat_details,
            scheduled_time: moment(activity.scheduled_at),
            current_attempt_scheduled_time: moment(activity.current_attempt_scheduled_at),
            started_time: moment(activity.started_at),
            attempt: activity.attempt,
            schedule_to_close_timeout: Some(proto_duration(activity.schedule_to_close_timeout)),
            start_to_close_timeout: Some(proto_duration(activity.start_to_close_timeout)),
            heartbeat_timeout: Some(proto_duration(activity.heartbeat_timeout)),
            retry_policy: activity.retry_policy,
            priority: activity.priority,
            ..Default::default()
        })
    }

    pub(crate) async fn heartbeat(
        &self,
        key: &ExecutionKey,
        activity: workflow::ActivityRef,
        request: public::RecordActivityTaskHeartbeatRequest,
    ) -> Result<public::RecordActivityTaskHeartbeatResponse, ServiceError> {
        let input = Heartbeat { activity, details: request.details, identity: request.identity };
        let Reply::Heartbeat(flags) = self.transact(key, Input::Heartbeat(input)).await? else {
            return Err(unexpected(key));
        };
        Ok(public::RecordActivityTaskHeartbeatResponse {
            cancel_requested: flags.cancel_requested,
            activity_paused: flags.paused,
            activity_reset: flags.reset,
        })
    }

    pub(crate) async fn complete_activity(
        &self,
        key: &ExecutionKey,
        activity: workflow::ActivityRef,
        request: public::RespondActivityTaskCompletedRequest,
    ) -> Result<public::RespondActivityTaskCompletedResponse, ServiceError> {
        let input = CompleteActivity { activity, result: request.result, identity: request.identity };
        self.transact(key, Input::CompleteActivity(input)).await?;
        Ok(public::RespondActivityTaskCompletedResponse {})
    }

    pub(crate) async fn fail_activity(
        &self,
        key: &ExecutionKey,
        activity: workflow::ActivityRef,
        request: public::RespondActivityTaskFailedRequest,
    ) -> Result<public::RespondActivityTaskFailedResponse, ServiceError> {
        let input = FailActivity {
            activity,
            failure: request.failure,
            last_heartbeat_details: request.last_heartbeat_details,
            identity: request.identity,
        };
        self.transact(key, Input::FailActivity(input)).await?;
        Ok(public::RespondActivityTaskFailedResponse::default())
    }

    pub(crate) async fn cancel_activity(
        &self,
        key: &ExecutionKey,
        activity: workflow::ActivityRef,
        request: public::RespondActivityTaskCanceledRequest,
    ) -> Result<public::RespondActivityTaskCanceledResponse, ServiceError> {
        let input = CancelActivity { activity, details: request.details, identity: request.identity };
        self.transact(key, Input::CancelActivity(input)).await?;
        Ok(public::RespondActivityTaskCanceledResponse {})
    }

    async fn activity_input(
        &self,
        key: &ExecutionKey,
        activity: &ActivityStarted,
    ) -> Result<(Option<Payloads>, Option<Header>), ServiceError> {
        let state = self.read(key).await?;
        let event = self.event(&state, activity.scheduled_batch_id, activity.scheduled_event_id).await?;
        match event.attributes {
            Some(Attributes::ActivityTaskScheduledEventAttributes(scheduled)) => {
                Ok((scheduled.input, scheduled.header))
            }
            _ => Err(ServiceError::DataLoss(format!(
                "no scheduled event of activity {:?} of {key}",
                activity.activity_id
            ))),
        }
    }
}

fn sticky_of(attributes: proto::temporal::api::taskqueue::v1::StickyExecutionAttributes) -> Option<Sticky> {
    let task_queue = attributes.worker_task_queue.filter(|queue| !queue.name.is_empty())?.name;
    let timeout = span(attributes.schedule_to_start_timeout);
    Some(Sticky { task_queue, schedule_to_start_timeout: timeout.unwrap_or_default() })
}

pub(super) fn execution_of(key: &ExecutionKey) -> WorkflowExecution {
    WorkflowExecution { workflow_id: key.workflow_id.to_string(), run_id: key.run_id.to_string() }
}

/// The reply variant does not match the input: our bug.
fn unexpected(key: &ExecutionKey) -> ServiceError {
    ServiceError::Internal(format!("the core answered another question about {key}"))
}
