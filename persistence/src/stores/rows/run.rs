//! The state row of a run, and the row that names a workflow's current run.

use std::sync::Arc;

use proto::everrow::record::{self, RunStatus};
use proto::temporal::api::enums::v1::SuggestContinueAsNewReason;
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::{
    Activity, Child, Closed, CompletionCallback, CurrentRun, EventId, ExecutionKey, ExecutionState, ExternalRequest,
    Items, KnownRequest, Listing, Pause, RequestIds, ResetPoint, RunId, Running, Scheduled, Started, Status, Sticky,
    Timer, Timestamp, Unrecorded, Update, WorkflowTask,
};

use super::{Decoded, Malformed, branch, optional_uuid, required, required_span, span, uuid, uuid_bytes};

/// Parts of a run that have rows of their own.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) started: Option<Started>,
    pub(crate) activities: Vec<(i64, Activity)>,
    pub(crate) timers: Vec<(i64, Timer)>,
    pub(crate) children: Vec<(i64, Child)>,
    pub(crate) external_signals: Vec<(i64, ExternalRequest)>,
    pub(crate) external_cancels: Vec<(i64, ExternalRequest)>,
    pub(crate) signal_requests: Vec<(i64, String)>,
    /// Empty if they have no row: most runs have none.
    pub(crate) properties: record::Properties,
    pub(crate) buffered_events: Vec<(i64, HistoryEvent)>,
    pub(crate) updates: Vec<(i64, Update)>,
}

pub(crate) fn encode(state: &ExecutionState) -> record::Run {
    let ExecutionState {
        key: _,     // the row's key
        started: _, // a row of its own
        status,
        closed,
        next_event_id,
        branch,
        version_history,
        workflow_task,
        workflow_task_attempt,
        last_completed_started_event_id,
        activities: _, // counted, like all that have rows of their own
        timers: _,
        children: _,
        external_signals: _,
        external_cancels: _,
        cancel_requested,
        signal_request_ids: _,
        n_signals,
        updates: _,
        history_size,
        memo: _,              // a row of
        search_attributes: _, // their own
        priority,
        callbacks,
        known_requests,
        reset_points,
        pause,
        unrecorded,
    } = state;
    record::Run {
        status: encode_status(*status).into(),
        closed: closed.as_ref().map(encode_closed),
        next_event_id: next_event_id.0,
        branch: Some(branch::encode(branch)),
        version_history: branch::encode_versions(version_history),
        workflow_task: encode_workflow_task(workflow_task),
        workflow_task_attempt: *workflow_task_attempt,
        last_completed_started_event_id: last_completed_started_event_id.map(|event| event.0),
        cancel_requested_event_id: cancel_requested.map(|event| event.0),
        n_signals: *n_signals,
        history_size: *history_size,
        n_items: Some(count_items(state)),
        priority: priority.clone(),
        callbacks: callbacks.iter().map(encode_callback).collect(),
        known_requests: known_requests.iter().map(encode_known_request).collect(),
        reset_points: reset_points.iter().map(encode_reset_point).collect(),
        paused: pause.as_ref().map(encode_pause),
        ..encode_unrecorded(unrecorded)
    }
}

/// A run record with only the state that no event records.
fn encode_unrecorded(unrecorded: &Unrecorded) -> record::Run {
    let Unrecorded {
        db_record_version: _, // the row's version
        last_txn_id,
        sticky,
        buffered_events: _, // rows of their own
        last_waiting_place,
        last_updated_at,
        start_request_id,
        reset_request_id,
        cancel_request_id,
        reset_run_id,
        is_closing,
        listing,
        schedule_id,
    } = unrecorded;
    record::Run {
        last_txn_id: *last_txn_id,
        sticky: sticky.as_ref().map(encode_sticky),
        last_waiting_place: *last_waiting_place,
        last_updated_at: last_updated_at.map(|at| at.0),
        start_request_id: start_request_id.clone(),
        reset_request_id: reset_request_id.clone(),
        cancel_request_id: cancel_request_id.clone(),
        reset_run_id: reset_run_id.map(|run| uuid_bytes(run.0)).unwrap_or_default(),
        is_closing: *is_closing,
        listing: Some(encode_listing(*listing)),
        schedule_id: schedule_id.as_deref().unwrap_or_default().to_owned(),
        ..Default::default()
    }
}

