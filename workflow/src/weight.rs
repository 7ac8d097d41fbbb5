//! Approximate size of a run's mutable state, which is limited: a worker can let it grow.

use prost::Message;
use proto::temporal::api::history::v1::HistoryEvent;

use crate::activity::Activity;
use crate::child::Child;
use crate::external::ExternalRequest;
use crate::state::ExecutionState;
use crate::timer::Timer;
use crate::update::Update;

/// Approximate stored size of an item: its payloads and names, and a fixed allowance.
pub trait Weigh {
    fn bytes(&self) -> usize;
}

/// Bytes for the ids, times and numbers of an item.
const ITEM: usize = 64;
/// Bytes for those of a run.
const RUN: usize = 512;

impl ExecutionState {
    /// Approximate bytes stored for the run besides its history.
    #[must_use]
    pub fn mutable_state_size(&self) -> usize {
        let items = self.activities.bytes()
            + self.timers.bytes()
            + self.children.bytes()
            + self.external_signals.bytes()
            + self.external_cancels.bytes()
            + self.updates.bytes()
            + self.signal_request_ids.bytes();
        let waiting = self.unrecorded.buffered_events.bytes();
        self.state_row_size() + self.memo.encoded_len() + self.search_attributes.encoded_len() + items + waiting
    }

    /// Approximate bytes of the row that every transition writes.
    #[must_use]
    pub fn state_row_size(&self) -> usize {
        let callbacks: usize =
            self.callbacks.iter().map(|kept| ITEM + kept.callback.encoded_len() + kept.request_id.len()).sum();
        let requests: usize = self.known_requests.iter().map(|known| ITEM + known.request_id.len()).sum();
        let points: usize =
            self.reset_points.iter().map(|point| ITEM + point.binary_checksum.len() + point.build_id.len()).sum();
        let pause = self.pause.as_ref().map_or(0, |pause| pause.identity.len() + pause.reason.len());
        let versions = (self.version_history.len() + self.branch.ancestors.len()) * ITEM;
        let unrecorded = &self.unrecorded;
        let ids = unrecorded.start_request_id.len()
            + unrecorded.reset_request_id.len()
            + unrecorded.cancel_request_id.as_ref().map_or(0, String::len)
            + unrecorded.sticky.as_ref().map_or(0, |sticky| sticky.task_queue.len());
        RUN + callbacks + requests + points + pause + versions + ids
    }

    /// Approximate bytes of the row that is written when the run starts.
    #[must_use]
    pub fn started_row_size(&self) -> usize {
        let started = &self.started;
        let again = started.again.as_ref().map_or(0, |again| {
            again.input.as_ref().map_or(0, Message::encoded_len)
                + again.header.as_ref().map_or(0, Message::encoded_len)
                + again.last_completion_result.as_ref().map_or(0, Message::encoded_len)
                + again.memo.as_ref().map_or(0, Message::encoded_len)
                + again.search_attributes.as_ref().map_or(0, Message::encoded_len)
        });
        let links: usize = started.links.iter().map(Message::encoded_len).sum();
        let policy = started.retry_policy.as_ref().map_or(0, Message::encoded_len);
        let names = started.workflow_type.len() + started.task_queue.len() + started.cron_schedule.len();
        RUN + again + links + policy + names
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
        let pause = progress.pause.as_ref().map_or(0, |pause| pause.identity.len() + pause.reason.len());
        let original = progress.original_options.as_ref().map_or(0, |options| {
            ITEM + options.task_queue.len() + options.retry_policy.as_ref().map_or(0, Message::encoded_len)
        });
        2 * ITEM + names + who + policy + details + failure + pause + original
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
