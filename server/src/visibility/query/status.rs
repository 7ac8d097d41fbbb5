//! Run statuses in queries: a name, short or long, or a number. Compared by number, stored by short name.

use persistence::stores::visibility::value::Value;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;

use super::error::QueryError;
use super::filter::Condition;
use super::literal::Scalar;
use super::syntax::Operator;

/// In the order of their numbers.
const STATUSES: [(WorkflowExecutionStatus, &str); 9] = [
    (WorkflowExecutionStatus::Unspecified, "Unspecified"),
    (WorkflowExecutionStatus::Running, "Running"),
    (WorkflowExecutionStatus::Completed, "Completed"),
    (WorkflowExecutionStatus::Failed, "Failed"),
    (WorkflowExecutionStatus::Canceled, "Canceled"),
    (WorkflowExecutionStatus::Terminated, "Terminated"),
    (WorkflowExecutionStatus::ContinuedAsNew, "ContinuedAsNew"),
    (WorkflowExecutionStatus::TimedOut, "TimedOut"),
    (WorkflowExecutionStatus::Paused, "Paused"),
];

/// The name of a status in queries and groups.
#[must_use]
pub fn name(status: WorkflowExecutionStatus) -> &'static str {
    let entry = STATUSES.iter().find(|(known, _)| *known == status);
    entry.map(|(_, name)| *name).expect("every status has a name")
}

/// The number of the status that has this name.
#[must_use]
pub(in crate::visibility) fn number(name: &str) -> Option<usize> {
    STATUSES.iter().position(|(_, known)| *known == name)
}

/// A status that a query names, as its index in `STATUSES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status(usize);

pub(super) fn parse(scalar: &Scalar) -> Result<Status, QueryError> {
    let (found, written) = match scalar {
        Scalar::Int(number) => (usize::try_from(*number).ok().filter(|at| *at < STATUSES.len()), number.to_string()),
        Scalar::Text(text) => {
            let is_named =
                |(status, name): &(WorkflowExecutionStatus, &str)| name == text || status.as_str_name() == text;
            (STATUSES.iter().position(is_named), format!("'{text}'"))
        }
        Scalar::Double(_) | Scalar::Bool(_) => {
            let what = format!("unexpected value type {} for search attribute ExecutionStatus", scalar.kind());
            return Err(QueryError::InvalidExpression(what));
        }
    };
    let invalid = || QueryError::InvalidExpression(format!("invalid ExecutionStatus value {written}"));
    found.map(Status).ok_or_else(invalid)
}

impl Status {
    pub(super) fn value(self) -> Value {
        Value::Keyword(STATUSES[self.0].1.to_owned())
    }

    /// The condition of an operator with one value on its right. Order comparisons become `In`: names sort differently.
    pub(super) fn condition(self, operator: Operator) -> Option<Condition> {
        match operator {
            Operator::Equal => Some(Condition::Equal(self.value())),
            Operator::NotEqual => Some(Condition::NotEqual(self.value())),
            Operator::Less => Some(among(0, self.0)),
            Operator::LessOrEqual => Some(among(0, self.0 + 1)),
            Operator::Greater => Some(among(self.0 + 1, STATUSES.len())),
            Operator::GreaterOrEqual => Some(among(self.0, STATUSES.len())),
            Operator::In | Operator::NotIn | Operator::StartsWith | Operator::NotStartsWith | Operator::Foreign(_) => {
                None
            }
        }
    }

    pub(super) fn between(self, last: Self) -> Condition {
        among(self.0, last.0 + 1)
    }
}

fn among(from: usize, to: usize) -> Condition {
    Condition::In((from..to).map(|at| Status(at).value()).collect())
}