fn count_items(state: &ExecutionState) -> record::ItemCounts {
    record::ItemCounts {
        activities: state.activities.len() as u64,
        timers: state.timers.len() as u64,
        signal_requests: state.signal_request_ids.len() as u64,
        buffered_events: state.unrecorded.buffered_events.len() as u64,
        children: state.children.len() as u64,
        external_signals: state.external_signals.len() as u64,
        external_cancels: state.external_cancels.len() as u64,
        updates: state.updates.len() as u64,
    }
}

/// Assembles a run from its rows, and checks that none is missing or left over.
pub(crate) fn decode(key: ExecutionKey, version: i64, run: record::Run, parts: Parts) -> Decoded<ExecutionState> {
    check_counts(run.n_items.unwrap_or_default(), &parts)?;
    assemble(key, version, run, parts)
}

/// The same from the rows that there are, for a run that is to end: items may be missing.
pub(crate) fn assemble(key: ExecutionKey, version: i64, run: record::Run, parts: Parts) -> Decoded<ExecutionState> {
    Ok(ExecutionState {
        key,
        started: Arc::new(required(parts.started, "the row of its start")?),
        status: decode_status(run.status)?,
        closed: run.closed.map(decode_closed).transpose()?,
        next_event_id: EventId(run.next_event_id),
        branch: Arc::new(branch::decode(required(run.branch, "branch")?)?),
        version_history: branch::decode_versions(run.version_history),
        workflow_task: decode_workflow_task(run.workflow_task)?,
        workflow_task_attempt: run.workflow_task_attempt,
        last_completed_started_event_id: run.last_completed_started_event_id.map(EventId),
        activities: Items::loaded(parts.activities),
        timers: Items::loaded(parts.timers),
        children: Items::loaded(parts.children),
        external_signals: Items::loaded(parts.external_signals),
        external_cancels: Items::loaded(parts.external_cancels),
        cancel_requested: run.cancel_requested_event_id.map(EventId),
        signal_request_ids: RequestIds::loaded(parts.signal_requests),
        n_signals: run.n_signals,
        updates: Items::loaded(parts.updates),
        history_size: run.history_size,
        memo: Arc::new(parts.properties.memo.unwrap_or_default()),
        search_attributes: Arc::new(parts.properties.search_attributes.unwrap_or_default()),
        priority: run.priority,
        callbacks: Arc::new(run.callbacks.into_iter().map(decode_callback).collect::<Decoded<_>>()?),
        known_requests: Arc::new(run.known_requests.into_iter().map(decode_known_request).collect()),
        reset_points: Arc::new(run.reset_points.into_iter().map(decode_reset_point).collect::<Decoded<_>>()?),
        pause: run.paused.map(decode_pause),
        unrecorded: Unrecorded {
            db_record_version: version,
            last_txn_id: run.last_txn_id,
            sticky: run.sticky.map(decode_sticky).transpose()?,
            last_waiting_place: run
                .last_waiting_place
                .max(parts.buffered_events.iter().map(|(place, _)| *place).max().unwrap_or_default()),
            buffered_events: Items::loaded(parts.buffered_events),
            last_updated_at: run.last_updated_at.map(Timestamp),
            start_request_id: run.start_request_id,
            reset_request_id: run.reset_request_id,
            cancel_request_id: run.cancel_request_id,
            reset_run_id: optional_uuid(&run.reset_run_id, "reset_run_id")?.map(RunId),
            is_closing: run.is_closing,
            listing: decode_listing(run.listing.unwrap_or_default()),
            schedule_id: Some(run.schedule_id).filter(|id| !id.is_empty()).map(Arc::from),
        },
    })
}

pub(crate) fn encode_listing(listing: Listing) -> record::Listing {
    record::Listing { started_in: listing.started_in, closed_in: listing.closed_in.unwrap_or_default() }
}

pub(crate) fn decode_listing(listing: record::Listing) -> Listing {
    Listing { started_in: listing.started_in, closed_in: Some(listing.closed_in).filter(|segment| *segment != 0) }
}

pub(crate) fn encode_properties(state: &ExecutionState) -> record::Properties {
    record::Properties {
        memo: Some(state.memo.as_ref().clone()),
        search_attributes: Some(state.search_attributes.as_ref().clone()),
    }
}

fn encode_callback(kept: &CompletionCallback) -> record::CompletionCallback {
    let CompletionCallback { callback, request_id, registered_at } = kept;
    record::CompletionCallback {
        callback: Some(callback.clone()),
        request_id: request_id.clone(),
        registered_at: registered_at.0,
    }
}

