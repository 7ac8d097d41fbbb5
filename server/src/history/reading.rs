//! Reads of a run's state and history: from memory if cached, and never ahead of what is durable.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::errors::ServiceError;
use persistence::stores::history::{Cursor, EncodedEvents};
use prost::Message;
use proto::everrow::history::HistoryPageToken;
use proto::history::History;
use proto::temporal::api::common::v1::DataBlob;
use proto::temporal::api::enums::v1::{EncodingType, HistoryEventFilterType};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::{Closed, EventId, ExecutionKey, ExecutionState};

use super::follow::as_continued_as_new;
use super::shard::Shard;
use super::token;
use super::transact::TransactError;

/// How long a poll for a new event waits before it returns none and the client polls again.
pub(super) const LONG_POLL: Duration = Duration::from_secs(20);
/// A page ends with the batch that passes this, so that it stays well under the 4 MiB of a gRPC message.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Events in a page, unless the client wants fewer.
const PAGE_EVENTS_MAX: usize = 1000;
/// Nodes read from the store at once.
const PAGE_NODES: usize = 128;

/// Events in order, and where the next page begins if the range was not exhausted.
pub(crate) struct HistoryPage {
    batches: Vec<EncodedEvents>,
    next: Option<EventId>,
}

/// Capabilities of a client that reads history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    /// It also gets the events of a pending workflow task that are not written yet.
    pub(crate) shows_unwritten: bool,
    /// It follows a close event to the run that the event names; see `follow`.
    pub(crate) follows_next_run: bool,
}

impl Shard {
    /// The run's state, once it is durable.
    pub(crate) async fn read(&self, key: &ExecutionKey) -> Result<Arc<ExecutionState>, ServiceError> {
        let slot = self.slots.run(key);
        let (state, submitted) = {
            let mut execution = slot.execution.lock().await;
            (self.load(key, &mut execution).await?, execution.submitted)
        };
        self.slots.touch(&slot, &state);
        self.committer.confirmed_lately(submitted).await.map_err(TransactError::from)?;
        Ok(state)
    }

    /// Events `[from, to)` of a state that is durable, as many as fit a page.
    pub(crate) async fn history(
        &self,
        state: &ExecutionState,
        (from, to): (EventId, EventId),
        events_max: usize,
    ) -> Result<HistoryPage, ServiceError> {
        if from >= to {
            return Ok(HistoryPage { batches: Vec::new(), next: None });
        }
        let slot = self.slots.run(&state.key);
        let recent = slot.execution.lock().await.recent.range(from, to);
        let mut page = PageBuilder::new(from, to, events_max);
        if let Some(batches) = recent {
            batches.iter().all(|batch| page.push(batch));
            return Ok(page.finish());
        }
        let mut next = Some(Cursor::from(from));
        while let Some(from) = next {
            let read = self.stores.history.read(&state.branch, from, to, PAGE_NODES).await;
            let read = self.unless_deleted(&state.key, read).await?;
            let has_room = read.nodes.iter().all(|node| page.push(&node.events));
            next = read.next.filter(|_| has_room);
        }
        Ok(page.finish())
    }

    /// One event, given the batch that it is in.
    pub(crate) async fn event(
        &self,
        state: &ExecutionState,
        batch_id: EventId,
        event_id: EventId,
    ) -> Result<HistoryEvent, ServiceError> {
        let slot = self.slots.run(&state.key);
        let recent = slot.execution.lock().await.recent.batch(batch_id);
        let batch = match recent {
            Some(batch) => batch,
            None => {
                let node = self.stores.history.read_node(&state.branch, batch_id).await;
                self.unless_deleted(&state.key, node).await?.events
            }
        };
        let event = decode_first(&state.key, batch.within(event_id, event_id.next()).as_slice())?;
        event.ok_or_else(|| ServiceError::DataLoss(format!("no event {event_id} of {}", state.key)))
    }

    /// The event that closed the run.
    pub(crate) async fn closing_event(
        &self,
        state: &ExecutionState,
        closed: &Closed,
    ) -> Result<HistoryEvent, ServiceError> {
        let page = self.history(state, (closed.event_id, closed.event_id.next()), 1).await?;
        let event = decode_first(&state.key, &page.batches)?;
        event.ok_or_else(|| ServiceError::DataLoss(format!("no end of {}", state.key)))
    }

    /// The state once it is past an event or closed, or as it is when `LONG_POLL` has elapsed.
    async fn wait_past(&self, key: &ExecutionKey, next: Option<EventId>) -> Result<Arc<ExecutionState>, ServiceError> {
        let waiting = self.waiters.listen(key);
        let deadline = tokio::time::Instant::now() + LONG_POLL;
        loop {
            let changed = waiting.changed();
            tokio::pin!(changed);
            // Armed before the read, so that no commit is missed between the read and the wait.
            changed.as_mut().enable();
            let state = self.read(key).await?;
            let has_news = next.is_some_and(|next| state.next_event_id > next);
            if has_news || !state.is_running() {
                return Ok(state);
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return Ok(state);
            }
        }
    }

