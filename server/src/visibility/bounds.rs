//! Bounds of a filter on start time, close time and status: the index ranges that its runs can be in. Pure.

use std::ops::Bound;

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use persistence::stores::visibility::value::Value;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use workflow::Timestamp;

use super::query::filter::{Condition, Filter, Test};
use super::query::status;

/// The statuses of closed runs.
pub(super) const CLOSED: [WorkflowExecutionStatus; 6] = [
    WorkflowExecutionStatus::Completed,
    WorkflowExecutionStatus::Failed,
    WorkflowExecutionStatus::Canceled,
    WorkflowExecutionStatus::Terminated,
    WorkflowExecutionStatus::ContinuedAsNew,
    WorkflowExecutionStatus::TimedOut,
];

/// The statuses of open runs.
const OPEN: [WorkflowExecutionStatus; 2] = [WorkflowExecutionStatus::Running, WorkflowExecutionStatus::Paused];

/// A time range, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// Every run that matches the filter is within the bounds; others may be, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) started: Span,
    /// Applies to closed runs only.
    pub(super) closed: Span,
    pub(super) has_open: bool,
    pub(super) statuses: Vec<WorkflowExecutionStatus>,
}

impl Span {
    const ALL: Self = Self { from: Timestamp(i64::MIN), to: Timestamp(i64::MAX) };

    pub(super) fn contains(self, moment: Timestamp) -> bool {
        self.from <= moment && moment <= self.to
    }

    pub(super) fn bounds(self) -> (Bound<Timestamp>, Bound<Timestamp>) {
        (Bound::Included(self.from), Bound::Included(self.to))
    }

    pub(super) fn until(self, moment: Timestamp) -> Self {
        Self { to: self.to.min(moment), ..self }
    }

    pub(super) fn since(self, moment: Timestamp) -> Self {
        Self { from: self.from.max(moment), ..self }
    }

    pub(super) fn is_empty(self) -> bool {
        self.from > self.to
    }

    fn narrow(&mut self, condition: &Condition) {
        let moment = |value: &Value| if let Value::Datetime(moment) = value { *moment } else { Timestamp(0) };
        let (before, after) =
            (|at: Timestamp| Timestamp(at.0.saturating_sub(1)), |at: Timestamp| Timestamp(at.0.saturating_add(1)));
        *self = match condition {
            Condition::Equal(value) => self.since(moment(value)).until(moment(value)),
            Condition::Less(value) => self.until(before(moment(value))),
            Condition::LessOrEqual(value) => self.until(moment(value)),
            Condition::Greater(value) => self.since(after(moment(value))),
            Condition::GreaterOrEqual(value) => self.since(moment(value)),
            Condition::Between(from, to) => self.since(moment(from)).until(moment(to)),
            Condition::In(values) => {
                let (first, last) = (values.iter().min().map(moment), values.iter().max().map(moment));
                self.since(first.unwrap_or(Self::ALL.to)).until(last.unwrap_or(Self::ALL.from))
            }
            Condition::NotEqual(_)
            | Condition::NotIn(_)
            | Condition::NotBetween(..)
            | Condition::StartsWith(_)
            | Condition::NotStartsWith(_)
            | Condition::IsNull
            | Condition::IsNotNull => *self,
        };
    }
}

impl Bounds {
    pub(super) fn of(filter: Option<&Filter>) -> Self {
        let mut bounds = Self { started: Span::ALL, closed: Span::ALL, has_open: true, statuses: CLOSED.to_vec() };
        for test in filter.into_iter().flat_map(conjuncts).filter_map(as_test) {
            bounds.narrow(test);
        }
        // A run does not close before it starts.
        bounds.closed = bounds.closed.since(bounds.started.from);
        bounds.started = if bounds.has_open { bounds.started } else { bounds.started.until(bounds.closed.to) };
        bounds
    }

