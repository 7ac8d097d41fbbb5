//! The only writer: takes all waiting batches, makes them durable with one sync, and answers their callers. After a
//! disk failure it refuses all requests at once until the store is reopened.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::disk::{CommitError, Disk};
use super::group::{Group, Written};
use super::reopening::{Attempt, Reopening};
use super::{Shared, sweep};
use crate::engine::{Batch, Durable, Outcome};
use crate::error::StoreError;

/// How long a batch queued before or during the failure may wait for its refusal.
const REFUSE_EVERY: Duration = Duration::from_millis(2);

/// A queued batch and its reply channel.
pub(super) struct Request {
    pub(super) batch: Batch,
    pub(super) reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    requests: mpsc::Receiver<Request>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, requests: mpsc::Receiver<Request>) -> Self {
        Self { shared, requests }
    }

    /// Runs until every sender is dropped and every request is answered.
    pub(super) fn run(mut self) {
        while let Some(first) = self.requests.blocking_recv() {
            let Ok(disk) = self.shared.disk() else { return };
            let Err(error) = self.serve(&disk, first) else { continue };
            tracing::error!(%error, "embedded store failed; refusing requests until it is reopened");
            self.shared.close(error.reason());
            if !self.reopen(disk) {
                return;
            }
        }
        if let Ok(disk) = self.shared.disk()
            && let Err(error) = disk.sync()
        {
            tracing::error!(%error, "cannot sync the embedded store while closing it");
        }
    }

    fn serve(&mut self, disk: &Arc<Disk>, first: Request) -> Result<(), CommitError> {
        let mut group = Group::new(disk.view());
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some(Request { batch, reply }) = next {
            answers.push((reply, group.apply(batch)));
            next = if group.is_full() { None } else { self.requests.try_recv().ok() };
        }
        let Written { changes, sweeps, durable } = group.into_written();
        let committed = match durable {
            _ if !sweeps.is_empty() => sweep::commit(disk, changes, &sweeps),
            Durable::AtOnce => disk.commit(changes),
            Durable::WithNext => disk.commit_unsynced(changes),
        };
        for (reply, judged) in answers {
            // A dropped receiver is no reason to stop: this caller was cancelled, the others were not.
            let _ = reply.send(answer(judged, &committed));
        }
        // The deletes are committed: their callers need not wait until the rows are removed.
        committed.and_then(|()| sweep::finish(disk, &sweeps))
    }

    /// Refuses requests until the store is reopened. `false`: the writer must stop.
    fn reopen(&mut self, failed: Arc<Disk>) -> bool {
        let reopening = match Reopening::start(failed, self.shared.directory.clone(), self.shared.options) {
            Ok(reopening) => reopening,
            Err(error) => {
                tracing::error!(%error, "cannot start the thread that reopens the embedded store; restart the server");
                return false;
            }
        };
        loop {
            match reopening.progress.recv_timeout(REFUSE_EVERY) {
                Ok(Attempt::Opened(disk)) => {
                    tracing::info!("embedded store reopened; serving requests");
                    self.shared.open(disk);
                    return true;
                }
                Ok(Attempt::Failed(reason)) => self.shared.close(reason),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            if !self.refuse_all() {
                return false;
            }
        }
    }

    /// `false`: every sender is dropped.
    fn refuse_all(&mut self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(request) => {
                    let _ = request.reply.send(Err(self.shared.closed()));
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}

fn answer(judged: Result<Outcome, StoreError>, committed: &Result<(), CommitError>) -> Result<Outcome, StoreError> {
    match (judged, committed) {
        (judged, Ok(())) => judged,
        (Err(error), Err(_)) => Err(error),
        (Ok(Outcome::Applied), Err(error @ CommitError::Unknown(_))) => {
            Err(StoreError::OutcomeUnknown(error.reason().into()))
        }
        // A refusal may depend on earlier batches of the group, which failed: its values are invalid.
        (Ok(Outcome::Applied | Outcome::Refused(_)), Err(error)) => Err(StoreError::Unavailable(error.reason().into())),
    }
}
