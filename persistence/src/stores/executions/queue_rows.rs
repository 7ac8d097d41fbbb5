//! Rows of the shard's queues. One decoder for all queues: a row that does not decode is returned raw, beside the tasks
//! of the others.

use bytes::Bytes;
use proto::everrow::record;

use super::{DamagedRow, RowKind, keys, place_of};
use crate::engine::{Page, Row};
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;

/// Format version of a queue's row, stored beside its record. A server refuses a format that it does not read.
pub(super) const ROW_FORMAT: i64 = 0;

/// Tasks in queue order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePage<T> {
    pub tasks: Vec<T>,
    /// Rows that do not decode; none of their tasks is in `tasks`.
    pub damaged: Vec<DamagedQueueRow>,
    /// There may be more after the last task.
    pub has_more: bool,
}

/// A row of a queue that does not decode, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedQueueRow {
    pub queue: RowKind,
    /// Fire time of timers; zero in the other queues.
    pub sort_key: i64,
    /// Of the row's last task.
    pub task_id: i64,
    pub format: i64,
    pub data: Bytes,
    pub problem: String,
}

impl DamagedQueueRow {
    /// The key by which a commit deletes it.
    #[must_use]
    pub fn row(&self) -> DamagedRow {
        DamagedRow(keys::queue(self.queue, self.sort_key, self.task_id))
    }

    pub(super) fn encode(&self) -> record::DamagedQueueRow {
        record::DamagedQueueRow {
            queue: self.queue as i32,
            sort_key: self.sort_key,
            task_id: self.task_id,
            format: self.format,
            data: self.data.clone(),
            problem: self.problem.clone(),
        }
    }

    pub(super) fn decode(stored: record::DamagedQueueRow) -> Decoded<Self> {
        let queues = [RowKind::TransferQueue, RowKind::TimerQueue, RowKind::VisibilityQueue];
        let queue = queues.into_iter().find(|queue| *queue as i32 == stored.queue);
        Ok(Self {
            queue: queue.ok_or_else(|| Malformed::new(format!("a queue of unknown kind {}", stored.queue)))?,
            sort_key: stored.sort_key,
            task_id: stored.task_id,
            format: stored.format,
            data: stored.data,
            problem: stored.problem,
        })
    }
}

/// `decode` gets the position of a row (fire time and last task id) and its record.
pub(super) fn decode_page<T>(
    queue: RowKind,
    page: Page,
    mut decode: impl FnMut((i64, i64), Value) -> Decoded<Vec<T>>,
) -> QueuePage<T> {
    let has_more = page.next.is_some();
    let (mut tasks, mut damaged) = (Vec::new(), Vec::new());
    for row in page.rows {
        let raw = row.clone();
        let decoded = place_of(&row).and_then(|place| decode(place, data_of(row)?));
        match decoded {
            Ok(decoded) => tasks.extend(decoded),
            Err(problem) => damaged.push(as_found(queue, raw, problem)),
        }
    }
    QueuePage { tasks, damaged, has_more }
}

pub(super) fn data_of(row: Row) -> Decoded<Value> {
    let (format, data) = rows::versioned(row.values)?;
    if format == ROW_FORMAT {
        Ok(data)
    } else {
        Err(Malformed::new(format!("a row of format {format}; this server reads format {ROW_FORMAT}")))
    }
}

fn as_found(queue: RowKind, row: Row, problem: Malformed) -> DamagedQueueRow {
    let (sort_key, task_id) = place_of(&row).unwrap_or_default();
    let (format, data) = rows::versioned(row.values).unwrap_or((ROW_FORMAT, Value::Blob(Bytes::new())));
    let data = rows::blob(data).unwrap_or_default();
    DamagedQueueRow { queue, sort_key, task_id, format, data, problem: problem.to_string() }
}
