//! User timers: started by a command, ended by firing or by cancellation.

use crate::ids::EventId;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub timer_id: String,
    pub started_event_id: EventId,
    pub fires_at: Timestamp,
    pub version: i64,
}
