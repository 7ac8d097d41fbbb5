//! Index accesses of a filter. Pure.
//!
//! An index only yields candidates: keys are truncated, and a run may have changed since. The whole filter is evaluated
//! on every candidate's record.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use persistence::stores::visibility::record::{
    PARENT_WORKFLOW_ID, ROOT_WORKFLOW_ID, WORKFLOW_ID, WORKFLOW_TYPE, bounded,
};
use persistence::stores::visibility::value::{Value, phrases};
use uuid::Uuid;
use workflow::RunId;

use super::bounds::{Span, conjuncts};
use super::query::filter::{Condition, Filter, Test};

/// An index access that finds all runs that a term can match: the union of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) parts: Vec<Part>,
    /// Estimated selectivity: the lower, the fewer runs.
    rank: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A key range of an index.
    Terms { index: Arc<str>, from: Bound<Vec<u8>>, to: Bound<Vec<u8>> },
    /// A run whose id encodes its start time. Run ids have no index: rows with that start time are scanned.
    Run { run_id: RunId, started: Span },
}

/// Accesses with more parts are not used: each part is a read of every segment.
pub(super) const PARTS_MAX: usize = 64;

/// Index accesses of a filter, the most selective first. Each finds all matching runs.
pub(super) fn accesses(filter: Option<&Filter>) -> Vec<Access> {
    let terms = filter.map_or(&[][..], conjuncts);
    let mut accesses: Vec<Access> = terms.iter().filter_map(access).collect();
    accesses.retain(|access| access.parts.len() <= PARTS_MAX);
    accesses.sort_by_key(|access| access.rank);
    accesses
}

fn access(filter: &Filter) -> Option<Access> {
    match filter {
        Filter::Test(test) => of_test(test),
        Filter::And(terms) => terms.iter().filter_map(access).min_by_key(|access| access.rank),
        Filter::Or(terms) => {
            let each: Vec<Access> = terms.iter().map(access).collect::<Option<_>>()?;
            let rank = each.iter().map(|access| access.rank).max().unwrap_or_default();
            Some(Access { parts: each.into_iter().flat_map(|access| access.parts).collect(), rank })
        }
    }
}

fn of_test(test: &Test) -> Option<Access> {
    let (index, rank): (Arc<str>, u8) = match &test.attribute {
        Attribute::System(SystemAttribute::RunId) => return of_run_ids(&test.condition),
        Attribute::System(SystemAttribute::WorkflowId) => (WORKFLOW_ID.into(), 0),
        Attribute::System(SystemAttribute::ParentWorkflowId) => (PARENT_WORKFLOW_ID.into(), 1),
        Attribute::System(SystemAttribute::RootWorkflowId) => (ROOT_WORKFLOW_ID.into(), 1),
        Attribute::System(SystemAttribute::WorkflowType) => (WORKFLOW_TYPE.into(), 4),
        Attribute::System(_) => return None,
        Attribute::Indexed { name, value_type } => (format!("{name}:{}", value_type.name()).into(), 2),
    };
    let stretches = stretches(&test.condition)?;
    let is_exact = stretches.iter().all(|(from, to)| from == to && *from != Bound::Unbounded);
    let rank = if is_exact { rank } else { rank + 5 };
    let mut parts = of_index(&index, &stretches);
    if &*index == ROOT_WORKFLOW_ID {
        // Only children are in this index: a run without parent is its own root.
        parts.extend(of_index(&WORKFLOW_ID.into(), &stretches));
    }
    Some(Access { parts, rank })
}

