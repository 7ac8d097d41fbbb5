//! A run's recent event batches, kept with it in memory: the polls and history reads of young runs need no store.

use std::collections::VecDeque;
use std::sync::Arc;

use prost::Message;
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::EventId;

pub(crate) type EventBatch = Arc<Vec<HistoryEvent>>;

/// The newest batches without a gap, up to a number of bytes.
#[derive(Default)]
pub(crate) struct RecentEvents {
    batches: VecDeque<(EventBatch, usize)>,
    bytes: usize,
}

impl RecentEvents {
    pub(crate) fn push(&mut self, batch: EventBatch, bytes_max: usize) {
        debug_assert!(!batch.is_empty(), "a batch has an event");
        let bytes = batch.iter().map(Message::encoded_len).sum();
        self.bytes += bytes;
        self.batches.push_back((batch, bytes));
        while self.bytes > bytes_max {
            let Some((_, oldest)) = self.batches.pop_front() else { break };
            self.bytes -= oldest;
        }
    }

    /// The batches that hold `[from, to)`, if all of them are still here.
    pub(crate) fn range(&self, from: EventId, to: EventId) -> Option<Vec<EventBatch>> {
        let (first, _) = self.batches.front()?;
        if first[0].event_id > from.0 {
            return None;
        }
        let wanted = |batch: &EventBatch| {
            let last = batch.last().map_or(0, |event| event.event_id);
            last >= from.0 && batch[0].event_id < to.0
        };
        Some(self.batches.iter().filter(|(batch, _)| wanted(batch)).map(|(batch, _)| Arc::clone(batch)).collect())
    }

    /// The one batch that begins with this event.
    pub(crate) fn batch(&self, first_event_id: EventId) -> Option<EventBatch> {
        self.batches.iter().find(|(batch, _)| batch[0].event_id == first_event_id.0).map(|(batch, _)| Arc::clone(batch))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
