//! State of a timer queue: timers due soon are in memory, the rest stays in the store. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use persistence::stores::executions::TimerKey;
use workflow::{TimerTask, Timestamp};

/// Timers due within this span are kept in memory.
const LOOK_AHEAD: Duration = Duration::from_secs(600);

/// A timeout may fire late by 1/64 of its duration, but never by more than `LATE_MAX`.
const LATE_PART: i64 = 64;
const LATE_MAX: Duration = Duration::from_secs(1);

/// Invariant: every timer below `horizon` that is not done is in `near` or `out`; whatever is only in the store lies at
/// or above it.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    near: BTreeMap<TimerKey, T>,
    out: BTreeSet<TimerKey>,
    horizon: Timestamp,
    /// Earliest known fire time of a timer that is only in the store; `None`: there is none.
    beyond: Option<Timestamp>,
    /// Ack level: everything up to it is done, and no new timer fires before it.
    acked: TimerKey,
    near_max: usize,
    reading: Option<Reading<T>>,
}

/// A range of the store that is being read.
#[derive(Debug)]
struct Reading<T> {
    from: Timestamp,
    /// Timers committed during the read, which may have missed them.
    arrived: Vec<(TimerKey, T)>,
}

/// A range of the store to read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) from: TimerKey,
    pub(crate) before: Timestamp,
}

impl<T> Timers<T> {
    /// Of a new owner: everything from `acked` on is only in the store.
    pub(crate) fn new(acked: TimerKey, near_max: usize) -> Self {
        let (near, out) = (BTreeMap::new(), BTreeSet::new());
        Self { near, out, horizon: acked.fires_at, beyond: Some(acked.fires_at), acked, near_max, reading: None }
    }

    /// Adds a newly committed timer.
    pub(crate) fn add(&mut self, key: TimerKey, timer: T) {
        assert!(key.fires_at >= self.acked.fires_at, "a timer below the ack level would be lost");
        if self.out.contains(&key) {
            // A read had it before its commit was known to be durable, and it is already being fired.
        } else if key.fires_at < self.horizon {
            self.near.insert(key, timer);
        } else if let Some(reading) = &mut self.reading {
            reading.arrived.push((key, timer));
        } else if self.beyond.is_none() && self.near.len() < self.near_max {
            // Nothing is only in the store, so the horizon moves out to include the timer.
            self.horizon = Timestamp(key.fires_at.0.saturating_add(1));
            self.near.insert(key, timer);
        } else {
            self.leave_in_store(key.fires_at);
        }
        if self.near.len() > self.near_max {
            self.push_out_farthest();
        }
    }

    /// The range to read from the store now, if any. `end_read` or `abandon_read` must follow.
    pub(crate) fn begin_read(&mut self, now: Timestamp) -> Option<Wanted> {
        let before = now + LOOK_AHEAD;
        let is_near = self.beyond.is_some_and(|beyond| beyond < before);
        if !is_near || !self.has_room() {
            return None;
        }
        assert!(self.reading.is_none(), "one stretch is read at a time");
        self.reading = Some(Reading { from: self.horizon, arrived: Vec::new() });
        Some(Wanted { from: first_at(self.horizon), before })
    }

    /// Adds all timers of the wanted range below `read_before`; `next`: the first fire time from there on.
    pub(crate) fn end_read(&mut self, timers: Vec<(TimerKey, T)>, read_before: Timestamp, next: Option<Timestamp>) {
        let Reading { from, arrived } = self.reading.take().expect("a read was begun");
        if self.horizon < from {
            // Memory overflowed during the read and the horizon moved back: the range no longer adjoins it.
            arrived.iter().for_each(|(key, _)| self.leave_in_store(key.fires_at));
            return;
        }
        self.near.extend(timers.into_iter().filter(|(key, _)| !self.out.contains(key)));
        self.horizon = self.horizon.max(read_before);
        self.beyond = next;
        for (key, timer) in arrived {
            if key.fires_at < self.horizon {
                self.near.insert(key, timer);
            } else {
                self.leave_in_store(key.fires_at);
            }
        }
    }

