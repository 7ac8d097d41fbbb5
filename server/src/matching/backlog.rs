//! Which part of a queue's backlog is in memory, which only in the store, and its ack levels. Pure: `keeper.rs` does
//! the reads and writes.
//!
//! Each priority is a separate level (a subqueue of the store). Tasks of a level finish in any order; the store gets
//! the ack level, up to which all are done and which never passes an unfinished one.

use std::collections::BTreeMap;

use proto::everrow::record;

use super::matcher::{Position, Priority, Rank};

#[cfg(test)]
mod tests;

pub(super) struct Backlog {
    levels: BTreeMap<Priority, Level>,
    /// Tasks up to the ack level whose rows the store still has.
    n_unsaved: usize,
    /// First and last id left for new tasks.
    pub(super) ids_left: Option<(i64, i64)>,
    limits: Limits,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Tasks of one level kept in memory.
    pub(super) in_memory: usize,
    /// Tasks per read.
    pub(super) page: usize,
}

/// Where a newly written task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// It need not be read back.
    Memory,
    /// Older tasks are only there too, or memory is full: it is read in its turn.
    Store,
}

/// Rows that the store may delete: all tasks of a level up to a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) priority: Priority,
    pub(super) up_to: Position,
}

struct Level {
    /// Tasks above the ack level that are or were in memory.
    loaded: BTreeMap<Position, Progress>,
    n_waiting: usize,
    acked: Position,
    /// The store has no rows up to here.
    deleted: Position,
    /// All tasks up to here were loaded.
    read_to: Position,
    /// No task lies after `read_to`.
    is_complete: bool,
    /// Exact once the level is complete.
    n_tasks: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Done,
}

impl Backlog {
    pub(super) fn new(limits: Limits) -> Self {
        assert!(limits.page > 0, "a page has room for a task");
        assert!(limits.in_memory >= limits.page, "a page fits in memory");
        Self { levels: BTreeMap::new(), n_unsaved: 0, ids_left: None, limits }
    }

    /// Restores the levels from the queue's record; the tasks themselves are read later.
    pub(super) fn restore(&mut self, subqueues: &[record::Subqueue]) {
        assert!(self.levels.is_empty(), "a backlog is restored once, before anything is added to it");
        for subqueue in subqueues {
            let acked = Position { pass: subqueue.acked_pass, task_id: subqueue.acked_task_id };
            let level = Level::restored(acked, subqueue.approximate_backlog_count);
            self.levels.insert(Priority::from_key(subqueue.subqueue), level);
        }
    }

    /// Adds a task that was written after all others of its level.
    pub(super) fn append(&mut self, rank: Rank) -> Placement {
        let level = self.levels.entry(rank.priority).or_insert_with(Level::empty);
        level.n_tasks += 1;
        if level.is_complete && level.n_waiting < self.limits.in_memory {
            level.load(rank.position);
            return Placement::Memory;
        }
        level.is_complete = false;
        Placement::Store
    }

    /// Rank of a task that is kept in memory only; `None` if there is no room.
    pub(super) fn keep(&mut self, priority: Priority) -> Option<Rank> {
        let level = self.levels.entry(priority).or_insert_with(Level::empty);
        if level.n_waiting >= self.limits.in_memory {
            return None;
        }
        let position = Position { task_id: level.read_to.task_id + 1, ..level.read_to };
        level.n_tasks += 1;
        level.load(position);
        Some(Rank { priority, position })
    }

    /// The level to read next, and the position to read after.
    pub(super) fn next_read(&self) -> Option<(Priority, Position)> {
        let has_room = |level: &Level| level.n_waiting + self.limits.page <= self.limits.in_memory;
        let (priority, level) = self.levels.iter().find(|(_, level)| !level.is_complete && has_room(level))?;
        Some((*priority, level.read_to))
    }

    /// Adds a page that was read, in order; `is_last`: nothing is left to read.
    pub(super) fn load(&mut self, priority: Priority, positions: impl Iterator<Item = Position>, is_last: bool) {
        let level = self.levels.get_mut(&priority).expect("only a known level is read");
        for position in positions {
            level.load(position);
        }
        if is_last {
            level.is_complete = true;
            level.n_tasks = i64::try_from(level.n_waiting).unwrap_or(i64::MAX);
        }
    }

