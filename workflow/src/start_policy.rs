//! Whether a run may start beside the newest one of its workflow id.

use proto::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};

use crate::ids::RunId;
use crate::state::Status;
use crate::time::Timestamp;

/// The newest run of a workflow id, as its row tells.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentRun {
    pub run_id: RunId,
    pub status: Status,
    pub started_at: Timestamp,
    /// Of the start that made it: the same request gets the same run.
    pub request_id: String,
    /// Of the starts that joined it while it was open; told once it is closed, an open run is asked itself.
    pub joined_request_ids: Vec<String>,
    pub version: i64,
}

/// Whether a start may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartDecision {
    Create,
    /// The same request once more: it gets the answer that it got.
    SameRequest(RunId),
    /// A start that joined the run while it was open, once more: it gets that run.
    JoinedBefore(RunId),
    /// The policy says to use what runs.
    UseExisting(RunId),
    /// Terminate the run first, in the same commit.
    TerminateAndCreate(RunId),
    AlreadyStarted {
        message: String,
        run_id: RunId,
        start_request_id: String,
    },
}

/// Which run a start asks for, and what it says of others with the same workflow id.
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
        // The old way to say it.
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
