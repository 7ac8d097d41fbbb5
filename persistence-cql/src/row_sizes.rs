//! Estimates the row limit of a read from its byte limit: CQL limits rows, not bytes.

use std::collections::HashMap;
use std::sync::Mutex;

use persistence::engine::TableRef;

/// Row limit of a table not read yet: 64 rows of the largest usual size (2 MiB) fill half of a frame of 256 MiB.
const FIRST_ROWS: usize = 64;

/// Row limit however small rows were so far: a few thousand large ones among them must still fit in memory.
const MAX_ROWS: usize = 4096;

/// Moving average of each table's row size in bytes: an estimate, good because rows of one table are alike.
#[derive(Debug, Default)]
pub(crate) struct RowSizes {
    averages: Mutex<HashMap<TableRef, usize>>,
}

impl RowSizes {
    /// At least one, at most `limit`.
    pub(crate) fn rows_for(&self, table: TableRef, n_bytes: usize, limit: usize) -> usize {
        let average = self.lock().get(&table).copied();
        let fit = average.map_or(FIRST_ROWS, |average| n_bytes / average.max(1));
        fit.clamp(1, MAX_ROWS).min(limit)
    }

    pub(crate) fn observe(&self, table: TableRef, n_rows: usize, n_bytes: usize) {
        if n_rows == 0 {
            return;
        }
        let observed = n_bytes / n_rows;
        let mut averages = self.lock();
        let average = averages.entry(table).or_insert(observed);
        // Grows at once and shrinks gradually: too low an estimate costs memory, too high a one a round trip.
        *average = observed.max((*average * 3 + observed) / 4);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TableRef, usize>> {
        self.averages.lock().expect("no holder of this lock can panic")
    }
}
