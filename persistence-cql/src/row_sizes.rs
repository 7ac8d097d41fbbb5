//! How many rows to ask for, so that an answer has about as many bytes as are wanted. CQL limits rows, not bytes.

use std::collections::HashMap;
use std::sync::Mutex;

use persistence::engine::TableRef;

/// Of a table that was never read: 64 rows of the largest usual size (2 MiB) stay far below the 256 MiB of a frame.
const FIRST_ROWS: usize = 64;

/// However small rows were so far: a few thousand large ones among them must still fit in memory.
const MAX_ROWS: usize = 4096;

/// The average row of each table, as lately read. Rows of one table are alike, so this is a good guess, no more.
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
        // Larger is believed at once, smaller by and by: the first mistake costs memory, the second a round trip.
        *average = observed.max((*average * 3 + observed) / 4);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TableRef, usize>> {
        self.averages.lock().expect("no holder of this lock can panic")
    }
}
