//! An independent reader of histories: knows the rules, not the code that keeps them.

use std::collections::{BTreeMap, BTreeSet};

use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflow::v1::WorkflowExecutionInfo;

use super::client::{Sent, SentTo};
use super::world::World;

/// Checks every run; returns how many transitions they went through.
pub(super) async fn check(world: &World, sent: &Sent) -> usize {
    let mut n_transitions = 0;
    for (workflow_id, sent) in &sent.workflows {
        let described = world.describe(workflow_id).await;
        assert_eq!(described.execution.unwrap().run_id, sent.run_id, "{workflow_id}: another run took its place");
        let events = world.history(workflow_id).await;
        assert_eq!(described.history_length, events.len() as i64, "{workflow_id}: state and history disagree");
        check_history(workflow_id, &events, sent);
        n_transitions += usize::try_from(described.state_transition_count).unwrap();
    }
    n_transitions
}

/// Visibility returns each run once, and as closed.
pub(super) async fn check_lists(world: &World, sent: &Sent) {
    let open: Vec<String> = ids(world.listed("ExecutionStatus = 'Running'").await);
    assert!(open.is_empty(), "lists tell as open: {open:?}");
    for query in ["", "CloseTime IS NOT NULL"] {
        let mut told = ids(world.listed(query).await);
        told.sort_unstable();
        let mut expected: Vec<&str> = sent.workflow_ids().collect();
        expected.sort_unstable();
        assert_eq!(told, expected, "{query:?}");
    }
}

fn ids(runs: Vec<WorkflowExecutionInfo>) -> Vec<String> {
    runs.into_iter().map(|run| run.execution.unwrap().workflow_id).collect()
}

fn check_history(workflow_id: &str, events: &[HistoryEvent], sent: &SentTo) {
    let mut signals = BTreeSet::new();
    let mut activities: BTreeMap<i64, bool> = BTreeMap::new();
    let mut starts: BTreeMap<i64, i64> = BTreeMap::new();
    let mut timers: BTreeMap<i64, bool> = BTreeMap::new();
    let mut tasks: BTreeMap<i64, bool> = BTreeMap::new();
    let close = |open: &mut BTreeMap<i64, bool>, id: i64| {
        let was_closed =
            std::mem::replace(open.get_mut(&id).unwrap_or_else(|| panic!("{workflow_id}: {id} never began")), true);
        assert!(!was_closed, "{workflow_id}: {id} ended twice");
    };
    for (expected_id, event) in (1..).zip(events) {
        assert_eq!(event.event_id, expected_id, "{workflow_id}: a gap in history");
        match event.attributes.as_ref().expect("an event has attributes") {
            Attributes::WorkflowExecutionStartedEventAttributes(_) => assert_eq!(event.event_id, 1),
            Attributes::WorkflowExecutionSignaledEventAttributes(signal) => {
                assert!(signals.insert(signal.request_id.clone()), "{workflow_id}: {} came twice", signal.request_id);
            }
            Attributes::ActivityTaskScheduledEventAttributes(_) => {
                activities.insert(event.event_id, false);
            }
            Attributes::ActivityTaskCompletedEventAttributes(done) => {
                close(&mut activities, done.scheduled_event_id);
                let started = starts.get(&done.started_event_id);
                assert_eq!(started, Some(&done.scheduled_event_id), "{workflow_id}: completed without its start");
            }
            Attributes::TimerStartedEventAttributes(_) => {
                timers.insert(event.event_id, false);
            }
            Attributes::TimerFiredEventAttributes(fired) => {
                close(&mut timers, fired.started_event_id);
                check_not_early(workflow_id, events, fired.started_event_id, event);
            }
            Attributes::WorkflowTaskScheduledEventAttributes(_) => {
                tasks.insert(event.event_id, false);
            }
            Attributes::WorkflowTaskCompletedEventAttributes(done) => close(&mut tasks, done.scheduled_event_id),
            Attributes::WorkflowTaskTimedOutEventAttributes(done) => close(&mut tasks, done.scheduled_event_id),
            Attributes::WorkflowTaskFailedEventAttributes(done) => close(&mut tasks, done.scheduled_event_id),
            Attributes::WorkflowTaskStartedEventAttributes(started) => {
                assert!(tasks.contains_key(&started.scheduled_event_id), "{workflow_id}: a task began from nothing");
            }
            Attributes::ActivityTaskStartedEventAttributes(started) => {
                assert!(
                    activities.contains_key(&started.scheduled_event_id),
                    "{workflow_id}: an activity from nothing"
                );
                starts.insert(event.event_id, started.scheduled_event_id);
            }
            Attributes::WorkflowExecutionCompletedEventAttributes(_) => {
                assert_eq!(event.event_id, events.len() as i64, "{workflow_id}: something came after the end");
            }
            // What may lie between them is checked where runs are paused.
            Attributes::WorkflowExecutionPausedEventAttributes(_)
            | Attributes::WorkflowExecutionUnpausedEventAttributes(_) => {}
            other => panic!("{workflow_id}: did not expect {other:?}"),
        }
    }
    let ended =
        matches!(events.last().unwrap().attributes, Some(Attributes::WorkflowExecutionCompletedEventAttributes(_)));
    assert!(ended, "{workflow_id}: did not complete");
    assert!(activities.values().chain(timers.values()).all(|closed| *closed), "{workflow_id}: something never ended");
    assert_eq!(activities.len(), sent.n_activities, "{workflow_id}: activities lost or doubled");
    let acknowledged: BTreeSet<String> = sent.signals.iter().cloned().collect();
    assert_eq!(signals, acknowledged, "{workflow_id}: signals lost or invented");
}

fn check_not_early(workflow_id: &str, events: &[HistoryEvent], started_event_id: i64, fired: &HistoryEvent) {
    let started = &events[usize::try_from(started_event_id - 1).unwrap()];
    let (from, to) = (started.event_time.unwrap(), fired.event_time.unwrap());
    let nanos = (to.seconds - from.seconds) * 1_000_000_000 + i64::from(to.nanos - from.nanos);
    assert!(nanos >= 1_000_000_000, "{workflow_id}: a timer fired {nanos} ns after it was started");
}
