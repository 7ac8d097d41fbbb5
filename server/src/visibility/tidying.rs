//! Old segments: one whose runs are all closed is marked, so that lists look there for open ones no more; one whose runs are
//! all deleted is forgotten. Whoever lists runs looks after one of them now and then.

use std::ops::Bound;
use std::time::Duration;

use persistence::error::StoreError;
use persistence::stores::visibility::{Index, Segment};
use tracing::warn;
use workflow::NamespaceId;

use super::bounds::CLOSED;
use super::reading::ends_at;
use super::service::Service;

/// After its end, a segment is left alone for so long, and all are after a node's start: changes may still be on their way.
/// Whoever brings one that is later announces the segment again.
const LEFT_ALONE: Duration = Duration::from_secs(10 * 60);

impl Service {
    /// Looks after one of the segments, by chance.
    pub(super) async fn tidy(&self, namespace_id: NamespaceId, segments: &[Segment]) {
        let now = self.env.now();
        if self.began_at + LEFT_ALONE >= now {
            return;
        }
        let is_old = |segment: &&Segment| ends_at(segment).max(segment.announced_at) + LEFT_ALONE < now;
        let old: Vec<&Segment> = segments.iter().filter(is_old).collect();
        let chance = usize::try_from(self.env.new_uuid().as_fields().0).unwrap_or_default();
        let Some(segment) = old.get(chance % old.len().max(1)) else { return };
        if let Err(error) = self.tidy_one(namespace_id, **segment).await {
            warn!(%error, segment = segment.id, "cannot look after a segment");
        }
    }

    async fn tidy_one(&self, namespace_id: NamespaceId, segment: Segment) -> Result<(), StoreError> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        if !segment.is_settled {
            if self.is_empty(namespace_id, segment, Index::Open(all.0, all.1)).await? {
                self.store.put_segment(namespace_id, Segment { is_settled: true, ..segment }).await?;
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
}
