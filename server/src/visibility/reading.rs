//! Reads of one list or count: the segments of its namespace, within the bounds of its filter.

use std::collections::{BTreeSet, BinaryHeap};
use std::pin::pin;

use cluster::segments::{AGE_MAX, CLOCK_SLACK, begins_at};
use futures_util::TryStreamExt as _;
use persistence::error::StoreError;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::{Index, Segment, VisibilityStore};
use prost::Message as _;
use workflow::{NamespaceId, Timestamp};

use super::bounds::{Bounds, Span};
use super::candidates::Candidate;
use super::merge::{Ahead, By, Chunks, Merge};
use super::order::{PageOrder, Place, Reached};
use super::query::filter::{Direction, Filter};
use super::record_values::matches;

/// A page stays well under the 4 MiB of a gRPC message, unless a single run is larger.
const PAGE_BYTES: usize = 2 << 20;
/// Rows scanned per page; then the page is cut and returned with a page token.
const SCANNED_MAX: usize = 20_000;
/// Comparisons per page: a filter with many values scans fewer rows before the page is cut.
const TESTS_PER_PAGE: usize = 2_000_000;
/// Rows that a page may scan whatever its filter's weight.
const SCANNED_MIN: usize = 100;
/// Comparisons between two yields to the runtime: about 1 ms.
const TESTS_PER_TURN: usize = 20_000;
/// Rows per read where many are scanned for each that is returned.
const CHUNK: usize = 512;
/// Runs that closed since a list began and keep the places of open ones, at most. If more close while a client pages,
/// it may miss some.
const RECENT_MAX: usize = 10_000;
/// Bytes of these runs at most, with the same consequence.
const RECENT_BYTES: usize = 16 << 20;

pub(super) struct Reading<'a> {
    pub(super) store: &'a VisibilityStore,
    pub(super) namespace_id: NamespaceId,
    pub(super) segments: Vec<Segment>,
    pub(super) filter: Option<&'a Filter>,
    pub(super) bounds: Bounds,
    pub(super) ordering: PageOrder<'a>,
    /// Place of the last run already returned.
    pub(super) after: Option<Place>,
}

/// Yields to the runtime while a filter is evaluated on many runs; each yield is also a cancellation point.
pub(super) struct Turns {
    weight: usize,
    n_tests: usize,
}

impl Turns {
    /// Counts one scanned run; yields if due.
    pub(super) async fn next(&mut self) {
        self.n_tests += self.weight;
        if self.n_tests >= TESTS_PER_TURN {
            self.n_tests = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Runs of at most one page, in order, with their places.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) runs: Vec<(Place, Record)>,
    bytes: usize,
    /// A further run did not fit into `PAGE_BYTES`.
    pub(super) is_full: bool,
    /// Continuation if the limit on rows or bytes was reached; there may be nothing after it.
    pub(super) cut_at: Option<Place>,
}

impl Reading<'_> {
    fn weight(&self) -> usize {
        self.ordering.order_by.len() + self.filter.map_or(1, Filter::weight)
    }

    pub(super) fn turns(&self) -> Turns {
        Turns { weight: self.weight(), n_tests: 0 }
    }

    /// Rows that one page may scan.
    pub(super) fn scanned_max(&self) -> usize {
        (TESTS_PER_PAGE / self.weight()).clamp(SCANNED_MIN, SCANNED_MAX)
    }

