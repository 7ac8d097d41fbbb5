//! Random specifications and cron strings: nothing panics, the canonical form of a canonical form is itself, and no search
//! takes more than its budget.

use cluster::fuzz::seeds;
use proto::temporal::api::schedule::v1::{CalendarSpec, IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use workflow::Timestamp;

use super::super::{Search, Spec, canonical};

const SEEDS: u64 = 5_000;
/// Times that are asked of each specification.
const TIMES: usize = 20;

const CRON_PIECES: [&str; 44] = [
    "*",
    "0",
    "1",
    "5",
    "7",
    "23",
    "30",
    "31",
    "59",
    "60",
    "99",
    "2000",
    "2100",
    "2101",
    "-",
    "/",
    ",",
    "*/2",
    "1-5",
    "5-1",
    "1/0",
    "1//2",
    "1--2",
    "jan",
    "FEB",
    "su",
    "saturday",
    "juneau",
    "@every",
    "@daily",
    "@yearly",
    "1h",
    "90s",
    "-1h",
    "1.5d",
    "14h/3h",
    "TZ=Europe/Berlin",
    "CRON_TZ=Mars",
    "TZ=",
    "#",
    "2147483648",
    "-2147483649",
    "99999999999999999999",
    "é日\u{1F600}",
];

fn cron(random: &mut SmallRng) -> String {
    let mut text = String::new();
    for _ in 0..random.random_range(0..10) {
        text.push_str(CRON_PIECES[random.random_range(0..CRON_PIECES.len())]);
        if random.random_bool(0.7) {
            text.push(' ');
        }
    }
    text
}

/// Mostly within the field, at times far from it.
fn number(random: &mut SmallRng, min: i32, max: i32) -> i32 {
    match random.random_range(0..40) {
        0 => i32::MIN,
        1 => i32::MAX,
        2 => min - 1,
        3 => max + 1,
        4 => 0,
        _ => random.random_range(min..=max),
    }
}

fn ranges(random: &mut SmallRng, min: i32, max: i32) -> Vec<Range> {
    if random.random_bool(0.3) {
        return vec![Range { start: min, end: max, step: 0 }];
    }
    let one = |random: &mut SmallRng| {
        let (a, b) = (number(random, min, max), number(random, min, max));
        let step = if random.random_bool(0.7) { 0 } else { number(random, 1, 20) };
        Range { start: a.min(b), end: a.max(b), step }
    };
    (0..random.random_range(0..4)).map(|_| one(random)).collect()
}

fn structured(random: &mut SmallRng) -> StructuredCalendarSpec {
    StructuredCalendarSpec {
        second: ranges(random, 0, 59),
        minute: ranges(random, 0, 59),
        hour: ranges(random, 0, 23),
        day_of_month: ranges(random, 1, 31),
        month: ranges(random, 1, 12),
        year: if random.random_bool(0.7) { Vec::new() } else { ranges(random, 2000, 2100) },
        day_of_week: ranges(random, 0, 6),
        comment: String::new(),
    }
}

fn written(random: &mut SmallRng) -> CalendarSpec {
    let mut field = || {
        if random.random_bool(0.5) { String::new() } else { cron(random).replace(' ', "") }
    };
    CalendarSpec {
        second: field(),
        minute: field(),
        hour: field(),
        day_of_month: field(),
        month: field(),
        year: field(),
        day_of_week: field(),
        comment: String::new(),
    }
}

fn span(random: &mut SmallRng) -> Option<prost_types::Duration> {
    let seconds = match random.random_range(0..8) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => return None,
        _ => random.random_range(-2..1_000_000),
    };
    Some(prost_types::Duration { seconds, nanos: random.random_range(-2..2) * 999_999_999 })
}

