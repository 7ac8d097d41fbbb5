//! The end of a run: complete, fail, cancel, terminate, time out, continue as new.

use crate::ids::{EventId, RunId};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub event_id: EventId,
    pub at: Timestamp,
    /// The run that took over: continue-as-new, retry, cron.
    pub new_run_id: Option<RunId>,
}
