//! A run's recent event batches, kept with it in memory: the polls and history reads of young runs need no store.

use std::collections::VecDeque;

use persistence::stores::history::EncodedEvents;
use workflow::EventId;

/// The newest batches without a gap, up to a number of bytes. Encoded, as they are stored and as clients get them.
#[derive(Default)]
pub(crate) struct RecentEvents {
    batches: VecDeque<EncodedEvents>,
    bytes: usize,
}

impl RecentEvents {
    pub(crate) fn push(&mut self, batch: EncodedEvents, bytes_max: usize) {
        self.bytes += batch.size();
        self.batches.push_back(batch);
        while self.bytes > bytes_max {
            let Some(oldest) = self.batches.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }

    /// The batches that hold `[from, to)`, if all of them are still here.
    pub(crate) fn range(&self, from: EventId, to: EventId) -> Option<Vec<EncodedEvents>> {
        if self.batches.front()?.first_event_id() > from {
            return None;
        }
        let wanted = |batch: &&EncodedEvents| batch.last_event_id() >= from && batch.first_event_id() < to;
        Some(self.batches.iter().filter(wanted).cloned().collect())
    }

    /// The one batch that begins with this event.
    pub(crate) fn batch(&self, first_event_id: EventId) -> Option<EncodedEvents> {
        self.batches.iter().find(|batch| batch.first_event_id() == first_event_id).cloned()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.batches.capacity() * size_of::<EncodedEvents>()
    }
}
