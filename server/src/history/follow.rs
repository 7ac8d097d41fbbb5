//! Close events for clients that do not follow the next run named in them: a completed, failed or timed-out run with a
//! retry or cron successor is shown as continued-as-new, which every client follows. Pure.

use proto::temporal::api::enums::v1::{EventType, TimeoutType};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{Failure, TimeoutFailureInfo};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{HistoryEvent, WorkflowExecutionContinuedAsNewEventAttributes};

/// The source of failures that the reference itself creates.
const SOURCE: &str = "Server";

/// The close event as continued-as-new, with its result or failure; `None` if no run follows.
pub(super) fn as_continued_as_new(event: &HistoryEvent) -> Option<HistoryEvent> {
    let continued = continued(event.attributes.as_ref()?).filter(|shown| !shown.new_execution_run_id.is_empty())?;
    Some(HistoryEvent {
        event_id: event.event_id,
        event_time: event.event_time,
        event_type: EventType::WorkflowExecutionContinuedAsNew.into(),
        version: event.version,
        task_id: event.task_id,
        attributes: Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(continued)),
        ..Default::default()
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other event is the end of a run that another one follows")]
#[expect(deprecated, reason = "clients that do not follow runs know the older fields")]
fn continued(closed: &Attributes) -> Option<WorkflowExecutionContinuedAsNewEventAttributes> {
    Some(match closed {
        Attributes::WorkflowExecutionCompletedEventAttributes(closed) => {
            WorkflowExecutionContinuedAsNewEventAttributes {
                new_execution_run_id: closed.new_execution_run_id.clone(),
                last_completion_result: closed.result.clone(),
                ..Default::default()
            }
        }
        Attributes::WorkflowExecutionFailedEventAttributes(closed) => WorkflowExecutionContinuedAsNewEventAttributes {
            new_execution_run_id: closed.new_execution_run_id.clone(),
            failure: closed.failure.clone(),
            ..Default::default()
        },
        Attributes::WorkflowExecutionTimedOutEventAttributes(closed) => {
            WorkflowExecutionContinuedAsNewEventAttributes {
                new_execution_run_id: closed.new_execution_run_id.clone(),
                failure: Some(timeout()),
                ..Default::default()
            }
        }
        _ => return None,
    })
}

fn timeout() -> Failure {
    let info = TimeoutFailureInfo { timeout_type: TimeoutType::StartToClose.into(), last_heartbeat_details: None };
    Failure {
        message: "workflow timeout".into(),
        source: SOURCE.into(),
        failure_info: Some(FailureInfo::TimeoutFailureInfo(info)),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
