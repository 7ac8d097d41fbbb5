//! Replay of histories that no run of ours can have: each is refused, none panics.

use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::history::v1::HistoryEvent;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use workflow::{Branch, ReplayError, replay};

use crate::run::{Run, SECOND, complete_workflow, key, schedule_activity, start_timer};

fn history() -> Vec<HistoryEvent> {
    let mut run = Run::after(vec![schedule_activity("a"), start_timer("t", SECOND)]);
    run.start_activity(5).unwrap();
    run.complete_activity(5).unwrap();
    run.work(Vec::new());
    run.fire_next_timer().unwrap();
    run.fire_next_timer().unwrap();
    run.signal("s").unwrap();
    run.start_task();
    run.complete_task(vec![complete_workflow()]);
    run.events().cloned().collect()
}

fn outcome(events: Vec<HistoryEvent>) -> Result<workflow::ExecutionState, ReplayError> {
    replay(key(), Branch::root(key().run_id), &[events])
}

#[test]
fn a_history_is_replayed_only_if_every_event_fits() {
    let good = history();
    assert!(outcome(good.clone()).is_ok());
    assert_eq!(outcome(Vec::new()), Err(ReplayError::Empty));
    assert_eq!(outcome(good[1..].to_vec()), Err(ReplayError::Gap { expected: 1, found: 2 }));
    type Change = fn(&mut Vec<HistoryEvent>);
    let cases: [(Change, &str); 7] = [
        (|events| drop(events.remove(3)), "event 5 stands where event 4 should"),
        (|events| events[2].attributes = None, "event 3 does not fit: an event says what happened"),
        (|events| events[2].event_time = None, "event 3 does not fit: an event has a time"),
        (
            |events| events[2].set_event_type(EventType::TimerFired),
            "event 3 does not fit: an event's type says the same as its attributes",
        ),
        (|events| events[4].version = 3, "event 5 does not fit: failover versions do not go back"),
        (
            |events| {
                let again = events[0].clone();
                events[1] = HistoryEvent { event_id: 2, ..again };
            },
            "event 2 does not fit: a run starts once",
        ),
        (
            |events| {
                let last = events.last().unwrap().clone();
                let event_id = last.event_id + 1;
                events.push(HistoryEvent { event_id, ..last });
            },
            "does not fit: nothing happens to a closed run",
        ),
    ];
    for (change, expected) in cases {
        let mut events = good.clone();
        change(&mut events);
        let error = outcome(events).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn no_shuffled_history_makes_replay_panic() {
    let good = history();
    for seed in 0..500 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut events = good.clone();
        for _ in 0..3 {
            let (from, to) = (random.random_range(1..events.len()), random.random_range(1..events.len()));
            events.swap(from, to);
        }
        // As if they were in order, so that more than the ids is looked at.
        for (event, id) in events.iter_mut().zip(1..) {
            event.event_id = id;
        }
        let _ = outcome(events);
    }
}

#[test]
fn a_task_id_given_later_does_not_change_the_state() {
    let mut events = history();
    let before = outcome(events.clone()).unwrap();
    for (event, task_id) in events.iter_mut().zip(1_000_000..) {
        event.task_id = task_id;
    }
    assert_eq!(outcome(events).unwrap(), before);
}
