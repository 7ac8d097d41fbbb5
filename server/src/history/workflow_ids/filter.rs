//! Bloom filter: false positives, but no false negatives. Pure.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use workflow::NamespaceId;

/// With `N_PROBES`, 1 % false positives in a full filter.
const BITS_PER_ID: usize = 10;
const N_PROBES: u64 = 7;
const BITS_PER_WORD: usize = u64::BITS as usize;

pub(super) struct Filter {
    words: Vec<u64>,
    n_ids: usize,
    ids_max: usize,
}

impl Filter {
    pub(super) fn new(ids_max: usize) -> Self {
        assert!(ids_max > 0, "a filter has room for an id");
        let n_words = (ids_max * BITS_PER_ID).div_ceil(BITS_PER_WORD);
        Self { words: vec![0; n_words], n_ids: 0, ids_max }
    }

    /// Number of ids that fit into this many bytes.
    pub(super) fn ids_in(bytes: usize) -> usize {
        bytes.saturating_mul(8) / BITS_PER_ID
    }

    pub(super) fn may_have(&self, namespace_id: NamespaceId, workflow_id: &str) -> bool {
        self.places(namespace_id, workflow_id).all(|(word, bit)| self.words[word] & bit != 0)
    }

    pub(super) fn add(&mut self, namespace_id: NamespaceId, workflow_id: &str) {
        let mut is_new = false;
        for (word, bit) in self.places(namespace_id, workflow_id) {
            is_new |= self.words[word] & bit == 0;
            self.words[word] |= bit;
        }
        self.n_ids += usize::from(is_new);
    }

    pub(super) fn n_ids(&self) -> usize {
        self.n_ids
    }

    pub(super) fn is_full(&self) -> bool {
        self.n_ids >= self.ids_max
    }

    fn places(&self, namespace_id: NamespaceId, workflow_id: &str) -> impl Iterator<Item = (usize, u64)> + use<> {
        // Not seeded, so that simulations are reproducible. Crafted collisions only cost reads of the store.
        let mut hasher = DefaultHasher::new();
        (namespace_id.0, workflow_id).hash(&mut hasher);
        let first = hasher.finish();
        workflow_id.len().hash(&mut hasher);
        // Odd, so that the probes are apart.
        let step = hasher.finish() | 1;
        let n_bits = (self.words.len() * BITS_PER_WORD) as u64;
        (0..N_PROBES).map(move |n| {
            let bit = usize::try_from(first.wrapping_add(n.wrapping_mul(step)) % n_bits).expect("a place in memory");
            (bit / BITS_PER_WORD, 1 << (bit % BITS_PER_WORD))
        })
    }
}
