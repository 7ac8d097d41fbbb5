//! Cron schedules against dates worked out by hand.

use std::time::Duration;

use super::Schedule;
use crate::time::Timestamp;

/// 2024-02-28 10:15:30 UTC, a Wednesday in a leap year.
const NOW: Timestamp = Timestamp(1_709_115_330_000_000_000);

fn seconds_until_next(schedule: &str) -> Option<u64> {
    let schedule = Schedule::parse(schedule).ok()?;
    schedule.backoff(NOW, NOW).map(|backoff| backoff.as_secs())
}

#[test]
fn next_time_is_the_first_whole_minute_that_matches() {
    let day = 24 * 3600;
    let rest_of_today = day - (10 * 3600 + 15 * 60 + 30);
    let cases = [
        ("* * * * *", 30),
        ("*/5 * * * *", 4 * 60 + 30),
        ("15 10 * * *", day - 30),
        ("0 * * * *", 44 * 60 + 30),
        ("@hourly", 44 * 60 + 30),
        ("@daily", rest_of_today),
        ("0 0 29 2 *", rest_of_today),
        ("0 0 * * thu", rest_of_today),
        ("0 0 * * 4", rest_of_today),
        ("0 0 1 MAR ?", rest_of_today + day),
        // Both day fields restricted: either is enough.
        ("0 0 13 * 5", rest_of_today + day),
        ("CRON_TZ=UTC 0 0 * * *", rest_of_today),
        ("@every 90s", 90),
        ("@every 1h30m", 90 * 60),
    ];
    for (schedule, expected) in cases {
        assert_eq!(seconds_until_next(schedule), Some(expected), "{schedule}");
    }
}

#[test]
fn what_is_no_schedule_is_refused() {
    for text in [
        "",
        "* * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * 13 *",
        "*/0 * * * *",
        "5-1 * * * *",
        "@every",
        "0 0 30 2 *",
        "TZ=Europe/Berlin 0 0 * * *",
    ] {
        assert!(Schedule::parse(text).is_err(), "{text}");
    }
}

#[test]
fn times_that_were_missed_are_not_made_up_for() {
    let every = Schedule::parse("@every 60s").unwrap();
    let long_ago = Timestamp(NOW.0 - Duration::from_secs(3600 + 15).as_nanos() as i64);
    assert_eq!(every.backoff(long_ago, NOW), Some(Duration::from_secs(45)));
    let minutely = Schedule::parse("* * * * *").unwrap();
    assert_eq!(minutely.backoff(long_ago, NOW), Some(Duration::from_secs(30)));
}
