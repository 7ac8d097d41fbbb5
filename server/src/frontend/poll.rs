//! Task polls of workers: long polls, which end with a task, at the caller's deadline, or at the worker's shutdown.

#![expect(deprecated, reason = "older clients still send these fields")]

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use cluster::errors::ServiceError;
use proto::everrow::matching as request;
use proto::temporal::api::deployment::v1::WorkerDeploymentOptions;
use proto::temporal::api::enums::v1::TaskQueueType;
use proto::temporal::api::workflowservice::v1 as public;
use tracing::warn;

use super::Frontend;
use super::call::{Call, Deadline, patiently};
use super::long_calls::LongCall;
use super::polls::Poller;
use super::unbuilt_polls::{PolledBy, Unbuilt};
use super::validate::worker;

/// Shortest poll timeout: a shorter poll could hardly be answered in time.
const TIMEOUT_MIN: Duration = Duration::from_secs(2);
/// At node shutdown a released poll returns within this time: empty, or with the task that it was just given.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

pub(super) async fn workflow_task_queue(
    frontend: &Frontend,
    call: Call<public::PollWorkflowTaskQueueRequest>,
) -> Result<public::PollWorkflowTaskQueueResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let _place = frontend.long_calls.enter(namespace.id, LongCall::PollWorkflowTaskQueue)?;
    let timeout = timeout(call.deadline)?;
    let by = PolledBy::new(&call.request.namespace, call.request.task_queue.as_ref(), &call.request.identity);
    unversioned(frontend, call.request.deployment_options.as_ref(), by)?;
    let checked = worker::poll_workflow_task_queue(call.request)?;
    namespace.check_binary(&checked.binary_checksum)?;
    let poller = Poller {
        namespace_id: namespace.id,
        task_queue: checked.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default(),
        worker_instance_key: checked.worker_instance_key.clone(),
    };
    let ask = request::PollWorkflowTaskQueueRequest {
        namespace_id: namespace.id.to_string(),
        poller_id: frontend.new_id(),
        request: Some(checked),
        timeout,
    };
    let poll = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.matching()?.poll_workflow_task_queue(ask.clone()).await
    });
    let cancel = cancellation(&poller, TaskQueueType::Workflow, &ask.poller_id);
    wait(frontend, poller, cancel, poll).await
}

pub(super) async fn activity_task_queue(
    frontend: &Frontend,
    call: Call<public::PollActivityTaskQueueRequest>,
) -> Result<public::PollActivityTaskQueueResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let _place = frontend.long_calls.enter(namespace.id, LongCall::PollActivityTaskQueue)?;
    let timeout = timeout(call.deadline)?;
    let by = PolledBy::new(&call.request.namespace, call.request.task_queue.as_ref(), &call.request.identity);
    unversioned(frontend, call.request.deployment_options.as_ref(), by)?;
    let checked = worker::poll_activity_task_queue(call.request)?;
    let poller = Poller {
        namespace_id: namespace.id,
        task_queue: checked.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default(),
        worker_instance_key: checked.worker_instance_key.clone(),
    };
    let ask = request::PollActivityTaskQueueRequest {
        namespace_id: namespace.id.to_string(),
        poller_id: frontend.new_id(),
        request: Some(checked),
        timeout,
    };
    let poll = patiently(&frontend.env, call.deadline, || async {
        frontend.peers.matching()?.poll_activity_task_queue(ask.clone()).await
    });
    let cancel = cancellation(&poller, TaskQueueType::Activity, &ask.poller_id);
    let mut polled = wait(frontend, poller, cancel, poll).await?;
    if !polled.task_token.is_empty() {
        polled.workflow_namespace.clone_from(&namespace.name);
    }
    Ok(polled)
}

