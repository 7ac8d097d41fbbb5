//! Converts a tree to a filter: resolves names to attributes, types values, and checks operators against types.

use cluster::search_attributes::attribute::{
    Attribute, NAMESPACE_DIVISION, SCHEDULE_PAUSED, SCHEDULES, SystemAttribute,
};
use cluster::search_attributes::custom::{CustomAttributes, of_server};
use persistence::stores::visibility::value::{Value, ValueType};

use super::error::QueryError;
use super::filter::{Condition, Filter, OrderBy, Query, Test};
use super::literal::{Scalar, scalar, value};
use super::status::{self, Status};
use super::syntax::{Expression, Is, Operator, Statement};

/// Columns of an `ORDER BY` at most. Each is read for every scanned run, and a page token has a value of each; the
/// reference's default store supports none at all.
pub(super) const ORDER_BY_MAX: usize = 8;
/// Conditions and values of a query at most. Each may be compared with every scanned run. A thousand run ids fit.
pub(super) const TESTS_MAX: usize = 4096;

pub(super) fn query(statement: &Statement, custom: &CustomAttributes) -> Result<Query, QueryError> {
    let mut converter = Converter { custom, names_division: false, named: Vec::new() };
    let query = converter.query(statement)?;
    let filter = if converter.names_division { query.filter } else { Some(outside_divisions(query.filter)) };
    Ok(Query { filter, ..query })
}

/// A query of schedules, which have few of the search attributes of runs.
pub(super) fn schedules(statement: &Statement, custom: &CustomAttributes) -> Result<Query, QueryError> {
    let mut converter = Converter { custom, names_division: false, named: Vec::new() };
    let query = converter.query(statement)?;
    let is_theirs = |name: &str| {
        let is_own = of_server(name).is_none() || name == SCHEDULE_PAUSED;
        is_own || custom.value_type(name).is_some()
    };
    if let Some(name) = converter.named.iter().find(|name| !is_theirs(name)) {
        return Err(QueryError::NotOfSchedules(name.clone()));
    }
    let division = Condition::Equal(Value::Keyword(SCHEDULES.to_owned()));
    let division = Filter::Test(Test { attribute: Attribute::namespace_division(), condition: division });
    let filter = Some(Filter::all([division].into_iter().chain(query.filter).collect()));
    Ok(Query { filter, ..query })
}

/// Adds the test that hides the server's own runs.
fn outside_divisions(filter: Option<Filter>) -> Filter {
    let hidden = Test { attribute: Attribute::namespace_division(), condition: Condition::IsNull };
    Filter::all([Filter::Test(hidden)].into_iter().chain(filter).collect())
}

struct Converter<'a> {
    custom: &'a CustomAttributes,
    names_division: bool,
    /// Attribute names as the query writes them.
    named: Vec<String>,
}

/// An attribute, and its name in the query.
struct Column<'a> {
    name: &'a str,
    attribute: Attribute,
}

