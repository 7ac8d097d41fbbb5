//! The one writer: takes whatever batches wait, makes them durable with one sync, and answers their callers.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::disk::{CommitError, Disk};
use super::group::{Group, Written};
use super::sweep;
use crate::engine::{Batch, Durable, Outcome};
use crate::error::StoreError;

/// A batch that waits, and whom to tell.
pub(super) struct Request {
    pub(super) batch: Batch,
    pub(super) reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

pub(super) struct Writer {
    disk: Arc<Disk>,
    requests: mpsc::Receiver<Request>,
    /// Why nothing more is written. After a failed sync nobody can tell what the file holds, so it must be read again
    /// from the beginning: by opening the directory anew.
    failure: Option<String>,
}

impl Writer {
    pub(super) fn new(disk: Arc<Disk>, requests: mpsc::Receiver<Request>) -> Self {
        Self { disk, requests, failure: None }
    }

    /// Runs until every sender is gone and all that they sent is answered.
    pub(super) fn run(mut self) {
        while let Some(first) = self.requests.blocking_recv() {
            if let Some(failure) = &self.failure {
                // Nobody listening is no reason to stop: the caller was cancelled, and the next one was not.
                let _ = first.reply.send(Err(StoreError::Unavailable(failure.clone())));
            } else {
                self.serve(first);
            }
        }
        if self.failure.is_none()
            && let Err(error) = self.disk.sync()
        {
            tracing::error!(%error, "cannot sync the embedded store while closing it");
        }
    }

    fn serve(&mut self, first: Request) {
        let mut group = Group::new(self.disk.view());
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some(Request { batch, reply }) = next {
            answers.push((reply, group.apply(batch)));
            next = if group.is_full() { None } else { self.requests.try_recv().ok() };
        }
        let Written { changes, sweeps, durable } = group.into_written();
        let committed = match durable {
            _ if !sweeps.is_empty() => sweep::commit(&self.disk, changes, &sweeps),
            Durable::AtOnce => self.disk.commit(changes),
            Durable::WithNext => self.disk.commit_unsynced(changes),
        };
        for (reply, judged) in answers {
            let _ = reply.send(answer(judged, &committed));
        }
        // The deletes count already: those who asked for them need not wait until the rows are gone.
        let finished = committed.and_then(|()| sweep::finish(&self.disk, &sweeps));
        if let Err(error) = finished {
            tracing::error!(%error, "the embedded store takes no more writes");
            self.failure = Some(format!("no writes after a failed one ({error}): see to the disk, then restart"));
        }
    }
}

fn answer(judged: Result<Outcome, StoreError>, committed: &Result<(), CommitError>) -> Result<Outcome, StoreError> {
    match (judged, committed) {
        (judged, Ok(())) => judged,
        (Err(error), Err(_)) => Err(error),
        (Ok(Outcome::Applied), Err(CommitError::Unknown(reason))) => Err(StoreError::OutcomeUnknown(reason.clone())),
        // A refusal may rest on earlier batches of the group, which failed: its values are worth nothing.
        (Ok(Outcome::Applied | Outcome::Refused(_)), Err(error)) => Err(StoreError::Unavailable(error.to_string())),
    }
}
