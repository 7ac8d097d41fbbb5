//! When schedules act: edges that a table shows best.

use std::time::Duration;

use cluster::search_attributes::datetime;
use proto::temporal::api::schedule::v1::{CalendarSpec, IntervalSpec, ScheduleSpec};
use workflow::Timestamp;

use super::super::{Spec, TooManyExclusions};

fn moment(text: &str) -> Timestamp {
    datetime::parse(text).expect("a moment")
}

fn cron(text: &str) -> ScheduleSpec {
    ScheduleSpec { cron_string: vec![text.to_owned()], ..Default::default() }
}

/// The nominal times after a moment, as many as are expected.
#[track_caller]
fn check(spec: &ScheduleSpec, after: &str, expected: &[&str]) {
    let spec = Spec::parse(spec).expect("a specification");
    let mut at = moment(after);
    for expected in expected {
        at = spec.next_time("", at).expect("few exclusions").expect("a time").nominal;
        assert_eq!(at, moment(expected), "{expected}");
    }
}

#[test]
fn an_hour_that_a_day_skips_has_no_time() {
    let daily = cron("TZ=America/New_York 30 2 * * *");
    check(&daily, "2024-03-09T00:00:00Z", &["2024-03-09T07:30:00Z", "2024-03-11T06:30:00Z"]);
    let midnight = cron("TZ=Africa/Cairo 30 0 * * *");
    check(&midnight, "2024-04-25T00:00:00Z", &["2024-04-26T21:30:00Z"]);
}

#[test]
fn an_hour_that_a_day_has_twice_has_two_times() {
    let west = cron("TZ=America/New_York 30 1 * * *");
    check(&west, "2024-11-03T00:00:00Z", &["2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z", "2024-11-04T06:30:00Z"]);
    let east = cron("TZ=Europe/Berlin 30 2 * * *");
    check(&east, "2024-10-27T00:00:00Z", &["2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z", "2024-10-28T01:30:00Z"]);
    let half = cron("TZ=Australia/Lord_Howe 45 1 * * *");
    check(&half, "2024-04-06T12:00:00Z", &["2024-04-06T14:45:00Z", "2024-04-06T15:15:00Z", "2024-04-07T15:15:00Z"]);
}

#[test]
fn intervals_are_counted_from_the_epoch() {
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let spec = |interval, phase| ScheduleSpec {
        interval: vec![IntervalSpec { interval: seconds(interval), phase: seconds(phase) }],
        ..Default::default()
    };
    check(&spec(3600, 0), "1970-01-01T00:00:00Z", &["1970-01-01T01:00:00Z", "1970-01-01T02:00:00Z"]);
    check(&spec(3600, 300), "1970-01-01T00:00:00Z", &["1970-01-01T00:05:00Z", "1970-01-01T01:05:00Z"]);
    check(&spec(7 * 86_400, 0), "2024-01-01T00:00:00.5Z", &["2024-01-04T00:00:00Z", "2024-01-11T00:00:00Z"]);
}

#[test]
fn several_calendars_and_intervals_take_turns() {
    let spec = ScheduleSpec {
        cron_string: vec!["0 6 * * *".into(), "0 18 * * 1".into(), "@every 24h/7h".into()],
        ..Default::default()
    };
    let expected = ["2024-01-01T06:00:00Z", "2024-01-01T07:00:00Z", "2024-01-01T18:00:00Z", "2024-01-02T06:00:00Z"];
    check(&spec, "2024-01-01T00:00:00Z", &expected);
}

#[test]
#[expect(deprecated, reason = "older clients still exclude by calendars in text")]
fn what_is_excluded_is_passed_over() {
    let weekend = CalendarSpec { hour: "*".into(), day_of_week: "sat,sun".into(), ..Default::default() };
    let spec = ScheduleSpec { exclude_calendar: vec![weekend], ..cron("0 12 * * *") };
    check(&spec, "2024-01-05T00:00:00Z", &["2024-01-05T12:00:00Z", "2024-01-08T12:00:00Z"]);
    let all = CalendarSpec { second: "*".into(), minute: "*".into(), hour: "*".into(), ..Default::default() };
    let never = ScheduleSpec { exclude_calendar: vec![all], ..cron("@every 1s") };
    let spec = Spec::parse(&never).expect("a specification");
    assert_eq!(spec.next_time("", moment("2024-01-01T00:00:00Z")), Err(TooManyExclusions));
}

#[test]
fn a_schedule_has_a_start_and_an_end() {
    let spec = ScheduleSpec {
        start_time: Some(moment("2024-01-02T00:00:00Z").into()),
        end_time: Some(moment("2024-01-03T00:00:00Z").into()),
        ..cron("@daily")
    };
    check(&spec, "2000-01-01T00:00:00Z", &["2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z"]);
    let spec = Spec::parse(&spec).expect("a specification");
    assert_eq!(spec.next_time("", moment("2024-01-03T00:00:00Z")), Ok(None));
}

#[test]
fn what_never_comes_has_no_next_time() {
    for text in ["0 0 30 2 *", "0 0 1 1 * 2001"] {
        let spec = Spec::parse(&cron(text)).expect("a specification");
        assert_eq!(spec.next_time("", moment("2024-01-01T00:00:00Z")), Ok(None), "{text}");
    }
    let nothing = Spec::parse(&ScheduleSpec::default()).expect("a specification");
    assert_eq!(nothing.next_time("", Timestamp(0)), Ok(None));
    let last = Spec::parse(&cron("@yearly")).expect("a specification");
    assert_eq!(last.next_time("", moment("2100-01-01T00:00:00Z")), Ok(None));
}

#[test]
fn an_unknown_zone_is_refused() {
    let spec = ScheduleSpec { timezone_name: "Mars/Olympus".into(), ..cron("@daily") };
    assert_eq!(Spec::parse(&spec), Err("unknown time zone Mars/Olympus".to_owned()));
}

#[test]
fn the_jitter_never_passes_the_next_time() {
    let jitter = Some(prost_types::Duration { seconds: 7 * 86_400, nanos: 0 });
    let spec = Spec::parse(&ScheduleSpec { jitter, ..cron("@hourly") }).expect("a specification");
    let mut at = moment("2024-01-01T00:00:00Z");
    let mut delays = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let next = spec.next_time("seed", at).expect("few exclusions").expect("a time");
        let delay = next.at.since(next.nominal);
        assert!(delay < Duration::from_secs(3600));
        delays.insert(delay);
        at = next.nominal;
    }
    assert!(delays.len() > 90, "they differ");
}
