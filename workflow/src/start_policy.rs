//! Whether a run may start beside the newest one of its workflow id.

use proto::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};

use crate::ids::RunId;
use crate::state::Status;
use crate::time::Timestamp;

/// The newest run of a workflow id, as stored in its row.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentRun {
    pub run_id: RunId,
    pub status: Status,
    pub started_at: Timestamp,
    /// Request id of the start that created it: a repeated start gets the same run.
    pub request_id: String,
    /// Request ids of the starts that joined it. Set once it is closed; an open run's are in its state.
    pub joined_request_ids: Vec<String>,
    pub version: i64,
}

/// Whether a start may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDecision {
    Create,
    /// A repeated request of the run's own start: it gets the same answer.
    SameRequest(RunId),
    /// A repeated request of a start that joined the run: it gets that run.
    JoinedBefore(RunId),
    /// The policy says to use the running one.
    UseExisting(RunId),
    /// Terminate the run first, in the same commit.
    TerminateAndCreate(RunId),
    AlreadyStarted {
        message: String,
        run_id: RunId,
        start_request_id: String,
    },
}

/// Ids and policies of a start request.
#[derive(Debug, Clone, Copy)]
pub struct StartPolicy<'a> {
    pub workflow_id: &'a str,
    pub request_id: &'a str,
    pub reuse: WorkflowIdReusePolicy,
    pub conflict: WorkflowIdConflictPolicy,
}

/// Decides whether a start may go ahead beside the newest run of its workflow id.
#[must_use]
pub fn decide_start(current: Option<&CurrentRun>, policy: StartPolicy<'_>) -> StartDecision {
    let Some(current) = current else { return StartDecision::Create };
    if current.request_id == policy.request_id {
        return StartDecision::SameRequest(current.run_id);
    }
    if current.joined_request_ids.iter().any(|joined| joined == policy.request_id) {
        return StartDecision::JoinedBefore(current.run_id);
    }
    if current.status == Status::Running {
        decide_beside_running(current, policy)
    } else {
        decide_after_closed(current, policy)
    }
}

#[expect(deprecated, reason = "old clients send the old policy")]
fn decide_beside_running(current: &CurrentRun, policy: StartPolicy<'_>) -> StartDecision {
    let conflict = match policy.reuse {
        // Deprecated conflict policy.
        WorkflowIdReusePolicy::TerminateIfRunning => WorkflowIdConflictPolicy::TerminateExisting,
        WorkflowIdReusePolicy::Unspecified
        | WorkflowIdReusePolicy::AllowDuplicate
        | WorkflowIdReusePolicy::AllowDuplicateFailedOnly
        | WorkflowIdReusePolicy::RejectDuplicate => policy.conflict,
    };
    match conflict {
        WorkflowIdConflictPolicy::Unspecified | WorkflowIdConflictPolicy::Fail => {
            let message = format!(
                "Workflow execution is already running. WorkflowId: {}, RunId: {}.",
                policy.workflow_id, current.run_id
            );
            already_started(current, message)
        }
        WorkflowIdConflictPolicy::UseExisting => StartDecision::UseExisting(current.run_id),
        WorkflowIdConflictPolicy::TerminateExisting => StartDecision::TerminateAndCreate(current.run_id),
    }
}

#[expect(deprecated, reason = "old clients send the old policy")]
fn decide_after_closed(current: &CurrentRun, policy: StartPolicy<'_>) -> StartDecision {
    let ids = format!("WorkflowId: {}, RunId: {}", policy.workflow_id, current.run_id);
    match policy.reuse {
        WorkflowIdReusePolicy::RejectDuplicate => already_started(
            current,
            format!(
                "Workflow execution already finished. {ids}. Workflow Id reuse policy: reject duplicate workflow Id."
            ),
        ),
        WorkflowIdReusePolicy::AllowDuplicateFailedOnly if !current.status.is_failure() => already_started(
            current,
            format!(
                "Workflow execution already finished successfully. {ids}. \
                 Workflow Id reuse policy: allow duplicate workflow Id if last run failed."
            ),
        ),
        WorkflowIdReusePolicy::AllowDuplicateFailedOnly
        | WorkflowIdReusePolicy::Unspecified
        | WorkflowIdReusePolicy::AllowDuplicate
        | WorkflowIdReusePolicy::TerminateIfRunning => StartDecision::Create,
    }
}

fn already_started(current: &CurrentRun, message: String) -> StartDecision {
    StartDecision::AlreadyStarted { message, run_id: current.run_id, start_request_id: current.request_id.clone() }
}
