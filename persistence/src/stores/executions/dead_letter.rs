//! Queue tasks that cannot be done, as messages for a dead-letter queue.

use prost::Message as _;
use workflow::{TimerTask, TransferTask, VisibilityTask};

use super::{DamagedQueueRow, QueuedTask};
use crate::error::StoreError;
use crate::stores::queues::Message;
use crate::stores::rows::{self, Malformed};
use crate::table::Value;

/// Encodings of messages. Numbers are stored, and never reused.
const TRANSFER: i32 = 1;
const TIMER: i32 = 2;
const VISIBILITY: i32 = 3;
const ROW: i32 = 4;

/// A dead-lettered queue task.
#[derive(Debug, Clone, PartialEq)]
pub enum DeadLetter {
    Transfer(QueuedTask<TransferTask>),
    /// Without its fire time and queue position, which have passed; its work is still due.
    Timer {
        key: workflow::ExecutionKey,
        task: TimerTask,
    },
    Visibility(QueuedTask<VisibilityTask>),
    /// A row of a queue that does not decode, as it was read.
    Row(DamagedQueueRow),
}

impl DeadLetter {
    #[must_use]
    pub fn to_message(&self) -> Message {
        let (encoding, payload) = match self {
            Self::Transfer(queued) => (TRANSFER, rows::tasks::encode_transfer(queued).encode_to_vec()),
            Self::Timer { key, task } => (TIMER, rows::tasks::encode_timer_task(key, task).encode_to_vec()),
            Self::Visibility(queued) => (VISIBILITY, rows::tasks::encode_visibility(queued).encode_to_vec()),
            Self::Row(damaged) => (ROW, damaged.encode().encode_to_vec()),
        };
        Message { encoding, payload: payload.into() }
    }

    /// # Errors
    /// `Corrupt` if it is not a message of ours.
    pub fn from_message(message: &Message) -> Result<Self, StoreError> {
        let payload = Value::Blob(message.payload.clone());
        let decoded = match message.encoding {
            TRANSFER => rows::from_value(payload).and_then(rows::tasks::decode_transfer).map(Self::Transfer),
            TIMER => rows::from_value(payload)
                .and_then(rows::tasks::decode_timer_task)
                .map(|(key, task)| Self::Timer { key, task }),
            VISIBILITY => rows::from_value(payload).and_then(rows::tasks::decode_visibility).map(Self::Visibility),
            ROW => rows::from_value(payload).and_then(DamagedQueueRow::decode).map(Self::Row),
            _ => Err(Malformed::new("an encoding that is not known")),
        };
        decoded.map_err(|bad| bad.at("a dead letter"))
    }
}