/// Nexus tasks are not built: polls for them are refused with the reason.
pub(super) async fn nexus_task_queue(
    frontend: &Frontend,
    call: Call<public::PollNexusTaskQueueRequest>,
) -> Result<public::PollNexusTaskQueueResponse, ServiceError> {
    frontend.enter(&call.request.namespace).await?;
    let by = PolledBy::new(&call.request.namespace, call.request.task_queue.as_ref(), &call.request.identity);
    Err(frontend.unbuilt_polls.refuse(Unbuilt::NexusTasks, by))
}

/// Refuses a poll whose valid deployment options ask for versioning, which is not built.
fn unversioned(
    frontend: &Frontend,
    options: Option<&WorkerDeploymentOptions>,
    by: PolledBy<'_>,
) -> Result<(), ServiceError> {
    match options {
        Some(options) if worker::is_versioned(options) => {
            Err(frontend.unbuilt_polls.refuse(Unbuilt::VersionedWorkers, by))
        }
        Some(_) | None => Ok(()),
    }
}

/// A worker's shutdown notice: releases its polls, and sends the tasks of its cached runs to other workers.
pub(super) async fn shutdown_worker(
    frontend: &Frontend,
    call: Call<public::ShutdownWorkerRequest>,
) -> Result<public::ShutdownWorkerResponse, ServiceError> {
    let namespace = frontend.enter(&call.request.namespace).await?;
    let leaving = Poller {
        namespace_id: namespace.id,
        task_queue: call.request.sticky_task_queue,
        worker_instance_key: call.request.worker_instance_key,
    };
    frontend.polls.leave(&leaving, frontend.env.now());
    // After its polls, so that no earlier poll recreates the queue.
    if !leaving.task_queue.is_empty() {
        frontend.peers.matching()?.release_sticky_queue(namespace.id, leaving.task_queue);
    }
    Ok(public::ShutdownWorkerResponse::default())
}

/// Waits for matching's response. A released poll is cancelled in matching and not here: a task may be on its way, and
/// dropping the call would lose it until it times out.
async fn wait<T: Default>(
    frontend: &Frontend,
    poller: Poller,
    cancel: request::CancelOutstandingPollRequest,
    poll: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, ServiceError> {
    let Some(ticket) = frontend.polls.begin(poller, frontend.env.now()) else { return Ok(T::default()) };
    let mut poll = pin!(poll);
    tokio::select! {
        biased;
        answer = &mut poll => answer,
        () = ticket.released() => {
            if let Err(error) = frontend.peers.matching()?.cancel_outstanding_poll(cancel).await {
                warn!(%error, "poll cancellation failed; waiting for the poll to end");
            }
            // The poll ends at once unless it has a task, whose start is recorded at the store's latency: the worker
            // waits for it, and without this response the task would be lost until it times out.
            tokio::select! {
                biased;
                answer = poll => answer,
                () = closed_for(frontend, CLOSE_GRACE) => Ok(T::default()),
            }
        }
    }
}

/// Waits until `grace` after the node's shutdown began.
async fn closed_for(frontend: &Frontend, grace: Duration) {
    frontend.polls.closed().await;
    tokio::time::sleep(grace).await;
}

fn cancellation(poller: &Poller, kind: TaskQueueType, poller_id: &str) -> request::CancelOutstandingPollRequest {
    request::CancelOutstandingPollRequest {
        namespace_id: poller.namespace_id.to_string(),
        task_queue_type: kind.into(),
        task_queue: poller.task_queue.clone(),
        poller_id: poller_id.into(),
    }
}

/// The poll's timeout in matching: the time to the caller's deadline. Without a deadline the poll has the usual length.
fn timeout(deadline: Deadline) -> Result<Option<prost_types::Duration>, ServiceError> {
    let Some(left) = deadline.remaining() else { return Ok(None) };
    if left < TIMEOUT_MIN {
        return Err(ServiceError::FailedPrecondition("Context timeout is too short.".into()));
    }
    Ok(prost_types::Duration::try_from(left).ok())
}
