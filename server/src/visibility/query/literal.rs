//! Converts the literals of queries to values of an attribute's type.

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use cluster::search_attributes::datetime;
use cluster::spans;
use persistence::stores::visibility::value::{Value, ValueType};
use workflow::Timestamp;

use super::error::QueryError;
use super::syntax::Expression;

/// A literal before it is converted to an attribute's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Int(i64),
    /// Finite.
    Double(f64),
    Bool(bool),
}

impl Scalar {
    /// Its type's name in the reference's messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Int(_) => "int64",
            Self::Double(_) => "float64",
            Self::Bool(_) => "bool",
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Int(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
        }
    }
}

/// The right side of a comparison, if it is one value.
pub(super) fn scalar(expression: &Expression) -> Result<Scalar, QueryError> {
    match expression {
        Expression::Text(text) => Ok(Scalar::Text(text.clone())),
        Expression::Bool(flag) => Ok(Scalar::Bool(*flag)),
        Expression::Number(written) => {
            number(written).ok_or_else(|| QueryError::InvalidExpression(format!("unable to parse value \"{written}\"")))
        }
        Expression::Call => Err(QueryError::NotSupported("nested func".to_owned())),
        Expression::Name(name) => Err(QueryError::NotSupported(format!(
            "column name on the right side of comparison expression (did you forget to quote {name:?}?)"
        ))),
        Expression::And(_)
        | Expression::Or(_)
        | Expression::Not(_)
        | Expression::Comparison { .. }
        | Expression::Between { .. }
        | Expression::Is { .. }
        | Expression::Parentheses(_)
        | Expression::Tuple(_)
        | Expression::Null
        | Expression::Unary => {
            Err(QueryError::InvalidExpression(format!("unexpected value type {}", expression.kind())))
        }
    }
}

fn number(written: &str) -> Option<Scalar> {
    if let Ok(number) = written.parse() {
        return Some(Scalar::Int(number));
    }
    written.parse().ok().filter(|number: &f64| number.is_finite()).map(Scalar::Double)
}

/// A value of the attribute's type; a `Double` if an integer attribute is compared with a number that is no `i64`.
pub(super) fn value(scalar: Scalar, name: &str, attribute: &Attribute) -> Result<Value, QueryError> {
    if *attribute == Attribute::System(SystemAttribute::ExecutionDuration) {
        return duration_value(&scalar, name);
    }
    let value_type = attribute.value_type();
    match (value_type, scalar) {
        (ValueType::Int, Scalar::Int(number)) => Ok(Value::Int(number)),
        (ValueType::Int | ValueType::Double, Scalar::Double(number)) => Ok(Value::Double(number)),
        #[expect(clippy::cast_precision_loss, reason = "a double is what the attribute holds")]
        (ValueType::Double, Scalar::Int(number)) => Ok(Value::Double(number as f64)),
        (ValueType::Bool, Scalar::Bool(flag)) => Ok(Value::Bool(flag)),
        (ValueType::Keyword | ValueType::KeywordList, Scalar::Text(text)) => Ok(Value::Keyword(text)),
        (ValueType::Text, Scalar::Text(text)) => Ok(Value::Text(text)),
        (ValueType::Datetime, Scalar::Int(nanos)) => Ok(Value::Datetime(Timestamp(nanos))),
        (ValueType::Datetime, Scalar::Text(text)) => {
            let unreadable = || QueryError::InvalidExpression(format!("unable to parse datetime '{text}'"));
            datetime::parse(&text).map(Value::Datetime).ok_or_else(unreadable)
        }
        (_, other) => Err(wrong_type(&other, name, value_type)),
    }
}

fn wrong_type(scalar: &Scalar, name: &str, value_type: ValueType) -> QueryError {
    QueryError::InvalidExpression(format!(
        "invalid value type for search attribute {name} of type {}: {} (type: {})",
        value_type.name(),
        scalar.shown(),
        scalar.kind()
    ))
}

fn duration_value(scalar: &Scalar, name: &str) -> Result<Value, QueryError> {
    match scalar {
        Scalar::Int(nanos) => Ok(Value::Int(*nanos)),
        Scalar::Text(text) => duration(text).map(Value::Int).ok_or_else(|| {
            let what = format!("invalid duration value for search attribute ExecutionDuration: {text}");
            QueryError::InvalidExpression(what)
        }),
        Scalar::Double(_) => Err(QueryError::InvalidExpression(
            "unexpected value type float64 for search attribute ExecutionDuration".to_owned(),
        )),
        Scalar::Bool(_) => Err(wrong_type(scalar, name, ValueType::Int)),
    }
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Nanoseconds, as a plain number, with units (`1h30m`, `1.5d`), or as `hh:mm:ss`.
fn duration(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| spans::parse(text)).or_else(|| hours_minutes_seconds(text))
}

/// Text after the seconds is ignored.
fn hours_minutes_seconds(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds = parts.next()?;
    let digits = seconds.find(|c: char| !c.is_ascii_digit()).unwrap_or(seconds.len());
    let seconds: i64 = seconds[..digits].parse().ok()?;
    let is_clock = hours >= 0 && (0..60).contains(&minutes) && (0..60).contains(&seconds);
    let total = hours.checked_mul(60 * 60)?.checked_add(minutes * 60 + seconds)?.checked_mul(NANOS_PER_SECOND)?;
    is_clock.then_some(total)
}
