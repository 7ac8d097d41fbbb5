//! Refuses polls for features that are not built, with `InvalidArgument` and not with `Unimplemented`: the Go SDK
//! treats only the former as permanent, stops the worker and reports the reason; on the latter it polls on for as long
//! as it runs. SDKs on the Rust core end the worker on either, the Java SDK logs either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cluster::errors::ServiceError;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use tracing::warn;

use super::validate::invalid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbuilt {
    VersionedWorkers,
    NexusTasks,
}

impl Unbuilt {
    pub(crate) fn refusal(self) -> ServiceError {
        invalid(match self {
            Self::VersionedWorkers => {
                "worker versioning is not built yet: run the worker without a versioned deployment (deployment options)"
            }
            Self::NexusTasks => "Nexus tasks are not built yet: run the worker without Nexus services",
        })
    }
}

/// The refused poller, for the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct PolledBy<'a> {
    pub(super) namespace: &'a str,
    pub(super) task_queue: &'a str,
    pub(super) identity: &'a str,
}

impl<'a> PolledBy<'a> {
    pub(super) fn new(namespace: &'a str, queue: Option<&'a TaskQueue>, identity: &'a str) -> Self {
        Self { namespace, task_queue: queue.map_or("", |queue| &queue.name), identity }
    }
}

/// Which features have been logged. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct UnbuiltPolls {
    versioned_workers: Arc<AtomicBool>,
    nexus_tasks: Arc<AtomicBool>,
}

impl UnbuiltPolls {
    /// The poll's error. Only the first per feature since the start is logged: a worker polls several times a second.
    pub(super) fn refuse(&self, what: Unbuilt, by: PolledBy<'_>) -> ServiceError {
        let refusal = what.refusal();
        if self.is_first(what) {
            let PolledBy { namespace, task_queue, identity } = by;
            warn!(namespace, task_queue, identity, reason = %refusal, "refusing polls of a worker; logged once");
        }
        refusal
    }

    fn is_first(&self, what: Unbuilt) -> bool {
        let is_logged = match what {
            Unbuilt::VersionedWorkers => &self.versioned_workers,
            Unbuilt::NexusTasks => &self.nexus_tasks,
        };
        !is_logged.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
