//! A query as the planner and the evaluator see it: typed, with negations only inside tests.
//!
//! The parser keeps what the types do not express: a test's values are of the attribute's type, except that a keyword
//! list is tested with single keywords; a condition is one that the type allows; a connective has two terms or more,
//! and none of its own kind.

use cluster::search_attributes::attribute::Attribute;
use persistence::stores::visibility::value::Value;

/// A list or count query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// `None` matches every run. A query that does not name `TemporalNamespaceDivision` gets the test that it is not
    /// set: the runs of schedules and batches stay hidden.
    pub filter: Option<Filter>,
    /// Empty for the usual order: the latest closed first, open runs before all closed ones; then the latest started.
    pub order_by: Vec<OrderBy>,
    /// Counts only.
    pub group_by: Option<Attribute>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Test(Test),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    pub attribute: Attribute,
    pub condition: Condition,
}

/// For an unset attribute only `IsNull` holds, and `NotEqual` and `NotIn` of a text or a keyword list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Of a text: it has any of the value's phrases. Of a keyword list: the keyword is in it.
    Equal(Value),
    NotEqual(Value),
    Less(Value),
    LessOrEqual(Value),
    Greater(Value),
    GreaterOrEqual(Value),
    /// Any of these. Empty, and so never true, if the type cannot hold the query's value.
    In(Vec<Value>),
    NotIn(Vec<Value>),
    /// From the first to the second, both included. Matches nothing if the second is lower.
    Between(Value, Value),
    NotBetween(Value, Value),
    /// Keywords only.
    StartsWith(String),
    NotStartsWith(String),
    IsNull,
    IsNotNull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderBy {
    /// Never a text.
    pub attribute: Attribute,
    pub direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// Bytes of a searched text that cost as much as one value.
const TEXT_BYTES_PER_TEST: usize = 16;

impl Filter {
    /// Cost of evaluating it on one run, in comparisons.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::And(terms) | Self::Or(terms) => terms.iter().map(Self::weight).sum(),
            Self::Test(test) => test.condition.weight(),
        }
    }

    /// All of these, flattened.
    #[must_use]
    pub fn all(terms: Vec<Self>) -> Self {
        let flat = terms.into_iter().flat_map(|term| match term {
            Self::And(inner) => inner,
            other @ (Self::Or(_) | Self::Test(_)) => vec![other],
        });
        let mut flat: Vec<_> = flat.collect();
        if flat.len() == 1 { flat.swap_remove(0) } else { Self::And(flat) }
    }

    /// Any of these, flattened.
    #[must_use]
    pub fn any(terms: Vec<Self>) -> Self {
        let flat = terms.into_iter().flat_map(|term| match term {
            Self::Or(inner) => inner,
            other @ (Self::And(_) | Self::Test(_)) => vec![other],
        });
        let mut flat: Vec<_> = flat.collect();
        if flat.len() == 1 { flat.swap_remove(0) } else { Self::Or(flat) }
    }

    /// The negation, pushed down to the tests; [`Condition`] says what holds for unset attributes.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::And(terms) => Self::any(terms.into_iter().map(Self::negated).collect()),
            Self::Or(terms) => Self::all(terms.into_iter().map(Self::negated).collect()),
            Self::Test(Test { attribute, condition }) => Self::Test(Test { attribute, condition: condition.negated() }),
        }
    }
}

impl Condition {
    /// Cost of evaluating it on one run, in comparisons.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::In(values) | Self::NotIn(values) => values.iter().map(weight_of).sum::<usize>().max(1),
            Self::Equal(value) | Self::NotEqual(value) => weight_of(value),
            Self::Less(_)
            | Self::LessOrEqual(_)
            | Self::Greater(_)
            | Self::GreaterOrEqual(_)
            | Self::Between(..)
            | Self::NotBetween(..)
            | Self::StartsWith(_)
            | Self::NotStartsWith(_)
            | Self::IsNull
            | Self::IsNotNull => 1,
        }
    }

    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Equal(value) => Self::NotEqual(value),
            Self::NotEqual(value) => Self::Equal(value),
            Self::Less(value) => Self::GreaterOrEqual(value),
            Self::LessOrEqual(value) => Self::Greater(value),
            Self::Greater(value) => Self::LessOrEqual(value),
            Self::GreaterOrEqual(value) => Self::Less(value),
            Self::In(values) => Self::NotIn(values),
            Self::NotIn(values) => Self::In(values),
            Self::Between(from, to) => Self::NotBetween(from, to),
            Self::NotBetween(from, to) => Self::Between(from, to),
            Self::StartsWith(prefix) => Self::NotStartsWith(prefix),
            Self::NotStartsWith(prefix) => Self::StartsWith(prefix),
            Self::IsNull => Self::IsNotNull,
            Self::IsNotNull => Self::IsNull,
        }
    }
}

/// Each word of a text is searched in the words of the run's text.
fn weight_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => 1 + text.len() / TEXT_BYTES_PER_TEST,
        Value::Keyword(_)
        | Value::KeywordList(_)
        | Value::Int(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::Datetime(_) => 1,
    }
}
