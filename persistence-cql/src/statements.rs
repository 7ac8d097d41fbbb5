//! All CQL text. Statements on tables are built from the table's description and a shape; the few of the schema's own
//! bookkeeping are spelled out.

use std::fmt::Write as _;
use std::ops::Bound;

use persistence::table::{Column, Table, Value};

use crate::config::Replication;
use crate::range::Range;

/// A statement on a table without its values. Columns are named by index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    Statics,
    Ascending(RangeShape),
    Descending(RangeShape),
    Put,
    PutIfAbsent,
    /// Puts a key-only row.
    PutKey,
    /// Replaces the value columns of a row that has these values.
    PutIf(Vec<usize>),
    /// Checks a row without changing it: sets the first of the columns to its expected value.
    KeepIf(Vec<usize>),
    Delete,
    DeleteIf(Vec<usize>),
    DeleteRange(RangeShape),
    /// As their namesakes, at a version: no effect if the row, or its tombstone, has a higher one.
    PutAt,
    DeleteAt,
    DeleteRangeAt(RangeShape),
    SetStatics {
        set: Vec<(usize, Cell)>,
        conditions: Vec<(usize, Cell)>,
    },
}

/// A bound value, or a null. Nulls are spelled, not bound: not every database accepts a bound null in a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cell {
    Bound,
    Null,
}

/// How many columns are equal, and how many more each bound compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RangeShape {
    equal: usize,
    lower: Bound<usize>,
    upper: Bound<usize>,
}

impl RangeShape {
    pub(crate) fn new(range: &Range) -> Self {
        let length = |bound: &Bound<Vec<Value>>| bound.as_ref().map(Vec::len);
        Self { equal: range.equal.len(), lower: length(&range.lower), upper: length(&range.upper) }
    }

    /// A column may not be bounded by itself on one side and within a tuple on the other.
    fn needs_tuples(&self) -> bool {
        [self.lower, self.upper].iter().any(|bound| match bound {
            Bound::Unbounded => false,
            Bound::Included(n_columns) | Bound::Excluded(n_columns) => *n_columns > 1,
        })
    }
}

/// The values are bound in the order in which the text names them.
pub(crate) fn text(table: &Table, shape: &Shape) -> String {
    match shape {
        Shape::Statics => select_statics(table),
        Shape::Ascending(range) => select(table, range, "ASC"),
        Shape::Descending(range) => select(table, range, "DESC"),
        Shape::Put => insert(table, table.values, ""),
        Shape::PutIfAbsent => insert(table, table.values, " IF NOT EXISTS"),
        Shape::PutKey => insert(table, &[], ""),
        Shape::PutIf(conditions) => update_row(table, table.values, conditions),
        Shape::KeepIf(conditions) => update_row(table, &[table.values[conditions[0]]], conditions),
        Shape::Delete => format!("DELETE FROM {} WHERE {}", table.name, whole_key(table)),
        Shape::DeleteIf(conditions) => {
            format!("DELETE FROM {} WHERE {} IF {}", table.name, whole_key(table), values_equal(table, conditions))
        }
        Shape::DeleteRange(range) => format!("DELETE FROM {} WHERE {}", table.name, range_of(table, range)),
        Shape::PutAt => insert(table, table.values, " USING TIMESTAMP ?"),
        Shape::DeleteAt => format!("DELETE FROM {} USING TIMESTAMP ? WHERE {}", table.name, whole_key(table)),
        Shape::DeleteRangeAt(range) => {
            format!("DELETE FROM {} USING TIMESTAMP ? WHERE {}", table.name, range_of(table, range))
        }
        Shape::SetStatics { set, conditions } => update_statics(table, set, conditions),
    }
}

fn select_statics(table: &Table) -> String {
    // DISTINCT returns one result for the partition; without it there would be one for each of its rows.
    let statics = join(table.statics, ", ", |column| column.name.to_owned());
    let key = join(table.partition, " AND ", equals);
    format!("SELECT DISTINCT {statics} FROM {} WHERE {key}", table.name)
}

