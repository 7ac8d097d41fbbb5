//! One partition: static columns and ordered rows. Plain; knows nothing of faults.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use super::versions::{Grave, Versions};
use crate::engine::{
    Batch, Condition, Continuation, Current, KeyRange, Order, PAGE_BYTES, Page, Partition, Row, RowChange, Slice,
    Statics, Versioned,
};
use crate::table::Value;

pub(super) struct Rows {
    statics: Statics,
    rows: BTreeMap<Place, Vec<Value>>,
    /// Tombstones: keys deleted and not put again; kept only with `Dead::Remembered`.
    dead: BTreeSet<Place>,
    versions: Versions,
}

/// Whether deleted keys are kept for counting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dead {
    Remembered,
    Forgotten,
}

/// A place in the order of keys: right before all keys that begin with `prefix`, or right after them. A row is kept at
/// the place before its whole key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    prefix: Vec<Value>,
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Before,
    After,
}

impl Rows {
    pub(super) fn new(partition: &Partition) -> Self {
        let (rows, dead) = (BTreeMap::new(), BTreeSet::new());
        Self { statics: Self::no_statics(partition), rows, dead, versions: Versions::default() }
    }

    pub(super) fn no_statics(partition: &Partition) -> Statics {
        vec![None; partition.table.0.statics.len()]
    }

    pub(super) fn statics(&self) -> Statics {
        self.statics.clone()
    }

    pub(super) fn all(&self) -> Vec<Row> {
        self.rows.iter().map(row).collect()
    }

    /// Whether the partition need not be kept.
    pub(super) fn is_empty(&self) -> bool {
        let has_rows = !self.rows.is_empty() || !self.dead.is_empty() || !self.versions.is_empty();
        !has_rows && self.statics.iter().all(Option::is_none)
    }

    pub(super) fn current(&self, condition: &Condition) -> Current {
        match condition {
            Condition::Static { column, .. } => Current::Static(self.statics[*column].clone()),
            Condition::Absent { key } | Condition::Value { key, .. } => {
                Current::Row(self.rows.get_key_value(&Place::before(key)).map(row))
            }
        }
    }

    /// The page, and the number of tombstones in it.
    pub(super) fn page(&self, slice: &Slice) -> (Page, usize) {
        let mut places = places(&slice.range);
        match (&slice.after, slice.order) {
            (Some(Continuation(key)), Order::Ascending) => places.start = places.start.max(Place::after(key)),
            (Some(Continuation(key)), Order::Descending) => places.end = places.end.min(Place::before(key)),
            (None, _) => {}
        }
        if places.is_empty() {
            return (Page::default(), 0);
        }
        let rows = self.rows.range(places.clone());
        let page = match slice.order {
            Order::Ascending => collect(rows, slice.limit),
            Order::Descending => collect(rows.rev(), slice.limit),
        };
        match (&page.next, slice.order) {
            (Some(Continuation(key)), Order::Ascending) => places.end = Place::after(key),
            (Some(Continuation(key)), Order::Descending) => places.start = Place::before(key),
            (None, _) => {}
        }
        let n_dead = self.dead.range(places).count();
        (page, n_dead)
    }

    /// Returns the tombstones of versioned deletes, which are kept until `forget`.
    pub(super) fn apply(&mut self, batch: Batch, dead: Dead) -> Vec<Grave> {
        for range in &batch.range_deletes {
            let places = places(range);
            if !places.is_empty() {
                let covered: Vec<Place> = self.rows.range(places).map(|(place, _)| place.clone()).collect();
                covered.into_iter().for_each(|place| self.delete(place, dead));
            }
        }
        for key in &batch.deletes {
            self.delete(Place::before(key), dead);
        }
        for row in batch.puts {
            self.put(row);
        }
        for (column, value) in batch.statics {
            self.statics[column] = Some(value);
        }
        batch.versioned.into_iter().filter_map(|versioned| self.apply_versioned(versioned, dead)).collect()
    }

    fn apply_versioned(&mut self, Versioned { version, change }: Versioned, dead: Dead) -> Option<Grave> {
        match change {
            RowChange::Put(row) => {
                if self.versions.put(&Place::before(&row.key), version) {
                    self.put(row);
                }
                None
            }
            RowChange::Delete(key) => {
                let place = Place::before(&key);
                let counts = self.versions.delete(&place, version);
                counts.then(|| {
                    self.delete(place.clone(), dead);
                    Grave::Row(place)
                })
            }
            RowChange::DeleteRange(range) => {
                let places = places(&range);
                for place in self.versions.delete_range(&places, version) {
                    self.delete(place, dead);
                }
                Some(Grave::Range(places))
            }
        }
    }

    pub(super) fn forget(&mut self, grave: &Grave) {
        self.versions.forget(grave);
    }

    fn put(&mut self, row: Row) {
        let place = Place { prefix: row.key, side: Side::Before };
        self.dead.remove(&place);
        self.rows.insert(place, row.values);
    }

    fn delete(&mut self, place: Place, dead: Dead) {
        let existed = self.rows.remove(&place).is_some();
        if existed && dead == Dead::Remembered {
            self.dead.insert(place);
        }
    }
}

fn row((place, values): (&Place, &Vec<Value>)) -> Row {
    Row { key: place.prefix.clone(), values: values.clone() }
}

fn places(range: &KeyRange) -> Range<Place> {
    let start = match &range.lower {
        Bound::Unbounded => Place::before(&[]),
        Bound::Included(prefix) => Place::before(prefix),
        Bound::Excluded(prefix) => Place::after(prefix),
    };
    let end = match &range.upper {
        Bound::Unbounded => Place::after(&[]),
        Bound::Included(prefix) => Place::after(prefix),
        Bound::Excluded(prefix) => Place::before(prefix),
    };
    start..end
}

fn collect<'a>(rows: impl Iterator<Item = (&'a Place, &'a Vec<Value>)>, limit: usize) -> Page {
    let mut page = Page::default();
    let mut bytes = 0;
    for entry in rows {
        let row = row(entry);
        bytes += row.values.iter().map(Value::size).sum::<usize>();
        page.rows.push(row);
        if page.rows.len() == limit || bytes >= PAGE_BYTES {
            page.next = page.rows.last().map(|row| Continuation(row.key.clone()));
            break;
        }
    }
    page
}

impl Place {
    fn before(prefix: &[Value]) -> Self {
        Self { prefix: prefix.to_vec(), side: Side::Before }
    }

    fn after(prefix: &[Value]) -> Self {
        Self { prefix: prefix.to_vec(), side: Side::After }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let common = self.prefix.len().min(other.prefix.len());
        let by_values = self.prefix[..common].cmp(&other.prefix[..common]);
        by_values.then_with(|| match (self.prefix.len().cmp(&other.prefix.len()), self.side, other.side) {
            (Ordering::Equal, mine, theirs) => mine.cmp(&theirs),
            // The other begins with this one's prefix, so it lies between this one's two sides; or the reverse.
            (Ordering::Less, Side::Before, _) | (Ordering::Greater, _, Side::After) => Ordering::Less,
            (Ordering::Less, Side::After, _) | (Ordering::Greater, _, Side::Before) => Ordering::Greater,
        })
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
