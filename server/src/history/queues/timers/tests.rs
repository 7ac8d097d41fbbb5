//! Claims about the timer index.

use std::time::Duration;

use persistence::stores::executions::TimerKey;
use workflow::{EventId, TimerTask, Timestamp};

use super::{LATE_MAX, LATE_PART, Timers, Wanted, shared_moment};

const START: Timestamp = Timestamp(1_000_000_000_000);

fn at(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn key(seconds: u64, task_id: i64) -> TimerKey {
    TimerKey { fires_at: at(seconds), task_id }
}

/// An owner that has read everything: the store was empty.
fn caught_up(near_max: usize) -> Timers<u32> {
    let mut timers = Timers::new(key(0, 0), near_max);
    let wanted = timers.begin_read(START).expect("a new owner reads");
    timers.end_read(Vec::new(), wanted.before, None);
    timers
}

#[test]
fn a_timer_is_never_taken_out_early() {
    let mut timers = caught_up(10);
    timers.add(key(5, 1), 7);
    assert!(timers.due(Timestamp(at(5).0 - 1)).is_empty());
    assert_eq!(timers.due(at(5)), [(key(5, 1), 7)]);
}

#[test]
fn an_empty_queue_asks_for_nothing() {
    let mut timers = caught_up(10);
    assert_eq!(timers.next_look(), None);
    assert_eq!(timers.begin_read(at(100_000)), None);
}

#[test]
fn a_far_timer_is_read_back_before_its_time() {
    let mut timers = Timers::new(key(0, 0), 10);
    let wanted = timers.begin_read(START).expect("a new owner reads");
    timers.end_read(Vec::<(_, u32)>::new(), wanted.before, Some(at(86_400)));
    assert_eq!(timers.next_look(), Some(at(86_400 - 300)));
    assert_eq!(timers.begin_read(at(100)), None);
    let wanted = timers.begin_read(at(86_400 - 300)).expect("it is near now");
    assert_eq!(wanted, Wanted { from: key(600, i64::MIN), before: at(86_400 + 300) });
    timers.end_read(vec![(key(86_400, 3), 1)], wanted.before, None);
    assert_eq!(timers.due(at(86_400)).len(), 1);
}

#[test]
fn a_timer_committed_during_a_read_is_not_missed() {
    let mut timers = Timers::new(key(0, 0), 10);
    let wanted = timers.begin_read(START).expect("a new owner reads");
    timers.add(key(1, 9), 1);
    timers.add(key(100_000, 10), 2);
    timers.end_read(Vec::new(), wanted.before, None);
    assert_eq!(timers.due(at(1)).len(), 1);
    assert_eq!(timers.next_look(), Some(at(100_000 - 300)));
}

#[test]
fn overflow_leaves_the_farthest_in_the_store() {
    let mut timers = caught_up(2);
    for (seconds, id) in [(30, 1), (20, 2), (10, 3)] {
        timers.add(key(seconds, id), 0);
    }
    assert_eq!(timers.due(at(25)).len(), 2);
    let wanted = timers.begin_read(at(25)).expect("the third is only in the store");
    assert_eq!(wanted.from, key(30, i64::MIN));
}

#[test]
fn the_ack_level_stays_below_whatever_is_not_done() {
    let mut timers = caught_up(10);
    timers.add(key(5, 1), 0);
    timers.add(key(7, 2), 0);
    let due = timers.due(at(8));
    assert_eq!(due.len(), 2);
    timers.done(key(7, 2));
    assert_eq!(timers.ack(at(8)), key(5, 0));
    timers.done(key(5, 1));
    assert_eq!(timers.ack(at(8)), key(8, i64::MIN));
}

#[test]
fn the_ack_level_never_passes_what_was_not_read() {
    let mut timers = Timers::<u32>::new(key(0, 0), 10);
    assert_eq!(timers.ack(at(50)), key(0, 0));
}

#[test]
fn timers_pushed_out_during_a_read_are_not_passed_over() {
    let mut timers = Timers::new(key(0, 0), 4);
    let wanted = timers.begin_read(START).expect("a new owner reads");
    timers.end_read(vec![(key(100, 1), 0), (key(200, 2), 0)], wanted.before, Some(at(650)));
    timers.begin_read(at(100)).expect("the next stretch is near");
    for (seconds, id) in [(110, 3), (120, 4), (130, 5)] {
        timers.add(key(seconds, id), 0);
    }
    timers.end_read(vec![(key(650, 9), 0)], at(700), None);
    assert_eq!(timers.due(at(150)).len(), 4);
    assert_eq!(timers.begin_read(at(150)).expect("the last is only in the store").from, key(200, i64::MIN));
}

#[test]
fn a_timer_that_is_being_fired_is_not_added_again() {
    let mut timers = Timers::new(key(0, 0), 4);
    let wanted = timers.begin_read(START).expect("a new owner reads");
    timers.end_read(vec![(key(1, 1), 0)], wanted.before, None);
    assert_eq!(timers.due(at(1)).len(), 1);
    timers.add(key(1, 1), 0);
    assert!(timers.due(at(1)).is_empty());
    timers.done(key(1, 1));
}

const TIMEOUT: TimerTask = TimerTask::ActivityTimeout { scheduled_event_id: EventId(5), attempt: 1, version: 0 };

#[test]
fn a_timeout_never_comes_early_and_only_a_little_late() {
    for wait in [1, 63, 64, 65, 1_000_000, 999_999_999, 10_000_000_000, 86_400_000_000_000] {
        for begun in (0..1000).map(|n| Timestamp(START.0 + n * 7_777_777)) {
            let fires_at = begun + Duration::from_nanos(wait);
            let late = shared_moment(fires_at, begun, &TIMEOUT).0 - fires_at.0;
            let late_max = (wait as i64 / LATE_PART).min(LATE_MAX.as_nanos() as i64);
            assert!((0..=late_max).contains(&late), "{late} ns after a wait of {wait}");
        }
    }
    let never = Timestamp(i64::MAX);
    assert_eq!(shared_moment(never, START, &TIMEOUT), never);
    assert_eq!(shared_moment(START, at(1), &TIMEOUT), START, "what is over is due at once");
}

#[test]
fn timeouts_of_the_same_length_fall_on_few_moments() {
    let begun = (0..1000).map(|n| START + Duration::from_millis(n));
    let moments = begun.map(|begun| shared_moment(begun + Duration::from_secs(10), begun, &TIMEOUT));
    let n_moments = moments.collect::<std::collections::BTreeSet<_>>().len();
    assert!(n_moments <= 9, "{n_moments} for those of a second");
}

#[test]
fn what_a_user_waits_for_comes_on_time() {
    let fires_at = Timestamp(at(1000).0 + 1);
    let timer = TimerTask::UserTimer { started_event_id: EventId(5), version: 0 };
    let retry = TimerTask::ActivityRetry { scheduled_event_id: EventId(5), attempt: 2, stamp: 0, version: 0 };
    let first = TimerTask::FirstWorkflowTask { version: 0 };
    for task in [timer, retry, first, TimerTask::Schedule] {
        assert_eq!(shared_moment(fires_at, START, &task), fires_at, "{task:?}");
    }
}

#[test]
fn a_run_times_out_before_an_activity_that_it_scheduled_later_with_the_same_timeout() {
    for of_run in [TimerTask::RunTimeout { version: 0 }, TimerTask::ExecutionTimeout { version: 0 }] {
        for seconds in [1, 3, 60, 3600] {
            let timeout = Duration::from_secs(seconds);
            for later in [1, 5, 20, 300] {
                let scheduled = START + Duration::from_millis(later);
                let run_ends = shared_moment(START + timeout, START, &of_run);
                let activity_ends = shared_moment(scheduled + timeout, scheduled, &TIMEOUT);
                assert!(run_ends < activity_ends, "{of_run:?} of {seconds} s, {later} ms");
            }
        }
    }
}