    /// Marks a task that needs no worker any more.
    pub(super) fn finish(&mut self, rank: Rank) {
        let Some(level) = self.levels.get_mut(&rank.priority) else { return };
        self.n_unsaved += level.finish(rank.position);
    }

    pub(super) fn n_unsaved(&self) -> usize {
        self.n_unsaved
    }

    /// The done rows that the store still has.
    pub(super) fn done(&self) -> Vec<Done> {
        let behind = self.levels.iter().filter(|(_, level)| level.acked > level.deleted);
        behind.map(|(priority, level)| Done { priority: *priority, up_to: level.acked }).collect()
    }

    /// The store has deleted these rows.
    pub(super) fn deleted(&mut self, done: &[Done]) {
        for Done { priority, up_to } in done {
            if let Some(level) = self.levels.get_mut(priority) {
                level.deleted = level.deleted.max(*up_to);
            }
        }
        if self.done().is_empty() {
            self.n_unsaved = 0;
        }
    }

    /// The subqueue records stored with the lease.
    pub(super) fn subqueues(&self) -> Vec<record::Subqueue> {
        let subqueue = |(priority, level): (&Priority, &Level)| record::Subqueue {
            subqueue: priority.key(),
            acked_pass: level.acked.pass,
            acked_task_id: level.acked.task_id,
            approximate_backlog_count: level.n_tasks,
            priority_key: priority.key(),
        };
        self.levels.iter().map(subqueue).collect()
    }

    /// The same with tasks of these priorities added. Creates their levels: a subqueue that the store does not list
    /// would not be found again.
    pub(super) fn subqueues_with(&mut self, added: impl Iterator<Item = Priority>) -> Vec<record::Subqueue> {
        let mut n_added = BTreeMap::new();
        for priority in added {
            self.levels.entry(priority).or_insert_with(Level::empty);
            *n_added.entry(priority.key()).or_insert(0) += 1;
        }
        let mut subqueues = self.subqueues();
        for subqueue in &mut subqueues {
            subqueue.approximate_backlog_count += n_added.get(&subqueue.subqueue).copied().unwrap_or(0);
        }
        subqueues
    }

    pub(super) fn page(&self) -> usize {
        self.limits.page
    }

    pub(super) fn priorities(&self) -> impl Iterator<Item = Priority> + '_ {
        self.levels.keys().copied()
    }

    /// How many tasks of this priority wait, in memory and in the store.
    pub(super) fn n_tasks_of(&self, priority: Priority) -> i64 {
        self.levels.get(&priority).map_or(0, |level| level.n_tasks.max(0))
    }

    pub(super) fn n_tasks(&self) -> i64 {
        self.levels.values().map(|level| level.n_tasks.max(0)).sum()
    }

    /// The highest ack level and read level: the public API has one of each per queue.
    pub(super) fn task_ids(&self) -> (i64, i64) {
        let highest = |id: fn(&Level) -> i64| self.levels.values().map(id).max().unwrap_or(0);
        (highest(|level| level.acked.task_id), highest(|level| level.read_to.task_id))
    }
}

impl Level {
    fn empty() -> Self {
        Self { is_complete: true, ..Self::restored(Position::START, 0) }
    }

    fn restored(acked: Position, n_tasks: i64) -> Self {
        let (deleted, read_to) = (acked, acked);
        Self { loaded: BTreeMap::new(), n_waiting: 0, acked, deleted, read_to, is_complete: false, n_tasks }
    }

    fn load(&mut self, position: Position) {
        assert!(position > self.read_to, "{position:?} was loaded before: read to {:?}", self.read_to);
        self.loaded.insert(position, Progress::Waiting);
        self.n_waiting += 1;
        self.read_to = position;
    }

    /// Returns how many tasks the ack level passed.
    fn finish(&mut self, position: Position) -> usize {
        let previous = self.loaded.insert(position, Progress::Done);
        assert_eq!(previous, Some(Progress::Waiting), "{position:?} is finished once, after it was loaded");
        self.n_waiting -= 1;
        self.n_tasks -= 1;
        let mut n_passed = 0;
        while let Some(first) = self.loaded.first_entry().filter(|first| *first.get() == Progress::Done) {
            self.acked = first.remove_entry().0;
            n_passed += 1;
        }
        n_passed
    }
}
