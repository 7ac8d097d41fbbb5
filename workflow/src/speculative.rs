//! Speculative workflow tasks: scheduled for an update, which leaves no event if it is rejected. Their events are
//! recorded when the task completes with something to keep, or before anything else is recorded while it is pending.

use std::time::Duration;

use proto::temporal::api::common::v1::WorkerVersionStamp;
use proto::temporal::api::history::v1::history_event::Attributes;

use crate::draft::Draft;
use crate::ids::EventId;
use crate::input::CompleteWorkflowTask;
use crate::update_message;
use crate::workflow_task::{self, Running, Scheduled, WorkflowTask};

/// Wait in the run's own queue before the task is recorded as timed out and replaced by a normal one. On a sticky queue
/// the sticky timeout applies.
pub(crate) const SCHEDULE_TO_START_TIMEOUT: Duration = Duration::from_secs(5);

/// Schedules and dispatches a speculative task if no workflow task is pending.
pub(crate) fn ensure(draft: &mut Draft) {
    if draft.state.workflow_task == WorkflowTask::None {
        schedule(draft);
        workflow_task::dispatch(draft);
    }
}

/// Schedules an unrecorded task, or a normal one if there is something to record anyway.
pub(crate) fn schedule(draft: &mut Draft) {
    assert_eq!(draft.state.workflow_task, WorkflowTask::None, "at most one workflow task is pending");
    let is_failing = draft.state.workflow_task_attempt > 1;
    if draft.has_waiting() || is_failing || draft.state.last_version() != draft.version() {
        workflow_task::schedule(draft, draft.now());
        return;
    }
    let scheduled = workflow_task::unrecorded(draft, draft.now());
    draft.state.workflow_task = WorkflowTask::Scheduled(Scheduled { is_speculative: true, ..scheduled });
}

/// Worker of a task, as named by the event that ends it.
pub(crate) struct Worker {
    identity: String,
    version: Option<WorkerVersionStamp>,
}

/// The worker to name in a speculative task that is recorded before this event.
#[expect(deprecated, reason = "old workers send a version")]
pub(crate) fn worker_of(next: &Attributes) -> Option<Worker> {
    if let Attributes::WorkflowTaskCompletedEventAttributes(completed) = next {
        return Some(Worker { identity: completed.identity.clone(), version: completed.worker_version.clone() });
    }
    if let Attributes::WorkflowTaskFailedEventAttributes(failed) = next {
        return Some(Worker { identity: failed.identity.clone(), version: failed.worker_version.clone() });
    }
    None
}

/// Records a pending speculative task, which makes it a normal one. Its worker is not named before the task has ended.
pub(crate) fn make_normal(draft: &mut Draft, worker: Option<Worker>) {
    let task = std::mem::take(&mut draft.state.workflow_task);
    let (scheduled, running) = match task {
        WorkflowTask::Scheduled(scheduled) => (scheduled, None),
        WorkflowTask::Running(scheduled, running) => (scheduled, Some(running)),
        WorkflowTask::None => unreachable!("there is a task to record"),
    };
    assert!(scheduled.is_speculative, "only a speculative task is recorded late");
    assert_eq!(
        scheduled.event_id, draft.state.next_event_id,
        "nothing is recorded while a speculative task is pending"
    );
    workflow_task::record_as_scheduled(draft, &scheduled);
    if let Some(running) = running {
        let (identity, version) = worker.map(|worker| (worker.identity, worker.version)).unwrap_or_default();
        workflow_task::record_started(draft, scheduled.event_id, Running { identity, ..running }, version);
    }
}

/// Withdraws an unstarted speculative task.
pub(crate) fn withdraw(draft: &mut Draft) {
    let is_speculative = |scheduled: &Scheduled| scheduled.is_speculative;
    if matches!(&draft.state.workflow_task, WorkflowTask::Scheduled(scheduled) if is_speculative(scheduled)) {
        draft.state.workflow_task = WorkflowTask::None;
    }
}

/// Discards a completed task without an event, if allowed: the worker rolls back to the started event of the previous
/// task, which is returned, and the event ids that it was shown are reused.
pub(crate) fn discard(draft: &mut Draft, input: &CompleteWorkflowTask) -> Option<EventId> {
    let WorkflowTask::Running(scheduled, _) = &draft.state.workflow_task else {
        unreachable!("only a task in flight completes")
    };
    let did_nothing =
        input.commands.is_empty() && !input.force_new_task && update_message::only_reject(&input.messages);
    if !scheduled.is_speculative || !did_nothing {
        return None;
    }
    // Zero if no task completed yet: the run's first one was delayed.
    let last_started = draft.state.last_completed_started_event_id.unwrap_or(EventId(0));
    // The previous task's completed event follows its started one; events after that were sent with this task.
    let n_shipped = draft.state.next_event_id.0 - (last_started.0 + 2);
    let n_allowed = if input.discards_events { draft.facts.limits.discarded_events } else { 0 };
    if n_shipped > n_allowed {
        return None;
    }
    draft.state.workflow_task = WorkflowTask::None;
    draft.state.workflow_task_attempt = 1;
    draft.state.unrecorded.is_closing = false;
    Some(last_started)
}