impl Converter<'_> {
    fn query(&mut self, statement: &Statement) -> Result<Query, QueryError> {
        let filter = statement.filter.as_ref().map(|expression| self.filter(expression)).transpose()?;
        if filter.as_ref().is_some_and(|filter| filter.weight() > TESTS_MAX) {
            return Err(QueryError::NotSupported(format!("query of more than {TESTS_MAX} conditions and values")));
        }
        let group_by = self.group_by(&statement.group_by)?;
        if statement.order_by.len() > ORDER_BY_MAX {
            let n_columns = statement.order_by.len();
            let what = format!("'ORDER BY' clause with {n_columns} columns, more than {ORDER_BY_MAX}");
            return Err(QueryError::NotSupported(what));
        }
        let mut order_by = Vec::new();
        for (expression, direction) in &statement.order_by {
            let Column { attribute, .. } = self.column(expression)?;
            if attribute.value_type() == ValueType::Text {
                return Err(QueryError::NotSupported("unable to sort by search attribute type Text".to_owned()));
            }
            order_by.push(OrderBy { attribute, direction: *direction });
        }
        Ok(Query { filter, order_by, group_by })
    }

    fn column<'e>(&mut self, expression: &'e Expression) -> Result<Column<'e>, QueryError> {
        let Expression::Name(name) = expression else {
            let what = format!("must be a column name but was {}", expression.kind());
            return Err(QueryError::InvalidExpression(what));
        };
        let attribute = self.custom.resolve(name).ok_or_else(|| QueryError::UnknownAttribute(name.clone()))?;
        self.names_division |= attribute.name() == NAMESPACE_DIVISION;
        self.named.push(name.clone());
        Ok(Column { name, attribute })
    }

    fn group_by(&mut self, expressions: &[Expression]) -> Result<Option<Attribute>, QueryError> {
        let [expression] = expressions else {
            let what = "'GROUP BY' clause supports only a single field".to_owned();
            return if expressions.is_empty() { Ok(None) } else { Err(QueryError::NotSupported(what)) };
        };
        let Column { name, attribute } = self.column(expression)?;
        let is_allowed =
            attribute == Attribute::System(SystemAttribute::ExecutionStatus) || attribute.name() == NAMESPACE_DIVISION;
        let refusal = || format!("'GROUP BY' clause is not supported for search attribute {name}");
        if is_allowed { Ok(Some(attribute)) } else { Err(QueryError::NotSupported(refusal())) }
    }

    fn filters(&mut self, expressions: &[Expression]) -> Result<Vec<Filter>, QueryError> {
        expressions.iter().map(|expression| self.filter(expression)).collect()
    }

    fn filter(&mut self, expression: &Expression) -> Result<Filter, QueryError> {
        match expression {
            Expression::And(terms) => Ok(Filter::all(self.filters(terms)?)),
            Expression::Or(terms) => Ok(Filter::any(self.filters(terms)?)),
            Expression::Not(inner) => Ok(self.filter(inner)?.negated()),
            Expression::Parentheses(inner) => self.filter(inner),
            Expression::Comparison { left, operator, right } => self.comparison(left, *operator, right),
            Expression::Between { left, negated, from, to } => {
                let test = Filter::Test(self.between(left, from, to)?);
                Ok(if *negated { test.negated() } else { test })
            }
            Expression::Is { left, what } => self.is(left, *what),
            Expression::Call => Err(QueryError::NotSupported("function expression".to_owned())),
            Expression::Name(_) => Err(QueryError::InvalidExpression("incomplete expression".to_owned())),
            Expression::Tuple(_)
            | Expression::Text(_)
            | Expression::Number(_)
            | Expression::Bool(_)
            | Expression::Null
            | Expression::Unary => Err(QueryError::NotSupported(format!("expression of type {}", expression.kind()))),
        }
    }

    fn is(&mut self, left: &Expression, what: Is) -> Result<Filter, QueryError> {
        let Column { attribute, .. } = self.column(left)?;
        let condition = match what {
            Is::Null => Condition::IsNull,
            Is::NotNull => Condition::IsNotNull,
            Is::TrueOrFalse => {
                let what = "'IS' operator can only be used as 'IS NULL' or 'IS NOT NULL'".to_owned();
                return Err(QueryError::InvalidExpression(what));
            }
        };
        Ok(Filter::Test(Test { attribute, condition }))
    }

    fn comparison(&mut self, left: &Expression, operator: Operator, right: &Expression) -> Result<Filter, QueryError> {
        let column = self.column(left)?;
        let condition = if column.attribute == Attribute::System(SystemAttribute::ExecutionStatus) {
            status_condition(&column, operator, right)?
        } else {
            condition(&column, operator, right)?
        };
        Ok(Filter::Test(Test { attribute: column.attribute, condition }))
    }

    fn between(&mut self, left: &Expression, from: &Expression, to: &Expression) -> Result<Test, QueryError> {
        let column = self.column(left)?;
        let value_type = column.attribute.value_type();
        if matches!(value_type, ValueType::Text | ValueType::KeywordList | ValueType::Bool) {
            let what = format!(
                "cannot do range condition on search attribute '{}' of type {}",
                column.name,
                value_type.name()
            );
            return Err(QueryError::InvalidExpression(what));
        }
        let condition = if column.attribute == Attribute::System(SystemAttribute::ExecutionStatus) {
            status_of(&column, from)?.between(status_of(&column, to)?)
        } else {
            let from = value(scalar(from)?, column.name, &column.attribute)?;
            let to = value(scalar(to)?, column.name, &column.attribute)?;
            if value_type == ValueType::Int { whole::between(&from, &to) } else { Condition::Between(from, to) }
        };
        Ok(Test { attribute: column.attribute, condition })
    }
}