fn moment(random: &mut SmallRng) -> Option<prost_types::Timestamp> {
    let seconds = match random.random_range(0..8) {
        0 => i64::MIN,
        1 => i64::MAX,
        2..5 => return None,
        _ => random.random_range(-4_000_000_000..5_000_000_000),
    };
    Some(prost_types::Timestamp { seconds, nanos: random.random_range(-1..=1) * 999_999_999 })
}

#[expect(deprecated, reason = "older clients still exclude by calendars in text")]
fn spec(random: &mut SmallRng) -> ScheduleSpec {
    const ZONES: [&str; 7] = ["", "UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kolkata", "Mars"];
    let several = |random: &mut SmallRng, most: usize| random.random_range(0..=most);
    let mut spec = ScheduleSpec {
        structured_calendar: (0..several(random, 4)).map(|_| structured(random)).collect(),
        exclude_structured_calendar: (0..several(random, 3)).map(|_| structured(random)).collect(),
        interval: (0..several(random, 2))
            .map(|_| IntervalSpec { interval: span(random), phase: span(random) })
            .collect(),
        start_time: moment(random),
        end_time: moment(random),
        jitter: span(random),
        timezone_name: ZONES[random.random_range(0..ZONES.len())].to_owned(),
        ..Default::default()
    };
    if random.random_bool(0.2) {
        spec.cron_string = (0..several(random, 2)).map(|_| cron(random)).collect();
        spec.calendar = (0..several(random, 1)).map(|_| written(random)).collect();
        spec.exclude_calendar = (0..several(random, 1)).map(|_| written(random)).collect();
    }
    if random.random_bool(0.05) {
        spec.timezone_data = (0..random.random_range(0..200)).map(|_| random.random::<u8>()).collect::<Vec<_>>().into();
    }
    spec
}

/// Asks for times, from anywhere on; they come in order, within the budget.
fn check_times(spec: &Spec, from: Timestamp, seed: u64) {
    let mut budget = spec.budget();
    let given = budget.left();
    let mut search = Search::new(spec, "seed", &mut budget);
    let mut at = from;
    for _ in 0..TIMES {
        let Ok(Some(next)) = search.next_time(at) else { break };
        assert!(next.nominal <= next.at && next.at >= at, "seed {seed}: {next:?} comes after {at:?}");
        assert_eq!(spec.next_time("seed", at), Ok(Some(next)), "seed {seed}: a new search finds the same");
        at = next.at;
    }
    assert!(given < 400_000 && budget.spent() <= given, "seed {seed}: {} steps", budget.spent());
}

#[test]
fn random_specifications_are_searched_within_their_budgets() {
    let mut n_valid = 0;
    for seed in seeds(SEEDS) {
        let mut random = SmallRng::seed_from_u64(seed);
        let given = spec(&mut random);
        let from = moment(&mut random).map_or(Timestamp(1_767_225_600_000_000_000), Timestamp::from);
        if let Ok(form) = canonical(&given) {
            assert_eq!(canonical(&form).as_ref(), Ok(&form), "seed {seed}: it is canonical");
            n_valid += 1;
        }
        // What is stored may be what older versions let in.
        if let Ok(parsed) = Spec::parse(&given) {
            check_times(&parsed, from, seed);
        }
    }
    assert!(n_valid > 100, "only {n_valid} are valid");
}

#[test]
fn random_cron_strings_are_read_or_refused() {
    let mut n_valid = 0;
    for seed in seeds(SEEDS * 4) {
        let mut random = SmallRng::seed_from_u64(seed);
        let given = ScheduleSpec { cron_string: vec![cron(&mut random)], ..Default::default() };
        let Ok(form) = canonical(&given) else { continue };
        n_valid += 1;
        assert_eq!(canonical(&form).as_ref(), Ok(&form), "seed {seed}: {:?}", given.cron_string);
        if let Ok(parsed) = Spec::parse(&form) {
            check_times(&parsed, Timestamp(0), seed);
        }
    }
    assert!(n_valid > 100, "only {n_valid} are valid");
}
