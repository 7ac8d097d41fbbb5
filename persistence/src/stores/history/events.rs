//! Encoded events, as they are stored, cached and passed on. Decoded only where their content is needed.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::message;
use proto::history::History;
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::EventId;

use super::frames::{EVENTS, Frames};
use crate::error::StoreError;
use crate::stores::rows::{Decoded, Malformed};

/// The first byte of a node's data: the format of the rest. Compression will have numbers of its own.
const FORMAT_PLAIN: u8 = 1;

/// Events that are stored together, encoded once.
#[derive(Debug, Clone)]
pub struct EventBatch {
    events: EncodedEvents,
    /// The stored bytes: the format, then these events.
    data: Bytes,
}

/// At least one event, consecutive and encoded: a tenth of the decoded size, and what clients get.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedEvents {
    first_event_id: EventId,
    last_event_id: EventId,
    /// An encoded `History` of exactly these events; whether each event decodes was not checked.
    history: Bytes,
}

impl EventBatch {
    /// # Panics
    /// If there are none, or one is missing in between.
    #[must_use]
    pub fn encode(events: &[HistoryEvent]) -> Self {
        let first_event_id = events.first().map_or(EventId::FIRST, |event| EventId(event.event_id));
        let ids = events.iter().map(|event| EventId(event.event_id));
        let last_event_id = check_ids(first_event_id, ids.map(Ok)).expect("a new node has events, one after the other");
        let data = encode_events(events);
        let history = data.slice(1..);
        Self { events: EncodedEvents { first_event_id, last_event_id, history }, data }
    }

    #[must_use]
    pub fn events(&self) -> &EncodedEvents {
        &self.events
    }

    pub(super) fn data(&self) -> Bytes {
        self.data.clone()
    }

    /// In bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.len()
    }
}

impl EncodedEvents {
    /// The events of a node, whose key has the first event id.
    pub(super) fn of_node(first_event_id: EventId, data: &Bytes) -> Decoded<Self> {
        let history = match data.first() {
            Some(&FORMAT_PLAIN) => data.slice(1..),
            other => return Err(Malformed::new(format!("node of unknown format {other:?}"))),
        };
        let ids = Frames::new(&history).map(|frame| Ok(frame?.event_id));
        let last_event_id = check_ids(first_event_id, ids)?;
        Ok(Self { first_event_id, last_event_id, history })
    }

    /// # Errors
    /// `Corrupt` if an event is damaged inside.
    pub fn decode(&self) -> Result<Vec<HistoryEvent>, StoreError> {
        let history = History::decode(self.history.clone());
        history.map(|history| history.events).map_err(|error| {
            let Self { first_event_id, last_event_id, .. } = self;
            StoreError::Corrupt(format!("events {first_event_id} to {last_event_id} do not decode: {error}"))
        })
    }

    /// The events of `[from, to)`, if there are any. They share the memory of all.
    ///
    /// # Panics
    /// Never: its frames were checked when it was made.
    #[must_use]
    pub fn within(&self, from: EventId, to: EventId) -> Option<Self> {
        if from <= self.first_event_id && self.last_event_id < to {
            return Some(self.clone());
        }
        let first_event_id = self.first_event_id.max(from);
        let last_event_id = self.last_event_id.min(EventId(to.0 - 1));
        if first_event_id > last_event_id {
            return None;
        }
        let frames = Frames::new(&self.history).map(|frame| frame.expect("the frames were whole when it was made"));
        let mut wanted = frames.filter(|frame| (first_event_id..=last_event_id).contains(&frame.event_id));
        let first = wanted.next()?.bytes;
        let end = wanted.last().map_or(first.end, |last| last.bytes.end);
        Some(Self { first_event_id, last_event_id, history: self.history.slice(first.start..end) })
    }

    #[must_use]
    pub fn first_event_id(&self) -> EventId {
        self.first_event_id
    }

    #[must_use]
    pub fn last_event_id(&self) -> EventId {
        self.last_event_id
    }

    /// Number of events.
    #[must_use]
    pub fn count(&self) -> usize {
        (self.last_event_id.0 - self.first_event_id.0 + 1) as usize
    }

    /// In bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.history.len()
    }

    /// As an encoding of the public API's `History`.
    #[must_use]
    pub fn into_history(self) -> Bytes {
        self.history
    }
}

fn encode_events(events: &[HistoryEvent]) -> Bytes {
    let length: usize = events.iter().map(|event| message::encoded_len(EVENTS, event)).sum();
    let mut data = BytesMut::with_capacity(1 + length);
    data.put_u8(FORMAT_PLAIN);
    // As `History` would encode, without first cloning every event into one.
    for event in events {
        message::encode(EVENTS, event, &mut data);
    }
    data.freeze()
}

/// The last event id. Checks that the ids are consecutive from the first one of the node on.
fn check_ids(first_event_id: EventId, ids: impl Iterator<Item = Decoded<EventId>>) -> Decoded<EventId> {
    let mut last = None;
    for found in ids {
        let (found, expected) = (found?, last.map_or(first_event_id, EventId::next));
        if found != expected {
            return Err(Malformed::new(format!("node {first_event_id} has event {found} in place of {expected}")));
        }
        last = Some(found);
    }
    last.ok_or_else(|| Malformed::new(format!("node {first_event_id} has no events")))
}

#[cfg(test)]
mod tests;
