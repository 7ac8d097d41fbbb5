//! Parses one field of a text calendar: values, ranges and steps. The error texts are the reference's.

use proto::temporal::api::schedule::v1::Range;

/// Domain of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Meaning of an empty text.
    pub(super) default: &'static str,
    pub(super) min: i32,
    pub(super) max: i32,
    pub(super) names: Names,
}

/// Names of values besides their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    None,
    /// Numbers only; no range at all means every year.
    Years,
    /// At least the first three letters.
    Months,
    /// At least the first two letters. Seven is Sunday too.
    Weekdays,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const SECOND_SUNDAY: i32 = 7;

pub(super) fn parse(text: &str, field: Field) -> Result<Vec<Range>, String> {
    let text = if text.trim().is_empty() { field.default } else { text.trim() };
    if text == "*" && field.names == Names::Years {
        return Ok(Vec::new());
    }
    let mut ranges = Vec::new();
    for part in text.split(',') {
        parse_part(part, field, &mut ranges)?;
    }
    Ok(ranges)
}

/// `*`, `value`, `value-value`, each with an optional `/step`; a single value with a step goes on to the end.
fn parse_part(part: &str, field: Field, ranges: &mut Vec<Range>) -> Result<(), String> {
    let Field { name, min, max, .. } = field;
    let (range, step) = split_step(part, name)?;
    let (start, mut end) = if range == "*" {
        (min, max)
    } else if let Some((start, end)) = range.split_once('-') {
        if end.contains('-') {
            return Err(format!("{name} has too many dashes"));
        }
        let start = value(start, field, min).ok_or_else(|| format!("{name} Start is not in range [{min}-{max}]"))?;
        let end = value(end, field, start)
            .ok_or_else(|| format!("{name} End is before Start or not in range [{min}-{max}]"))?;
        (start, end)
    } else {
        let start = value(range, field, min).ok_or_else(|| format!("{name} is not in range [{min}-{max}]"))?;
        (start, if step.is_some() { max } else { start })
    };
    let step = step.unwrap_or(1);
    if field.names == Names::Weekdays && end == SECOND_SUNDAY {
        let is_sunday_meant = (SECOND_SUNDAY - start) % step == 0;
        // As in the reference, ranges from 0 or 1 with step 1 get no extra Sunday: 1-7 omits it.
        if is_sunday_meant && (step > 1 || start > 1) {
            ranges.push(Range::default());
        }
        if start == SECOND_SUNDAY {
            return Ok(());
        }
        end = SECOND_SUNDAY - 1;
    }
    // Defaults stay unset, as the reference shows them.
    let (end, step) = (if start == end { 0 } else { end }, if step == 1 { 0 } else { step });
    ranges.push(Range { start, end, step });
    Ok(())
}

fn split_step<'a>(part: &'a str, name: &str) -> Result<(&'a str, Option<i32>), String> {
    let Some((range, step)) = part.split_once('/') else { return Ok((part, None)) };
    if step.contains('/') {
        return Err(format!("{name} has too many slashes"));
    }
    if step.is_empty() {
        return Err(format!("{name} missing step value"));
    }
    let parsed: i32 = step.parse().map_err(|_| format!("strconv.Atoi: parsing {step:?}: invalid syntax"))?;
    if parsed < 1 { Err(format!("{name} has invalid Step")) } else { Ok((range, Some(parsed))) }
}

/// A number or a name that is not below `min`.
fn value(text: &str, field: Field, min: i32) -> Option<i32> {
    let is_name = |name: &str, letters: usize| text.len() >= letters && name.starts_with(&text.to_ascii_lowercase());
    let named = match field.names {
        Names::Months => MONTHS.iter().position(|name| is_name(name, 3)).map(|position| position + 1),
        Names::Weekdays => WEEKDAYS.iter().position(|name| is_name(name, 2)),
        Names::None | Names::Years => None,
    };
    let number = match named {
        Some(position) => i32::try_from(position).ok()?,
        None => text.parse().ok()?,
    };
    (min..=field.max).contains(&number).then_some(number)
}
