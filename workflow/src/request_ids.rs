//! Known request ids of a run, by event id; looked up by hash.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::items::Items;

/// A change copies one bucket and the list of buckets: with ten thousand ids, both are small.
const BUCKETS: usize = 64;

/// Hash and event of each id that falls into a bucket.
type Bucket = Vec<(u64, i64)>;

/// Copy-on-write, shared with the state it was cloned from. Equality compares the ids.
#[derive(Debug, Clone, Default)]
pub struct RequestIds {
    ids: Items<String>,
    /// Empty until there is an id.
    buckets: Arc<Vec<Arc<Bucket>>>,
}

impl PartialEq for RequestIds {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids
    }
}

impl RequestIds {
    /// As read from the store: nothing is touched.
    #[must_use]
    pub fn loaded(all: impl IntoIterator<Item = (i64, String)>) -> Self {
        let mut request_ids = Self::default();
        for (event_id, id) in all {
            request_ids.insert(event_id, id);
        }
        request_ids.ids.take_touched();
        request_ids
    }

    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        let hash = hash_of(id);
        let Some(bucket) = self.buckets.get(bucket_of(hash)) else { return false };
        let mut events = bucket.iter().filter(|(known, _)| *known == hash).map(|(_, event_id)| *event_id);
        events.any(|event_id| self.ids.get(event_id).is_some_and(|known| known == id))
    }

    /// # Panics
    /// If the event has an id already.
    pub fn insert(&mut self, event_id: i64, id: String) {
        let hash = hash_of(&id);
        let previous = self.ids.insert(event_id, id);
        assert!(previous.is_none(), "an event is made by one request");
        let buckets = Arc::make_mut(&mut self.buckets);
        buckets.resize_with(BUCKETS, Arc::default);
        Arc::make_mut(&mut buckets[bucket_of(hash)]).push((hash, event_id));
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &String)> {
        self.ids.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ids.bytes()
    }

    /// Takes the ids touched since the last call.
    pub fn take_touched(&mut self) -> Vec<(i64, Option<Arc<String>>)> {
        self.ids.take_touched()
    }
}

fn hash_of(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

fn bucket_of(hash: u64) -> usize {
    usize::try_from(hash % BUCKETS as u64).expect("a small number fits")
}