fn select(table: &Table, range: &RangeShape, order: &str) -> String {
    let columns = [table.clustering, table.values].concat();
    let columns = join(&columns, ", ", |column| column.name.to_owned());
    let order = join(table.clustering, ", ", |column| format!("{} {order}", column.name));
    format!("SELECT {columns} FROM {} WHERE {} ORDER BY {order} LIMIT ?", table.name, range_of(table, range))
}

/// `rest` is a condition or the write timestamp.
fn insert(table: &Table, values: &[Column], rest: &str) -> String {
    let columns = [table.partition, table.clustering, values].concat();
    let names = join(&columns, ", ", |column| column.name.to_owned());
    let marks = join(&columns, ", ", |_| "?".to_owned());
    format!("INSERT INTO {} ({names}) VALUES ({marks}){rest}", table.name)
}

fn update_row(table: &Table, set: &[Column], conditions: &[usize]) -> String {
    let set = join(set, ", ", equals);
    let conditions = values_equal(table, conditions);
    format!("UPDATE {} SET {set} WHERE {} IF {conditions}", table.name, whole_key(table))
}

fn update_statics(table: &Table, set: &[(usize, Cell)], conditions: &[(usize, Cell)]) -> String {
    let cell = |&(column, cell): &(usize, Cell)| match cell {
        Cell::Bound => equals(&table.statics[column]),
        Cell::Null => format!("{} = null", table.statics[column].name),
    };
    let key = join(table.partition, " AND ", equals);
    let mut text = format!("UPDATE {} SET {} WHERE {key}", table.name, join(set, ", ", cell));
    if !conditions.is_empty() {
        let _ = write!(text, " IF {}", join(conditions, " AND ", cell));
    }
    text
}

fn whole_key(table: &Table) -> String {
    join(&[table.partition, table.clustering].concat(), " AND ", equals)
}

fn values_equal(table: &Table, columns: &[usize]) -> String {
    join(columns, " AND ", |&column| equals(&table.values[column]))
}

fn range_of(table: &Table, range: &RangeShape) -> String {
    let (equal, rest) = table.clustering.split_at(range.equal);
    let mut text = join(&[table.partition, equal].concat(), " AND ", equals);
    for (bound, included, excluded) in [(range.lower, ">=", ">"), (range.upper, "<=", "<")] {
        let (operator, n_columns) = match bound {
            Bound::Unbounded => continue,
            Bound::Included(n_columns) => (included, n_columns),
            Bound::Excluded(n_columns) => (excluded, n_columns),
        };
        let names = join(&rest[..n_columns], ", ", |column| column.name.to_owned());
        if range.needs_tuples() {
            let marks = join(&rest[..n_columns], ", ", |_| "?".to_owned());
            let _ = write!(text, " AND ({names}) {operator} ({marks})");
        } else {
            let _ = write!(text, " AND {names} {operator} ?");
        }
    }
    text
}

fn equals(column: &Column) -> String {
    format!("{} = ?", column.name)
}

fn join<T>(items: &[T], separator: &str, text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(separator)
}

/// Binds the keyspace.
pub(crate) const FIND_KEYSPACE: &str = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";

/// Binds the keyspace and the table.
pub(crate) const FIND_TABLE: &str =
    "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";

/// Only in Cassandra 4.1 and later; binds nothing.
pub(crate) const PAXOS_VARIANT: &str = "SELECT value FROM system_views.settings WHERE name = 'paxos_variant'";

/// `keyspace` is a plain name, which `session` has checked.
pub(crate) fn create_keyspace(keyspace: &str, replication: &Replication) -> String {
    let strategy = match replication {
        Replication::Copies(copies) => format!("'class': 'SimpleStrategy', 'replication_factor': {copies}"),
        Replication::PerDatacenter(copies) => {
            let quoted = |name: &str| format!("'{}'", name.replace('\'', "''"));
            let copies: Vec<_> = copies.iter().map(|(name, copies)| format!("{}: {copies}", quoted(name))).collect();
            format!("'class': 'NetworkTopologyStrategy', {}", copies.join(", "))
        }
    };
    format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{{strategy}}} AND durable_writes = true")
}

#[cfg(test)]
mod tests;
