//! The public service: one line from each RPC to its handler. Other RPCs answer that they are not built yet (`guard`).

use std::sync::Arc;

use cluster::env::Env;
use cluster::errors::ServiceError;
use cluster::membership::Cluster;
use cluster::namespaces::NamespaceRegistry;
use persistence::stores::cluster::ClusterStore;
use persistence::stores::nexus::NexusEndpointStore;
use proto::temporal::api::workflowservice::v1::workflow_service_server::WorkflowService;
use proto::temporal::api::workflowservice::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::call::answer;
use super::long_calls::LongCalls;
use super::polls::OutstandingPolls;
use super::unbuilt_polls::UnbuiltPolls;
use super::{
    activity_executions, activity_operations, batch, describe, door, history, list, namespace, pause, poll, query,
    respond, respond_by_id, schedule, search_attributes, signal, start, system, update,
};
use crate::peers::Peers;

/// Cheap to clone.
#[derive(Clone)]
pub struct Frontend {
    pub(super) env: Env,
    pub(super) peers: Peers,
    pub(super) namespaces: Arc<NamespaceRegistry>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) defined: Defined,
    pub(super) polls: OutstandingPolls,
    pub(super) long_calls: LongCalls,
    pub(super) unbuilt_polls: UnbuiltPolls,
}

/// Cluster-wide definitions by operators, read directly from the store.
#[derive(Clone)]
pub struct Defined {
    pub nexus_endpoints: NexusEndpointStore,
    /// Serializes changes of Nexus endpoints: each change reads all of them, and replaces the table version.
    pub changing_endpoints: Arc<tokio::sync::Mutex<()>>,
    pub clusters: ClusterStore,
    /// Addresses of this cluster, gRPC and HTTP; the latter is empty if HTTP is not served.
    pub own_address: String,
    pub own_http_address: String,
}

impl Frontend {
    #[must_use]
    pub fn new(
        env: Env,
        peers: Peers,
        namespaces: Arc<NamespaceRegistry>,
        cluster: Arc<Cluster>,
        defined: Defined,
    ) -> Self {
        door::install();
        let (polls, long_calls) = (OutstandingPolls::default(), LongCalls::default());
        let unbuilt_polls = UnbuiltPolls::default();
        Self { env, peers, namespaces, cluster, defined, polls, long_calls, unbuilt_polls }
    }

    /// At node shutdown: releases all waiting calls, and every later one at once.
    pub fn release_waiting_calls(&self) {
        self.polls.close();
    }

