//! Turns a read or a batch into statements and their values. Pure: nothing is sent here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};

use persistence::engine::{Batch, Condition, KeyRange, Partition, Row, RowChange, Versioned};
use persistence::table::Value;

use crate::anchor;
use crate::cells::Bound;
use crate::range::Range;
use crate::statements::{Cell, RangeShape, Shape};

/// A statement to prepare: its shape, and the values in the order in which its text names them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) shape: Shape,
    pub(crate) values: Vec<Bound>,
}

impl Step {
    pub(crate) fn new<'a>(shape: Shape, values: impl IntoIterator<Item = &'a Value>) -> Self {
        Self { shape, values: values.into_iter().cloned().map(Bound).collect() }
    }
}

/// The values that a range binds, after those of the partition.
pub(crate) fn range_values<'a>(partition: &'a Partition, range: &'a Range) -> impl Iterator<Item = &'a Value> {
    let bound = |bound: &'a std::ops::Bound<Vec<Value>>| match bound {
        Unbounded => [].iter(),
        Included(key) | Excluded(key) => key.iter(),
    };
    partition.key.iter().chain(&range.equal).chain(bound(&range.lower)).chain(bound(&range.upper))
}

/// The statements of a batch. A condition is attached to the statement that changes its target, if any.
///
/// `None` if the conditions contradict each other: CQL cannot express them together.
pub(crate) fn steps(batch: &Batch) -> Option<Vec<Step>> {
    let partition = &batch.partition;
    let mut rows = row_conditions(batch)?;
    let mut steps: Vec<Step> = static_step(batch).into_iter().collect();
    if batch.conditions.iter().any(|condition| matches!(condition, Condition::Static { .. })) {
        let anchor = anchor::key(partition.table.0);
        steps.push(Step::new(Shape::PutKey, partition.key.iter().chain(&anchor)));
    }
    for row in &batch.puts {
        steps.push(put(partition, row, rows.remove(row.key.as_slice())));
    }
    for key in &batch.deletes {
        steps.push(delete(partition, key, rows.remove(key.as_slice()).as_ref()));
    }
    for (key, condition) in rows {
        // CQL gives a batch one timestamp: a row kept by writing to it would survive the range delete around it.
        let covered = batch.range_deletes.iter().any(|range| range.contains(key));
        steps.push(if covered { delete(partition, key, Some(&condition)) } else { keep(partition, key, &condition) });
    }
    for part in batch.range_deletes.iter().flat_map(|range| parts(partition, range)) {
        steps.push(Step::new(Shape::DeleteRange(RangeShape::new(&part)), range_values(partition, &part)));
    }
    for versioned in &batch.versioned {
        add_versioned(partition, versioned, &mut steps);
    }
    Some(steps)
}

/// The range as parts that one DELETE each can express.
fn parts(partition: &Partition, range: &KeyRange) -> impl Iterator<Item = Range> + use<> {
    let shown = anchor::without(partition.table.0, range);
    Range::new(&shown).into_iter().flat_map(Range::split)
}

/// The version is the write timestamp, by which Cassandra resolves two writes of a row.
fn add_versioned(partition: &Partition, Versioned { version, change }: &Versioned, steps: &mut Vec<Step>) {
    let version = Value::Bigint(*version);
    match change {
        RowChange::Put(row) => {
            let values = partition.key.iter().chain(&row.key).chain(&row.values).chain([&version]);
            steps.push(Step::new(Shape::PutAt, values));
        }
        RowChange::Delete(key) => {
            steps.push(Step::new(Shape::DeleteAt, [&version].into_iter().chain(&partition.key).chain(key)));
        }
        RowChange::DeleteRange(range) => steps.extend(parts(partition, range).map(|part| {
            let shape = Shape::DeleteRangeAt(RangeShape::new(&part));
            Step::new(shape, [&version].into_iter().chain(range_values(partition, &part)))
        })),
    }
}

