//! Versions of a partition's rows and tombstones, which decide the changes of a versioned table that take effect.

use std::collections::BTreeMap;
use std::ops::Range;

use super::partition::Place;

/// A tombstone of a row or of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Grave {
    Row(Place),
    Range(Range<Place>),
}

#[derive(Default)]
pub(super) struct Versions {
    live: BTreeMap<Place, i64>,
    /// Of rows that were deleted and not put again.
    dead: BTreeMap<Place, i64>,
    dead_ranges: Vec<(Range<Place>, i64)>,
}

impl Versions {
    /// There are no rows and no tombstones.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.dead.is_empty() && self.dead_ranges.is_empty()
    }

    /// Records a put, and returns whether it takes effect.
    pub(super) fn put(&mut self, place: &Place, version: i64) -> bool {
        let covering = self.dead_ranges.iter().filter(|(range, _)| range.contains(place)).map(|(_, died)| died);
        let is_deleted = self.dead.get(place).into_iter().chain(covering).any(|died| *died >= version);
        let is_overtaken = self.live.get(place).is_some_and(|live| *live > version);
        let counts = !is_deleted && !is_overtaken;
        if counts {
            // The row's own version now rejects older changes.
            self.dead.remove(place);
            self.live.insert(place.clone(), version);
        }
        counts
    }

    /// Records a delete, and returns whether it takes effect.
    pub(super) fn delete(&mut self, place: &Place, version: i64) -> bool {
        let counts = self.live.get(place).is_none_or(|live| *live <= version);
        if counts {
            self.live.remove(place);
            let died = self.dead.entry(place.clone()).or_insert(version);
            *died = version.max(*died);
        }
        counts
    }

    /// Records a range delete, and returns the rows that it deletes.
    pub(super) fn delete_range(&mut self, range: &Range<Place>, version: i64) -> Vec<Place> {
        if range.is_empty() {
            return Vec::new();
        }
        self.dead_ranges.push((range.clone(), version));
        let older = self.live.range(range.clone()).filter(|(_, live)| **live <= version);
        let doomed: Vec<Place> = older.map(|(place, _)| place.clone()).collect();
        for place in &doomed {
            self.live.remove(place);
        }
        doomed
    }

    /// Drops a tombstone: older puts may take effect again.
    pub(super) fn forget(&mut self, grave: &Grave) {
        match grave {
            Grave::Row(place) => {
                self.dead.remove(place);
            }
            Grave::Range(range) => {
                if let Some(found) = self.dead_ranges.iter().position(|(dead, _)| dead == range) {
                    self.dead_ranges.remove(found);
                }
            }
        }
    }
}
