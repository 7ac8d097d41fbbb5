//! Offsets and ids of the events in an encoded `History`. Walks the fields of events without decoding them.

use std::ops::Range;

use bytes::Buf;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, check_wire_type, decode_key, decode_varint, int64, skip_field};
use workflow::EventId;

use crate::stores::rows::{Decoded, Malformed};

/// Field number of `events` in the message `History`.
pub(super) const EVENTS: u32 = 1;
/// Field number of `event_id` in the message `HistoryEvent`.
const EVENT_ID: u32 = 1;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) event_id: EventId,
    /// The event with its tag and length: an encoded `History` of this event alone.
    pub(super) bytes: Range<usize>,
}

pub(super) struct Frames<'a> {
    history: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    pub(super) fn new(history: &'a [u8]) -> Self {
        Self { history, rest: history }
    }

    /// The next event. Skips unknown fields.
    fn read(&mut self) -> Result<Option<Frame>, DecodeError> {
        while self.rest.has_remaining() {
            let start = self.place();
            let (tag, wire_type) = decode_key(&mut self.rest)?;
            if tag != EVENTS {
                skip_field(wire_type, tag, &mut self.rest, DecodeContext::default())?;
                continue;
            }
            check_wire_type(WireType::LengthDelimited, wire_type)?;
            let mut body = self.rest;
            decode_varint(&mut body)?;
            // Fails if the event is not whole.
            skip_field(wire_type, tag, &mut self.rest, DecodeContext::default())?;
            let event_id = event_id(&body[..body.len() - self.rest.len()])?;
            return Ok(Some(Frame { event_id, bytes: start..self.place() }));
        }
        Ok(None)
    }

    fn place(&self) -> usize {
        self.history.len() - self.rest.len()
    }
}

impl Iterator for Frames<'_> {
    type Item = Decoded<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        let frame = self.read().map_err(|error| Malformed::new(format!("events do not decode: {error}")));
        if frame.is_err() {
            self.rest = &[];
        }
        frame.transpose()
    }
}

/// Walks all fields, though ours begin with the id: it may stand anywhere, and the last one wins.
fn event_id(mut event: &[u8]) -> Result<EventId, DecodeError> {
    let mut event_id = 0;
    while event.has_remaining() {
        let (tag, wire_type) = decode_key(&mut event)?;
        let ctx = DecodeContext::default();
        if tag == EVENT_ID {
            int64::merge(wire_type, &mut event_id, &mut event, ctx)?;
        } else {
            skip_field(wire_type, tag, &mut event, ctx)?;
        }
    }
    Ok(EventId(event_id))
}

#[cfg(test)]
mod tests;
