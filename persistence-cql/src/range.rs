//! Clustering ranges in the form that CQL can express. Pure: knows neither statements nor the driver.

use std::ops::Bound;

use persistence::engine::{Continuation, KeyRange, Order, Slice};
use persistence::table::Value;

use crate::anchor;

/// A range that may hold rows: its keys begin with `equal`, and the columns after it lie between the two bounds.
///
/// A key that is wholly `equal` is a point, which Cassandra finds without merging a slice of every file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) equal: Vec<Value>,
    pub(crate) lower: Bound<Vec<Value>>,
    pub(crate) upper: Bound<Vec<Value>>,
}

impl Range {
    /// `None` if no key can lie in it.
    pub(crate) fn new(range: &KeyRange) -> Option<Self> {
        let lower = Edge::new(&range.lower);
        let upper = Edge::new(&range.upper);
        if is_empty(&lower, &upper) {
            return None;
        }
        let n_equal = lower.key.iter().zip(upper.key).take_while(|(low, high)| low == high).count();
        Some(Self { equal: lower.key[..n_equal].to_vec(), lower: lower.after(n_equal), upper: upper.after(n_equal) })
    }

    /// The unread rest of a slice; `None` if it is empty.
    pub(crate) fn of_slice(slice: &Slice) -> Option<Self> {
        let range = &anchor::without(slice.partition.table.0, &slice.range);
        let Some(Continuation(after)) = &slice.after else { return Self::new(range) };
        let KeyRange { lower, upper } = range.clone();
        let (ahead, rest) = match slice.order {
            Order::Ascending => {
                let ahead = KeyRange { lower: Bound::Unbounded, upper: upper.clone() };
                (ahead, KeyRange { lower: Bound::Excluded(after.clone()), upper })
            }
            Order::Descending => {
                let ahead = KeyRange { lower: lower.clone(), upper: Bound::Unbounded };
                (ahead, KeyRange { lower, upper: Bound::Excluded(after.clone()) })
            }
        };
        match (ahead.contains(after), range.contains(after)) {
            (false, _) => None,
            // The continuation lies before the range and excludes nothing.
            (true, false) => Self::new(range),
            (true, true) => Self::new(&rest),
        }
    }

    /// The same keys, as ranges that bound a single column each: not every database accepts tuples in a DELETE.
    pub(crate) fn split(self) -> Vec<Self> {
        let (lower, mut parts) = split_edge(&self.equal, self.lower, Side::Lower);
        let (upper, above) = split_edge(&self.equal, self.upper, Side::Upper);
        parts.push(Self { equal: self.equal, lower, upper });
        parts.extend(above);
        parts
    }
}

/// One end of a range; "unbounded" is an included empty prefix.
struct Edge<'a> {
    key: &'a [Value],
    included: bool,
}

impl<'a> Edge<'a> {
    fn new(bound: &'a Bound<Vec<Value>>) -> Self {
        match bound {
            Bound::Unbounded => Self { key: &[], included: true },
            Bound::Included(key) => Self { key, included: true },
            Bound::Excluded(key) => Self { key, included: false },
        }
    }

    fn after(&self, n_equal: usize) -> Bound<Vec<Value>> {
        let rest = self.key[n_equal..].to_vec();
        match (rest.is_empty(), self.included) {
            (true, _) => Bound::Unbounded,
            (false, true) => Bound::Included(rest),
            (false, false) => Bound::Excluded(rest),
        }
    }
}

fn is_empty(lower: &Edge<'_>, upper: &Edge<'_>) -> bool {
    let n_common = lower.key.len().min(upper.key.len());
    let excludes_all = |edge: &Edge<'_>| !edge.included && edge.key.len() == n_common;
    match lower.key[..n_common].cmp(&upper.key[..n_common]) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => excludes_all(lower) || excludes_all(upper),
        std::cmp::Ordering::Greater => true,
    }
}

#[derive(Clone, Copy)]
enum Side {
    Lower,
    Upper,
}

type MakeBound = fn(Vec<Value>) -> Bound<Vec<Value>>;

/// Cuts off, deepest column first, the keys that share more than one column with the edge. What is left of the edge
/// bounds one column.
fn split_edge(equal: &[Value], edge: Bound<Vec<Value>>, side: Side) -> (Bound<Vec<Value>>, Vec<Range>) {
    let (mut key, mut bound): (_, MakeBound) = match edge {
        Bound::Unbounded => return (Bound::Unbounded, Vec::new()),
        Bound::Included(key) => (key, Bound::Included),
        Bound::Excluded(key) => (key, Bound::Excluded),
    };
    let mut parts = Vec::new();
    while key.len() > 1 {
        let last = key.split_off(key.len() - 1);
        let equal = [equal, &key].concat();
        parts.push(match side {
            Side::Lower => Range { equal, lower: bound(last), upper: Bound::Unbounded },
            Side::Upper => Range { equal, lower: Bound::Unbounded, upper: bound(last) },
        });
        // Keys with the edge's prefix are in the part just pushed.
        bound = Bound::Excluded;
    }
    (bound(key), parts)
}

#[cfg(test)]
mod tests;
