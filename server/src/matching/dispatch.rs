//! A task on its way to a poller. Whatever happens to the poller, the task ends in one of three ways: its start was
//! recorded, history does not want it any more, or it is given back.

use std::sync::Arc;

use cluster::errors::ServiceError;
use tokio::sync::oneshot;
use tracing::{debug, error, info};

use super::matcher::Rank;
use super::partition::Partition;
use super::queries::QueryTask;
use super::task::Task;

/// How a partition ends a waiting poll. `None`: empty, before its time (see `backlog_hint.rs`).
pub(super) type PollSender = oneshot::Sender<Option<Delivery>>;

/// What a poll brings.
pub(super) enum Delivery {
    Task(Dispatched),
    Query(QueryTask),
}

/// Gives the task back when dropped, so a poll that ends early, at any moment, swallows nothing.
pub(super) struct Dispatched {
    partition: Arc<Partition>,
    /// Taken once, by whatever ends it.
    cargo: Option<Cargo>,
}

struct Cargo {
    task: Task,
    origin: Origin,
}

/// Who answers for the task until its start is recorded.
pub(super) enum Origin {
    /// The caller that adds it, and waits for the verdict.
    Adder(oneshot::Sender<Verdict>),
    /// The backlog, which still has it at this place.
    Backlog(Rank),
}

/// What became of a task that was handed to a poller by its adder.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Its start was recorded, or history does not want it any more.
    Settled,
    /// History could not be told: the adder, which is history, tries again.
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

    /// Ends it by what history said to its start. `Ok(None)`: the poller goes on waiting for another.
    ///
    /// # Errors
    /// The one that the poller is told, so that it slows down.
    pub(super) fn settle<R>(self, started: Result<R, ServiceError>) -> Result<Option<R>, ServiceError> {
        match started {
            Ok(response) => {
                self.consume();
                Ok(Some(response))
            }
            Err(error) if error.is_transient() => {
                self.fail(error.clone());
                // More of the same would follow at once: the client's own backoff is the cure.
                if matches!(error, ServiceError::ResourceExhausted { .. }) { Err(error) } else { Ok(None) }
            }
            Err(error) => {
                self.log_discard(&error);
                self.discard();
                Ok(None)
            }
        }
    }

    /// Takes the task out without giving it back: for the partition that made this, under its own lock.
    pub(super) fn reclaim(mut self) -> Task {
        self.cargo.take().expect("cargo is taken only by what consumes this").task
    }

    /// A worker has it.
    fn consume(self) {
        self.partition.dispatched();
        self.finish();
    }

    /// No worker is to have it.
    fn discard(self) {
        self.partition.unused_token();
        self.finish();
    }

    fn finish(mut self) {
        match self.cargo.take().map(|cargo| cargo.origin) {
            // An adder that is gone adds it again, and history turns the second start away.
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
                debug!(queue = %self.partition.key().name, workflow_id = %task.workflow_id, %error, "start put off");
                self.partition.put_off(rank, task);
            }
            None => {}
        }
    }

    fn log_discard(&self, error: &ServiceError) {
        let (queue, task) = (&self.partition.key().name, self.task());
        let (workflow_id, run_id, event_id) = (&task.workflow_id, &task.run_id, task.scheduled_event_id);
        if matches!(error, ServiceError::TaskAlreadyStarted(_)) {
            debug!(%queue, workflow_id, %run_id, event_id, "task was started before");
        } else if matches!(error, ServiceError::NotFound(_)) {
            info!(%queue, workflow_id, %run_id, event_id, %error, "task is over");
        } else {
            error!(%queue, workflow_id, %run_id, event_id, %error, "task dropped: its start will never be recorded");
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
