//! Ordered merge of the rows of many segments; reads no more of each than it needs.

use std::cmp::{Ordering, Reverse};
use std::collections::VecDeque;

use futures_util::future::try_join_all;
use persistence::engine::Continuation;
use persistence::error::StoreError;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::{Found, Index, VisibilityStore};
use workflow::{NamespaceId, Timestamp};

/// Sort key of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The latest first.
    Start,
    /// The earliest first.
    OldestStart,
    /// The latest first.
    Close,
}

/// A segment that is opened once the merge reaches `edge`: none of its rows sorts before that.
pub(super) struct Ahead {
    pub(super) edge: Timestamp,
    pub(super) segment: i64,
    pub(super) indexes: Vec<Index>,
}

/// Rows per read of a segment: `first`, then doubled up to `most`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    pub(super) first: usize,
    pub(super) most: usize,
}

pub(super) struct Merge<'s> {
    store: &'s VisibilityStore,
    namespace_id: NamespaceId,
    by: By,
    chunks: Chunks,
    /// Sorted so that the next one is last.
    ahead: Vec<Ahead>,
    sources: Vec<Source>,
}

struct Source {
    segment: i64,
    index: Index,
    buffered: VecDeque<Record>,
    rest: Rest,
    chunk: usize,
}

enum Rest {
    All,
    After(Continuation),
    Nothing,
}

impl<'s> Merge<'s> {
    pub(super) fn new(
        (store, namespace_id): (&'s VisibilityStore, NamespaceId),
        by: By,
        chunks: Chunks,
        mut ahead: Vec<Ahead>,
    ) -> Self {
        ahead.sort_by(|one, other| by.compare(other.edge, one.edge));
        Self { store, namespace_id, by, chunks, ahead, sources: Vec::new() }
    }

    /// The next run, or nothing if there is none left.
    pub(super) async fn next(&mut self) -> Result<Option<Record>, StoreError> {
        loop {
            self.fill().await?;
            let best = self.sources.iter().enumerate().filter_map(|(n, source)| Some((n, source.buffered.front()?)));
            let best = best.min_by(|(_, one), (_, other)| self.by.compare_records(one, other));
            let best = best.map(|(n, record)| (n, self.by.moment(record)));
            let is_ahead = |ahead: &Ahead| best.is_none_or(|(_, moment)| self.by.compare(ahead.edge, moment).is_le());
            if self.ahead.last().is_some_and(is_ahead) {
                self.open();
            } else {
                return Ok(best.and_then(|(n, _)| self.sources[n].buffered.pop_front()));
            }
        }
    }

    fn open(&mut self) {
        let Some(Ahead { segment, indexes, .. }) = self.ahead.pop() else { return };
        self.sources.extend(indexes.into_iter().map(|index| Source {
            segment,
            index,
            buffered: VecDeque::new(),
            rest: Rest::All,
            chunk: self.chunks.first,
        }));
    }

    async fn fill(&mut self) -> Result<(), StoreError> {
        let (store, namespace_id, most) = (self.store, self.namespace_id, self.chunks.most);
        let empty = self.sources.iter_mut().filter(|source| source.buffered.is_empty());
        try_join_all(empty.map(|source| source.fill(store, namespace_id, most))).await?;
        self.sources.retain(|source| !source.buffered.is_empty());
        Ok(())
    }
}

impl Source {
    async fn fill(
        &mut self,
        store: &VisibilityStore,
        namespace_id: NamespaceId,
        most: usize,
    ) -> Result<(), StoreError> {
        while self.buffered.is_empty() {
            let after = match std::mem::replace(&mut self.rest, Rest::Nothing) {
                Rest::All => None,
                Rest::After(continuation) => Some(continuation),
                Rest::Nothing => return Ok(()),
            };
            let page = store.scan((namespace_id, self.segment), &self.index, after, self.chunk).await?;
            self.rest = page.next.map_or(Rest::Nothing, Rest::After);
            self.buffered = page.runs.into_iter().filter_map(|found: Found| found.record).collect();
            self.chunk = (self.chunk * 2).min(most);
        }
        Ok(())
    }
}

impl By {
    fn moment(self, record: &Record) -> Timestamp {
        match self {
            Self::Start | Self::OldestStart => record.started_at,
            Self::Close => record.closed.map_or(Timestamp(i64::MAX), |closed| closed.at),
        }
    }

    /// Which of two moments comes first.
    fn compare(self, one: Timestamp, other: Timestamp) -> Ordering {
        match self {
            Self::Start | Self::Close => other.cmp(&one),
            Self::OldestStart => one.cmp(&other),
        }
    }

    /// As the rows are ordered: equal close times by start time, equal start times by run id.
    fn compare_records(self, one: &Record, other: &Record) -> Ordering {
        let key = |record: &Record| (Reverse(self.moment(record)), Reverse(record.started_at), record.run_id);
        match self {
            Self::Start | Self::Close => key(one).cmp(&key(other)),
            Self::OldestStart => key(other).cmp(&key(one)),
        }
    }
}
