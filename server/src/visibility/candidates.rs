//! Runs that an index names: looked for in the most promising ones first, and given up where there are too many.

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

/// So few are looked for before anything else is tried: reading them costs less than half a page of a list.
pub(super) const FEW: usize = 64;
/// So many are looked for where a list would have to look at far more runs for a page.
pub(super) const MANY: usize = 2000;
/// With so few candidates it is cheaper to read their records than to narrow them down.
const FEW_ENOUGH: usize = 16;
/// Records read at once.
const READS: usize = 32;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    segment: i64,
    started_at: Timestamp,
    run_id: RunId,
}

/// What came of looking into an index.
pub(super) struct Tried {
    pub(super) access: Access,
    /// How many it names; nothing if more than were looked for.
    pub(super) found: Option<usize>,
}

/// Candidates, and how they were found.
#[derive(Default)]
pub(super) struct Search {
    /// All runs that the filter can hold for; nothing if no index names few enough.
    pub(super) candidates: Option<BTreeSet<Candidate>>,
    pub(super) tried: Vec<Tried>,
}

impl Reading<'_> {
    /// All runs that the filter can hold for, if an index names at most so many.
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

    /// The rows that a part is of, and when their runs started.
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

    /// The records of candidates, in no order; those that were deleted meanwhile are left out.
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
