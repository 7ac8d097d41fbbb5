//! Pending items of a run, which know which of them were touched: only those are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An ordered map that is shared with the state it was cloned from, until one of the two changes it.
///
/// Comparing two ignores what was touched: it says what is to be written, not what is.
#[derive(Debug, Clone)]
pub struct Items<V> {
    all: Arc<BTreeMap<i64, Arc<V>>>,
    touched: BTreeSet<i64>,
}

impl<V> Default for Items<V> {
    fn default() -> Self {
        Self { all: Arc::default(), touched: BTreeSet::new() }
    }
}

impl<V: PartialEq> PartialEq for Items<V> {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl<V: Clone> Items<V> {
    /// As read from the store: nothing is touched.
    #[must_use]
    pub fn loaded(all: impl IntoIterator<Item = (i64, V)>) -> Self {
        let all = all.into_iter().map(|(id, item)| (id, Arc::new(item))).collect();
        Self { all: Arc::new(all), touched: BTreeSet::new() }
    }

    #[must_use]
    pub fn get(&self, id: i64) -> Option<&V> {
        self.all.get(&id).map(AsRef::as_ref)
    }

    pub fn get_mut(&mut self, id: i64) -> Option<&mut V> {
        if !self.all.contains_key(&id) {
            // A look at what is not there must not copy the map.
            return None;
        }
        self.touched.insert(id);
        Arc::make_mut(&mut self.all).get_mut(&id).map(Arc::make_mut)
    }

    pub fn insert(&mut self, id: i64, item: V) -> Option<Arc<V>> {
        self.touched.insert(id);
        Arc::make_mut(&mut self.all).insert(id, Arc::new(item))
    }

    pub fn remove(&mut self, id: i64) -> Option<Arc<V>> {
        if !self.all.contains_key(&id) {
            return None;
        }
        self.touched.insert(id);
        Arc::make_mut(&mut self.all).remove(&id)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &V)> {
        self.all.iter().map(|(id, item)| (*id, item.as_ref()))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What was touched since the last call: an item to write, or `None` for one to delete.
    pub fn take_touched(&mut self) -> Vec<(i64, Option<Arc<V>>)> {
        std::mem::take(&mut self.touched).into_iter().map(|id| (id, self.all.get(&id).cloned())).collect()
    }
}
