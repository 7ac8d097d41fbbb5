//! Canonical specifications: all calendars structured, no cron strings, as the API shows them.

use prost::Message as _;
use prost_types::Duration;
use proto::temporal::api::schedule::v1::{CalendarSpec, IntervalSpec, Range, ScheduleSpec, StructuredCalendarSpec};

use super::calendar::{YEAR_MAX, YEAR_MIN};
use super::cron::{self, Times};
use super::ranges::{self, Field, Names};

/// Bytes of a specification in any form, at most. Each decision and each description processes all of it, and must stay
/// within a few milliseconds; ten holidays of a hundred years each fit.
pub const SPEC_BYTES_MAX: usize = 32 * 1024;
const COMMENT_BYTES_MAX: usize = 200;
const CONFLICTING_ZONES: &str = "conflicting timezone names";

#[expect(clippy::cast_possible_truncation, reason = "years of this century")]
const YEARS: (i32, i32) = (YEAR_MIN as i32, YEAR_MAX as i32);

/// Validates a specification from a client. Errors are in the reference's words. The reference checks neither
/// exclusions nor size.
pub fn canonical(spec: &ScheduleSpec) -> Result<ScheduleSpec, String> {
    let bytes = spec.encoded_len();
    if bytes > SPEC_BYTES_MAX {
        return Err(format!("specification is too long ({bytes}/{SPEC_BYTES_MAX} bytes)"));
    }
    let spec = structure(spec)?;
    spec.exclude_structured_calendar.iter().try_for_each(check_calendar)?;
    Ok(spec)
}

/// The same without the checks of size and exclusions, for one that was accepted before.
#[expect(deprecated, reason = "older clients still exclude by calendars in text")]
pub(super) fn structure(spec: &ScheduleSpec) -> Result<ScheduleSpec, String> {
    let mut spec = spec.clone();
    for calendar in std::mem::take(&mut spec.calendar) {
        spec.structured_calendar.push(structured(&calendar)?);
    }
    for calendar in std::mem::take(&mut spec.exclude_calendar) {
        spec.exclude_structured_calendar.push(structured(&calendar)?);
    }
    let mut zone: Option<String> = None;
    for text in std::mem::take(&mut spec.cron_string) {
        let cron = cron::parse(&text)?;
        if zone.as_ref().is_some_and(|zone| *zone != cron.zone) {
            return Err(CONFLICTING_ZONES.to_owned());
        }
        zone = Some(cron.zone);
        match cron.times {
            Times::Calendar(calendar) => spec.structured_calendar.push(calendar),
            Times::Interval(interval) => spec.interval.push(interval),
        }
    }
    if let Some(zone) = zone.filter(|zone| !zone.is_empty()) {
        let is_other = !spec.timezone_name.is_empty() && spec.timezone_name != zone;
        if is_other || !spec.timezone_data.is_empty() {
            return Err(CONFLICTING_ZONES.to_owned());
        }
        spec.timezone_name = zone;
    }
    spec.structured_calendar.iter().try_for_each(check_calendar)?;
    spec.interval.iter().try_for_each(check_interval)?;
    Ok(spec)
}

/// Parses a text calendar to ranges. Reports all errors at once.
pub(super) fn structured(calendar: &CalendarSpec) -> Result<StructuredCalendarSpec, String> {
    let mut wrong = Vec::new();
    let mut parse = |text: &str, field: Field| {
        ranges::parse(text, field).unwrap_or_else(|reason| {
            wrong.push(reason);
            Vec::new()
        })
    };
    let field = |name, default, (min, max), names| Field { name, default, min, max, names };
    let structured = StructuredCalendarSpec {
        second: parse(&calendar.second, field("Second", "0", (0, 59), Names::None)),
        minute: parse(&calendar.minute, field("Minute", "0", (0, 59), Names::None)),
        hour: parse(&calendar.hour, field("Hour", "0", (0, 23), Names::None)),
        day_of_week: parse(&calendar.day_of_week, field("DayOfWeek", "*", (0, 7), Names::Weekdays)),
        day_of_month: parse(&calendar.day_of_month, field("DayOfMonth", "*", (1, 31), Names::None)),
        month: parse(&calendar.month, field("Month", "*", (1, 12), Names::Months)),
        year: parse(&calendar.year, field("Year", "*", YEARS, Names::Years)),
        comment: calendar.comment.clone(),
    };
    if wrong.is_empty() { Ok(structured) } else { Err(wrong.join(", ")) }
}

fn check_calendar(calendar: &StructuredCalendarSpec) -> Result<(), String> {
    let mut wrong = Vec::new();
    let fields = [
        (&calendar.second, "Second", (0, 59)),
        (&calendar.minute, "Minute", (0, 59)),
        (&calendar.hour, "Hour", (0, 23)),
        (&calendar.day_of_month, "DayOfMonth", (1, 31)),
        (&calendar.month, "Month", (1, 12)),
        (&calendar.year, "Year", YEARS),
        (&calendar.day_of_week, "DayOfWeek", (0, 6)),
    ];
    for (ranges, name, bounds) in fields {
        ranges.iter().for_each(|range| check_range(range, name, bounds, &mut wrong));
    }
    if calendar.comment.len() > COMMENT_BYTES_MAX {
        wrong.push("comment is too long".to_owned());
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("invalid calendar spec: {}", wrong.join(", "))) }
}

fn check_range(range: &Range, name: &str, (min, max): (i32, i32), wrong: &mut Vec<String>) {
    if !(min..=max).contains(&range.start) {
        wrong.push(format!("{name} Start is not in range [{min}-{max}]"));
    }
    if range.end != 0 && !(range.start..=max).contains(&range.end) {
        wrong.push(format!("{name} End is before Start or not in range [{min}-{max}]"));
    }
    if range.step < 0 {
        wrong.push(format!("{name} has invalid Step"));
    }
}

fn check_interval(interval: &IntervalSpec) -> Result<(), String> {
    let span = |span: Option<Duration>| span.map_or((0, 0), |span| (span.seconds, span.nanos));
    let (every, phase) = (span(interval.interval), span(interval.phase));
    if every.0 < 1 {
        return Err("interval is too small".to_owned());
    }
    if phase < (0, 0) {
        return Err("phase is negative".to_owned());
    }
    if phase >= every { Err("phase cannot be greater than Interval".to_owned()) } else { Ok(()) }
}