    pub(crate) async fn get_history(
        &self,
        key: ExecutionKey,
        token: Option<HistoryPageToken>,
        request: &public::GetWorkflowExecutionHistoryRequest,
        reader: Reader,
    ) -> Result<public::GetWorkflowExecutionHistoryResponse, ServiceError> {
        let is_close_event_only = request.history_event_filter_type() == HistoryEventFilterType::CloseEvent;
        let mut listing = match token {
            Some(token) => Listing::resume(token),
            None => Listing::default(),
        };
        let is_exhausted = listing.next >= listing.end;
        let state = if request.wait_new_event && is_exhausted && listing.is_running {
            self.wait_past(&key, (!is_close_event_only).then_some(listing.next)).await?
        } else {
            self.read(&key).await?
        };
        if is_exhausted {
            listing.end = state.next_event_id;
            listing.is_running = state.is_running();
        }
        if is_close_event_only {
            let Some(last) = last_event(&state, request.wait_new_event) else {
                let rest = Listing { next: listing.end, ..listing };
                let token = if request.wait_new_event { rest.token(&key) } else { Bytes::new() };
                return Ok(self.history_response(History::default(), token));
            };
            return self.close_event(&state, last, reader).await;
        }
        let events_max = page_size(request.maximum_page_size);
        let page = self.history(&state, (listing.next, listing.end.min(state.next_event_id)), events_max).await?;
        listing.next = page.next.unwrap_or(listing.end);
        let goes_on = page.next.is_some() || (request.wait_new_event && listing.is_running);
        let mut transient = Vec::new();
        if page.next.is_none() {
            if listing.transient.is_empty() && reader.shows_unwritten && !page.batches.is_empty() {
                listing.transient = unwritten(&state, listing.end);
            }
            transient = std::mem::take(&mut listing.transient);
        }
        let next_page_token = if goes_on { listing.token(&key) } else { Bytes::new() };
        Ok(self.history_response(page.followed_by(transient), next_page_token))
    }

    async fn close_event(
        &self,
        state: &ExecutionState,
        event_id: EventId,
        reader: Reader,
    ) -> Result<public::GetWorkflowExecutionHistoryResponse, ServiceError> {
        let page = self.history(state, (event_id, event_id.next()), 1).await?;
        let mut shown = None;
        // As in the reference, raw history is not inspected.
        if !reader.follows_next_run && !self.config.raw_history {
            shown = decode_first(&state.key, &page.batches)?.as_ref().and_then(as_continued_as_new);
        }
        let history = shown.map_or_else(|| page.followed_by(Vec::new()), |shown| History::from(vec![shown]));
        Ok(self.history_response(history, Bytes::new()))
    }

    /// The response with history as events or, if configured, as one raw blob.
    fn history_response(
        &self,
        history: History,
        next_page_token: Bytes,
    ) -> public::GetWorkflowExecutionHistoryResponse {
        let mut response = public::GetWorkflowExecutionHistoryResponse { next_page_token, ..Default::default() };
        if self.config.raw_history && history != History::default() {
            let (encoding_type, data) = (EncodingType::Proto3.into(), history.encode_to_vec().into());
            response.raw_history = vec![DataBlob { encoding_type, data }];
            response.history = Some(History::default());
        } else {
            response.history = Some(history);
        }
        response
    }

    pub(crate) async fn get_history_reverse(
        &self,
        key: ExecutionKey,
        token: Option<HistoryPageToken>,
        request: &public::GetWorkflowExecutionHistoryReverseRequest,
    ) -> Result<public::GetWorkflowExecutionHistoryReverseResponse, ServiceError> {
        let state = self.read(&key).await?;
        // Backwards, a token's listing is `[first event, next_event_id)`.
        let end = token.map_or(state.next_event_id, |token| EventId(token.next_event_id)).min(state.next_event_id);
        let events = self.events_before(&state, end, page_size(request.maximum_page_size)).await?;
        let next = events.last().map_or(EventId::FIRST, |last| EventId(last.event_id));
        let rest = Listing { next, end: state.next_event_id, is_running: state.is_running(), transient: Vec::new() };
        let next_page_token = if next > EventId::FIRST { rest.token(&key) } else { Bytes::new() };
        let history = Some(History::from(events));
        Ok(public::GetWorkflowExecutionHistoryReverseResponse { history, next_page_token })
    }

    /// Events below `end`, newest first, as many as fit a page. Always from the store: only people read backwards.
    async fn events_before(
        &self,
        state: &ExecutionState,
        end: EventId,
        events_max: usize,
    ) -> Result<Vec<HistoryEvent>, ServiceError> {
        let mut events = Vec::new();
        let mut bytes = 0;
        let mut before = (end > EventId::FIRST).then_some(Cursor::from(end));
        while let Some(cursor) = before {
            let page = self.stores.history.read_reverse(&state.branch, cursor, EventId::FIRST, PAGE_NODES).await;
            let page = self.unless_deleted(&state.key, page).await?;
            for node in page.nodes {
                for event in decode(&state.key, &node.events)?.into_iter().rev() {
                    if !events.is_empty() && (events.len() >= events_max || bytes >= PAGE_BYTES_MAX) {
                        return Ok(events);
                    }
                    bytes += event.encoded_len();
                    events.push(event);
                }
            }
            before = page.next;
        }
        Ok(events)
    }

