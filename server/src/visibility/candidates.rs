//! Index candidates: looked up by the most selective access first; an access with too many is given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use persistence::error::StoreError;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::{Found, Index};
use workflow::{RunId, Timestamp};

use super::access::{Access, Part, accesses};
use super::bounds::Span;
use super::reading::Reading;

/// Candidates looked up before any scan: reading them costs less than half a page of a list.
pub(super) const FEW: usize = 64;
/// Candidates looked up where a list would have to scan far more rows for a page.
pub(super) const MANY: usize = 2000;
/// Up to this many candidates it is cheaper to read their records than to intersect with another index.
const FEW_ENOUGH: usize = 16;
/// Records read at once.
const READS: usize = 32;

/// Location of a run's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    segment: i64,
    started_at: Timestamp,
    run_id: RunId,
}

/// Result of one index lookup.
pub(super) struct Tried {
    pub(super) access: Access,
    /// Number of candidates; `None` if above the limit.
    pub(super) found: Option<usize>,
}

/// Candidates, and how they were found.
#[derive(Default)]
pub(super) struct Search {
    /// All runs that can match the filter; `None` if no index yields few enough.
    pub(super) candidates: Option<BTreeSet<Candidate>>,
    pub(super) tried: Vec<Tried>,
}

impl Reading<'_> {
    /// All runs that can match the filter, if an index yields at most `most`.
    pub(super) async fn search(&self, most: usize) -> Result<Search, StoreError> {
        let mut search = Search::default();
        for access in accesses(self.filter) {
            let found = self.look_up(&access, most).await?;
            search.tried.push(Tried { access, found: found.as_ref().map(BTreeSet::len) });
            let Some(found) = found else { continue };
            search.candidates = Some(match search.candidates.take() {
                Some(others) => found.intersection(&others).copied().collect(),
                None => found,
            });
            if search.candidates.as_ref().is_some_and(|left| left.len() <= FEW_ENOUGH) {
                break;
            }
        }
        Ok(search)
    }

    async fn look_up(&self, access: &Access, most: usize) -> Result<Option<BTreeSet<Candidate>>, StoreError> {
        let mut found = BTreeSet::new();
        let mut n_read = 0;
        for part in &access.parts {
            let (index, started) = self.stretch(part);
            for segment in self.segments.iter().filter(|segment| self.may_start_in(segment, started)) {
                let room = most + 1 - n_read;
                let page = self.store.scan((self.namespace_id, segment.id), &index, None, room).await?;
                n_read += page.runs.len();
                if n_read > most || page.next.is_some() {
                    return Ok(None);
                }
                let is_named = |run: &Found| started.contains(run.started_at) && part.may_name(run.run_id);
                found.extend(page.runs.into_iter().filter(is_named).map(|run| Candidate {
                    segment: segment.id,
                    started_at: run.started_at,
                    run_id: run.run_id,
                }));
            }
        }
        Ok(Some(found))
    }

    /// The index range of a part, and the start times that count.
    fn stretch(&self, part: &Part) -> (Index, Span) {
        let within = self.bounds.started;
        match part {
            Part::Terms { index, from, to } => {
                (Index::Terms { index: Arc::clone(index), from: from.clone(), to: to.clone() }, within)
            }
            Part::Run { started, .. } => {
                let (from, to) = started.bounds();
                (Index::Started(from, to), started.since(within.from).until(within.to))
            }
        }
    }

    /// The records of candidates, unordered; runs deleted since the lookup are left out.
    pub(super) fn records(
        &self,
        candidates: BTreeSet<Candidate>,
    ) -> impl Stream<Item = Result<Record, StoreError>> + Send {
        let reads = futures_util::stream::iter(candidates).map(|candidate| {
            let Candidate { segment, started_at, run_id } = candidate;
            self.store.find((self.namespace_id, segment), started_at, run_id)
        });
        reads.buffer_unordered(READS).filter_map(|found| std::future::ready(found.transpose()))
    }
}
