//! Encodes a schedule to its row, and decodes it.

use std::sync::Arc;

use bytes::Bytes;
use proto::everrow::record;
use uuid::Uuid;
use workflow::{NamespaceId, RunId, Timestamp};

use super::schedule::{Carried, Counts, Key, Moments, Requests, Running, Schedule, Start, Stop, Work};

pub fn encode(schedule: &Schedule) -> record::Schedule {
    let Schedule {
        key: Key { namespace_id: _, schedule_id: _, run_id, listed_in }, // the row's key has the rest
        version: _,                                                      // the row's version
        definition,
        memo,
        search_attributes,
        conflict_token,
        moments: Moments { created_at, updated_at, processed_at, wakes_at },
        work: Work { buffer, backfills, starting, running, next_start_id },
        counts: Counts { actions, missed_catchup_window, overlap_skipped, buffer_dropped },
        recent_actions,
        carried: Carried { last_completion_result, continued_failure },
        requests: Requests { create, changes },
        is_over,
    } = schedule;
    record::Schedule {
        run_id: Bytes::copy_from_slice(run_id.0.as_bytes()),
        schedule: Some(definition.clone()),
        memo: Some(memo.clone()),
        search_attributes: Some(search_attributes.clone()),
        conflict_token: *conflict_token,
        created_at: created_at.0,
        updated_at: updated_at.map(|at| at.0),
        processed_at: processed_at.0,
        wakes_at: wakes_at.map(|at| at.0),
        buffer: buffer.iter().map(encode_start).collect(),
        backfills: backfills.clone(),
        starting: starting.iter().map(encode_start).collect(),
        running: running.iter().map(encode_running).collect(),
        recent_actions: recent_actions.clone(),
        action_count: *actions,
        missed_catchup_window: *missed_catchup_window,
        overlap_skipped: *overlap_skipped,
        buffer_dropped: *buffer_dropped,
        last_completion_result: last_completion_result.clone(),
        continued_failure: continued_failure.clone(),
        next_start_id: *next_start_id,
        listed_in: *listed_in,
        create_request_id: create.clone(),
        request_ids: changes.clone(),
        is_over: *is_over,
    }
}

/// `None` if the row holds no valid schedule.
pub fn decode(
    (namespace_id, schedule_id): (NamespaceId, Arc<str>),
    version: i64,
    stored: record::Schedule,
) -> Option<Schedule> {
    let run_id = RunId(Uuid::from_slice(&stored.run_id).ok()?);
    Some(Schedule {
        key: Key { namespace_id, schedule_id, run_id, listed_in: stored.listed_in },
        version,
        definition: stored.schedule?,
        memo: stored.memo.unwrap_or_default(),
        search_attributes: stored.search_attributes.unwrap_or_default(),
        conflict_token: stored.conflict_token,
        moments: Moments {
            created_at: Timestamp(stored.created_at),
            updated_at: stored.updated_at.map(Timestamp),
            processed_at: Timestamp(stored.processed_at),
            wakes_at: stored.wakes_at.map(Timestamp),
        },
        work: Work {
            buffer: stored.buffer.iter().map(decode_start).collect(),
            backfills: stored.backfills,
            starting: stored.starting.iter().map(decode_start).collect(),
            running: stored.running.into_iter().map(decode_running).collect(),
            next_start_id: stored.next_start_id,
        },
        counts: Counts {
            actions: stored.action_count,
            missed_catchup_window: stored.missed_catchup_window,
            overlap_skipped: stored.overlap_skipped,
            buffer_dropped: stored.buffer_dropped,
        },
        recent_actions: stored.recent_actions,
        carried: Carried {
            last_completion_result: stored.last_completion_result,
            continued_failure: stored.continued_failure,
        },
        requests: Requests { create: stored.create_request_id, changes: stored.request_ids },
        is_over: stored.is_over,
    })
}

fn encode_start(start: &Start) -> record::ScheduledStart {
    let Start { id, nominal_at, acts_at, overlap_policy, is_manual, overlaps, gives_up_at } = start;
    record::ScheduledStart {
        id: *id,
        nominal_at: nominal_at.0,
        acts_at: acts_at.0,
        overlap_policy: (*overlap_policy).into(),
        is_manual: *is_manual,
        overlaps: *overlaps,
        gives_up_at: gives_up_at.0,
    }
}

fn decode_start(stored: &record::ScheduledStart) -> Start {
    Start {
        id: stored.id,
        nominal_at: Timestamp(stored.nominal_at),
        acts_at: Timestamp(stored.acts_at),
        overlap_policy: stored.overlap_policy(),
        is_manual: stored.is_manual,
        overlaps: stored.overlaps,
        gives_up_at: Timestamp(stored.gives_up_at),
    }
}

fn encode_running(running: &Running) -> record::ScheduledRun {
    let Running { execution, stop, is_stop_asked } = running;
    let stop = match stop {
        None => record::ScheduledStop::Unspecified,
        Some(Stop::Cancel) => record::ScheduledStop::Cancel,
        Some(Stop::Terminate) => record::ScheduledStop::Terminate,
    };
    record::ScheduledRun { execution: Some(execution.clone()), stop: stop.into(), is_stop_asked: *is_stop_asked }
}

fn decode_running(stored: record::ScheduledRun) -> Running {
    let stop = match stored.stop() {
        record::ScheduledStop::Unspecified => None,
        record::ScheduledStop::Cancel => Some(Stop::Cancel),
        record::ScheduledStop::Terminate => Some(Stop::Terminate),
    };
    Running { execution: stored.execution.unwrap_or_default(), stop, is_stop_asked: stored.is_stop_asked }
}
