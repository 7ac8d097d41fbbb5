//! Housekeeping of old segments. A segment whose runs are all closed is settled, so that queries for open runs skip it; one
//! whose runs are all deleted is removed.
//!
//! A pass over a namespace follows its changes and lists after `PASS_DELAY`. A namespace that is neither changed nor listed
//! costs the store one read per segment, when that segment becomes old.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cluster::env::Env;
use persistence::error::StoreError;
use persistence::stores::visibility::{Index, Segment, VisibilityStore};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;
use workflow::{NamespaceId, Timestamp};

use super::bounds::CLOSED;
use super::reading::ends_at;

/// A segment is left alone this long after its end and after its last announcement: changes may still be in flight. A
/// writer that is later announces the segment again.
const LEFT_ALONE: Duration = Duration::from_secs(10 * 60);
/// From a change of a namespace to its pass, so at most one pass per namespace in this time. Longer than `LEFT_ALONE`,
/// because changes of before the node's start may still be in flight, too.
const PASS_DELAY: Duration = Duration::from_secs(11 * 60);
/// Segments that one pass looks into, of those with open runs and of the settled ones. Each costs one to eight reads.
const UNSETTLED_PER_PASS: usize = 64;
const SETTLED_PER_PASS: usize = 16;
/// Namespaces that wait for a pass. Further ones wait for their next change.
const WAITING_MAX: usize = 10_000;

pub(super) struct Housekeeping {
    env: Env,
    store: VisibilityStore,
    /// When the next pass of each namespace is due.
    due: Mutex<HashMap<NamespaceId, Instant>>,
    added: Notify,
}

impl Housekeeping {
    pub(super) fn new(env: Env, store: VisibilityStore) -> Arc<Self> {
        Arc::new(Self { env, store, due: Mutex::default(), added: Notify::new() })
    }

    /// Schedules a pass, unless one is due earlier.
    pub(super) fn touch(&self, namespace_id: NamespaceId) {
        self.schedule(namespace_id, PASS_DELAY);
    }

    fn schedule(&self, namespace_id: NamespaceId, delay: Duration) {
        let at = Instant::now() + delay;
        let mut due = self.lock();
        if due.len() >= WAITING_MAX && !due.contains_key(&namespace_id) {
            return;
        }
        let earliest = due.entry(namespace_id).or_insert(at);
        if at <= *earliest {
            *earliest = at;
            self.added.notify_one();
        }
    }

    /// Makes passes as they become due, until the task is aborted.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let next = self.lock().iter().min_by_key(|(_, at)| **at).map(|(namespace_id, at)| (*namespace_id, *at));
            let Some((namespace_id, at)) = next else {
                self.added.notified().await;
                continue;
            };
            if at > Instant::now() {
                // A namespace that was added may be due earlier.
                let _ = tokio::time::timeout_at(at, self.added.notified()).await;
                continue;
            }
            self.lock().remove(&namespace_id);
            match self.pass(namespace_id).await {
                Ok(Some(old_at)) => self.schedule(namespace_id, old_at.since(self.env.now()).max(PASS_DELAY)),
                Ok(None) => {}
                Err(error) => {
                    warn!(%error, %namespace_id, "segment housekeeping failed; retrying later");
                    self.touch(namespace_id);
                }
            }
        }
    }

    /// Returns the time at which the next segment becomes old.
    async fn pass(&self, namespace_id: NamespaceId) -> Result<Option<Timestamp>, StoreError> {
        let now = self.env.now();
        let segments = self.store.segments(namespace_id).await?;
        let (old, young): (Vec<Segment>, Vec<Segment>) = segments.into_iter().partition(|of| old_at(of) < now);
        let (settled, mut chosen): (Vec<Segment>, Vec<Segment>) = old.into_iter().partition(|of| of.is_settled);
        chosen.truncate(UNSETTLED_PER_PASS);
        // At a random place: a run with a long retention must not keep the segments behind it from being removed.
        let first = usize::try_from(self.env.new_uuid().as_fields().0).unwrap_or_default() % settled.len().max(1);
        chosen.extend(settled.iter().cycle().skip(first).take(settled.len().min(SETTLED_PER_PASS)).copied());
        for segment in chosen {
            self.tidy(namespace_id, segment).await?;
        }
        Ok(young.iter().map(old_at).min())
    }

    async fn tidy(&self, namespace_id: NamespaceId, segment: Segment) -> Result<(), StoreError> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        if !segment.is_settled {
            if self.is_empty(namespace_id, segment, Index::Open(all.0, all.1)).await? {
                self.store.put_segment(namespace_id, Segment { is_settled: true, ..segment }).await?;
                // It may be empty of closed runs, too.
                self.touch(namespace_id);
            }
            return Ok(());
        }
        if !self.is_empty(namespace_id, segment, Index::Started(all.0, all.1)).await? {
            return Ok(());
        }
        for status in CLOSED {
            if !self.is_empty(namespace_id, segment, Index::Closed(status, all.0, all.1)).await? {
                return Ok(());
            }
        }
        self.store.remove_segment(namespace_id, segment).await
    }

    async fn is_empty(&self, namespace_id: NamespaceId, segment: Segment, index: Index) -> Result<bool, StoreError> {
        let page = self.store.scan((namespace_id, segment.id), &index, None, 1).await?;
        Ok(page.runs.is_empty() && page.next.is_none())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NamespaceId, Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn old_at(segment: &Segment) -> Timestamp {
    ends_at(segment).max(segment.announced_at) + LEFT_ALONE
}
