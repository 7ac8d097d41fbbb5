//! Writes visibility rows. Changes of all shards of the node share batches; one group is written at a time, so that a later
//! change of a run never overtakes an earlier one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cluster::errors::ServiceError;
use cluster::segments::{Segments, begins_at};
use persistence::error::StoreError;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::{self, Change, Segment, VisibilityStore};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tracing::warn;
use workflow::{NamespaceId, Timestamp};

use super::housekeeping::Housekeeping;

/// Interval of visibility writes, the same moments for all shards of a node: their changes share a batch, and a run that
/// opens and closes within one round is written once. The aim is visible within 200 ms; the rest is for the write.
const ROUND: Duration = Duration::from_millis(100);
/// From the first submission of a round to its write, so that others join it.
const GATHERING: Duration = Duration::from_millis(5);
/// Changes of one group: a few thousand rows.
const GROUP_MAX: usize = 2000;
/// Namespaces whose segments are remembered; more are read again.
const KNOWN_MAX: usize = 10_000;

pub(crate) struct Writer {
    store: VisibilityStore,
    segments: Segments,
    housekeeping: Arc<Housekeeping>,
    began: Instant,
    waiting: Mutex<Vec<Submission>>,
    wake: Notify,
}

struct Submission {
    changes: Vec<Change>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// Segments that are announced.
type Known = HashMap<NamespaceId, HashSet<i64>>;

impl Writer {
    pub(super) fn new(store: VisibilityStore, segments: Segments, housekeeping: Arc<Housekeeping>) -> Arc<Self> {
        let (began, waiting, wake) = (Instant::now(), Mutex::default(), Notify::new());
        Arc::new(Self { store, segments, housekeeping, began, waiting, wake })
    }

    /// Returns at the start of the next round.
    pub(crate) async fn next_round(&self) {
        let since = self.began.elapsed().as_nanos() % ROUND.as_nanos();
        let wait = ROUND - Duration::from_nanos(u64::try_from(since).unwrap_or_default());
        tokio::time::sleep(wait).await;
    }

    /// Returns once the changes are visible to lists.
    pub(crate) async fn write(&self, changes: Vec<Change>) -> Result<(), ServiceError> {
        let (done, written) = oneshot::channel();
        self.lock().push(Submission { changes, done });
        self.wake.notify_one();
        let stopped = |_| ServiceError::Unavailable("the visibility service is stopping".into());
        Ok(written.await.map_err(stopped)??)
    }

    /// Writes what is submitted, until the task is aborted.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut known = Known::new();
        loop {
            self.wake.notified().await;
            tokio::time::sleep(GATHERING).await;
            while let Some(group) = self.take_group() {
                self.write_group(&mut known, group).await;
            }
            self.seal().await;
        }
    }

    fn take_group(&self) -> Option<Vec<Submission>> {
        let mut waiting = self.lock();
        let mut n_changes = 0;
        let fits = waiting.iter().take_while(|submission| {
            let is_first = n_changes == 0;
            n_changes += submission.changes.len();
            is_first || n_changes <= GROUP_MAX
        });
        let n = fits.count();
        (n > 0).then(|| waiting.drain(..n).collect())
    }

    async fn write_group(&self, known: &mut Known, mut group: Vec<Submission>) {
        let changes: Vec<Change> =
            group.iter_mut().flat_map(|submission| std::mem::take(&mut submission.changes)).collect();
        let written = self.write_changes(known, &changes).await;
        let told = |submission: Submission, written: Result<(), StoreError>| {
            // The submitter may have stopped waiting.
            let _ = submission.done.send(written);
        };
        for submission in group {
            let written = match &written {
                Ok(()) => Ok(()),
                Err(error) => Err(error.clone()),
            };
            told(submission, written);
        }
    }

    async fn write_changes(&self, known: &mut Known, changes: &[Change]) -> Result<(), StoreError> {
        let taken = taken(changes);
        for ((namespace_id, segment), taken) in &taken {
            self.announce(known, (*namespace_id, *segment), taken.since).await?;
        }
        self.store.write(changes).await?;
        changes.iter().map(namespace_of).collect::<HashSet<_>>().into_iter().for_each(|of| self.housekeeping.touch(of));
        for ((namespace_id, segment), taken) in taken {
            self.segments.took(namespace_id, segment, taken.n_runs);
        }
        Ok(())
    }

    /// A segment is announced before its first row, and again if housekeeping may have settled or removed it.
    async fn announce(
        &self,
        known: &mut Known,
        (namespace_id, segment): (NamespaceId, i64),
        since: Timestamp,
    ) -> Result<(), StoreError> {
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = known.entry(namespace_id) {
            let stored = self.store.segments(namespace_id).await?;
            entry.insert(stored.into_iter().map(|segment| segment.id).collect());
        }
        let of_namespace = known.entry(namespace_id).or_default();
        let again_at = self.segments.announced_again_at(since);
        if of_namespace.contains(&segment) && again_at.is_none() {
            return Ok(());
        }
        // The segment's beginning: the same from every writer, whenever the announcement arrives.
        let announced_at = again_at.unwrap_or(begins_at(segment));
        let new = Segment { id: segment, announced_at, sealed_at: None, is_settled: false };
        self.store.put_segment(namespace_id, new).await?;
        of_namespace.insert(segment);
        Ok(())
    }

    /// Marks segments that take no more runs. If it fails, readers derive it from their age.
    async fn seal(&self) {
        for sealed in self.segments.take_sealed() {
            let (announced_at, sealed_at) = (begins_at(sealed.id), Some(sealed.at));
            let segment = Segment { id: sealed.id, announced_at, sealed_at, is_settled: false };
            if let Err(error) = self.store.put_segment(sealed.namespace_id, segment).await {
                warn!(%error, segment = sealed.id, "cannot mark a full segment; readers derive it from its age");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Submission>> {
        self.waiting.lock().expect("nobody panics while holding it")
    }
}

fn namespace_of(change: &Change) -> NamespaceId {
    match change {
        Change::Put(put) => put.record.namespace_id,
        Change::Remove(removal) => removal.record.namespace_id,
    }
}

/// What goes into a segment.
struct Taken {
    /// Starts and closes.
    n_runs: usize,
    /// The earliest event that may not be visible yet.
    since: Timestamp,
}

fn taken(changes: &[Change]) -> BTreeMap<(NamespaceId, i64), Taken> {
    let mut all: BTreeMap<(NamespaceId, i64), Taken> = BTreeMap::new();
    for change in changes {
        let Change::Put(put) = change else { continue };
        let Record { namespace_id, listing, started_at, closed, .. } = &put.record;
        // Of a run that lists know, the segment of its start is neither settled nor forgotten as long as it is open.
        let started_at = if put.known == visibility::Known::Surely { Timestamp(i64::MAX) } else { *started_at };
        let started = (listing.started_in, started_at);
        let closed = listing.closed_in.zip(closed.as_ref().map(|closed| closed.at));
        for (segment, moment) in std::iter::once(started).chain(closed) {
            let taken = all.entry((*namespace_id, segment)).or_insert(Taken { n_runs: 0, since: moment });
            taken.n_runs += 1;
            taken.since = taken.since.min(moment);
        }
    }
    all
}
