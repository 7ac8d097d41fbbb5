//! Pending items of a run, with a set of touched ids: only touched items are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::weight::Weigh;

/// Items whose ids differ only in this many low bits share a chunk. A change copies one chunk and the map of chunks,
/// not all items: with thousands of items that is a hundred times less.
const CHUNK_BITS: u32 = 6;

#[derive(Debug, Clone)]
struct Chunk<V> {
    items: BTreeMap<i64, Arc<V>>,
    /// Cached size of all items; cleared by each change.
    bytes: OnceLock<usize>,
}

impl<V> Default for Chunk<V> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), bytes: OnceLock::new() }
    }
}

impl<V: PartialEq> PartialEq for Chunk<V> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

/// A copy-on-write ordered map, shared with the state it was cloned from.
///
/// Equality ignores touched ids: they are pending writes, not content.
#[derive(Debug, Clone)]
pub struct Items<V> {
    /// No chunk is empty.
    chunks: Arc<BTreeMap<i64, Arc<Chunk<V>>>>,
    len: usize,
    touched: BTreeSet<i64>,
}

impl<V> Default for Items<V> {
    fn default() -> Self {
        Self { chunks: Arc::default(), len: 0, touched: BTreeSet::new() }
    }
}

impl<V: PartialEq> PartialEq for Items<V> {
    fn eq(&self, other: &Self) -> bool {
        self.chunks == other.chunks
    }
}

impl<V: Clone> Items<V> {
    /// As read from the store: nothing is touched.
    #[must_use]
    pub fn loaded(all: impl IntoIterator<Item = (i64, V)>) -> Self {
        let mut items = Self::default();
        for (id, item) in all {
            let previous = items.insert(id, item);
            assert!(previous.is_none(), "an item is stored once");
        }
        items.touched.clear();
        items
    }

    #[must_use]
    pub fn get(&self, id: i64) -> Option<&V> {
        self.chunks.get(&chunk_of(id))?.items.get(&id).map(AsRef::as_ref)
    }

    pub fn get_mut(&mut self, id: i64) -> Option<&mut V> {
        // A lookup of an absent item must copy nothing.
        self.get(id)?;
        self.touched.insert(id);
        self.items_near(id).get_mut(&id).map(Arc::make_mut)
    }

    pub fn insert(&mut self, id: i64, item: V) -> Option<Arc<V>> {
        self.touched.insert(id);
        let previous = self.items_near(id).insert(id, Arc::new(item));
        self.len += usize::from(previous.is_none());
        previous
    }

    pub fn remove(&mut self, id: i64) -> Option<Arc<V>> {
        self.get(id)?;
        self.touched.insert(id);
        let items = self.items_near(id);
        let removed = items.remove(&id);
        if items.is_empty() {
            Arc::make_mut(&mut self.chunks).remove(&chunk_of(id));
        }
        self.len -= usize::from(removed.is_some());
        removed
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &V)> {
        self.chunks.values().flat_map(|chunk| chunk.items.iter().map(|(id, item)| (*id, item.as_ref())))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Ids of touched items.
    pub(crate) fn touched(&self) -> impl Iterator<Item = i64> {
        self.touched.iter().copied()
    }

    /// Takes the items touched since the last call: `Some` to write, `None` to delete.
    pub fn take_touched(&mut self) -> Vec<(i64, Option<Arc<V>>)> {
        let touched = std::mem::take(&mut self.touched).into_iter();
        touched.map(|id| (id, self.chunks.get(&chunk_of(id)).and_then(|chunk| chunk.items.get(&id)).cloned())).collect()
    }
}

impl<V: Clone> Items<V> {
    /// The chunk of this id, for a change; its cached size is cleared.
    fn items_near(&mut self, id: i64) -> &mut BTreeMap<i64, Arc<V>> {
        let chunk = Arc::make_mut(Arc::make_mut(&mut self.chunks).entry(chunk_of(id)).or_default());
        chunk.bytes.take();
        &mut chunk.items
    }

    /// Approximate stored size of all items. Only changed chunks are weighed again.
    pub(crate) fn bytes(&self) -> usize
    where
        V: Weigh,
    {
        let weigh = |chunk: &Chunk<V>| *chunk.bytes.get_or_init(|| chunk.items.values().map(|item| item.bytes()).sum());
        self.chunks.values().map(|chunk| weigh(chunk)).sum()
    }
}

fn chunk_of(id: i64) -> i64 {
    id >> CHUNK_BITS
}

#[cfg(test)]
mod tests;
