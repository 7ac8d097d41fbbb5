//! About how many bytes of a run are kept besides its history: what its worker lets pile up has a limit.

use prost::Message;
use proto::temporal::api::history::v1::HistoryEvent;

use crate::activity::Activity;
use crate::child::Child;
use crate::external::ExternalRequest;
use crate::state::ExecutionState;
use crate::timer::Timer;
use crate::update::Update;

/// What an item of a run takes where it is stored.
pub(crate) trait Weigh {
    fn bytes(&self) -> usize;
}

/// Ids, times and numbers of an item.
const ITEM: usize = 64;
/// Those of a run.
const RUN: usize = 512;

impl ExecutionState {
    /// About how many bytes are kept of it besides its history.
    #[must_use]
    pub fn mutable_state_size(&self) -> usize {
        let lists = self.callbacks.iter().map(|callback| callback.callback.encoded_len() + ITEM).sum::<usize>()
            + (self.known_requests.len() + self.reset_points.len()) * ITEM;
        let items = self.activities.bytes()
            + self.timers.bytes()
            + self.children.bytes()
            + self.external_signals.bytes()
            + self.external_cancels.bytes()
            + self.updates.bytes()
            + self.signal_request_ids.bytes();
        let waiting = self.unrecorded.buffered_events.bytes();
        RUN + self.memo.encoded_len() + self.search_attributes.encoded_len() + lists + items + waiting
    }
}

impl Weigh for Activity {
    fn bytes(&self) -> usize {
        let progress = &self.unrecorded;
        let names = self.activity_id.len() + self.activity_type.len() + self.task_queue.len();
        let who = progress.last_worker_identity.len() + progress.started.as_ref().map_or(0, |one| one.identity.len());
        let policy = self.retry_policy.as_ref().map_or(0, Message::encoded_len);
        let details = progress.heartbeat_details.as_ref().map_or(0, Message::encoded_len);
        let failure = progress.last_failure.as_ref().map_or(0, Message::encoded_len);
        2 * ITEM + names + who + policy + details + failure
    }
}

impl Weigh for Timer {
    fn bytes(&self) -> usize {
        ITEM + self.timer_id.len()
    }
}

impl Weigh for Child {
    fn bytes(&self) -> usize {
        2 * ITEM + self.namespace.len() + self.workflow_id.len() + self.workflow_type.len()
    }
}

impl Weigh for ExternalRequest {
    fn bytes(&self) -> usize {
        ITEM + self.request_id.len() + self.workflow_id.len()
    }
}

impl Weigh for Update {
    fn bytes(&self) -> usize {
        ITEM + self.update_id.len()
    }
}

impl Weigh for HistoryEvent {
    fn bytes(&self) -> usize {
        self.encoded_len()
    }
}

impl Weigh for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}
