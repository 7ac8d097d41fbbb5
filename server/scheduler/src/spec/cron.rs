//! Cron strings: five to seven fields, `@every` and the like, a zone in front and a comment behind.

use cluster::spans;
use proto::temporal::api::schedule::v1::{CalendarSpec, IntervalSpec, StructuredCalendarSpec};

use super::canonical::structured;

/// A parsed cron string.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cron {
    pub(super) times: Times,
    /// Empty if the string names none.
    pub(super) zone: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Times {
    Calendar(StructuredCalendarSpec),
    Interval(IntervalSpec),
}

pub(super) fn parse(text: &str) -> Result<Cron, String> {
    let text = text.trim();
    let (zone, text) = match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
        None => ("", text),
        Some(rest) => rest.split_once(' ').ok_or("CronString has time zone but missing fields")?,
    };
    let (text, comment) = text.split_once('#').unwrap_or((text, ""));
    let text = text.trim();
    if text.starts_with("@every") {
        // An interval does not depend on the zone, which is ignored.
        return Ok(Cron { times: Times::Interval(interval(text)?), zone: String::new() });
    }
    let calendar = calendar(predefined(text), comment.trim())?;
    Ok(Cron { times: Times::Calendar(calendar), zone: zone.to_owned() })
}

fn predefined(text: &str) -> &str {
    match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        fields => fields,
    }
}

fn calendar(text: &str, comment: &str) -> Result<StructuredCalendarSpec, String> {
    let fields: Vec<&str> = text.split_whitespace().map(|field| field.trim()).collect();
    let (second, fields, year) = match fields.as_slice() {
        fields @ [_, _, _, _, _] => ("", fields, ""),
        [fields @ .., year] if fields.len() == 5 => ("", fields, *year),
        [second, fields @ .., year] if fields.len() == 5 => (*second, fields, *year),
        _ => return Err("CronString does not have 5-7 fields".to_owned()),
    };
    let field = |at: usize| fields[at].to_owned();
    structured(&CalendarSpec {
        second: second.to_owned(),
        minute: field(0),
        hour: field(1),
        day_of_month: field(2),
        month: field(3),
        day_of_week: field(4),
        year: year.to_owned(),
        comment: comment.to_owned(),
    })
}

/// `@every 90m`, or with a phase, `@every 14h/3h`.
fn interval(text: &str) -> Result<IntervalSpec, String> {
    let (_, spans) = text.split_once(' ').ok_or("CronString does not have interval after @every")?;
    let (interval, phase) = spans.split_once('/').unwrap_or((spans, ""));
    let phase = if phase.is_empty() { None } else { Some(span(phase)?) };
    Ok(IntervalSpec { interval: Some(span(interval)?), phase })
}

fn span(text: &str) -> Result<prost_types::Duration, String> {
    const NANOS_PER_SECOND: i64 = 1_000_000_000;
    let nanos = spans::parse(text).ok_or_else(|| format!("time: invalid duration {text:?}"))?;
    let below_second = i32::try_from(nanos % NANOS_PER_SECOND).expect("less than a second fits");
    Ok(prost_types::Duration { seconds: nanos / NANOS_PER_SECOND, nanos: below_second })
}