fn decode_callback(kept: record::CompletionCallback) -> Decoded<CompletionCallback> {
    Ok(CompletionCallback {
        callback: required(kept.callback, "callback")?,
        request_id: kept.request_id,
        registered_at: Timestamp(kept.registered_at),
    })
}

fn encode_known_request(known: &KnownRequest) -> record::KnownRequest {
    let KnownRequest { request_id, event_type, event_id } = known;
    record::KnownRequest { request_id: request_id.clone(), event_type: (*event_type).into(), event_id: event_id.0 }
}

fn decode_known_request(known: record::KnownRequest) -> KnownRequest {
    let event_type = known.event_type();
    KnownRequest { request_id: known.request_id, event_type, event_id: EventId(known.event_id) }
}

fn check_counts(stored: record::ItemCounts, parts: &Parts) -> Decoded<()> {
    let found = record::ItemCounts {
        activities: parts.activities.len() as u64,
        timers: parts.timers.len() as u64,
        signal_requests: parts.signal_requests.len() as u64,
        buffered_events: parts.buffered_events.len() as u64,
        children: parts.children.len() as u64,
        external_signals: parts.external_signals.len() as u64,
        external_cancels: parts.external_cancels.len() as u64,
        updates: parts.updates.len() as u64,
    };
    if stored == found {
        Ok(())
    } else {
        Err(Malformed::new(format!("the state counts {stored:?}, its items are {found:?}")))
    }
}

pub(crate) fn encode_current(current: &CurrentRun) -> record::CurrentRun {
    let CurrentRun { run_id, status, started_at, request_id, joined_request_ids, version: _ } = current;
    record::CurrentRun {
        run_id: uuid_bytes(run_id.0),
        status: encode_status(*status).into(),
        started_at: started_at.0,
        request_id: request_id.clone(),
        joined_request_ids: joined_request_ids.clone(),
    }
}

pub(crate) fn decode_current(version: i64, current: record::CurrentRun) -> Decoded<CurrentRun> {
    Ok(CurrentRun {
        run_id: RunId(uuid(&current.run_id, "run_id")?),
        status: decode_status(current.status)?,
        started_at: Timestamp(current.started_at),
        request_id: current.request_id,
        joined_request_ids: current.joined_request_ids,
        version,
    })
}

fn encode_status(status: Status) -> RunStatus {
    match status {
        Status::Running => RunStatus::Running,
        Status::Completed => RunStatus::Completed,
        Status::Failed => RunStatus::Failed,
        Status::Canceled => RunStatus::Canceled,
        Status::Terminated => RunStatus::Terminated,
        Status::ContinuedAsNew => RunStatus::ContinuedAsNew,
        Status::TimedOut => RunStatus::TimedOut,
    }
}

fn decode_status(status: i32) -> Decoded<Status> {
    match RunStatus::try_from(status).unwrap_or_default() {
        RunStatus::Unspecified => Err(Malformed::new(format!("unknown status {status}"))),
        RunStatus::Running => Ok(Status::Running),
        RunStatus::Completed => Ok(Status::Completed),
        RunStatus::Failed => Ok(Status::Failed),
        RunStatus::Canceled => Ok(Status::Canceled),
        RunStatus::Terminated => Ok(Status::Terminated),
        RunStatus::ContinuedAsNew => Ok(Status::ContinuedAsNew),
        RunStatus::TimedOut => Ok(Status::TimedOut),
    }
}

fn encode_closed(closed: &Closed) -> record::Closed {
    let Closed { event_id, at, new_run_id } = closed;
    record::Closed {
        event_id: event_id.0,
        at: at.0,
        new_run_id: new_run_id.map(|run| uuid_bytes(run.0)).unwrap_or_default(),
    }
}

fn decode_closed(closed: record::Closed) -> Decoded<Closed> {
    Ok(Closed {
        event_id: EventId(closed.event_id),
        at: Timestamp(closed.at),
        new_run_id: optional_uuid(&closed.new_run_id, "new_run_id")?.map(RunId),
    })
}

fn encode_pause(pause: &Pause) -> record::Paused {
    let Pause { at, identity, reason, request_id } = pause;
    let (identity, reason, request_id) = (identity.clone(), reason.clone(), request_id.clone());
    record::Paused { at: at.0, identity, reason, request_id }
}

fn decode_pause(paused: record::Paused) -> Pause {
    let record::Paused { at, identity, reason, request_id } = paused;
    Pause { at: Timestamp(at), identity, reason, request_id }
}