    /// The next runs in the usual order; scans at most `scanned_max` rows.
    pub(super) async fn in_order(&self, limit: usize, scanned_max: usize) -> Result<Gathered, StoreError> {
        let mut gathered = Gathered::default();
        let (mut n_scanned, mut turns) = (0, self.turns());
        let reached = self.after.as_deref().and_then(super::order::reached);
        if !matches!(reached, Some(Reached::Closed(_))) {
            let to = if let Some(Reached::Open(to)) = reached { to } else { Timestamp(i64::MAX) };
            let mut recent = self.recent(to).await?.into_iter().peekable();
            let mut open = self.merge(By::Start, limit, self.open_ahead(to));
            let mut next_open = open.next().await?;
            while gathered.wants_more(limit) {
                let takes_recent = match (recent.peek(), &next_open) {
                    (Some(closed), Some(open)) => self.ordering.place(closed) <= self.ordering.place(open),
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => break,
                };
                let next = if takes_recent { recent.next() } else { next_open.take() };
                if next_open.is_none() {
                    next_open = open.next().await?;
                }
                let Some(record) = next else { continue };
                n_scanned += 1;
                self.consider(record, &mut gathered, n_scanned >= scanned_max);
                turns.next().await;
            }
        }
        if gathered.wants_more(limit) {
            let to = if let Some(Reached::Closed(to)) = reached { to } else { Timestamp(i64::MAX) };
            let mut closed = self.merge(By::Close, limit, self.closed_ahead(to));
            while gathered.wants_more(limit) {
                let Some(record) = closed.next().await? else { break };
                n_scanned += 1;
                self.consider(record, &mut gathered, n_scanned >= scanned_max);
                turns.next().await;
            }
        }
        Ok(gathered)
    }

    /// The next runs by start time. Runs with the same start time are sorted here by the other columns.
    pub(super) async fn by_start(
        &self,
        direction: Direction,
        limit: usize,
        scanned_max: usize,
    ) -> Result<Gathered, StoreError> {
        let reached = self.after.as_deref().and_then(|place| super::order::started_at(place, direction));
        let started = match (reached, direction) {
            (None, _) => self.bounds.started,
            (Some(reached), Direction::Ascending) => self.bounds.started.since(reached),
            (Some(reached), Direction::Descending) => self.bounds.started.until(reached),
        };
        let mut runs = self.started_within(started, direction, self.chunks(limit));
        let mut gathered = Gathered::default();
        let (mut n_scanned, mut turns) = (0, self.turns());
        let mut next = runs.next().await?;
        while let Some(first) = next.take() {
            let moment = first.started_at;
            let mut together = vec![first];
            loop {
                match runs.next().await? {
                    Some(record) if record.started_at == moment => together.push(record),
                    other => {
                        next = other;
                        break;
                    }
                }
            }
            n_scanned += together.len();
            together.sort_by_cached_key(|record| self.ordering.place(record));
            let last = together.len() - 1;
            for (n, record) in together.into_iter().enumerate() {
                if !gathered.wants_more(limit) {
                    return Ok(gathered);
                }
                self.consider(record, &mut gathered, n == last && n_scanned >= scanned_max);
                turns.next().await;
            }
            if !gathered.wants_more(limit) {
                break;
            }
        }
        Ok(gathered)
    }

    /// The next runs in any other order: scans all runs within the bounds.
    pub(super) async fn sorted(&self, limit: usize) -> Result<Gathered, StoreError> {
        let (mut first, mut turns) = (First::new(self, limit), self.turns());
        let mut all = self.everything();
        while let Some(record) = all.next().await? {
            first.consider(record);
            turns.next().await;
        }
        Ok(first.gathered())
    }

    /// The next runs among candidates. Reads a few records at a time and keeps only those of the page.
    pub(super) async fn first_of(&self, candidates: BTreeSet<Candidate>, limit: usize) -> Result<Gathered, StoreError> {
        let (mut first, mut turns) = (First::new(self, limit), self.turns());
        let mut records = pin!(self.records(candidates));
        while let Some(record) = records.try_next().await? {
            first.consider(record);
            turns.next().await;
        }
        Ok(first.gathered())
    }

