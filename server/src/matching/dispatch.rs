//! A task in delivery to a poller. Whatever happens to the poller, the task ends in one of three ways: its start is
//! recorded, history no longer needs it, or it is returned.

use std::sync::Arc;

use cluster::errors::ServiceError;
use tokio::sync::oneshot;
use tracing::{debug, error, info};

use super::matcher::Rank;
use super::partition::Partition;
use super::queries::QueryTask;
use super::task::Task;

/// Ends a waiting poll. `None`: an empty answer before the deadline (see `backlog_hint.rs`).
pub(super) type PollSender = oneshot::Sender<Option<Delivery>>;

/// Result of a poll.
pub(super) enum Delivery {
    Task(Dispatched),
    Query(QueryTask),
}

/// Returns the task on drop, so a poll that ends early, at any moment, loses nothing.
pub(super) struct Dispatched {
    partition: Arc<Partition>,
    /// Taken once, by the method that ends the delivery.
    cargo: Option<Cargo>,
}

struct Cargo {
    task: Task,
    origin: Origin,
}

/// Owner of the task until its start is recorded.
pub(super) enum Origin {
    /// The caller that adds it and awaits the verdict.
    Adder(oneshot::Sender<Verdict>),
    /// The backlog, which still has it at this rank.
    Backlog(Rank),
}

/// Outcome of a sync match.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Its start was recorded, or history no longer needs it.
    Settled,
    /// The start could not be recorded: the adder, which is history, retries.
    Failed(ServiceError),
    /// The poller went away.
    Returned(Task),
}

impl Dispatched {
    pub(super) fn new(partition: Arc<Partition>, task: Task, origin: Origin) -> Self {
        Self { partition, cargo: Some(Cargo { task, origin }) }
    }

    pub(super) fn task(&self) -> &Task {
        &self.cargo.as_ref().expect("cargo is taken only by what consumes this").task
    }

    /// Settles the task by history's response to its start. `Ok(None)`: the poller waits for another task.
    ///
    /// # Errors
    /// `ResourceExhausted`, for the poller to back off.
    pub(super) fn settle<R>(self, started: Result<R, ServiceError>) -> Result<Option<R>, ServiceError> {
        match started {
            Ok(response) => {
                self.consume();
                Ok(Some(response))
            }
            Err(error) if error.is_transient() => {
                self.fail(error.clone());
                // The next start would fail the same way at once: the client must back off.
                if matches!(error, ServiceError::ResourceExhausted { .. }) { Err(error) } else { Ok(None) }
            }
            Err(error) => {
                self.log_discard(&error);
                self.discard();
                Ok(None)
            }
        }
    }

    /// Takes the task without returning it: for the partition that made this, under its own lock.
    pub(super) fn reclaim(mut self) -> Task {
        self.cargo.take().expect("cargo is taken only by what consumes this").task
    }

    /// A worker got it.
    fn consume(self) {
        self.partition.dispatched();
        self.finish();
    }

    /// It is obsolete: no worker gets it.
    fn discard(self) {
        self.partition.unused_token();
        self.finish();
    }

    fn finish(mut self) {
        match self.cargo.take().map(|cargo| cargo.origin) {
            // An adder that is gone adds it again, and history rejects the second start.
            Some(Origin::Adder(verdict)) => drop(verdict.send(Verdict::Settled)),
            Some(Origin::Backlog(rank)) => self.partition.finish(rank),
            None => {}
        }
    }

    fn fail(mut self, error: ServiceError) {
        self.partition.unused_token();
        match self.cargo.take() {
            Some(Cargo { origin: Origin::Adder(verdict), .. }) => drop(verdict.send(Verdict::Failed(error))),
            Some(Cargo { origin: Origin::Backlog(rank), task }) => {
                debug!(queue = %self.partition.key().name, workflow_id = %task.workflow_id, %error, "start deferred");
                self.partition.delay(rank, task);
            }
            None => {}
        }
    }

    fn log_discard(&self, error: &ServiceError) {
        let (queue, task) = (&self.partition.key().name, self.task());
        let (workflow_id, run_id, event_id) = (&task.workflow_id, &task.run_id, task.scheduled_event_id);
        if matches!(error, ServiceError::TaskAlreadyStarted(_)) {
            debug!(%queue, workflow_id, %run_id, event_id, "task already started; dropped");
        } else if matches!(error, ServiceError::NotFound(_)) {
            info!(%queue, workflow_id, %run_id, event_id, %error, "task obsolete; dropped");
        } else {
            error!(%queue, workflow_id, %run_id, event_id, %error, "start failed permanently; task dropped");
        }
    }
}

impl Drop for Dispatched {
    fn drop(&mut self) {
        let Some(Cargo { task, origin }) = self.cargo.take() else { return };
        self.partition.unused_token();
        match origin {
            Origin::Adder(verdict) => drop(verdict.send(Verdict::Returned(task))),
            Origin::Backlog(rank) => self.partition.give_back(rank, task),
        }
    }
}