    /// The history that goes to a worker with its task: all of it, or what its cache lacks.
    pub(crate) async fn task_history(
        &self,
        state: &ExecutionState,
        (from, to): (EventId, EventId),
        transient: Vec<HistoryEvent>,
    ) -> Result<(History, Bytes), ServiceError> {
        let page = self.history(state, (from, to), PAGE_EVENTS_MAX).await?;
        let Some(next) = page.next else { return Ok((page.followed_by(transient), Bytes::new())) };
        let listing = Listing { next, end: to, is_running: true, transient };
        Ok((page.followed_by(Vec::new()), listing.token(&state.key)))
    }
}

/// The event for a close-event filter: the close event, or a paused run's last event unless the caller waits for the
/// close.
fn last_event(state: &ExecutionState, waits: bool) -> Option<EventId> {
    let is_paused = !waits && state.paused().is_some();
    state.closed.as_ref().map(|closed| closed.event_id).or(is_paused.then(|| state.last_event_id()))
}

/// A listing of history over several calls, resumed by a page token.
struct Listing {
    next: EventId,
    end: EventId,
    is_running: bool,
    transient: Vec<HistoryEvent>,
}

impl Default for Listing {
    /// The end is unknown before the first call, which waits only for a close event: every run has a first event.
    fn default() -> Self {
        Self { next: EventId::FIRST, end: EventId::FIRST, is_running: true, transient: Vec::new() }
    }
}

impl Listing {
    fn resume(token: HistoryPageToken) -> Self {
        Self {
            next: EventId(token.next_event_id),
            end: EventId(token.end_event_id),
            is_running: token.is_running,
            transient: token.transient.map_or_else(Vec::new, |history| history.events),
        }
    }

    fn token(self, key: &ExecutionKey) -> Bytes {
        token::page_token(&HistoryPageToken {
            namespace_id: key.namespace_id.to_string(),
            workflow_id: key.workflow_id.to_string(),
            run_id: key.run_id.to_string(),
            next_event_id: self.next.0,
            end_event_id: self.end.0,
            is_running: self.is_running,
            transient: (!self.transient.is_empty()).then(|| History::from(self.transient)),
        })
    }
}

impl HistoryPage {
    /// The page as clients get it, followed by events that are in no batch.
    fn followed_by(self, events: Vec<HistoryEvent>) -> History {
        History { encoded: self.batches.into_iter().map(EncodedEvents::into_history).collect(), events }
    }
}

/// Gathers events of a range until a page is full. A page ends where a batch ends.
struct PageBuilder {
    from: EventId,
    to: EventId,
    events_max: usize,
    n_events: usize,
    bytes: usize,
    batches: Vec<EncodedEvents>,
}

impl PageBuilder {
    fn new(from: EventId, to: EventId, events_max: usize) -> Self {
        Self { from, to, events_max, n_events: 0, bytes: 0, batches: Vec::new() }
    }

    /// False: the page is full and the batch was left out.
    fn push(&mut self, batch: &EncodedEvents) -> bool {
        let is_full = self.n_events >= self.events_max || self.bytes >= PAGE_BYTES_MAX;
        if is_full && self.n_events > 0 {
            return false;
        }
        if let Some(batch) = batch.within(self.from, self.to) {
            self.n_events += batch.count();
            self.bytes += batch.size();
            self.batches.push(batch);
        }
        true
    }

    fn finish(self) -> HistoryPage {
        let next = self.batches.last().map_or(self.from, |last| last.last_event_id().next());
        HistoryPage { batches: self.batches, next: (next < self.to).then_some(next) }
    }
}

fn decode(key: &ExecutionKey, events: &EncodedEvents) -> Result<Vec<HistoryEvent>, ServiceError> {
    events.decode().map_err(|error| ServiceError::DataLoss(format!("history of {key}: {error}")))
}

fn decode_first(key: &ExecutionKey, batches: &[EncodedEvents]) -> Result<Option<HistoryEvent>, ServiceError> {
    let Some(batch) = batches.first() else { return Ok(None) };
    Ok(decode(key, batch)?.into_iter().next())
}

/// The events of a workflow task that is pending and not yet written, if they come next.
fn unwritten(state: &ExecutionState, next: EventId) -> Vec<HistoryEvent> {
    let events = workflow::unwritten_events(state);
    let is_next = events.first().is_some_and(|event| event.event_id == next.0);
    if is_next && state.is_running() { events } else { Vec::new() }
}

fn page_size(asked: i32) -> usize {
    usize::try_from(asked).ok().filter(|size| *size > 0).map_or(PAGE_EVENTS_MAX, |size| size.min(PAGE_EVENTS_MAX))
}