enum RowCondition<'a> {
    Absent,
    Values(Vec<(usize, &'a Value)>),
}

/// Conditions by row. `None` if a row must be absent and have a value.
fn row_conditions(batch: &Batch) -> Option<BTreeMap<&[Value], RowCondition<'_>>> {
    let mut rows = BTreeMap::new();
    for condition in &batch.conditions {
        match condition {
            Condition::Static { .. } => {}
            Condition::Absent { key } => match rows.insert(key.as_slice(), RowCondition::Absent) {
                None | Some(RowCondition::Absent) => {}
                Some(RowCondition::Values(_)) => return None,
            },
            Condition::Value { key, column, equals } => {
                match rows.entry(key.as_slice()).or_insert(RowCondition::Values(Vec::new())) {
                    RowCondition::Absent => return None,
                    RowCondition::Values(values) => values.push((*column, equals)),
                }
            }
        }
    }
    Some(rows)
}

/// One statement for all static columns: those that are set, and those that are conditions.
fn static_step(batch: &Batch) -> Option<Step> {
    let mut conditions = Vec::new();
    for condition in &batch.conditions {
        match condition {
            Condition::Static { column, equals } => conditions.push((*column, equals.as_ref())),
            Condition::Absent { .. } | Condition::Value { .. } => {}
        }
    }
    let mut set: Vec<_> = batch.statics.iter().map(|(column, value)| (*column, Some(value))).collect();
    let named: BTreeSet<usize> = set.iter().map(|(column, _)| *column).collect();
    assert_eq!(named.len(), set.len(), "a static column is set twice in a batch");
    if set.is_empty() {
        // An UPDATE must set a column: sets one of the conditions to its expected value.
        set.push(*conditions.first()?);
    }
    let cells = |pairs: &[(usize, Option<&Value>)]| -> Vec<(usize, Cell)> {
        let cell = |value: &Option<&Value>| if value.is_some() { Cell::Bound } else { Cell::Null };
        pairs.iter().map(|(column, value)| (*column, cell(value))).collect()
    };
    let shape = Shape::SetStatics { set: cells(&set), conditions: cells(&conditions) };
    let bound = |pairs: &[(usize, Option<&Value>)]| -> Vec<Bound> {
        pairs.iter().filter_map(|(_, value)| *value).cloned().map(Bound).collect()
    };
    let key = batch.partition.key.iter().cloned().map(Bound).collect();
    Some(Step { shape, values: [bound(&set), key, bound(&conditions)].concat() })
}

fn put(partition: &Partition, row: &Row, condition: Option<RowCondition<'_>>) -> Step {
    let table = partition.table.0;
    assert!(!anchor::is_anchor(table, &row.key), "{}: the least key is the anchor's", table.name);
    let key = partition.key.iter().chain(&row.key);
    match condition {
        None => Step::new(Shape::Put, key.chain(&row.values)),
        Some(RowCondition::Absent) => Step::new(Shape::PutIfAbsent, key.chain(&row.values)),
        Some(RowCondition::Values(conditions)) => {
            let (columns, expected): (Vec<_>, Vec<_>) = conditions.into_iter().unzip();
            Step::new(Shape::PutIf(columns), row.values.iter().chain(key).chain(expected))
        }
    }
}

fn delete(partition: &Partition, key: &[Value], condition: Option<&RowCondition<'_>>) -> Step {
    let whole_key = partition.key.iter().chain(key);
    match condition {
        None => Step::new(Shape::Delete, whole_key),
        Some(condition) => {
            let (columns, expected) = condition.values(key);
            Step::new(Shape::DeleteIf(columns), whole_key.chain(expected))
        }
    }
}

fn keep(partition: &Partition, key: &[Value], condition: &RowCondition<'_>) -> Step {
    let (columns, expected) = condition.values(key);
    let whole_key = partition.key.iter().chain(key);
    Step::new(Shape::KeepIf(columns), expected[..1].iter().copied().chain(whole_key).chain(expected.iter().copied()))
}

impl<'a> RowCondition<'a> {
    fn values(&self, key: &[Value]) -> (Vec<usize>, Vec<&'a Value>) {
        match self {
            Self::Absent => panic!("row {key:?} must be absent, and the batch does not put it"),
            Self::Values(values) => values.iter().copied().unzip(),
        }
    }
}

#[cfg(test)]
mod tests;
