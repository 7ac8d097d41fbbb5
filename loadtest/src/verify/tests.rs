//! A good history passes; one from which something was taken, or to which something was added, does not.

use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::history::v1 as events;

use super::*;

fn script() -> Script {
    "0 activities:1 timers:1@1000ms".parse().expect("a script")
}

fn numbered(attributes: Vec<Attributes>) -> Vec<HistoryEvent> {
    let number = |(event_id, attributes)| HistoryEvent {
        event_id,
        event_time: Some(prost_types::Timestamp { seconds: event_id, nanos: 0 }),
        event_type: EventType::Unspecified.into(),
        attributes: Some(attributes),
        ..Default::default()
    };
    (1..).zip(attributes).map(number).collect()
}

/// One activity, then a timer of a second, then the end.
fn good() -> Vec<Attributes> {
    let started = events::WorkflowExecutionStartedEventAttributes {
        input: Some(payload::json(script().to_string())),
        ..Default::default()
    };
    let task_completed = |scheduled_event_id| {
        Attributes::WorkflowTaskCompletedEventAttributes(events::WorkflowTaskCompletedEventAttributes {
            scheduled_event_id,
            ..Default::default()
        })
    };
    let timer = events::TimerStartedEventAttributes {
        start_to_fire_timeout: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..Default::default()
    };
    vec![
        Attributes::WorkflowExecutionStartedEventAttributes(started),
        Attributes::WorkflowTaskScheduledEventAttributes(Default::default()),
        task_completed(2),
        Attributes::ActivityTaskScheduledEventAttributes(Default::default()),
        Attributes::ActivityTaskCompletedEventAttributes(events::ActivityTaskCompletedEventAttributes {
            scheduled_event_id: 4,
            ..Default::default()
        }),
        Attributes::TimerStartedEventAttributes(timer),
        Attributes::TimerFiredEventAttributes(events::TimerFiredEventAttributes {
            started_event_id: 6,
            ..Default::default()
        }),
        Attributes::WorkflowExecutionCompletedEventAttributes(events::WorkflowExecutionCompletedEventAttributes {
            result: Some(payload::json(4)),
            ..Default::default()
        }),
    ]
}

fn check(events: &[HistoryEvent]) -> Result<Script> {
    history(events, &script(), End::Completed { result: 4 }, Gathered::default())
}

#[track_caller]
fn refused(events: &[HistoryEvent], reason: &str) {
    let error = format!("{:#}", check(events).expect_err("a flaw was not seen"));
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_history_that_tells_all_of_its_script_passes() {
    check(&numbered(good())).expect("nothing is wrong with it");
}

#[test]
fn an_event_that_is_lost_is_missed() {
    let mut doctored = numbered(good());
    doctored.remove(4);
    refused(&doctored, "event 5 is missing");
}

#[test]
fn an_activity_that_is_lost_without_a_gap_is_missed() {
    let mut attributes = good();
    attributes[4] = Attributes::ActivityTaskStartedEventAttributes(Default::default());
    refused(&numbered(attributes), "has no ActivityTaskCompleted");
}

#[test]
fn an_activity_that_never_was_is_missed() {
    let mut attributes = good();
    attributes.drain(3..5);
    // The timer's event moved with it.
    attributes[4] = Attributes::TimerFiredEventAttributes(events::TimerFiredEventAttributes {
        started_event_id: 4,
        ..Default::default()
    });
    refused(&numbered(attributes), "0 events ActivityTaskCompleted instead of 1");
}

#[test]
fn an_activity_that_is_completed_twice_is_noticed() {
    let mut attributes = good();
    let twice = attributes[4].clone();
    attributes.insert(5, twice);
    refused(&numbered(attributes), "had ended");
}

#[test]
fn a_timer_that_fires_early_is_noticed() {
    let mut doctored = numbered(good());
    doctored[6].event_time = Some(prost_types::Timestamp { seconds: 6, nanos: 999_999_999 });
    refused(&doctored, "a timer of 1000000000 ns fired after 999999999 ns");
}

#[test]
fn a_run_that_closes_twice_is_noticed() {
    let mut attributes = good();
    let twice = attributes[7].clone();
    attributes.push(twice);
    refused(&numbered(attributes), "closed before its last event");
}

#[test]
fn a_run_that_returns_something_else_is_noticed() {
    let mut attributes = good();
    attributes[7] =
        Attributes::WorkflowExecutionCompletedEventAttributes(events::WorkflowExecutionCompletedEventAttributes {
            result: Some(payload::json(5)),
            ..Default::default()
        });
    refused(&numbered(attributes), "returned Some(5) instead of 4");
}

#[test]
fn a_signal_that_comes_twice_is_noticed() {
    let signal = || {
        Attributes::WorkflowExecutionSignaledEventAttributes(events::WorkflowExecutionSignaledEventAttributes {
            request_id: "the same".into(),
            ..Default::default()
        })
    };
    let mut attributes = good();
    attributes.splice(7..7, [signal(), signal()]);
    refused(&numbered(attributes), "came twice");
}

#[test]
fn a_sample_keeps_all_while_there_is_room_and_never_more_than_its_size() {
    let sample = Sample::new(10);
    let finished = |n: u64| Finished {
        started: Started {
            namespace: String::new(),
            workflow_id: n.to_string(),
            run_id: String::new(),
            script: Script::default(),
        },
        runs: Vec::new(),
        result: 0,
        gathered: None,
    };
    (0..1000).for_each(|n| sample.see(finished(n)));
    let (n_seen, kept) = sample.take();
    assert_eq!((n_seen, kept.len()), (1000, 10));
    let late = kept.iter().filter(|kept| kept.started.workflow_id.parse::<u64>().is_ok_and(|n| n >= 100));
    assert!(late.count() >= 5, "a sample that sees only the beginning is none");
}
