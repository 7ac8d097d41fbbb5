//! Position of an immediate queue: tasks in flight and the ack level. Pure.

use std::collections::BTreeSet;

/// Read and ack levels of a queue that is processed in the order of task ids.
///
/// Invariant: ids at or below `acked()` are all done; every id that is out lies in `(acked(), read]`.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// All tasks up to here were handed out, from memory or from the store.
    read: i64,
    out: BTreeSet<i64>,
    /// The next tasks are only in the store: the owner is new, or memory overflowed.
    is_behind: bool,
    /// Tasks were committed while a page was being read; the page may not have them.
    missed_some: bool,
}

impl Cursor {
    /// Of a new owner: everything above `acked` must be read.
    pub(crate) fn new(acked: i64) -> Self {
        Self { read: acked, out: BTreeSet::new(), is_behind: true, missed_some: false }
    }

    /// Offers newly committed tasks, in order. Returns those to run from memory; the others are read from the store
    /// later, or were: a page may contain them before the commit is known to be durable.
    pub(crate) fn offer<'a>(&mut self, ids: &'a [i64], out_max: usize) -> &'a [i64] {
        let fresh = &ids[ids.partition_point(|id| *id <= self.read)..];
        if self.is_behind || self.out.len() + fresh.len() > out_max {
            self.is_behind |= !fresh.is_empty();
            self.missed_some = true;
            return &[];
        }
        self.take(fresh);
        fresh
    }

    /// Whether tasks may be only in the store.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Start of the next page of the store, if one may exist and there is room for it.
    pub(crate) fn begin_page(&mut self, out_max: usize) -> Option<i64> {
        if !self.is_behind || self.out.len() >= out_max {
            return None;
        }
        self.missed_some = false;
        Some(self.read)
    }

    /// Adds the page that was read; `is_last`: no tasks follow it.
    pub(crate) fn end_page(&mut self, ids: &[i64], is_last: bool) {
        assert!(self.is_behind, "end_page without begin_page");
        self.take(ids);
        self.is_behind = !is_last || self.missed_some;
    }

    pub(crate) fn done(&mut self, id: i64) {
        let was_out = self.out.remove(&id);
        assert!(was_out, "task {id} was not out");
    }

    /// Ack level: all tasks up to here are done.
    pub(crate) fn acked(&self) -> i64 {
        self.out.first().map_or(self.read, |lowest| lowest - 1)
    }

    fn take(&mut self, ids: &[i64]) {
        for id in ids {
            assert!(*id > self.read, "task {id} comes out of order");
            self.read = *id;
            self.out.insert(*id);
        }
    }
}

#[cfg(test)]
mod tests;
