//! Ten years of three hundred calendars, compared with what another library knows of dates and zones.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use proto::temporal::api::schedule::v1::{CalendarSpec, ScheduleSpec};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use workflow::Timestamp;

use super::super::Spec;

const SPECS: u64 = 300;
const FIRST_YEAR: i16 = 2024;
const YEARS: i16 = 10;

/// With clocks that are set at night, at midnight, by half an hour, in the south, and never.
const ZONES: [&str; 12] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Europe/London",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "Pacific/Auckland",
];

/// A field of a calendar: what it is written as, and the values that it means.
struct Field {
    text: String,
    values: Vec<i8>,
}

fn any(min: i8, max: i8) -> Field {
    Field { text: "*".to_owned(), values: (min..=max).collect() }
}

fn some(random: &mut SmallRng, min: i8, max: i8) -> Field {
    match random.random_range(0..4) {
        0 => {
            let (a, b) = (random.random_range(min..=max), random.random_range(min..=max));
            let (start, end, step) = (a.min(b), a.max(b), random.random_range(1..=5_i8));
            let values = (start..=end).step_by(step.unsigned_abs().into()).collect();
            Field { text: format!("{start}-{end}/{step}"), values }
        }
        1 => {
            let mut values: Vec<i8> = (0..3).map(|_| random.random_range(min..=max)).collect();
            let text: Vec<String> = values.iter().map(i8::to_string).collect();
            values.sort_unstable();
            values.dedup();
            Field { text: text.join(","), values }
        }
        _ => {
            let value = random.random_range(min..=max);
            Field { text: value.to_string(), values: vec![value] }
        }
    }
}

/// One value or two: every minute of ten years would only take time.
fn few(random: &mut SmallRng, max: i8) -> Field {
    let mut values = vec![random.random_range(0..=max), random.random_range(0..=max)];
    values.truncate(random.random_range(1..=2));
    let text: Vec<String> = values.iter().map(i8::to_string).collect();
    values.sort_unstable();
    values.dedup();
    Field { text: text.join(","), values }
}

fn rarely_any(random: &mut SmallRng, min: i8, max: i8) -> Field {
    if random.random_ratio(1, 12) { any(min, max) } else { some(random, min, max) }
}

fn mostly_any(random: &mut SmallRng, min: i8, max: i8) -> Field {
    if random.random_ratio(2, 3) { any(min, max) } else { some(random, min, max) }
}

struct Case {
    zone: &'static str,
    minutes: Field,
    hours: Field,
    days_of_month: Field,
    months: Field,
    days_of_week: Field,
}

fn case(seed: u64) -> Case {
    let mut random = SmallRng::seed_from_u64(seed);
    let zone = ZONES[random.random_range(0..ZONES.len())];
    Case {
        zone,
        minutes: few(&mut random, 59),
        hours: rarely_any(&mut random, 0, 23),
        days_of_month: mostly_any(&mut random, 1, 31),
        months: mostly_any(&mut random, 1, 12),
        days_of_week: mostly_any(&mut random, 0, 6),
    }
}

impl Case {
    fn spec(&self) -> Spec {
        let calendar = CalendarSpec {
            minute: self.minutes.text.clone(),
            hour: self.hours.text.clone(),
            day_of_month: self.days_of_month.text.clone(),
            month: self.months.text.clone(),
            day_of_week: self.days_of_week.text.clone(),
            ..Default::default()
        };
        let spec = ScheduleSpec { calendar: vec![calendar], timezone_name: self.zone.to_owned(), ..Default::default() };
        Spec::parse(&spec).expect("a specification")
    }

    /// All times, in seconds, by the other library: each day, each hour, each minute, and what the zone makes of it.
    fn expected(&self) -> Vec<i64> {
        let zone = TimeZone::get(self.zone).expect("a zone");
        let first = Date::constant(FIRST_YEAR, 1, 1);
        let last = Date::constant(FIRST_YEAR + YEARS - 1, 12, 31);
        let mut times = Vec::new();
        for day in first.series(jiff::ToSpan::days(1)).take_while(|day| *day <= last) {
            let is_wanted = self.months.values.contains(&day.month())
                && self.days_of_month.values.contains(&day.day())
                && self.days_of_week.values.contains(&day.weekday().to_sunday_zero_offset());
            if is_wanted {
                self.times_of(day, &zone, &mut times);
            }
        }
        times.sort_unstable();
        times
    }

    fn times_of(&self, day: Date, zone: &TimeZone, times: &mut Vec<i64>) {
        for hour in &self.hours.values {
            for minute in &self.minutes.values {
                let wall = day.at(*hour, *minute, 0, 0);
                let at = |offset: Offset| offset.to_timestamp(wall).expect("a moment").as_second();
                match zone.to_ambiguous_timestamp(wall).offset() {
                    AmbiguousOffset::Unambiguous { offset } => times.push(at(offset)),
                    AmbiguousOffset::Gap { .. } => {}
                    AmbiguousOffset::Fold { before, after } => times.extend([at(before), at(after)]),
                }
            }
        }
    }
}

#[test]
fn ten_years_of_three_hundred_calendars_agree_with_another_library() {
    const NANOS_PER_SECOND: i64 = 1_000_000_000;
    let mut n_times = 0_usize;
    for seed in 0..SPECS {
        let case = case(seed);
        let spec = case.spec();
        let expected = case.expected();
        n_times += expected.len();
        // The years before and after are not compared.
        let Some(first) = expected.first() else { continue };
        let mut at = Timestamp((first - 1) * NANOS_PER_SECOND);
        for expected in expected {
            at = spec.next_time("", at).expect("no exclusions").expect("a time").nominal;
            assert_eq!(at.0 / NANOS_PER_SECOND, expected, "seed {seed} in {}", case.zone);
        }
    }
    assert!(n_times > 300_000, "only {n_times} times were compared");
}
