//! A table of close events and what is shown in their place.

use proto::temporal::api::common::v1::{Payload, Payloads};
use proto::temporal::api::history::v1 as history;

use super::*;

fn event(event_type: EventType, attributes: Attributes) -> HistoryEvent {
    HistoryEvent {
        event_id: 7,
        version: 3,
        task_id: 99,
        event_type: event_type.into(),
        attributes: Some(attributes),
        ..Default::default()
    }
}

fn completed(next: &str) -> HistoryEvent {
    let result = Some(Payloads { payloads: vec![Payload { data: "done".into(), ..Default::default() }] });
    let closed = history::WorkflowExecutionCompletedEventAttributes {
        result,
        new_execution_run_id: next.into(),
        ..Default::default()
    };
    event(EventType::WorkflowExecutionCompleted, Attributes::WorkflowExecutionCompletedEventAttributes(closed))
}

fn failed(next: &str) -> HistoryEvent {
    let closed = history::WorkflowExecutionFailedEventAttributes {
        failure: Some(Failure { message: "boom".into(), ..Default::default() }),
        new_execution_run_id: next.into(),
        ..Default::default()
    };
    event(EventType::WorkflowExecutionFailed, Attributes::WorkflowExecutionFailedEventAttributes(closed))
}

fn timed_out(next: &str) -> HistoryEvent {
    let closed =
        history::WorkflowExecutionTimedOutEventAttributes { new_execution_run_id: next.into(), ..Default::default() };
    event(EventType::WorkflowExecutionTimedOut, Attributes::WorkflowExecutionTimedOutEventAttributes(closed))
}

fn shown(event: &HistoryEvent) -> WorkflowExecutionContinuedAsNewEventAttributes {
    let shown = as_continued_as_new(event).expect("another run follows");
    assert_eq!((shown.event_id, shown.version, shown.task_id), (event.event_id, event.version, event.task_id));
    assert_eq!(shown.event_type(), EventType::WorkflowExecutionContinuedAsNew);
    let Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(attributes)) = shown.attributes else {
        panic!("not continued as new")
    };
    attributes
}

#[test]
#[expect(deprecated, reason = "clients that do not follow runs know the older fields")]
fn an_end_that_names_the_next_run_is_shown_as_continued_as_new_with_its_fields() {
    let after_result = shown(&completed("next"));
    assert_eq!(after_result.new_execution_run_id, "next");
    assert_eq!(after_result.last_completion_result.expect("a result").payloads[0].data, "done".as_bytes());
    assert_eq!(after_result.failure, None);
    assert_eq!(shown(&failed("next")).failure.expect("a failure").message, "boom");
    let after_timeout = shown(&timed_out("next")).failure.expect("a failure");
    assert_eq!((after_timeout.message.as_str(), after_timeout.source.as_str()), ("workflow timeout", "Server"));
    assert!(matches!(
        after_timeout.failure_info,
        Some(FailureInfo::TimeoutFailureInfo(info)) if info.timeout_type() == TimeoutType::StartToClose
    ));
}

#[test]
fn an_end_that_no_run_follows_is_shown_as_it_is() {
    for event in [completed(""), failed(""), timed_out("")] {
        assert_eq!(as_continued_as_new(&event), None);
    }
    let terminated = Attributes::WorkflowExecutionTerminatedEventAttributes(Default::default());
    assert_eq!(as_continued_as_new(&event(EventType::WorkflowExecutionTerminated, terminated)), None);
    let continued =
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(WorkflowExecutionContinuedAsNewEventAttributes {
            new_execution_run_id: "next".into(),
            ..Default::default()
        });
    assert_eq!(as_continued_as_new(&event(EventType::WorkflowExecutionContinuedAsNew, continued)), None);
}
