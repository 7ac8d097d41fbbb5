//! Limits and meters at given moments.

use std::time::Duration;

use workflow::Timestamp;

use super::{Meter, RateLimit, UNLIMITED_PER_SECOND};

const BEGIN: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn at(millis: u64) -> Timestamp {
    BEGIN + Duration::from_millis(millis)
}

/// How many tasks may go at once at that moment.
fn drain(limit: &mut RateLimit, millis: u64) -> usize {
    (0..1000).take_while(|_| limit.take(at(millis)).is_ok()).count()
}

#[test]
fn without_a_limit_every_task_may_go() {
    let mut limit = RateLimit::none(BEGIN);
    assert_eq!(drain(&mut limit, 0), 1000);
    assert_eq!(limit.per_second(), UNLIMITED_PER_SECOND);
}

#[test]
fn a_limit_allows_one_second_at_once_and_then_its_rate() {
    let mut limit = RateLimit::none(BEGIN);
    limit.set(Some(10.0), BEGIN);
    for (millis, expected) in [(0, 10), (50, 0), (100, 1), (1100, 10), (60_000, 10)] {
        assert_eq!(drain(&mut limit, millis), expected, "at {millis} ms");
    }
}

#[test]
fn a_refused_task_gets_the_time_when_it_may_go() {
    let mut limit = RateLimit::none(BEGIN);
    limit.set(Some(0.5), BEGIN);
    assert_eq!(limit.take(BEGIN), Ok(()));
    let ready_at = limit.take(BEGIN).unwrap_err();
    assert_eq!(ready_at, at(2000));
    assert_eq!(limit.take(ready_at), Ok(()));
}

#[test]
fn a_rate_of_zero_lets_nothing_go_until_it_is_lifted() {
    let mut limit = RateLimit::none(BEGIN);
    limit.set(Some(0.0), BEGIN);
    assert_eq!(drain(&mut limit, 100_000), 0);
    limit.set(None, at(100_000));
    assert_eq!(drain(&mut limit, 100_000), 1000);
}

#[test]
fn setting_the_same_limit_again_gives_no_new_burst() {
    let mut limit = RateLimit::none(BEGIN);
    limit.set(Some(5.0), BEGIN);
    assert_eq!(drain(&mut limit, 0), 5);
    limit.set(Some(5.0), BEGIN);
    assert_eq!(drain(&mut limit, 0), 0);
    limit.give_back();
    assert_eq!(drain(&mut limit, 0), 1);
}

#[test]
fn a_meter_forgets_what_is_older_than_half_a_minute() {
    let mut meter = Meter::default();
    for millis in [0, 500, 1_000] {
        meter.count(at(millis));
    }
    assert_eq!(meter.per_second(at(1_000)), 0.1);
    assert_eq!(meter.per_second(at(30_000)), 1.0 / 30.0);
    assert_eq!(meter.per_second(at(31_000)), 0.0);
}