    /// Every run within the bounds, the latest started first.
    pub(super) fn everything(&self) -> Merge<'_> {
        self.started_within(self.bounds.started, Direction::Descending, Chunks { first: CHUNK, most: CHUNK })
    }

    fn started_within(&self, span: Span, direction: Direction, chunks: Chunks) -> Merge<'_> {
        let (from, to) = span.bounds();
        let within = self.segments.iter().filter(|segment| !span.is_empty() && self.may_start_in(segment, span));
        let ahead = within.map(|segment| match direction {
            Direction::Descending => {
                Ahead { edge: ends_at(segment), segment: segment.id, indexes: vec![Index::Started(from, to)] }
            }
            Direction::Ascending => {
                Ahead { edge: starts_at(segment), segment: segment.id, indexes: vec![Index::OldestStarted(from, to)] }
            }
        });
        let by = if direction == Direction::Descending { By::Start } else { By::OldestStart };
        Merge::new((self.store, self.namespace_id), by, chunks, ahead.collect())
    }

    fn consider(&self, record: Record, gathered: &mut Gathered, is_last: bool) {
        let place = self.ordering.place(&record);
        let is_before_page = self.after.as_ref().is_some_and(|after| place <= *after);
        // A scan may return a run twice while it changes.
        let is_twice = gathered.runs.last().is_some_and(|(last, _)| *last == place);
        if is_last {
            gathered.cut_at = Some(place.clone());
        }
        if !is_before_page && !is_twice && matches(self.filter, &record) {
            gathered.push(place, record);
        }
    }

    fn merge(&self, by: By, limit: usize, ahead: Vec<Ahead>) -> Merge<'_> {
        Merge::new((self.store, self.namespace_id), by, self.chunks(limit), ahead)
    }

    fn chunks(&self, limit: usize) -> Chunks {
        // An unfiltered page takes few rows of each source: several statuses are read at once.
        if self.filter_is_wide() {
            let first = (limit / 8).max(1);
            Chunks { first, most: first }
        } else {
            Chunks { first: CHUNK / 8, most: CHUNK }
        }
    }

    /// Whether nearly every row read is returned: the bounds decide the whole filter.
    fn filter_is_wide(&self) -> bool {
        let is_bound = |filter: &Filter| super::bounds::is_kept_by_bounds(filter);
        self.filter.is_none_or(|filter| super::bounds::conjuncts(filter).iter().all(is_bound))
    }

    fn open_ahead(&self, to: Timestamp) -> Vec<Ahead> {
        let span = self.bounds.started.until(to);
        if !self.bounds.has_open || span.is_empty() {
            return Vec::new();
        }
        let (from, to) = span.bounds();
        let unsettled = self.segments.iter().filter(|segment| !segment.is_settled && self.may_start_in(segment, span));
        let ahead = unsettled.map(|segment| Ahead {
            edge: ends_at(segment),
            segment: segment.id,
            indexes: vec![Index::Open(from, to)],
        });
        ahead.collect()
    }

    fn closed_ahead(&self, to: Timestamp) -> Vec<Ahead> {
        let open_from = Timestamp(self.ordering.open_from().0.saturating_sub(1));
        let span = self.bounds.closed.until(to).until(open_from);
        let within = self.segments.iter().filter(|segment| begins_at(segment.id) <= span.to + CLOCK_SLACK);
        let ahead = within.filter(|segment| ends_at(segment) >= span.from && !span.is_empty()).map(|segment| Ahead {
            edge: ends_at(segment),
            segment: segment.id,
            indexes: self.closed_indexes(span),
        });
        ahead.collect()
    }

    fn closed_indexes(&self, span: Span) -> Vec<Index> {
        let (from, to) = span.bounds();
        let of_status = |status: &_| Index::Closed(*status, from, to);
        self.bounds.statuses.iter().map(of_status).collect()
    }

    /// Runs that closed late enough to count as open, in the order of open runs, started at `started_to` or before.
    async fn recent(&self, started_to: Timestamp) -> Result<Vec<Record>, StoreError> {
        let span = self.bounds.closed.since(self.ordering.open_from());
        let mut recent = Vec::new();
        if span.is_empty() {
            return Ok(recent);
        }
        let within = self.segments.iter().filter(|segment| ends_at(segment) >= span.from).map(|segment| Ahead {
            edge: ends_at(segment),
            segment: segment.id,
            indexes: self.closed_indexes(span),
        });
        let chunks = Chunks { first: CHUNK, most: CHUNK };
        let mut closed = Merge::new((self.store, self.namespace_id), By::Close, chunks, within.collect());
        let mut bytes = 0;
        while recent.len() < RECENT_MAX
            && bytes < RECENT_BYTES
            && let Some(record) = closed.next().await?
        {
            if record.started_at <= started_to {
                bytes += shown_bytes(&record);
                recent.push(record);
            }
        }
        recent.sort_by_cached_key(|record| self.ordering.place(record));
        Ok(recent)
    }

    pub(super) fn may_start_in(&self, segment: &Segment, span: Span) -> bool {
        begins_at(segment.id) <= span.to + CLOCK_SLACK && ends_at(segment) >= span.from
    }
}