fn unsupported(column: &Column<'_>, operator: Operator) -> QueryError {
    QueryError::NotSupported(format!(
        "operator '{}' not supported for {} type search attribute '{}'",
        operator.text(),
        column.attribute.value_type().name(),
        column.name
    ))
}

fn condition(column: &Column<'_>, operator: Operator, right: &Expression) -> Result<Condition, QueryError> {
    let value_type = column.attribute.value_type();
    if let (Operator::In | Operator::NotIn, Expression::Tuple(items)) = (operator, right) {
        let values = items.iter().map(|item| value(scalar(item)?, column.name, &column.attribute));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if value_type == ValueType::Text {
            return Err(unsupported(column, operator));
        }
        let among = Condition::In(if value_type == ValueType::Int { whole::only(values) } else { values });
        return Ok(if operator == Operator::In { among } else { among.negated() });
    }
    let value = value(scalar(right)?, column.name, &column.attribute)?;
    let is_ordered = !matches!(value_type, ValueType::Text | ValueType::KeywordList);
    match (operator, value) {
        (Operator::Equal | Operator::NotEqual, Value::Text(text)) if text.trim_matches(' ').is_empty() => {
            let what = format!("no tokens found filtering on Text type search attribute {}", column.name);
            Err(QueryError::InvalidExpression(what))
        }
        (Operator::StartsWith, Value::Keyword(prefix)) if is_ordered => Ok(Condition::StartsWith(prefix)),
        (Operator::NotStartsWith, Value::Keyword(prefix)) if is_ordered => Ok(Condition::NotStartsWith(prefix)),
        (operator, Value::Double(number)) if value_type == ValueType::Int => {
            whole::condition(operator, number).ok_or_else(|| unsupported(column, operator))
        }
        (Operator::Equal, value) => Ok(Condition::Equal(value)),
        (Operator::NotEqual, value) => Ok(Condition::NotEqual(value)),
        (Operator::Less, value) if is_ordered => Ok(Condition::Less(value)),
        (Operator::LessOrEqual, value) if is_ordered => Ok(Condition::LessOrEqual(value)),
        (Operator::Greater, value) if is_ordered => Ok(Condition::Greater(value)),
        (Operator::GreaterOrEqual, value) if is_ordered => Ok(Condition::GreaterOrEqual(value)),
        (operator, _) => Err(unsupported(column, operator)),
    }
}

fn status_of(column: &Column<'_>, expression: &Expression) -> Result<Status, QueryError> {
    match scalar(expression)? {
        // The reference checks the type of a boolean before it looks up a status.
        flag @ Scalar::Bool(_) => Err(value(flag, column.name, &column.attribute).expect_err("a status is no boolean")),
        other @ (Scalar::Text(_) | Scalar::Int(_) | Scalar::Double(_)) => status::parse(&other),
    }
}

fn status_condition(column: &Column<'_>, operator: Operator, right: &Expression) -> Result<Condition, QueryError> {
    if let (Operator::In | Operator::NotIn, Expression::Tuple(items)) = (operator, right) {
        let statuses = items.iter().map(|item| Ok(status_of(column, item)?.value()));
        let among = Condition::In(statuses.collect::<Result<Vec<_>, QueryError>>()?);
        return Ok(if operator == Operator::In { among } else { among.negated() });
    }
    let status = status_of(column, right)?;
    if matches!(operator, Operator::StartsWith | Operator::NotStartsWith) {
        let Value::Keyword(name) = status.value() else { unreachable!("a status is a keyword") };
        let operator = operator.text().to_lowercase();
        let what = format!("right-hand side of \"{operator}\" operator must be a literal string (got: {name})");
        return Err(QueryError::InvalidExpression(what));
    }
    status.condition(operator).ok_or_else(|| unsupported(column, operator))
}