    /// Waits for the answer; at node shutdown returns `Unavailable`, so that the caller retries on another node.
    pub(super) async fn unless_closing<T>(
        &self,
        answer: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.polls.closed() => Err(ServiceError::Unavailable("the node is shutting down".into())),
        }
    }

    pub(super) fn new_id(&self) -> String {
        self.env.new_uuid().to_string()
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl WorkflowService for Frontend {
    async fn register_namespace(
        &self,
        request: Request<RegisterNamespaceRequest>,
    ) -> Answer<RegisterNamespaceResponse> {
        answer("RegisterNamespace", namespace::register(self, request.into())).await
    }

    async fn describe_namespace(
        &self,
        request: Request<DescribeNamespaceRequest>,
    ) -> Answer<DescribeNamespaceResponse> {
        answer("DescribeNamespace", namespace::describe(self, request.into())).await
    }

    async fn list_namespaces(&self, request: Request<ListNamespacesRequest>) -> Answer<ListNamespacesResponse> {
        answer("ListNamespaces", namespace::list(self, request.into())).await
    }

    async fn update_namespace(&self, request: Request<UpdateNamespaceRequest>) -> Answer<UpdateNamespaceResponse> {
        answer("UpdateNamespace", namespace::update(self, request.into())).await
    }

    async fn deprecate_namespace(
        &self,
        request: Request<DeprecateNamespaceRequest>,
    ) -> Answer<DeprecateNamespaceResponse> {
        answer("DeprecateNamespace", namespace::deprecate(self, request.into())).await
    }

    async fn start_workflow_execution(
        &self,
        request: Request<StartWorkflowExecutionRequest>,
    ) -> Answer<StartWorkflowExecutionResponse> {
        answer("StartWorkflowExecution", start::start(self, request.into())).await
    }

    async fn signal_with_start_workflow_execution(
        &self,
        request: Request<SignalWithStartWorkflowExecutionRequest>,
    ) -> Answer<SignalWithStartWorkflowExecutionResponse> {
        answer("SignalWithStartWorkflowExecution", start::signal_with_start(self, request.into())).await
    }

    async fn signal_workflow_execution(
        &self,
        request: Request<SignalWorkflowExecutionRequest>,
    ) -> Answer<SignalWorkflowExecutionResponse> {
        answer("SignalWorkflowExecution", signal::signal(self, request.into())).await
    }

    async fn request_cancel_workflow_execution(
        &self,
        request: Request<RequestCancelWorkflowExecutionRequest>,
    ) -> Answer<RequestCancelWorkflowExecutionResponse> {
        answer("RequestCancelWorkflowExecution", signal::request_cancel(self, request.into())).await
    }

    async fn terminate_workflow_execution(
        &self,
        request: Request<TerminateWorkflowExecutionRequest>,
    ) -> Answer<TerminateWorkflowExecutionResponse> {
        answer("TerminateWorkflowExecution", signal::terminate(self, request.into())).await
    }

    async fn pause_workflow_execution(
        &self,
        request: Request<PauseWorkflowExecutionRequest>,
    ) -> Answer<PauseWorkflowExecutionResponse> {
        answer("PauseWorkflowExecution", pause::pause(self, request.into())).await
    }

    async fn unpause_workflow_execution(
        &self,
        request: Request<UnpauseWorkflowExecutionRequest>,
    ) -> Answer<UnpauseWorkflowExecutionResponse> {
        answer("UnpauseWorkflowExecution", pause::unpause(self, request.into())).await
    }

    async fn reset_workflow_execution(
        &self,
        request: Request<ResetWorkflowExecutionRequest>,
    ) -> Answer<ResetWorkflowExecutionResponse> {
        answer("ResetWorkflowExecution", signal::reset(self, request.into())).await
    }

    async fn delete_workflow_execution(
        &self,
        request: Request<DeleteWorkflowExecutionRequest>,
    ) -> Answer<DeleteWorkflowExecutionResponse> {
        answer("DeleteWorkflowExecution", signal::delete(self, request.into())).await
    }

    async fn update_workflow_execution(
        &self,
        request: Request<UpdateWorkflowExecutionRequest>,
    ) -> Answer<UpdateWorkflowExecutionResponse> {
        answer("UpdateWorkflowExecution", update::update(self, request.into())).await
    }

    async fn execute_multi_operation(
        &self,
        request: Request<ExecuteMultiOperationRequest>,
    ) -> Answer<ExecuteMultiOperationResponse> {
        answer("ExecuteMultiOperation", update::with_start(self, request.into())).await
    }

    async fn poll_workflow_execution_update(
        &self,
        request: Request<PollWorkflowExecutionUpdateRequest>,
    ) -> Answer<PollWorkflowExecutionUpdateResponse> {
        answer("PollWorkflowExecutionUpdate", update::poll(self, request.into())).await
    }

    async fn get_workflow_execution_history(
        &self,
        request: Request<GetWorkflowExecutionHistoryRequest>,
    ) -> Answer<GetWorkflowExecutionHistoryResponse> {
        answer("GetWorkflowExecutionHistory", history::get(self, request.into())).await
    }

    async fn get_workflow_execution_history_reverse(
        &self,
        request: Request<GetWorkflowExecutionHistoryReverseRequest>,
    ) -> Answer<GetWorkflowExecutionHistoryReverseResponse> {
        answer("GetWorkflowExecutionHistoryReverse", history::get_reverse(self, request.into())).await
    }

    async fn describe_workflow_execution(
        &self,
        request: Request<DescribeWorkflowExecutionRequest>,
    ) -> Answer<DescribeWorkflowExecutionResponse> {
        answer("DescribeWorkflowExecution", describe::workflow_execution(self, request.into())).await
    }

    async fn describe_task_queue(
        &self,
        request: Request<DescribeTaskQueueRequest>,
    ) -> Answer<DescribeTaskQueueResponse> {
        answer("DescribeTaskQueue", describe::task_queue(self, request.into())).await
    }

    async fn list_task_queue_partitions(
        &self,
        request: Request<ListTaskQueuePartitionsRequest>,
    ) -> Answer<ListTaskQueuePartitionsResponse> {
        answer("ListTaskQueuePartitions", describe::partitions(self, request.into())).await
    }

    async fn reset_sticky_task_queue(
        &self,
        request: Request<ResetStickyTaskQueueRequest>,
    ) -> Answer<ResetStickyTaskQueueResponse> {
        answer("ResetStickyTaskQueue", describe::reset_sticky(self, request.into())).await
    }

    async fn poll_workflow_task_queue(
        &self,
        request: Request<PollWorkflowTaskQueueRequest>,
    ) -> Answer<PollWorkflowTaskQueueResponse> {
        answer("PollWorkflowTaskQueue", poll::workflow_task_queue(self, request.into())).await
    }

    async fn poll_activity_task_queue(
        &self,
        request: Request<PollActivityTaskQueueRequest>,
    ) -> Answer<PollActivityTaskQueueResponse> {
        answer("PollActivityTaskQueue", poll::activity_task_queue(self, request.into())).await
    }

    async fn poll_nexus_task_queue(
        &self,
        request: Request<PollNexusTaskQueueRequest>,
    ) -> Answer<PollNexusTaskQueueResponse> {
        answer("PollNexusTaskQueue", poll::nexus_task_queue(self, request.into())).await
    }

    async fn shutdown_worker(&self, request: Request<ShutdownWorkerRequest>) -> Answer<ShutdownWorkerResponse> {
        answer("ShutdownWorker", poll::shutdown_worker(self, request.into())).await
    }

    async fn respond_workflow_task_completed(
        &self,
        request: Request<RespondWorkflowTaskCompletedRequest>,
    ) -> Answer<RespondWorkflowTaskCompletedResponse> {
        answer("RespondWorkflowTaskCompleted", respond::workflow_task_completed(self, request.into())).await
    }

    async fn respond_workflow_task_failed(
        &self,
        request: Request<RespondWorkflowTaskFailedRequest>,
    ) -> Answer<RespondWorkflowTaskFailedResponse> {
        answer("RespondWorkflowTaskFailed", respond::workflow_task_failed(self, request.into())).await
    }

    async fn query_workflow(&self, request: Request<QueryWorkflowRequest>) -> Answer<QueryWorkflowResponse> {
        answer("QueryWorkflow", query::query(self, request.into())).await
    }

    async fn respond_query_task_completed(
        &self,
        request: Request<RespondQueryTaskCompletedRequest>,
    ) -> Answer<RespondQueryTaskCompletedResponse> {
        answer("RespondQueryTaskCompleted", query::respond(self, request.into())).await
    }

    async fn record_activity_task_heartbeat(
        &self,
        request: Request<RecordActivityTaskHeartbeatRequest>,
    ) -> Answer<RecordActivityTaskHeartbeatResponse> {
        answer("RecordActivityTaskHeartbeat", respond::heartbeat(self, request.into())).await
    }

    async fn respond_activity_task_completed(
        &self,
        request: Request<RespondActivityTaskCompletedRequest>,
    ) -> Answer<RespondActivityTaskCompletedResponse> {
        answer("RespondActivityTaskCompleted", respond::activity_completed(self, request.into())).await
    }

    async fn respond_activity_task_failed(
        &self,
        request: Request<RespondActivityTaskFailedRequest>,
    ) -> Answer<RespondActivityTaskFailedResponse> {
        answer("RespondActivityTaskFailed", respond::activity_failed(self, request.into())).await
    }

    async fn respond_activity_task_canceled(
        &self,
        request: Request<RespondActivityTaskCanceledRequest>,
    ) -> Answer<RespondActivityTaskCanceledResponse> {
        answer("RespondActivityTaskCanceled", respond::activity_canceled(self, request.into())).await
    }

    async fn record_activity_task_heartbeat_by_id(
        &self,
        request: Request<RecordActivityTaskHeartbeatByIdRequest>,
    ) -> Answer<RecordActivityTaskHeartbeatByIdResponse> {
        answer("RecordActivityTaskHeartbeatById", respond_by_id::heartbeat(self, request.into())).await
    }

    async fn respond_activity_task_completed_by_id(
        &self,
        request: Request<RespondActivityTaskCompletedByIdRequest>,
    ) -> Answer<RespondActivityTaskCompletedByIdResponse> {
        answer("RespondActivityTaskCompletedById", respond_by_id::activity_completed(self, request.into())).await
    }

    async fn respond_activity_task_failed_by_id(
        &self,
        request: Request<RespondActivityTaskFailedByIdRequest>,
    ) -> Answer<RespondActivityTaskFailedByIdResponse> {
        answer("RespondActivityTaskFailedById", respond_by_id::activity_failed(self, request.into())).await
    }

    async fn respond_activity_task_canceled_by_id(
        &self,
        request: Request<RespondActivityTaskCanceledByIdRequest>,
    ) -> Answer<RespondActivityTaskCanceledByIdResponse> {
        answer("RespondActivityTaskCanceledById", respond_by_id::activity_canceled(self, request.into())).await
    }

    async fn pause_activity(&self, request: Request<PauseActivityRequest>) -> Answer<PauseActivityResponse> {
        answer("PauseActivity", activity_operations::pause(self, request.into())).await
    }

    async fn unpause_activity(&self, request: Request<UnpauseActivityRequest>) -> Answer<UnpauseActivityResponse> {
        answer("UnpauseActivity", activity_operations::unpause(self, request.into())).await
    }

    async fn reset_activity(&self, request: Request<ResetActivityRequest>) -> Answer<ResetActivityResponse> {
        answer("ResetActivity", activity_operations::reset(self, request.into())).await
    }

    async fn update_activity_options(
        &self,
        request: Request<UpdateActivityOptionsRequest>,
    ) -> Answer<UpdateActivityOptionsResponse> {
        answer("UpdateActivityOptions", activity_operations::update_options(self, request.into())).await
    }

    async fn pause_activity_execution(
        &self,
        request: Request<PauseActivityExecutionRequest>,
    ) -> Answer<PauseActivityExecutionResponse> {
        answer("PauseActivityExecution", activity_executions::pause(self, request.into())).await
    }

    async fn unpause_activity_execution(
        &self,
        request: Request<UnpauseActivityExecutionRequest>,
    ) -> Answer<UnpauseActivityExecutionResponse> {
        answer("UnpauseActivityExecution", activity_executions::unpause(self, request.into())).await
    }

    async fn reset_activity_execution(
        &self,
        request: Request<ResetActivityExecutionRequest>,
    ) -> Answer<ResetActivityExecutionResponse> {
        answer("ResetActivityExecution", activity_executions::reset(self, request.into())).await
    }

    async fn update_activity_execution_options(
        &self,
        request: Request<UpdateActivityExecutionOptionsRequest>,
    ) -> Answer<UpdateActivityExecutionOptionsResponse> {
        answer("UpdateActivityExecutionOptions", activity_executions::update_options(self, request.into())).await
    }

    async fn update_workflow_execution_options(
        &self,
        request: Request<UpdateWorkflowExecutionOptionsRequest>,
    ) -> Answer<UpdateWorkflowExecutionOptionsResponse> {
        answer("UpdateWorkflowExecutionOptions", start::update_options(self, request.into())).await
    }

    async fn list_workflow_executions(
        &self,
        request: Request<ListWorkflowExecutionsRequest>,
    ) -> Answer<ListWorkflowExecutionsResponse> {
        answer("ListWorkflowExecutions", list::list(self, request.into())).await
    }

    async fn scan_workflow_executions(
        &self,
        request: Request<ScanWorkflowExecutionsRequest>,
    ) -> Answer<ScanWorkflowExecutionsResponse> {
        answer("ScanWorkflowExecutions", list::scan(self, request.into())).await
    }

    async fn list_open_workflow_executions(
        &self,
        request: Request<ListOpenWorkflowExecutionsRequest>,
    ) -> Answer<ListOpenWorkflowExecutionsResponse> {
        answer("ListOpenWorkflowExecutions", list::open(self, request.into())).await
    }

    async fn list_closed_workflow_executions(
        &self,
        request: Request<ListClosedWorkflowExecutionsRequest>,
    ) -> Answer<ListClosedWorkflowExecutionsResponse> {
        answer("ListClosedWorkflowExecutions", list::closed(self, request.into())).await
    }

    async fn list_archived_workflow_executions(
        &self,
        request: Request<ListArchivedWorkflowExecutionsRequest>,
    ) -> Answer<ListArchivedWorkflowExecutionsResponse> {
        answer("ListArchivedWorkflowExecutions", list::archived(self, request.into())).await
    }

    async fn count_workflow_executions(
        &self,
        request: Request<CountWorkflowExecutionsRequest>,
    ) -> Answer<CountWorkflowExecutionsResponse> {
        answer("CountWorkflowExecutions", list::count(self, request.into())).await
    }

    async fn create_schedule(&self, request: Request<CreateScheduleRequest>) -> Answer<CreateScheduleResponse> {
        answer("CreateSchedule", schedule::create(self, request.into())).await
    }

    async fn describe_schedule(&self, request: Request<DescribeScheduleRequest>) -> Answer<DescribeScheduleResponse> {
        answer("DescribeSchedule", schedule::describe(self, request.into())).await
    }

    async fn update_schedule(&self, request: Request<UpdateScheduleRequest>) -> Answer<UpdateScheduleResponse> {
        answer("UpdateSchedule", schedule::update(self, request.into())).await
    }

    async fn patch_schedule(&self, request: Request<PatchScheduleRequest>) -> Answer<PatchScheduleResponse> {
        answer("PatchSchedule", schedule::patch(self, request.into())).await
    }

    async fn delete_schedule(&self, request: Request<DeleteScheduleRequest>) -> Answer<DeleteScheduleResponse> {
        answer("DeleteSchedule", schedule::delete(self, request.into())).await
    }

    async fn list_schedule_matching_times(
        &self,
        request: Request<ListScheduleMatchingTimesRequest>,
    ) -> Answer<ListScheduleMatchingTimesResponse> {
        answer("ListScheduleMatchingTimes", schedule::list_matching_times(self, request.into())).await
    }

    async fn list_schedules(&self, request: Request<ListSchedulesRequest>) -> Answer<ListSchedulesResponse> {
        answer("ListSchedules", schedule::list(self, request.into())).await
    }

    async fn count_schedules(&self, request: Request<CountSchedulesRequest>) -> Answer<CountSchedulesResponse> {
        answer("CountSchedules", schedule::count(self, request.into())).await
    }

    async fn get_system_info(&self, request: Request<GetSystemInfoRequest>) -> Answer<GetSystemInfoResponse> {
        answer("GetSystemInfo", system::system_info(self, request.into())).await
    }

    async fn get_cluster_info(&self, request: Request<GetClusterInfoRequest>) -> Answer<GetClusterInfoResponse> {
        answer("GetClusterInfo", system::cluster_info(self, request.into())).await
    }

    async fn get_search_attributes(
        &self,
        request: Request<GetSearchAttributesRequest>,
    ) -> Answer<GetSearchAttributesResponse> {
        answer("GetSearchAttributes", search_attributes::get(self, request.into())).await
    }

    async fn record_worker_heartbeat(
        &self,
        request: Request<RecordWorkerHeartbeatRequest>,
    ) -> Answer<RecordWorkerHeartbeatResponse> {
        answer("RecordWorkerHeartbeat", system::worker_heartbeat(self, request.into())).await
    }

    async fn start_batch_operation(
        &self,
        request: Request<StartBatchOperationRequest>,
    ) -> Answer<StartBatchOperationResponse> {
        answer("StartBatchOperation", batch::start(self, request.into())).await
    }

    async fn stop_batch_operation(
        &self,
        request: Request<StopBatchOperationRequest>,
    ) -> Answer<StopBatchOperationResponse> {
        answer("StopBatchOperation", batch::stop(self, request.into())).await
    }

    async fn describe_batch_operation(
        &self,
        request: Request<DescribeBatchOperationRequest>,
    ) -> Answer<DescribeBatchOperationResponse> {
        answer("DescribeBatchOperation", batch::describe(self, request.into())).await
    }

    async fn list_batch_operations(
        &self,
        request: Request<ListBatchOperationsRequest>,
    ) -> Answer<ListBatchOperationsResponse> {
        answer("ListBatchOperations", batch::list(self, request.into())).await
    }
}
