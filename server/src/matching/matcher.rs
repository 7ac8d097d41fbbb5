//! Tasks × pollers → pairs. Pure: no clock, channel or store.
//!
//! Tasks are ordered by priority, then by backlog position; pollers by arrival. So no poll starves, and a task only
//! behind higher priorities.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Tasks and pollers that wait for each other. Both wait at once only while a rate limit holds the pairs back.
pub(super) struct Matcher<T, P> {
    tasks: BTreeMap<Rank, T>,
    /// Keys are handed out in ascending order, so the first has waited longest.
    pollers: BTreeMap<PollerKey, P>,
    next_poller: u64,
}

/// Dispatch order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: Priority,
    pub(super) position: Position,
}

/// 1 goes first, 5 last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Priority(u8);

/// Position in a backlog: by fairness pass, then by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) pass: i64,
    pub(super) task_id: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PollerKey(u64);

impl Priority {
    const FIRST: i32 = 1;
    const LAST: i32 = 5;
    const DEFAULT: i32 = 3;

    /// Zero is the default in the public API; keys outside of the range are clamped.
    pub(super) fn from_key(key: i32) -> Self {
        let key = if key == 0 { Self::DEFAULT } else { key.clamp(Self::FIRST, Self::LAST) };
        Self(u8::try_from(key).expect("clamped to a small range"))
    }

    pub(super) fn key(self) -> i32 {
        i32::from(self.0)
    }
}

impl Position {
    /// Before every task.
    pub(super) const START: Self = Self { pass: 0, task_id: 0 };
}

impl<T, P> Matcher<T, P> {
    pub(super) fn new() -> Self {
        Self { tasks: BTreeMap::new(), pollers: BTreeMap::new(), next_poller: 0 }
    }

    pub(super) fn add_task(&mut self, rank: Rank, task: T) {
        let previous = self.tasks.insert(rank, task);
        assert!(previous.is_none(), "two tasks at {rank:?}");
    }

    pub(super) fn add_poller(&mut self, poller: P) -> PollerKey {
        let key = PollerKey(self.next_poller);
        self.next_poller += 1;
        self.pollers.insert(key, poller);
        key
    }

    /// `None` if it was paired.
    pub(super) fn remove_poller(&mut self, key: PollerKey) -> Option<P> {
        self.pollers.remove(&key)
    }

    pub(super) fn remove_task(&mut self, rank: Rank) -> Option<T> {
        self.tasks.remove(&rank)
    }

    /// The task that goes next.
    pub(super) fn first_task(&self) -> Option<(Rank, &T)> {
        self.tasks.first_key_value().map(|(rank, task)| (*rank, task))
    }

    pub(super) fn has_pair(&self) -> bool {
        !self.tasks.is_empty() && !self.pollers.is_empty()
    }

    /// The first task goes to the poller that has waited longest.
    pub(super) fn pair(&mut self) -> Option<(Rank, T, P)> {
        if !self.has_pair() {
            return None;
        }
        let (rank, task) = self.tasks.pop_first()?;
        let (_, poller) = self.pollers.pop_first()?;
        Some((rank, task, poller))
    }

    /// Whether a new task may go to a poller at once: it may not overtake a waiting one.
    pub(super) fn has_free_poller(&self) -> bool {
        self.tasks.is_empty() && !self.pollers.is_empty()
    }

    /// The poller for a new task.
    pub(super) fn take_free_poller(&mut self) -> Option<P> {
        if !self.has_free_poller() {
            return None;
        }
        self.pollers.pop_first().map(|(_, poller)| poller)
    }

    /// The poller that has waited longest, for a delivery that precedes every task.
    pub(super) fn take_poller(&mut self) -> Option<P> {
        self.pollers.pop_first().map(|(_, poller)| poller)
    }

    pub(super) fn n_pollers(&self) -> usize {
        self.pollers.len()
    }

    pub(super) fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The task of this priority that goes next.
    pub(super) fn first_of(&self, priority: Priority) -> Option<&T> {
        let from = Rank { priority, position: Position::START };
        let (rank, task) = self.tasks.range(from..).next()?;
        (rank.priority == priority).then_some(task)
    }

    /// In dispatch order.
    pub(super) fn take_tasks(&mut self) -> impl Iterator<Item = T> + use<T, P> {
        std::mem::take(&mut self.tasks).into_values()
    }

    /// Drops the pollers, ending their polls; the tasks stay in the store.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.pollers.clear();
    }
}
