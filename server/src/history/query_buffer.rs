//! Queries of one run that wait for a workflow task to carry them to a worker, or for none to be pending. In memory, in
//! the run's slot: a query lives as long as its caller waits.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cluster::errors::ServiceError;
use prost::Message as _;
use proto::temporal::api::common::v1::Payloads;
use proto::temporal::api::enums::v1::{QueryResultType, ResourceExhaustedCause, ResourceExhaustedScope};
use proto::temporal::api::query::v1::{WorkflowQuery, WorkflowQueryResult};
use tokio::sync::oneshot;
use workflow::{EventId, ExecutionKey, Limits};

use super::waiters::Waiters;

/// Queries that one run buffers at once, as in the reference. Further ones are refused, and clients retry.
const WAITING_MAX: usize = 1;

pub(crate) type Answer = Result<Option<Payloads>, ServiceError>;

#[derive(Default)]
pub(crate) struct QueryBuffer {
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    waiting: HashMap<String, Waiting>,
    /// Workflow task completions being committed: their answers are pending, so queries keep waiting.
    n_answering: usize,
}

struct Waiting {
    query: WorkflowQuery,
    /// The task in flight when the query came. It may lack events that the query must see, so it must not carry it.
    in_flight: Option<TaskAttempt>,
    answer: oneshot::Sender<Answer>,
}

/// Identifies a workflow task attempt of a run, unwritten ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskAttempt {
    pub(crate) scheduled_event_id: EventId,
    pub(crate) attempt: i32,
}

/// A query's place in the buffer, freed on drop.
pub(crate) struct BufferedQuery<'a> {
    buffer: &'a QueryBuffer,
    id: String,
    pub(crate) answer: oneshot::Receiver<Answer>,
}

/// Marks answers as pending. Its drop wakes the queries that got none.
pub(crate) struct Answering<'a> {
    buffer: &'a QueryBuffer,
    waiters: &'a Waiters,
    key: &'a ExecutionKey,
}

impl QueryBuffer {
    /// The caller holds the run's lock, so that no workflow task starts or ends in between.
    pub(crate) fn push(
        &self,
        id: String,
        query: WorkflowQuery,
        in_flight: Option<TaskAttempt>,
    ) -> Result<BufferedQuery<'_>, ServiceError> {
        let mut content = self.content();
        if content.waiting.len() >= WAITING_MAX {
            let message = "consistent query buffer is full, this may be caused by too many queries and workflow not \
                           able to process query fast enough";
            return Err(ServiceError::ResourceExhausted {
                cause: ResourceExhaustedCause::BusyWorkflow,
                scope: ResourceExhaustedScope::Namespace,
                message: message.into(),
            });
        }
        let (sender, answer) = oneshot::channel();
        content.waiting.insert(id.clone(), Waiting { query, in_flight, answer: sender });
        Ok(BufferedQuery { buffer: self, id, answer })
    }

    /// The queries that this workflow task carries to its worker.
    pub(crate) fn carried_by(&self, task: TaskAttempt) -> HashMap<String, WorkflowQuery> {
        let content = self.content();
        let carried = content.waiting.iter().filter(|(_, waiting)| waiting.in_flight != Some(task));
        carried.map(|(id, waiting)| (id.clone(), waiting.query.clone())).collect()
    }

    pub(crate) fn answering<'a>(&'a self, waiters: &'a Waiters, key: &'a ExecutionKey) -> Answering<'a> {
        self.content().n_answering += 1;
        Answering { buffer: self, waiters, key }
    }

    pub(crate) fn is_answering(&self) -> bool {
        self.content().n_answering > 0
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answering<'_> {
    /// Delivers a worker's answers. An invalid one is ignored: its query goes to the next task or directly to a worker.
    pub(crate) fn deliver(&self, results: HashMap<String, WorkflowQueryResult>) {
        for (id, result) in results {
            let Some(answer) = answer_of(result) else { continue };
            let waiting = self.buffer.content().waiting.remove(&id);
            if let Some(waiting) = waiting {
                // Fails if the caller has just left.
                drop(waiting.answer.send(answer));
            }
        }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.buffer.content().n_answering -= 1;
        self.waiters.wake(self.key);
    }
}

impl Drop for BufferedQuery<'_> {
    fn drop(&mut self) {
        let mut content = self.buffer.content();
        content.waiting.remove(&self.id);
        // Frees the map's memory: a run that was queried once may be open for weeks.
        content.waiting.shrink_to_fit();
    }
}

fn answer_of(result: WorkflowQueryResult) -> Option<Answer> {
    if result.answer.as_ref().map_or(0, |answer| answer.encoded_len()) > Limits::default().blob_size {
        return Some(Err(ServiceError::InvalidArgument("Blob data size exceeds limit.".into())));
    }
    match result.result_type() {
        QueryResultType::Answered if result.answer.is_some() && result.error_message.is_empty() => {
            Some(Ok(result.answer))
        }
        QueryResultType::Failed if result.answer.is_none() && !result.error_message.is_empty() => {
            let failure = result.failure.map(Box::new);
            Some(Err(ServiceError::QueryFailed { message: result.error_message, failure }))
        }
        QueryResultType::Answered | QueryResultType::Failed | QueryResultType::Unspecified => None,
    }
}

#[cfg(test)]
mod tests;
