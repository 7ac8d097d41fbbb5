//! Who has polled a queue lately.

use std::collections::HashMap;
use std::time::Duration;

use proto::temporal::api::common::v1::WorkerVersionCapabilities;
use proto::temporal::api::deployment::v1::WorkerDeploymentOptions;
use proto::temporal::api::taskqueue::v1::PollerInfo;
use workflow::Timestamp;

use super::rate::UNLIMITED_PER_SECOND;

/// A worker that was not seen for so long is forgotten.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// Workers remembered for one queue. Identities are the clients' choice, so their number is not ours.
const REMEMBERED: usize = 1000;

/// What a worker says of itself when it polls.
#[derive(Debug, Clone, Default)]
pub(super) struct Poller {
    pub(super) identity: String,
    /// How many tasks a second its queue may give out. `None`: it sets no limit.
    pub(super) tasks_per_second: Option<f64>,
    pub(super) version_capabilities: Option<WorkerVersionCapabilities>,
    pub(super) deployment_options: Option<WorkerDeploymentOptions>,
    /// Of a poll of a sticky queue: the queue that the worker shares with others. Empty if its SDK does not name it.
    pub(super) normal_queue: String,
}

#[derive(Default)]
pub(super) struct PollerHistory {
    seen: HashMap<String, (Timestamp, Poller)>,
    /// Of the latest poll, by whomever has not left since.
    last_seen_at: Option<Timestamp>,
    /// Of the latest poll, by whomever.
    last_polled_at: Option<Timestamp>,
}

impl PollerHistory {
    pub(super) fn saw(&mut self, poller: &Poller, now: Timestamp) {
        (self.last_seen_at, self.last_polled_at) = (Some(now), Some(now));
        if poller.identity.is_empty() {
            return;
        }
        if self.seen.len() >= REMEMBERED && !self.seen.contains_key(&poller.identity) {
            self.forget_some(now);
        }
        self.seen.insert(poller.identity.clone(), (now, poller.clone()));
    }

    /// It said that it will not come back.
    pub(super) fn left(&mut self, identity: &str) {
        self.seen.remove(identity);
        self.last_seen_at = self.seen.values().map(|(at, _)| *at).max();
    }

    pub(super) fn has_seen_within(&self, span: Duration, now: Timestamp) -> bool {
        self.last_seen_at.is_some_and(|at| now.since(at) < span)
    }

    /// Whether anybody polled, even if he has said that he will not come back.
    pub(super) fn was_polled_within(&self, span: Duration, now: Timestamp) -> bool {
        self.last_polled_at.is_some_and(|at| now.since(at) < span)
    }

    pub(super) fn list(&self, now: Timestamp) -> Vec<PollerInfo> {
        let recent = self.seen.values().filter(|(at, _)| now.since(*at) < REMEMBERED_FOR);
        recent.map(|(at, poller)| described(*at, poller)).collect()
    }

    /// Makes room: those that are long gone, or else the one that was away longest.
    fn forget_some(&mut self, now: Timestamp) {
        self.seen.retain(|_, (at, _)| now.since(*at) < REMEMBERED_FOR);
        if self.seen.len() < REMEMBERED {
            return;
        }
        let oldest = self.seen.iter().min_by_key(|(_, (at, _))| *at).map(|(identity, _)| identity.clone());
        if let Some(identity) = oldest {
            self.seen.remove(&identity);
        }
    }
}

#[expect(deprecated, reason = "older SDKs send their version this way, and older tools show it")]
fn described(last_access_at: Timestamp, poller: &Poller) -> PollerInfo {
    PollerInfo {
        last_access_time: Some(last_access_at.into()),
        identity: poller.identity.clone(),
        rate_per_second: poller.tasks_per_second.unwrap_or(UNLIMITED_PER_SECOND),
        worker_version_capabilities: poller.version_capabilities.clone(),
        deployment_options: poller.deployment_options.clone(),
    }
}
