//! Checks of workers' polls and responses.

#![expect(deprecated, reason = "older clients still send these fields")]

use cluster::errors::ServiceError;
use proto::temporal::api::deployment::v1::WorkerDeploymentOptions;
use proto::temporal::api::enums::v1::{TaskQueueKind, WorkerVersioningMode};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;

use super::task_queue::{self, Naming};
use super::{identity, invalid};
use crate::frontend::unbuilt_polls::Unbuilt;

const BUILD_ID_BYTES_MAX: usize = 255;

/// Nested causes that are checked; deeper ones are accepted unchecked.
const FAILURE_DEPTH_MAX: usize = 100;

pub(crate) fn poll_workflow_task_queue(
    mut request: public::PollWorkflowTaskQueueRequest,
) -> Result<public::PollWorkflowTaskQueueRequest, ServiceError> {
    identity(&request.identity)?;
    let version = request.worker_version_capabilities.as_ref();
    Versioning {
        build_id: version.map_or("", |version| version.build_id.as_str()),
        use_versioning: version.is_some_and(|version| version.use_versioning),
        deployment: request.deployment_options.as_ref(),
        queue: request.task_queue.as_ref(),
    }
    .check()?;
    task_queue::check(request.task_queue.as_mut(), Naming::Queue)?;
    Ok(request)
}

pub(crate) fn poll_activity_task_queue(
    mut request: public::PollActivityTaskQueueRequest,
) -> Result<public::PollActivityTaskQueueRequest, ServiceError> {
    task_queue::check(request.task_queue.as_mut(), Naming::Queue)?;
    identity(&request.identity)?;
    let version = request.worker_version_capabilities.as_ref();
    Versioning {
        build_id: version.map_or("", |version| version.build_id.as_str()),
        use_versioning: version.is_some_and(|version| version.use_versioning),
        deployment: request.deployment_options.as_ref(),
        queue: request.task_queue.as_ref(),
    }
    .check()?;
    Ok(request)
}

pub(crate) fn workflow_task_completed(
    request: public::RespondWorkflowTaskCompletedRequest,
) -> Result<public::RespondWorkflowTaskCompletedRequest, ServiceError> {
    identity(&request.identity)?;
    let version = request.worker_version_stamp.as_ref();
    let sticky = request.sticky_attributes.as_ref().and_then(|sticky| sticky.worker_task_queue.as_ref());
    Versioning {
        build_id: version.map_or("", |version| version.build_id.as_str()),
        use_versioning: version.is_some_and(|version| version.use_versioning),
        deployment: request.deployment_options.as_ref(),
        queue: sticky,
    }
    .check()?;
    if request.intermediate_page || request.page_number != 0 {
        return Err(ServiceError::Unimplemented("a workflow task completion in pages is not built yet".into()));
    }
    Ok(request)
}

/// Checks the identity of a task response.
pub(crate) fn answered_by(name: &str) -> Result<(), ServiceError> {
    identity(name)
}

/// Checks a failure that an activity reports.
pub(crate) fn activity_failure(failure: Option<&Failure>) -> Result<(), ServiceError> {
    let Some(failure) = failure else { return Ok(()) };
    if !matches!(failure.failure_info, Some(FailureInfo::ApplicationFailureInfo(_))) {
        return Err(invalid("Failure must have ApplicationFailureInfo."));
    }
    let causes = std::iter::successors(Some(failure), |failure| failure.cause.as_deref());
    for failure in causes.take(FAILURE_DEPTH_MAX) {
        if let Some(FailureInfo::ApplicationFailureInfo(info)) = &failure.failure_info
            && let Some(delay) = &info.next_retry_delay
            && !is_proper(delay)
        {
            let (seconds, nanos) = (delay.seconds, delay.nanos);
            return Err(invalid(format!(
                "NextRetryDelay is not a valid duration: duration (seconds:{seconds} nanos:{nanos}) is out of range"
            )));
        }
    }
    Ok(())
}

/// Valid protobuf duration: up to ten thousand years, with matching signs.
fn is_proper(span: &prost_types::Duration) -> bool {
    const SECONDS_MAX: u64 = 315_576_000_000;
    let same_sign = (span.seconds >= 0 || span.nanos <= 0) && (span.seconds <= 0 || span.nanos >= 0);
    same_sign && span.seconds.unsigned_abs() <= SECONDS_MAX && span.nanos.unsigned_abs() < 1_000_000_000
}

/// A worker's version, and its queue.
struct Versioning<'a> {
    build_id: &'a str,
    use_versioning: bool,
    deployment: Option<&'a WorkerDeploymentOptions>,
    queue: Option<&'a TaskQueue>,
}

impl Versioning<'_> {
    fn check(&self) -> Result<(), ServiceError> {
        if self.use_versioning {
            return Err(ServiceError::PermissionDenied {
                message: "Worker versioning in workflow progress APIs is disabled on this namespace.".into(),
                reason: String::new(),
            });
        }
        let is_nameless_sticky =
            self.queue.is_some_and(|queue| queue.kind() == TaskQueueKind::Sticky && queue.normal_name.is_empty());
        if is_nameless_sticky && self.deployment.is_some() {
            return Err(invalid(
                "NormalName must be set on sticky queue when UseVersioning is true or DeploymentOptions are set.",
            ));
        }
        if self.build_id.len() > BUILD_ID_BYTES_MAX {
            return Err(invalid("Build ID exceeds configured limit.workerBuildIdSize, use a shorter build ID."));
        }
        self.deployment.map_or(Ok(()), deployment)
    }
}

/// Whether complete deployment options ask for versioning.
pub(crate) fn is_versioned(options: &WorkerDeploymentOptions) -> bool {
    let is_in_order = !options.deployment_name.is_empty() && !options.build_id.is_empty();
    options.worker_versioning_mode() == WorkerVersioningMode::Versioned && is_in_order
}

fn deployment(options: &WorkerDeploymentOptions) -> Result<(), ServiceError> {
    if options.worker_versioning_mode() != WorkerVersioningMode::Versioned {
        return Ok(());
    }
    if !is_versioned(options) {
        return Err(invalid("Deployment name and build id must be set together."));
    }
    Err(Unbuilt::VersionedWorkers.refusal())
}