fn of_run_ids(condition: &Condition) -> Option<Access> {
    let named = match condition {
        Condition::Equal(value) => std::slice::from_ref(value),
        Condition::In(values) => values,
        Condition::NotEqual(_)
        | Condition::NotIn(_)
        | Condition::Less(_)
        | Condition::LessOrEqual(_)
        | Condition::Greater(_)
        | Condition::GreaterOrEqual(_)
        | Condition::Between(..)
        | Condition::NotBetween(..)
        | Condition::StartsWith(_)
        | Condition::NotStartsWith(_)
        | Condition::IsNull
        | Condition::IsNotNull => return None,
    };
    let mut parts = Vec::new();
    for value in named {
        // A value that is no UUID matches no run.
        let Some(run_id) = as_run_id(value) else { continue };
        let (from, to) = run_id.started_within()?.into_inner();
        parts.push(Part::Run { run_id, started: Span { from, to } });
    }
    Some(Access { parts, rank: 0 })
}

fn as_run_id(value: &Value) -> Option<RunId> {
    let Value::Keyword(text) = value else { return None };
    Uuid::try_parse(text).ok().map(RunId)
}

type Stretch = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn of_index(index: &Arc<str>, stretches: &[Stretch]) -> Vec<Part> {
    let part = |(from, to): &Stretch| Part::Terms { index: Arc::clone(index), from: from.clone(), to: to.clone() };
    stretches.iter().map(part).collect()
}

/// Key ranges of the values that a condition can match; `None` if an index does not help.
fn stretches(condition: &Condition) -> Option<Vec<Stretch>> {
    let up_to = |value: &Value| Some(Bound::Included(key(value)?));
    match condition {
        Condition::Equal(value) => points(value),
        Condition::In(values) => {
            let each: Vec<Vec<Stretch>> = values.iter().map(points).collect::<Option<_>>()?;
            Some(each.concat())
        }
        Condition::Less(value) | Condition::LessOrEqual(value) => Some(vec![(Bound::Unbounded, up_to(value)?)]),
        Condition::Greater(value) | Condition::GreaterOrEqual(value) => Some(vec![(up_to(value)?, Bound::Unbounded)]),
        Condition::Between(from, to) => Some(vec![(up_to(from)?, up_to(to)?)]),
        Condition::StartsWith(prefix) => {
            let first = bounded(prefix.as_bytes()).to_vec();
            // UTF-8 never contains this byte.
            let last = [&first[..], &[u8::MAX]].concat();
            Some(vec![(Bound::Included(first), Bound::Included(last))])
        }
        Condition::IsNotNull => Some(vec![(Bound::Unbounded, Bound::Unbounded)]),
        Condition::NotEqual(_)
        | Condition::NotIn(_)
        | Condition::NotBetween(..)
        | Condition::NotStartsWith(_)
        | Condition::IsNull => None,
    }
}

fn points(value: &Value) -> Option<Vec<Stretch>> {
    let point = |key: &[u8]| (Bound::Included(bounded(key).to_vec()), Bound::Included(bounded(key).to_vec()));
    match value {
        // One word of each phrase suffices for candidates; the longest is likely to be the rarest.
        Value::Text(query) => {
            let phrases = phrases(query);
            let longest = phrases.iter().map(|phrase| phrase.iter().max_by_key(|word| word.len()));
            let words: Vec<&String> = longest.collect::<Option<_>>()?;
            Some(words.into_iter().map(|word| point(word.as_bytes())).collect())
        }
        Value::Keyword(_)
        | Value::KeywordList(_)
        | Value::Int(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::Datetime(_) => Some(vec![point(&value.index_keys().pop_first()?)]),
    }
}

fn key(value: &Value) -> Option<Vec<u8>> {
    Some(bounded(&value.index_keys().pop_first()?).to_vec())
}

impl Part {
    fn name(&self) -> &str {
        match self {
            Self::Terms { index, .. } => index,
            Self::Run { .. } => "StartTime, as RunId tells it",
        }
    }

    pub(super) fn may_name(&self, other: RunId) -> bool {
        match self {
            Self::Terms { .. } => true,
            Self::Run { run_id, .. } => *run_id == other,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.parts.iter().map(Part::name).collect();
        names.dedup();
        let n_parts = self.parts.len();
        write!(f, "index {} ({n_parts} {})", names.join(", "), if n_parts == 1 { "stretch" } else { "stretches" })
    }
}