/// Conditions on integers that a query compares with other numbers.
mod whole {
    use persistence::stores::visibility::value::Value;

    use super::super::filter::Condition;
    use super::super::syntax::Operator;

    /// An `i64`, or a number out of its range.
    enum Place {
        Below,
        At(i64),
        Above,
    }

    fn place(number: f64) -> Place {
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        if number < -LIMIT {
            Place::Below
        } else if number >= LIMIT {
            Place::Above
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "it lies within the integers")]
            Place::At(number as i64)
        }
    }

    const NEVER: Condition = Condition::In(Vec::new());
    const IF_SET: Condition = Condition::IsNotNull;

    pub(super) fn condition(operator: Operator, number: f64) -> Option<Condition> {
        let is_whole = number.fract() == 0.0;
        let condition = match (operator, place(number.floor()), place(number.ceil())) {
            (Operator::Equal, Place::At(whole), _) if is_whole => Condition::Equal(Value::Int(whole)),
            (Operator::NotEqual, Place::At(whole), _) if is_whole => Condition::NotEqual(Value::Int(whole)),
            (Operator::Equal, ..) => NEVER,
            (Operator::NotEqual, ..) => IF_SET,
            (Operator::Less, _, Place::At(whole)) => Condition::Less(Value::Int(whole)),
            (Operator::LessOrEqual, Place::At(whole), _) => Condition::LessOrEqual(Value::Int(whole)),
            (Operator::Less | Operator::LessOrEqual, Place::Above, _) => IF_SET,
            (Operator::Less | Operator::LessOrEqual, ..) => NEVER,
            (Operator::Greater, Place::At(whole), _) => Condition::Greater(Value::Int(whole)),
            (Operator::GreaterOrEqual, _, Place::At(whole)) => Condition::GreaterOrEqual(Value::Int(whole)),
            (Operator::Greater | Operator::GreaterOrEqual, Place::Below, _) => IF_SET,
            (Operator::Greater | Operator::GreaterOrEqual, ..) => NEVER,
            (
                Operator::In | Operator::NotIn | Operator::StartsWith | Operator::NotStartsWith | Operator::Foreign(_),
                ..,
            ) => {
                return None;
            }
        };
        Some(condition)
    }

    /// Those of the values that an integer can equal.
    pub(super) fn only(values: Vec<Value>) -> Vec<Value> {
        let whole = values.into_iter().filter_map(|value| match value {
            Value::Double(number) if number.fract() == 0.0 => match place(number) {
                Place::At(whole) => Some(Value::Int(whole)),
                Place::Below | Place::Above => None,
            },
            Value::Double(_) => None,
            other @ (Value::Int(_)
            | Value::Keyword(_)
            | Value::Text(_)
            | Value::KeywordList(_)
            | Value::Bool(_)
            | Value::Datetime(_)) => Some(other),
        });
        whole.collect()
    }

    pub(super) fn between(from: &Value, to: &Value) -> Condition {
        let low = bound(from, f64::ceil);
        let high = bound(to, f64::floor);
        match (low, high) {
            (Place::Above, _) | (_, Place::Below) => NEVER,
            (Place::Below, Place::Above) => IF_SET,
            (Place::Below, Place::At(high)) => Condition::LessOrEqual(Value::Int(high)),
            (Place::At(low), Place::Above) => Condition::GreaterOrEqual(Value::Int(low)),
            (Place::At(low), Place::At(high)) => Condition::Between(Value::Int(low), Value::Int(high)),
        }
    }

    fn bound(value: &Value, round: fn(f64) -> f64) -> Place {
        match value {
            Value::Int(whole) => Place::At(*whole),
            Value::Double(number) => place(round(*number)),
            Value::Keyword(_) | Value::Text(_) | Value::KeywordList(_) | Value::Bool(_) | Value::Datetime(_) => {
                unreachable!("an integer attribute is compared with numbers")
            }
        }
    }
}
