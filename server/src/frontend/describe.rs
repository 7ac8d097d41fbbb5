//! Describing runs and task queues.

#![expect(deprecated, reason = "older clients still send these fields")]

use cluster::errors::ServiceError;
use proto::everrow::{history, matching};
use proto::temporal::api::enums::v1::{DescribeTaskQueueMode, TaskQueueKind, TaskQueueType};
use proto::temporal::api::taskqueue::v1::TaskQueuePartitionMetadata;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate::task_queue::{self, Naming};
use super::validate::{self, invalid};

mod fitting;

pub(super) async fn workflow_execution(
    frontend: &Frontend,
    call: Call<public::DescribeWorkflowExecutionRequest>,
) -> Result<public::DescribeWorkflowExecutionResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::execution(call.request.execution.as_ref())?;
    let namespace_id = namespace.id.to_string();
    let ask = history::DescribeWorkflowExecutionRequest { namespace_id, request: Some(call.request) };
    let mut described = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.describe_workflow_execution(ask.clone()).await
    })
    .await?;
    fitting::fit(&mut described);
    Ok(described)
}

pub(super) async fn task_queue(
    frontend: &Frontend,
    call: Call<public::DescribeTaskQueueRequest>,
) -> Result<public::DescribeTaskQueueResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let checked = checked_task_queue(call.request)?;
    let ask = matching::DescribeTaskQueueRequest { namespace_id: namespace.id.to_string(), request: Some(checked) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.matching()?.describe_task_queue(ask.clone()).await
    })
    .await
}

/// A queue has one partition per type for now, on this node.
pub(super) async fn partitions(
    frontend: &Frontend,
    mut call: Call<public::ListTaskQueuePartitionsRequest>,
) -> Result<public::ListTaskQueuePartitionsResponse, ServiceError> {
    frontend.enter(&call.request.namespace).await?;
    task_queue::check(call.request.task_queue.as_mut(), Naming::Queue)?;
    let key = call.request.task_queue.unwrap_or_default().name;
    let only = vec![TaskQueuePartitionMetadata { key, owner_host_name: frontend.defined.own_address.clone() }];
    Ok(public::ListTaskQueuePartitionsResponse {
        activity_task_queue_partitions: only.clone(),
        workflow_task_queue_partitions: only,
    })
}

pub(super) async fn reset_sticky(
    frontend: &Frontend,
    call: Call<public::ResetStickyTaskQueueRequest>,
) -> Result<public::ResetStickyTaskQueueResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    validate::execution(call.request.execution.as_ref())?;
    let namespace_id = namespace.id.to_string();
    let ask = history::ResetStickyTaskQueueRequest { namespace_id, request: Some(call.request) };
    patiently(&frontend.env, call.deadline, || async {
        frontend.peers.history()?.reset_sticky_task_queue(ask.clone()).await
    })
    .await
}

fn checked_task_queue(
    mut request: public::DescribeTaskQueueRequest,
) -> Result<public::DescribeTaskQueueRequest, ServiceError> {
    let is_enhanced = request.api_mode() == DescribeTaskQueueMode::Enhanced;
    let naming = if is_enhanced { Naming::Queue } else { Naming::Partition };
    task_queue::check(request.task_queue.as_mut(), naming)?;
    if is_enhanced || request.task_queue_type() == TaskQueueType::Unspecified {
        request.set_task_queue_type(TaskQueueType::Workflow);
    }
    if request.task_queue_types.is_empty() {
        request.task_queue_types = vec![TaskQueueType::Workflow.into(), TaskQueueType::Activity.into()];
    }
    let is_sticky = request.task_queue.as_ref().is_some_and(|queue| queue.kind() == TaskQueueKind::Sticky);
    if is_enhanced && is_sticky {
        return Err(invalid(
            "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a normal queue.",
        ));
    }
    Ok(request)
}
