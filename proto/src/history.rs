//! `History`, the one message that is not generated: it may hold events that are encoded already, so that those which
//! are only passed on are not encoded twice.
//!
//! It relies on what the wire format says of a repeated field: encodings one after the other are an encoding of all.

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType, message, skip_field};
use prost::{DecodeError, Message, Name};

use crate::temporal::api::history::v1::HistoryEvent;

/// Of `events` in the message.
const EVENTS: u32 = 1;

/// Two that are equal on the wire may differ here, by what of them is encoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Encodings of `History`, which come before `events`. The writer answers for them: no reader checks them
    /// on the way. What came over the wire has none.
    pub encoded: Vec<Bytes>,
    pub events: Vec<HistoryEvent>,
}

impl History {
    /// All events, for readers of a history that did not come over the wire.
    ///
    /// # Errors
    /// If what is encoded is no history.
    pub fn into_events(self) -> Result<Vec<HistoryEvent>, DecodeError> {
        let mut whole = Self::default();
        for encoded in self.encoded {
            whole.merge(encoded)?;
        }
        whole.events.extend(self.events);
        Ok(whole.events)
    }
}

impl From<Vec<HistoryEvent>> for History {
    fn from(events: Vec<HistoryEvent>) -> Self {
        Self { encoded: Vec::new(), events }
    }
}

impl Message for History {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        for encoded in &self.encoded {
            buf.put_slice(encoded);
        }
        message::encode_repeated(EVENTS, &self.events, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != EVENTS {
            return skip_field(wire_type, tag, buf, ctx);
        }
        message::merge_repeated(wire_type, &mut self.events, buf, ctx).map_err(|mut error| {
            error.push(Self::NAME, "events");
            error
        })
    }

    fn encoded_len(&self) -> usize {
        let encoded: usize = self.encoded.iter().map(Bytes::len).sum();
        encoded + message::encoded_len_repeated(EVENTS, &self.events)
    }

    fn clear(&mut self) {
        self.encoded.clear();
        self.events.clear();
    }
}

impl Name for History {
    const NAME: &'static str = "History";
    const PACKAGE: &'static str = "temporal.api.history.v1";

    /// As generated code has it.
    fn type_url() -> String {
        format!("/{}", Self::full_name())
    }
}

#[cfg(test)]
mod tests;
