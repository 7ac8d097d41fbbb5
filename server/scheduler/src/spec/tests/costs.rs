//! What a search for times costs, counted in the steps of its budget: no specification costs more than its size allows.

use proto::temporal::api::schedule::v1::{IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec};
use workflow::Timestamp;

use super::super::{NextTime, SPEC_BYTES_MAX, Search, Spec, TooManyExclusions, canonical};

/// 2026-01-01.
const NOW: Timestamp = Timestamp(1_767_225_600_000_000_000);
const DAY: i64 = 24 * 60 * 60 * 1_000_000_000;

fn range(start: i32, end: i32) -> Range {
    Range { start, end, step: 0 }
}

/// Every second.
fn always() -> StructuredCalendarSpec {
    StructuredCalendarSpec {
        second: vec![range(0, 59)],
        minute: vec![range(0, 59)],
        hour: vec![range(0, 23)],
        day_of_month: vec![range(1, 31)],
        month: vec![range(1, 12)],
        day_of_week: vec![range(0, 6)],
        ..Default::default()
    }
}

fn thirtieth_of_february() -> StructuredCalendarSpec {
    StructuredCalendarSpec { day_of_month: vec![range(30, 30)], month: vec![range(2, 2)], ..always() }
}

fn every_second() -> IntervalSpec {
    IntervalSpec { interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }), phase: None }
}

/// What a search gives, and the steps that it took.
fn searched(spec: &ScheduleSpec) -> (Result<Option<NextTime>, TooManyExclusions>, u64) {
    let spec = Spec::parse(spec).expect("a specification");
    let mut budget = spec.budget();
    let found = Search::new(&spec, "", &mut budget).next_time(NOW);
    (found, budget.spent())
}

#[test]
fn a_range_of_all_integers_is_refused_where_it_is_excluded_too() {
    let wrong = StructuredCalendarSpec { second: vec![range(i32::MIN, i32::MAX)], ..always() };
    let included = ScheduleSpec { structured_calendar: vec![wrong.clone()], ..Default::default() };
    let excluded = ScheduleSpec { exclude_structured_calendar: vec![wrong], ..Default::default() };
    let refusal = "invalid calendar spec: Second Start is not in range [0-59], Second End is before Start or not in range \
                   [0-59]";
    assert_eq!(canonical(&included), Err(refusal.to_owned()));
    assert_eq!(canonical(&excluded), Err(refusal.to_owned()));
}

#[test]
fn a_range_of_all_integers_that_is_stored_is_cut_to_its_field() {
    let all = Range { start: i32::MIN, end: i32::MAX, step: 1 };
    let odd = Range { start: i32::MIN + 1, end: i32::MAX, step: 2 };
    let wide = StructuredCalendarSpec {
        second: vec![odd],
        minute: vec![all],
        hour: vec![all],
        day_of_month: vec![all],
        month: vec![all],
        day_of_week: vec![all],
        year: vec![all],
        ..Default::default()
    };
    let spec = ScheduleSpec {
        interval: vec![every_second()],
        exclude_structured_calendar: vec![wide; 1000],
        ..Default::default()
    };
    let (found, steps) = searched(&spec);
    // Odd seconds are excluded, so that the next second is left out and the one after it is not.
    assert_eq!(found.expect("it is found").expect("a time").nominal, Timestamp(NOW.0 + 2_000_000_000));
    assert!(steps < 200, "{steps} steps");
}

#[test]
fn calendars_without_a_day_and_everything_excluded_end_within_the_budget() {
    let mut calendars = vec![thirtieth_of_february(); 20];
    calendars.push(always());
    let spec = ScheduleSpec {
        structured_calendar: calendars,
        exclude_structured_calendar: vec![always()],
        ..Default::default()
    };
    assert!(canonical(&spec).is_ok(), "all of its values are valid");
    let (found, steps) = searched(&spec);
    assert_eq!(found, Err(TooManyExclusions));
    assert!(steps < 250_000, "{steps} steps");
}

#[test]
fn a_calendar_without_a_day_takes_two_steps_for_each_year() {
    let spec = ScheduleSpec { structured_calendar: vec![thirtieth_of_february(); 100], ..Default::default() };
    let (found, steps) = searched(&spec);
    assert_eq!(found, Ok(None));
    assert!(steps < 160 * 100, "{steps} steps");
}

#[test]
fn the_largest_specification_of_calendars_without_a_day_is_searched_to_its_end() {
    let mut spec = ScheduleSpec::default();
    let calendar = StructuredCalendarSpec {
        second: vec![range(0, 0)],
        minute: vec![range(0, 0)],
        hour: vec![range(0, 0)],
        ..thirtieth_of_february()
    };
    while canonical(&spec).is_ok() {
        spec.structured_calendar.push(calendar.clone());
    }
    spec.structured_calendar.pop();
    let n_calendars = u64::try_from(spec.structured_calendar.len()).expect("a number");
    let (found, steps) = searched(&spec);
    assert_eq!(found, Ok(None));
    assert!(steps < 160 * n_calendars, "{steps} steps for {n_calendars} calendars");
}

#[test]
fn a_specification_has_a_size() {
    let comment = "x".repeat(SPEC_BYTES_MAX);
    let calendar = StructuredCalendarSpec { comment, ..always() };
    let spec = ScheduleSpec { structured_calendar: vec![calendar], ..Default::default() };
    let refusal = canonical(&spec).expect_err("it is too long");
    assert!(refusal.starts_with("specification is too long"), "{refusal}");
}

/// As people write it: a text calendar has second and minute zero unless it says otherwise.
#[test]
fn what_is_excluded_for_years_is_passed_over_by_days() {
    let minutes = StructuredCalendarSpec { second: vec![range(0, 0)], ..always() };
    let all_but_new_year = StructuredCalendarSpec { month: vec![range(2, 12)], ..minutes.clone() };
    let spec = ScheduleSpec {
        structured_calendar: vec![minutes],
        exclude_structured_calendar: vec![all_but_new_year],
        timezone_name: "America/New_York".to_owned(),
        ..Default::default()
    };
    let spec = Spec::parse(&spec).expect("a specification");
    let mut budget = spec.budget();
    let february = Timestamp(NOW.0 + 31 * DAY + DAY / 2);
    let found = Search::new(&spec, "", &mut budget).next_time(february).expect("it is found").expect("a time");
    // Midnight of the first of January in New York.
    assert_eq!(found.nominal, Timestamp(NOW.0 + 365 * DAY + 5 * DAY / 24));
    assert!(budget.spent() < 5_000, "{} steps", budget.spent());
}

#[test]
fn a_thousand_times_cost_little_more_than_the_calendars() {
    let daily = |hour: i32| StructuredCalendarSpec {
        hour: vec![range(hour, hour)],
        second: vec![range(0, 0)],
        minute: vec![range(0, 0)],
        ..always()
    };
    let mut calendars = vec![thirtieth_of_february(); 500];
    calendars.extend((0..24).map(daily));
    let spec = Spec::parse(&ScheduleSpec { structured_calendar: calendars, ..Default::default() }).expect("it is fine");
    let mut budget = spec.budget();
    let mut search = Search::new(&spec, "", &mut budget);
    let mut at = NOW;
    for _ in 0..1000 {
        at = search.next_time(at).expect("it is found").expect("a time").at;
    }
    assert_eq!(at, Timestamp(NOW.0 + 1000 * DAY / 24));
    assert!(budget.spent() < 500 * 160 + 24 * 1000, "{} steps", budget.spent());
}
