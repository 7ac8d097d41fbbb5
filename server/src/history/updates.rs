//! The updates of a run that are in memory: those that no worker has answered, and the waiters for their progress. Lost
//! with the shard's lease; waiting clients then send the update again.

use std::sync::Arc;

use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::update::v1::outcome::Value;
use proto::temporal::api::update::v1::{Outcome, Request};
use tokio::sync::watch;
use workflow::{ExecutionState, Input, Notice, RecordedAt, Reply, WaitingUpdate};

/// Kept with the run, under its lock. Bounded by the limit on updates in flight, and by how many the run has accepted.
#[derive(Default)]
pub(crate) struct Updates {
    /// In order of arrival.
    entries: Vec<Entry>,
}

struct Entry {
    update_id: String,
    /// `None`: the update is in history, and the entry only serves waiters.
    waiting: Option<WaitingUpdate>,
    progress: Arc<watch::Sender<Progress>>,
}

/// The durable progress of an update.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Progress {
    Admitted,
    Accepted,
    Completed(Arc<Outcome>),
    Aborted(Abort),
}

/// Why an update will never be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abort {
    /// The run closed.
    Closed,
    /// The run closed, and another one follows that may take the update.
    Continued,
    /// The server had to fail the workflow task that carried it.
    TaskFailed,
}

/// An update that is known.
pub(crate) enum Found {
    /// To be waited for.
    Pending(watch::Receiver<Progress>),
    /// Its outcome is in history.
    Recorded(RecordedAt),
}

/// Progress of an update, to be published to its waiters once it is durable.
pub(crate) struct UpdateProgress {
    progress: Arc<watch::Sender<Progress>>,
    update_progress: Progress,
}

impl UpdateProgress {
    pub(crate) fn publish(self) {
        self.progress.send_replace(self.update_progress);
    }
}

impl Updates {
    /// Adds the updates in memory to the inputs that need them.
    pub(crate) fn attach_waiting(&self, mut input: Input) -> Input {
        if let Input::AdmitUpdate(admit) = &mut input {
            admit.waiting = self.waiting();
        } else if let Input::StartWorkflowTask(start) = &mut input {
            start.updates = self.waiting();
        } else if let Input::CompleteWorkflowTask(complete) = &mut input {
            complete.updates = self.waiting();
        }
        input
    }

    fn waiting(&self) -> Vec<WaitingUpdate> {
        self.entries.iter().filter_map(|entry| entry.waiting.clone()).collect()
    }

    /// Admits an update, unless it is known.
    pub(crate) fn admit(&mut self, state: &ExecutionState, request: &Arc<Request>) -> Found {
        let waiting = WaitingUpdate { request: Arc::clone(request), is_sent: false };
        if let Some(found) = self.find(state, waiting.id()) {
            return found;
        }
        Found::Pending(self.insert(waiting.id().to_owned(), Some(waiting), Progress::Admitted))
    }

    pub(crate) fn find(&mut self, state: &ExecutionState, update_id: &str) -> Option<Found> {
        let known = state.find_update(update_id);
        if let Some(completed) = known.and_then(|update| update.completed) {
            return Some(Found::Recorded(completed));
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.update_id == update_id) {
            return Some(Found::Pending(entry.progress.subscribe()));
        }
        let progress = match (known?.is_accepted(), state.is_running()) {
            (true, true) => Progress::Accepted,
            (true, false) => unfinished(),
            (false, true) => Progress::Admitted,
            (false, false) => Progress::Aborted(abort_of(state)),
        };
        Some(Found::Pending(self.insert(update_id.to_owned(), None, progress)))
    }

    fn insert(
        &mut self,
        update_id: String,
        waiting: Option<WaitingUpdate>,
        progress: Progress,
    ) -> watch::Receiver<Progress> {
        // Entries that are in history and have no waiters left are dropped.
        self.entries.retain(|entry| entry.waiting.is_some() || entry.progress.receiver_count() > 0);
        let (progress, receiver) = watch::channel(progress);
        self.entries.push(Entry { update_id, waiting, progress: Arc::new(progress) });
        receiver
    }

    /// Marks the updates that were sent to a worker.
    pub(crate) fn note_sent(&mut self, reply: &Reply) {
        let (Reply::WorkflowTaskStarted(task) | Reply::WorkflowTaskCompleted { new_task: Some(task), .. }) = reply
        else {
            return;
        };
        for waiting in self.entries.iter_mut().filter_map(|entry| entry.waiting.as_mut()) {
            waiting.is_sent |= task.messages.iter().any(|message| message.protocol_instance_id == waiting.id());
        }
    }

    /// Applies a transition of the run. The returned progress is published once the transition is durable.
    pub(crate) fn follow(&mut self, state: &ExecutionState, notices: Vec<Notice>) -> Vec<UpdateProgress> {
        let mut update_progress = LatestProgress::default();
        for notice in notices {
            match notice {
                Notice::HistoryGrew => {}
                Notice::UpdateAccepted { update_id } => {
                    if let Some(entry) = self.entries.iter_mut().find(|entry| entry.update_id == update_id) {
                        entry.waiting = None;
                        update_progress.add(&entry.progress, Progress::Accepted);
                    }
                }
                Notice::UpdateCompleted { update_id, outcome } => {
                    self.end(&mut update_progress, &update_id, Progress::Completed(Arc::new(outcome)));
                }
                Notice::UpdateRejected { update_id, failure } => {
                    self.end(&mut update_progress, &update_id, failed(failure))
                }
                Notice::UpdateAborted { update_id } => {
                    self.end(&mut update_progress, &update_id, Progress::Aborted(Abort::TaskFailed));
                }
            }
        }
        if !state.is_running() {
            for entry in self.entries.drain(..) {
                let is_accepted = state.find_update(&entry.update_id).is_some_and(workflow::Update::is_accepted);
                let end = if is_accepted { unfinished() } else { Progress::Aborted(abort_of(state)) };
                update_progress.add(&entry.progress, end);
            }
        }
        update_progress.all
    }

    fn end(&mut self, update_progress: &mut LatestProgress, update_id: &str, end: Progress) {
        if let Some(position) = self.entries.iter().position(|entry| entry.update_id == update_id) {
            let entry = self.entries.remove(position);
            update_progress.add(&entry.progress, end);
        }
    }
}

/// Coalesces progress to the latest of each update: a waiter for acceptance must not miss a completion.
#[derive(Default)]
struct LatestProgress {
    all: Vec<UpdateProgress>,
}

impl LatestProgress {
    fn add(&mut self, progress: &Arc<watch::Sender<Progress>>, update_progress: Progress) {
        self.all.retain(|earlier| !Arc::ptr_eq(&earlier.progress, progress));
        self.all.push(UpdateProgress { progress: Arc::clone(progress), update_progress });
    }
}

fn abort_of(closed: &ExecutionState) -> Abort {
    let follower = closed.closed.as_ref().and_then(|closed| closed.new_run_id);
    if follower.is_some() { Abort::Continued } else { Abort::Closed }
}

/// The end of an accepted update whose run closed: a client that saw the acceptance must get an outcome, not an error.
fn unfinished() -> Progress {
    let info = ApplicationFailureInfo {
        r#type: "AcceptedUpdateCompletedWorkflow".to_owned(),
        non_retryable: true,
        ..Default::default()
    };
    failed(Failure {
        message: "Workflow Update failed because the Workflow completed before the Update completed.".to_owned(),
        source: "Server".to_owned(),
        failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
        ..Default::default()
    })
}

fn failed(failure: Failure) -> Progress {
    Progress::Completed(Arc::new(Outcome { value: Some(Value::Failure(failure)) }))
}