    /// The read failed: timers that arrived during it stay in the store like the rest.
    pub(crate) fn abandon_read(&mut self) {
        let arrived = self.reading.take().map(|reading| reading.arrived).unwrap_or_default();
        arrived.iter().for_each(|(key, _)| self.leave_in_store(key.fires_at));
    }

    /// Takes out the due timers.
    pub(crate) fn due(&mut self, now: Timestamp) -> Vec<(TimerKey, T)> {
        let later = self.near.split_off(&first_at(Timestamp(now.0.saturating_add(1))));
        let due = std::mem::replace(&mut self.near, later);
        self.out.extend(due.keys());
        due.into_iter().collect()
    }

    /// When to check again; `None`: not before a timer is added.
    pub(crate) fn next_look(&self) -> Option<Timestamp> {
        let near = self.near.keys().next().map(|key| key.fires_at);
        // A far timer is read half a look-ahead before its fire time.
        let beyond = self
            .beyond
            .filter(|_| self.has_room())
            .map(|beyond| Timestamp(beyond.0.saturating_sub(nanos(LOOK_AHEAD / 2))));
        near.into_iter().chain(beyond).min()
    }

    pub(crate) fn done(&mut self, key: TimerKey) {
        self.out.remove(&key);
    }

    /// Ack level: everything up to here is done. Follows the clock unless a timer holds it back.
    pub(crate) fn ack(&mut self, now: Timestamp) -> TimerKey {
        let lowest = [self.near.keys().next(), self.out.first()].into_iter().flatten().min().copied();
        let limit = first_at(now.min(self.horizon));
        let before_lowest = lowest.map(|lowest| TimerKey { task_id: lowest.task_id - 1, ..lowest });
        self.acked = self.acked.max(before_lowest.map_or(limit, |before| before.min(limit)));
        self.acked
    }

    pub(crate) fn acked(&self) -> TimerKey {
        self.acked
    }

    /// Memory is refilled from the store only when half of it is free, so that reads are worthwhile.
    fn has_room(&self) -> bool {
        self.near.len() <= self.near_max / 2
    }

    fn leave_in_store(&mut self, fires_at: Timestamp) {
        self.beyond = Some(self.beyond.map_or(fires_at, |beyond| beyond.min(fires_at)));
    }

    fn push_out_farthest(&mut self) {
        let Some((TimerKey { fires_at: farthest, .. }, _)) = self.near.pop_last() else { return };
        // Evicts the whole fire time, so that none straddles the horizon.
        self.near.split_off(&first_at(farthest));
        self.horizon = farthest;
        self.beyond = Some(farthest);
    }
}

/// Fire time of a timer: timeouts are rounded up a little, so that those of many runs coincide and those of one commit
/// share a row.
pub(crate) fn shared_moment(fires_at: Timestamp, now: Timestamp, task: &TimerTask) -> Timestamp {
    match task {
        // Users or workflows wait for these: they fire on time.
        TimerTask::UserTimer { .. }
        | TimerTask::ActivityRetry { .. }
        | TimerTask::FirstWorkflowTask { .. }
        | TimerTask::Schedule => return fires_at,
        // A run's timeout bounds its activities': rounded to the same time, an activity's could fire first.
        TimerTask::RunTimeout { .. } | TimerTask::ExecutionTimeout { .. } => return fires_at,
        TimerTask::ActivityTimeout { .. }
        | TimerTask::WorkflowTaskScheduleToStart { .. }
        | TimerTask::WorkflowTaskStartToClose { .. }
        | TimerTask::Retention { .. } => {}
    }
    let late_max = (nanos(fires_at.since(now)) / LATE_PART).min(nanos(LATE_MAX));
    // Powers of two: the fire times of longer timeouts are among those of shorter ones.
    let Some(exponent) = late_max.checked_ilog2() else { return fires_at };
    let step = 1_i64 << exponent;
    Timestamp(fires_at.0.checked_add(step - 1).map_or(fires_at.0, |end| end & !(step - 1)))
}

/// Sorts before every timer of that fire time.
fn first_at(fires_at: Timestamp) -> TimerKey {
    TimerKey { fires_at, task_id: i64::MIN }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