    fn narrow(&mut self, test: &Test) {
        let Attribute::System(attribute) = &test.attribute else { return };
        match attribute {
            SystemAttribute::StartTime => self.started.narrow(&test.condition),
            SystemAttribute::CloseTime => self.narrow_close(&test.condition),
            SystemAttribute::ExecutionStatus => self.narrow_status(&test.condition),
            SystemAttribute::WorkflowId
            | SystemAttribute::RunId
            | SystemAttribute::WorkflowType
            | SystemAttribute::ExecutionTime
            | SystemAttribute::TaskQueue
            | SystemAttribute::HistoryLength
            | SystemAttribute::ExecutionDuration
            | SystemAttribute::StateTransitionCount
            | SystemAttribute::HistorySizeBytes
            | SystemAttribute::ParentWorkflowId
            | SystemAttribute::ParentRunId
            | SystemAttribute::RootWorkflowId
            | SystemAttribute::RootRunId => {}
        }
    }

    fn narrow_close(&mut self, condition: &Condition) {
        if *condition == Condition::IsNull {
            self.statuses.clear();
        } else {
            // Every other condition is false for a run without close time.
            self.has_open = false;
        }
        self.closed.narrow(condition);
    }

    fn narrow_status(&mut self, condition: &Condition) {
        self.statuses.retain(|status| may_have(condition, *status));
        self.has_open &= OPEN.into_iter().any(|status| may_have(condition, status));
    }
}

fn may_have(condition: &Condition, status: WorkflowExecutionStatus) -> bool {
    let is_named = |values: &[Value]| values.contains(&Value::Keyword(status::name(status).to_owned()));
    match condition {
        Condition::Equal(value) => is_named(std::slice::from_ref(value)),
        Condition::NotEqual(value) => !is_named(std::slice::from_ref(value)),
        Condition::In(values) => is_named(values),
        Condition::NotIn(values) => !is_named(values),
        Condition::IsNull => false,
        Condition::Less(_)
        | Condition::LessOrEqual(_)
        | Condition::Greater(_)
        | Condition::GreaterOrEqual(_)
        | Condition::Between(..)
        | Condition::NotBetween(..)
        | Condition::StartsWith(_)
        | Condition::NotStartsWith(_)
        | Condition::IsNotNull => true,
    }
}

/// Top-level conjuncts of a filter.
pub(super) fn conjuncts(filter: &Filter) -> &[Filter] {
    match filter {
        Filter::And(terms) => terms,
        Filter::Or(_) | Filter::Test(_) => std::slice::from_ref(filter),
    }
}

fn as_test(filter: &Filter) -> Option<&Test> {
    match filter {
        Filter::Test(test) => Some(test),
        Filter::And(_) | Filter::Or(_) => None,
    }
}

/// Whether the bounds alone decide a term, or nearly so.
pub(super) fn is_kept_by_bounds(filter: &Filter) -> bool {
    let Some(test) = as_test(filter) else { return false };
    match &test.attribute {
        Attribute::System(attribute) => matches!(
            attribute,
            SystemAttribute::StartTime | SystemAttribute::CloseTime | SystemAttribute::ExecutionStatus
        ),
        // The server's own runs are few.
        Attribute::Indexed { .. } => hides_own_runs(filter),
    }
}

/// Whether this is the term that hides the server's own runs.
pub(super) fn hides_own_runs(filter: &Filter) -> bool {
    let is_division = |test: &Test| test.attribute == Attribute::namespace_division();
    as_test(filter).is_some_and(|test| is_division(test) && test.condition == Condition::IsNull)
}

/// Status predicate of a filter that tests the status only; `None` if it tests more.
pub(super) fn only_statuses(terms: &[Filter]) -> Option<impl Fn(WorkflowExecutionStatus) -> bool + '_> {
    let is_status = |test: &Test| test.attribute == Attribute::System(SystemAttribute::ExecutionStatus);
    let is_exact = |condition: &Condition| {
        matches!(condition, Condition::Equal(_) | Condition::NotEqual(_) | Condition::In(_) | Condition::NotIn(_))
    };
    let asked = |filter: &Filter| as_test(filter).is_some_and(|test| is_status(test) && is_exact(&test.condition));
    let is_all = terms.iter().any(hides_own_runs) && terms.iter().all(|term| hides_own_runs(term) || asked(term));
    is_all.then_some(move |status| {
        let tests = terms.iter().filter_map(as_test).filter(|test| is_status(test));
        tests.into_iter().all(|test| may_have(&test.condition, status))
    })
}
