//! Evaluates a filter on one run: the definition that every plan must agree with.

use std::borrow::Cow;

use cluster::search_attributes::attribute::Attribute;
use persistence::stores::visibility::value::{Value, phrases, words};

use super::filter::{Condition, Filter, Test};

/// Whether the filter holds for a run with these values; an attribute that is not set has none.
pub fn matches<'r>(filter: &Filter, value_of: &impl Fn(&Attribute) -> Option<Cow<'r, Value>>) -> bool {
    match filter {
        Filter::And(terms) => terms.iter().all(|term| matches(term, value_of)),
        Filter::Or(terms) => terms.iter().any(|term| matches(term, value_of)),
        Filter::Test(Test { attribute, condition }) => holds(condition, value_of(attribute).as_deref(), attribute),
    }
}

fn holds(condition: &Condition, value: Option<&Value>, attribute: &Attribute) -> bool {
    let Some(value) = value else {
        return holds_unset(condition, attribute);
    };
    match condition {
        Condition::IsNull => false,
        Condition::IsNotNull => true,
        Condition::Equal(wanted) => equals(value, wanted),
        Condition::NotEqual(wanted) => !equals(value, wanted),
        Condition::In(wanted) => wanted.iter().any(|wanted| equals(value, wanted)),
        Condition::NotIn(wanted) => !wanted.iter().any(|wanted| equals(value, wanted)),
        Condition::Less(bound) => value < bound,
        Condition::LessOrEqual(bound) => value <= bound,
        Condition::Greater(bound) => value > bound,
        Condition::GreaterOrEqual(bound) => value >= bound,
        Condition::Between(from, to) => from <= value && value <= to,
        Condition::NotBetween(from, to) => value < from || to < value,
        Condition::StartsWith(prefix) => starts_with(value, prefix),
        Condition::NotStartsWith(prefix) => !starts_with(value, prefix),
    }
}

/// An unset value neither equals nor differs from any; but an unset text or keyword list has none of the words.
fn holds_unset(condition: &Condition, attribute: &Attribute) -> bool {
    match condition {
        Condition::IsNull => true,
        Condition::NotEqual(_) | Condition::NotIn(_) => attribute.is_searched_within(),
        Condition::IsNotNull
        | Condition::Equal(_)
        | Condition::In(_)
        | Condition::Less(_)
        | Condition::LessOrEqual(_)
        | Condition::Greater(_)
        | Condition::GreaterOrEqual(_)
        | Condition::Between(..)
        | Condition::NotBetween(..)
        | Condition::StartsWith(_)
        | Condition::NotStartsWith(_) => false,
    }
}

fn equals(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::KeywordList(keywords), Value::Keyword(wanted)) => keywords.contains(wanted),
        (Value::Text(text), Value::Text(query)) => has_any_phrase(text, query),
        (value, wanted) => value == wanted,
    }
}

fn has_any_phrase(text: &str, query: &str) -> bool {
    let words: Vec<_> = words(text).collect();
    phrases(query).iter().any(|phrase| words.windows(phrase.len()).any(|window| window == phrase))
}

fn starts_with(value: &Value, prefix: &str) -> bool {
    match value {
        Value::Keyword(keyword) => keyword.starts_with(prefix),
        Value::Text(_)
        | Value::KeywordList(_)
        | Value::Int(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::Datetime(_) => false,
    }
}
