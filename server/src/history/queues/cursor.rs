//! Where an immediate queue stands: which tasks are out, and up to where all are done. Pure.

use std::collections::BTreeSet;

/// The place of tasks in a queue that is worked off in the order of their ids.
///
/// Invariant: ids at or below `acked()` are all done; every id that is out lies in `(acked(), read]`.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// All tasks up to here were handed out, from memory or from the store.
    read: i64,
    out: BTreeSet<i64>,
    /// Tasks that are only in the store come next: a new owner's lot, or memory overflowed.
    is_behind: bool,
    /// Tasks were committed while a page was being read; the page may not have them.
    missed_some: bool,
}

impl Cursor {
    /// As a new owner finds it: everything above `acked` must be read.
    pub(crate) fn new(acked: i64) -> Self {
        Self { read: acked, out: BTreeSet::new(), is_behind: true, missed_some: false }
    }

    /// Newly committed tasks, in order. Returns those to run from memory; the others are read from the store in their
    /// turn, or were: a page may have had them before the commit was known to be durable.
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

    /// There may be tasks that are only in the store.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Where the next page of the store begins, if there may be one and there is room for it.
    pub(crate) fn begin_page(&mut self, out_max: usize) -> Option<i64> {
        if !self.is_behind || self.out.len() >= out_max {
            return None;
        }
        self.missed_some = false;
        Some(self.read)
    }

    /// The page that was asked for; `is_last`: there was nothing behind it.
    pub(crate) fn end_page(&mut self, ids: &[i64], is_last: bool) {
        assert!(self.is_behind, "a page was asked for");
        self.take(ids);
        self.is_behind = !is_last || self.missed_some;
    }

    pub(crate) fn done(&mut self, id: i64) {
        let was_out = self.out.remove(&id);
        assert!(was_out, "task {id} was not out");
    }

    /// All tasks up to here are done.
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
