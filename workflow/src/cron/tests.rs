//! Cron schedules against dates worked out by hand.

use std::time::Duration;

use super::Schedule;
use super::calendar::NANOS_PER_SECOND;
use crate::civil::days_since_epoch;
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
        // A step restricts the field, so either is enough here too.
        ("0 0 */2 * 4", rest_of_today),
        ("0 0 */1 * fri", rest_of_today + day),
        ("0 0 *,1 * fri", rest_of_today + day),
        ("0 0 , * 4", rest_of_today),
        ("CRON_TZ=UTC 0 0 * * *", rest_of_today),
        ("TZ= 0 0 * * *", rest_of_today),
        ("@every 90s", 90),
        ("@every 1h30m", 90 * 60),
        ("@every 1.5h", 90 * 60),
        ("@every 1500ms", 1),
        ("@every 1ns", 1),
        ("@every 0", 1),
        ("@every -5m", 1),
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
        "@every 5",
        "@every 1h x",
        "@every .s",
        "@fortnightly",
        " @daily",
        ", * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "TZ=Europe/Berlin",
        "TZ=Europe/Nowhere 0 0 * * *",
        "TZ=europe/berlin 0 0 * * *",
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

/// Seconds since the epoch of `2024-03-09T12:00:00Z`.
fn moment(text: &str) -> i64 {
    let numbers: Vec<i64> =
        text.split(['-', 'T', ':', 'Z']).filter(|part| !part.is_empty()).map(|part| part.parse().unwrap()).collect();
    let [year, month, day, hour, minute, second] = numbers[..] else { panic!("{text} is no moment") };
    days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
}

/// What the cron library of the reference says, on days on which clocks are set and on plain ones.
#[test]
fn a_zone_is_kept_to_when_its_clocks_are_set() {
    let cases = [
        ("America/New_York 30 2 * * *", "2024-03-09T12:00:00Z", "2024-03-11T06:30:00Z"),
        ("America/New_York 0 3 * * *", "2024-03-10T06:00:00Z", "2024-03-10T07:00:00Z"),
        ("America/New_York */30 * * * *", "2024-03-10T06:45:00Z", "2024-03-10T07:00:00Z"),
        ("America/New_York @daily", "2024-03-10T06:45:00Z", "2024-03-11T04:00:00Z"),
        ("America/New_York 30 1 * * *", "2024-11-03T05:00:00Z", "2024-11-03T05:30:00Z"),
        ("America/New_York 30 1 * * *", "2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z"),
        ("America/New_York 30 1 * * *", "2024-11-03T06:30:00Z", "2024-11-04T06:30:00Z"),
        ("America/Sao_Paulo @daily", "2018-11-03T12:00:00Z", "2018-11-05T02:00:00Z"),
        ("America/Sao_Paulo 0 9 * * 0", "2018-11-03T12:00:00Z", "2018-11-04T11:00:00Z"),
        ("Asia/Beirut 0 5 28 * *", "2021-03-27T12:00:00Z", "2021-04-28T02:00:00Z"),
        ("Asia/Beirut @daily", "2021-03-27T12:00:00Z", "2021-03-28T21:00:00Z"),
        ("Australia/Lord_Howe 15 2 * * *", "2024-10-05T12:00:00Z", "2024-10-06T15:15:00Z"),
        ("Australia/Lord_Howe 45 1 * * *", "2024-04-06T14:30:00Z", "2024-04-06T14:45:00Z"),
        ("Australia/Lord_Howe 45 1 * * *", "2024-04-06T14:50:00Z", "2024-04-06T15:15:00Z"),
        ("Asia/Kathmandu @hourly", "2024-02-28T10:20:30Z", "2024-02-28T11:15:00Z"),
        ("US/Pacific 0 0 29 2 *", "2024-03-01T00:00:00Z", "2028-02-29T08:00:00Z"),
    ];
    for (schedule, after, expected) in cases {
        let parsed = Schedule::parse(&format!("CRON_TZ={schedule}")).unwrap();
        let next = parsed.next(Timestamp(moment(after) * NANOS_PER_SECOND)).unwrap();
        assert_eq!(next.0 / NANOS_PER_SECOND, moment(expected), "{schedule} after {after}");
    }
}

#[test]
fn a_day_that_a_zone_never_had_is_passed_over() {
    // Samoa had no 30 December 2011.
    let first_of_month = Schedule::parse("TZ=Pacific/Apia 0 12 1 * *").unwrap();
    let next = first_of_month.next(Timestamp(moment("2011-12-30T04:30:54Z") * NANOS_PER_SECOND)).unwrap();
    assert_eq!(next.0 / NANOS_PER_SECOND, moment("2011-12-31T22:00:00Z"));
}
