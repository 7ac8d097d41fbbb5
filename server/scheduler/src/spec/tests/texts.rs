//! What is written: cron strings and calendars in text, in their one form, and what is refused.

use proto::temporal::api::schedule::v1::{CalendarSpec, IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec};

use super::super::canonical;

fn range(start: i32, end: i32, step: i32) -> Range {
    Range { start, end, step }
}

fn cron(text: &str) -> ScheduleSpec {
    ScheduleSpec { cron_string: vec![text.to_owned()], ..Default::default() }
}

fn calendar_of(spec: &ScheduleSpec) -> StructuredCalendarSpec {
    let canonical = canonical(spec).expect("a specification");
    assert!(canonical.cron_string.is_empty() && canonical.calendar.is_empty());
    canonical.structured_calendar.into_iter().next().expect("a calendar")
}

#[test]
fn a_cron_string_is_a_calendar() {
    let calendar = calendar_of(&cron("*/15 9-17 1,15 jan-mar mon-fri # office hours"));
    assert_eq!(calendar.second, [range(0, 0, 0)]);
    assert_eq!(calendar.minute, [range(0, 59, 15)]);
    assert_eq!(calendar.hour, [range(9, 17, 0)]);
    assert_eq!(calendar.day_of_month, [range(1, 0, 0), range(15, 0, 0)]);
    assert_eq!(calendar.month, [range(1, 3, 0)]);
    assert_eq!(calendar.day_of_week, [range(1, 5, 0)]);
    assert!(calendar.year.is_empty());
    assert_eq!(calendar.comment, "office hours");
}

#[test]
fn a_cron_string_may_have_years_and_seconds() {
    assert_eq!(calendar_of(&cron("0 0 1 1 * 2030")).year, [range(2030, 0, 0)]);
    let calendar = calendar_of(&cron("5/20 0 0 1 1 * 2030-2040/5"));
    assert_eq!(calendar.second, [range(5, 59, 20)]);
    assert_eq!(calendar.year, [range(2030, 2040, 5)]);
}

#[test]
fn sunday_has_two_numbers() {
    let cases = [
        ("7", vec![range(0, 0, 0)]),
        ("0-7", vec![range(0, 6, 0)]),
        ("1-7", vec![range(1, 6, 0)]),
        ("3-7", vec![range(0, 0, 0), range(3, 6, 0)]),
        ("3-7/3", vec![range(3, 6, 3)]),
        ("1-7/2", vec![range(0, 0, 0), range(1, 6, 2)]),
        ("su,Saturday", vec![range(0, 0, 0), range(6, 0, 0)]),
    ];
    for (text, expected) in cases {
        assert_eq!(calendar_of(&cron(&format!("0 0 * * {text}"))).day_of_week, expected, "{text}");
    }
}

#[test]
fn every_is_an_interval() {
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let cases = [
        ("@every 90m", IntervalSpec { interval: seconds(5400), phase: None }),
        ("@every 14h/3h", IntervalSpec { interval: seconds(14 * 3600), phase: seconds(3 * 3600) }),
        ("TZ=Europe/Berlin @every 1d", IntervalSpec { interval: seconds(24 * 3600), phase: None }),
    ];
    for (text, expected) in cases {
        let canonical = canonical(&cron(text)).expect("a specification");
        assert_eq!(canonical.interval, [expected], "{text}");
        assert_eq!(canonical.timezone_name, "");
    }
}

#[test]
fn the_zone_of_cron_strings_is_the_zone_of_all() {
    assert_eq!(canonical(&cron("CRON_TZ=Asia/Tokyo @daily")).expect("fine").timezone_name, "Asia/Tokyo");
    let conflict = Err("conflicting timezone names".to_owned());
    let two = ScheduleSpec { cron_string: vec!["TZ=Asia/Tokyo @daily".into(), "@daily".into()], ..Default::default() };
    assert_eq!(canonical(&two), conflict);
    let other = ScheduleSpec { timezone_name: "UTC".into(), ..cron("TZ=Asia/Tokyo @daily") };
    assert_eq!(canonical(&other), conflict);
}

#[test]
fn wrong_texts_are_refused_in_the_words_of_the_reference() {
    let cases = [
        ("", "CronString does not have 5-7 fields"),
        ("* * * *", "CronString does not have 5-7 fields"),
        ("* * * * * * * *", "CronString does not have 5-7 fields"),
        ("TZ=Asia/Tokyo", "CronString has time zone but missing fields"),
        ("@every", "CronString does not have interval after @every"),
        ("@every soon", "time: invalid duration \"soon\""),
        ("@every 1ms", "interval is too small"),
        ("@every 1h/2h", "phase cannot be greater than Interval"),
        ("60 * * * *", "Minute is not in range [0-59]"),
        ("x * * * *", "Minute is not in range [0-59]"),
        ("5-3 * * * *", "Minute End is before Start or not in range [0-59]"),
        ("70-75 * * * *", "Minute Start is not in range [0-59]"),
        ("1-2-3 * * * *", "Minute has too many dashes"),
        ("1/2/3 * * * *", "Minute has too many slashes"),
        ("1/ * * * *", "Minute missing step value"),
        ("1/0 * * * *", "Minute has invalid Step"),
        ("60 24 * * 8", "Minute is not in range [0-59], Hour is not in range [0-23], DayOfWeek is not in range [0-7]"),
        ("0 0 1 1 * 1999", "Year is not in range [2000-2100]"),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(&cron(text)), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn wrong_structures_are_refused_in_the_words_of_the_reference() {
    let structured = |calendar| ScheduleSpec { structured_calendar: vec![calendar], ..Default::default() };
    let wrong = StructuredCalendarSpec {
        second: vec![range(60, 0, 0)],
        hour: vec![range(5, 3, 0)],
        year: vec![range(2000, 0, -1)],
        comment: "x".repeat(201),
        ..Default::default()
    };
    let expected = "invalid calendar spec: Second Start is not in range [0-59], Hour End is before Start or not in range \
                    [0-23], Year has invalid Step, comment is too long";
    assert_eq!(canonical(&structured(wrong)), Err(expected.to_owned()));
    let calendar = ScheduleSpec {
        calendar: vec![CalendarSpec { month: "juneau".into(), ..Default::default() }],
        ..Default::default()
    };
    assert_eq!(canonical(&calendar), Err("Month is not in range [1-12]".to_owned()));
}
