//! The timer queue, ordered by fire time. Timers of one commit, one namespace and one fire time share a row.

use std::collections::BTreeMap;

use proto::everrow::record;
use workflow::{NamespaceId, TimerTask, Timestamp};

use super::{ExecutionStore, QueuePage, QueuedTask, RowKind, keys, place_of, queue_rows};
use crate::engine::{Batch, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::stores::shards::{self, ShardId};
use crate::table::Value;

/// Timers in one row: some 30 KiB, and with ids of the greatest length less than half a MiB.
const ROW_TIMERS_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTimer {
    pub fires_at: Timestamp,
    pub queued: QueuedTask<TimerTask>,
}

/// A timer's position in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKey {
    pub fires_at: Timestamp,
    pub task_id: i64,
}

/// Rows of the timer queue.
#[derive(Debug)]
pub struct TimerRows {
    /// Rows of the namespace.
    pub of_namespace: Vec<TimerKey>,
    /// The last row scanned, if there may be more after it.
    pub next: Option<TimerKey>,
}

impl QueuedTimer {
    #[must_use]
    pub fn timer_key(&self) -> TimerKey {
        TimerKey { fires_at: self.fires_at, task_id: self.queued.task_id }
    }
}

impl ExecutionStore {
    /// Timers that fire before `before`, from at most `limit_rows` rows after `after`; in row order, so that the last
    /// timer is the key of the last row.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read_timers(
        &self,
        shard: ShardId,
        after: TimerKey,
        before: Timestamp,
        limit_rows: usize,
    ) -> Result<QueuePage<QueuedTimer>, StoreError> {
        if after.fires_at >= before {
            return Ok(QueuePage { tasks: Vec::new(), damaged: Vec::new(), has_more: false });
        }
        let range = keys::timers_between(after, before);
        let page = self.engine.read(Slice::new(shards::partition(shard), range, limit_rows)).await?;
        Ok(queue_rows::decode_page(RowKind::TimerQueue, page, decode_row))
    }

    /// The rows of a namespace among the next `limit_rows`. A row that does not decode is not counted as the
    /// namespace's: the timer queue quarantines it.
    ///
    /// # Errors
    /// `Corrupt` if a row's key is not one of the queue.
    pub async fn timer_rows(
        &self,
        shard: ShardId,
        namespace_id: NamespaceId,
        after: TimerKey,
        limit_rows: usize,
    ) -> Result<TimerRows, StoreError> {
        let range = keys::timers_between(after, Timestamp(i64::MAX));
        let page = self.engine.read(Slice::new(shards::partition(shard), range, limit_rows)).await?;
        let mut rows = TimerRows { of_namespace: Vec::new(), next: None };
        for row in page.rows {
            let place = place_of(&row).map_err(|bad| bad.at(format_args!("{shard}, timer queue")))?;
            let key = TimerKey { fires_at: Timestamp(place.0), task_id: place.1 };
            let timers = queue_rows::data_of(row).and_then(|data| decode_row(place, data)).unwrap_or_default();
            if timers.last().is_some_and(|last| last.queued.key.namespace_id == namespace_id) {
                rows.of_namespace.push(key);
            }
            rows.next = page.next.is_some().then_some(key);
        }
        Ok(rows)
    }
}

/// A row has timers of one namespace: its removal deletes whole rows.
pub(super) fn put_timers(batch: &mut Batch, timers: &[QueuedTimer]) {
    let mut moments: BTreeMap<(Timestamp, NamespaceId), Vec<&QueuedTimer>> = BTreeMap::new();
    for timer in timers {
        moments.entry((timer.fires_at, timer.queued.key.namespace_id)).or_default().push(timer);
    }
    for mut together in moments.into_values() {
        together.sort_by_key(|timer| timer.queued.task_id);
        batch.puts.extend(together.chunks(ROW_TIMERS_MAX).map(encode_row));
    }
}

/// The key is that of its last timer, as in the other queues: a range delete up to the ack level then never drops a
/// timer that is not done.
fn encode_row(together: &[&QueuedTimer]) -> Row {
    let last = together.last().expect("a row has a timer");
    let encode = |timer: &QueuedTimer| rows::tasks::encode_timer_task(&timer.queued.key, &timer.queued.task);
    let record = if together.len() == 1 {
        encode(last)
    } else {
        let one = |timer: &&QueuedTimer| record::TimerTask { task_id: timer.queued.task_id, ..encode(timer) };
        record::TimerTask { together: together.iter().map(one).collect(), ..Default::default() }
    };
    Row {
        key: keys::timer(last.timer_key()),
        values: vec![Value::Bigint(queue_rows::ROW_FORMAT), rows::to_value(&record)],
    }
}

fn decode_row((fires_at, last_task_id): (i64, i64), data: Value) -> Decoded<Vec<QueuedTimer>> {
    let record: record::TimerTask = rows::from_value(data)?;
    let records = match record.together.is_empty() {
        true => vec![record::TimerTask { task_id: last_task_id, ..record }],
        false => record.together,
    };
    let decode = |timer: record::TimerTask| {
        let task_id = timer.task_id;
        let (key, task) = rows::tasks::decode_timer_task(timer)?;
        Ok(QueuedTimer { fires_at: Timestamp(fires_at), queued: QueuedTask { task_id, key, task } })
    };
    let timers = records.into_iter().map(decode).collect::<Decoded<Vec<_>>>()?;
    let is_sorted = timers.is_sorted_by(|one, next| one.queued.task_id < next.queued.task_id);
    let is_named = timers.last().is_some_and(|last| last.queued.task_id == last_task_id);
    let namespace_id = |timer: &QueuedTimer| timer.queued.key.namespace_id;
    if !is_sorted || !is_named || timers.iter().any(|timer| namespace_id(timer) != namespace_id(&timers[0])) {
        return Err(Malformed::new("timers that do not belong together"));
    }
    Ok(timers)
}