impl Gathered {
    fn wants_more(&self, limit: usize) -> bool {
        self.runs.len() < limit && self.cut_at.is_none()
    }

    /// A run that exceeds `PAGE_BYTES` ends the page before it; the first one always fits.
    fn push(&mut self, place: Place, record: Record) {
        let bytes = self.bytes + shown_bytes(&record);
        match self.runs.last() {
            Some((last, _)) if bytes > PAGE_BYTES => {
                self.cut_at = Some(last.clone());
                self.is_full = true;
            }
            Some(_) | None => {
                self.bytes = bytes;
                self.runs.push((place, record));
            }
        }
    }
}

/// Approximate bytes of a run in a response.
fn shown_bytes(record: &Record) -> usize {
    record.memo.encoded_len() + record.search_attributes.encoded_len() + record.workflow_id.len() + 512
}

/// Nothing in a segment started or closed after this.
pub(super) fn ends_at(segment: &Segment) -> Timestamp {
    segment.sealed_at.unwrap_or_else(|| begins_at(segment.id) + AGE_MAX) + CLOCK_SLACK
}

/// Nothing in a segment started before this.
fn starts_at(segment: &Segment) -> Timestamp {
    Timestamp(begins_at(segment.id).0.saturating_sub(i64::try_from(CLOCK_SLACK.as_nanos()).unwrap_or(i64::MAX)))
}

/// Top-k heap: the first runs of many, in order, at most one page.
struct First<'r> {
    reading: &'r Reading<'r>,
    limit: usize,
    kept: BinaryHeap<Placed>,
    bytes: usize,
    /// Lowest place that was dropped for lack of room: the page ends before it.
    dropped: Option<Place>,
}

impl<'r> First<'r> {
    fn new(reading: &'r Reading<'r>, limit: usize) -> Self {
        Self { reading, limit, kept: BinaryHeap::new(), bytes: 0, dropped: None }
    }

    fn consider(&mut self, record: Record) {
        let place = self.reading.ordering.place(&record);
        let is_before_page = self.reading.after.as_ref().is_some_and(|after| place <= *after);
        let is_beyond = self.dropped.as_ref().is_some_and(|dropped| place >= *dropped);
        if is_before_page || is_beyond || !matches(self.reading.filter, &record) {
            return;
        }
        self.bytes += shown_bytes(&record);
        self.kept.push(Placed(place, record));
        while self.kept.len() > self.limit || (self.bytes > PAGE_BYTES && self.kept.len() > 1) {
            let Some(Placed(place, record)) = self.kept.pop() else { break };
            self.bytes -= shown_bytes(&record);
            self.dropped = Some(place);
        }
    }

    fn gathered(self) -> Gathered {
        let runs: Vec<_> =
            self.kept.into_sorted_vec().into_iter().map(|Placed(place, record)| (place, record)).collect();
        let cut_at = self.dropped.and_then(|_| runs.last().map(|(last, _)| last.clone()));
        Gathered { runs, bytes: self.bytes, is_full: cut_at.is_some(), cut_at }
    }
}

/// Compared by place alone: places are unique.
struct Placed(Place, Record);

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Placed {}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
