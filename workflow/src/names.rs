//! Pending items by the names that a worker gave them. A command scans them all; a completion of many commands would
//! be quadratic, so it builds an index.

use std::collections::BTreeMap;

use crate::ids::EventId;

/// Scans in one completion before the index is built. Most completions have fewer commands, and allocate nothing.
const SCANS_MAX: usize = 8;

/// Pending items of one kind during one completion.
#[derive(Debug, Default)]
pub(crate) struct Names {
    n_scans: usize,
    index: Option<BTreeMap<String, EventId>>,
}

impl Names {
    /// The pending item of this name. `all` includes items whose end is buffered.
    pub(crate) fn find<'a>(
        &mut self,
        name: &str,
        all: impl Iterator<Item = (&'a str, EventId)>,
        is_over: impl Fn(EventId) -> bool,
    ) -> Option<EventId> {
        if let Some(index) = &self.index {
            return index.get(name).copied();
        }
        self.n_scans += 1;
        if self.n_scans <= SCANS_MAX {
            return all.filter(|(other, _)| *other == name).map(|(_, id)| id).find(|id| !is_over(*id));
        }
        let pending = all.filter(|(_, id)| !is_over(*id)).map(|(name, id)| (name.to_owned(), id));
        self.index.insert(pending.collect()).get(name).copied()
    }

    pub(crate) fn begun(&mut self, name: &str, id: EventId) {
        if let Some(index) = &mut self.index {
            let previous = index.insert(name.to_owned(), id);
            assert!(previous.is_none(), "a name is given once at a time");
        }
    }

    pub(crate) fn ended(&mut self, name: &str) {
        if let Some(index) = &mut self.index {
            index.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