fn encode_reset_point(point: &ResetPoint) -> record::ResetPoint {
    let ResetPoint {
        binary_checksum,
        build_id,
        run_id,
        first_task_completed_event_id,
        created_at,
        expires_at,
        is_resettable,
    } = point;
    record::ResetPoint {
        binary_checksum: binary_checksum.clone(),
        build_id: build_id.clone(),
        run_id: uuid_bytes(run_id.0),
        first_workflow_task_completed_event_id: first_task_completed_event_id.0,
        created_at: created_at.0,
        expires_at: expires_at.map(|at| at.0),
        is_resettable: *is_resettable,
    }
}

fn decode_reset_point(point: record::ResetPoint) -> Decoded<ResetPoint> {
    Ok(ResetPoint {
        binary_checksum: point.binary_checksum,
        build_id: point.build_id,
        run_id: RunId(uuid(&point.run_id, "reset point's run_id")?),
        first_task_completed_event_id: EventId(point.first_workflow_task_completed_event_id),
        created_at: Timestamp(point.created_at),
        expires_at: point.expires_at.map(Timestamp),
        is_resettable: point.is_resettable,
    })
}

fn encode_workflow_task(task: &WorkflowTask) -> Option<record::WorkflowTask> {
    let (scheduled, running) = match task {
        WorkflowTask::None => return None,
        WorkflowTask::Scheduled(scheduled) => (scheduled, None),
        WorkflowTask::Running(scheduled, running) => (scheduled, Some(running)),
    };
    let Scheduled {
        event_id,
        at,
        first_scheduled_at,
        attempt,
        task_queue,
        start_to_close_timeout,
        version,
        is_speculative,
    } = scheduled;
    Some(record::WorkflowTask {
        scheduled_event_id: event_id.0,
        scheduled_at: at.0,
        first_scheduled_at: first_scheduled_at.0,
        attempt: *attempt,
        task_queue: task_queue.clone(),
        start_to_close_timeout: Some(span(*start_to_close_timeout)),
        version: *version,
        running: running.map(encode_running),
        is_speculative: *is_speculative,
    })
}

fn decode_workflow_task(task: Option<record::WorkflowTask>) -> Decoded<WorkflowTask> {
    let Some(task) = task else { return Ok(WorkflowTask::None) };
    let scheduled = Scheduled {
        event_id: EventId(task.scheduled_event_id),
        at: Timestamp(task.scheduled_at),
        first_scheduled_at: Timestamp(task.first_scheduled_at),
        attempt: task.attempt,
        task_queue: task.task_queue,
        start_to_close_timeout: required_span(task.start_to_close_timeout, "start_to_close_timeout")?,
        version: task.version,
        is_speculative: task.is_speculative,
    };
    Ok(match task.running {
        None => WorkflowTask::Scheduled(scheduled),
        Some(running) => WorkflowTask::Running(scheduled, decode_running(running)?),
    })
}

fn encode_running(running: &Running) -> record::RunningWorkflowTask {
    let Running { event_id, at, request_id, identity, history_size, continue_as_new_reasons } = running;
    record::RunningWorkflowTask {
        event_id: event_id.0,
        at: at.0,
        request_id: request_id.clone(),
        identity: identity.clone(),
        history_size: *history_size,
        continue_as_new_reasons: continue_as_new_reasons.iter().map(|reason| i32::from(*reason)).collect(),
    }
}

fn decode_running(running: record::RunningWorkflowTask) -> Decoded<Running> {
    let reasons = running.continue_as_new_reasons.into_iter().map(|reason| {
        SuggestContinueAsNewReason::try_from(reason)
            .map_err(|_| Malformed::new(format!("unknown reason {reason} to continue as new")))
    });
    Ok(Running {
        event_id: EventId(running.event_id),
        at: Timestamp(running.at),
        request_id: running.request_id,
        identity: running.identity,
        history_size: running.history_size,
        continue_as_new_reasons: reasons.collect::<Decoded<_>>()?,
    })
}

fn encode_sticky(sticky: &Sticky) -> record::Sticky {
    let Sticky { task_queue, schedule_to_start_timeout } = sticky;
    record::Sticky { task_queue: task_queue.clone(), schedule_to_start_timeout: Some(span(*schedule_to_start_timeout)) }
}

fn decode_sticky(sticky: record::Sticky) -> Decoded<Sticky> {
    Ok(Sticky {
        task_queue: sticky.task_queue,
        schedule_to_start_timeout: required_span(sticky.schedule_to_start_timeout, "sticky timeout")?,
    })
}
