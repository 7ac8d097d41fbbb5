//! Descriptions of a task queue for clients.

use std::collections::HashMap;

use cluster::env::Env;
use proto::temporal::api::enums::v1::RateLimitSource;
use proto::temporal::api::taskqueue::v1 as taskqueue;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::describe_task_queue_response::EffectiveRateLimit;
use workflow::Timestamp;

use super::matcher::Priority;
use super::rate::UNLIMITED_PER_SECOND;
use super::state::State;

/// The current time by both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// For stored or shown times.
    time: Timestamp,
    /// For times of events in this process.
    monotonic: Timestamp,
}

impl Now {
    pub(super) fn of(env: &Env) -> Self {
        Self { time: env.now(), monotonic: env.monotonic() }
    }

    /// Wall time of an event in this process.
    fn time_of(self, monotonic: Timestamp) -> Timestamp {
        let ago = i64::try_from(self.monotonic.since(monotonic).as_nanos()).unwrap_or(i64::MAX);
        Timestamp(self.time.0.saturating_sub(ago))
    }
}

pub(super) fn pollers(state: &State, now: Now) -> Vec<taskqueue::PollerInfo> {
    let by_wall_clock = |poller: taskqueue::PollerInfo| taskqueue::PollerInfo {
        last_access_time: poller.last_access_time.map(|at| now.time_of(at.into()).into()),
        ..poller
    };
    state.pollers.list(now.monotonic).into_iter().map(by_wall_clock).collect()
}

/// Versioning of the queue: it has no worker version and never had one.
#[expect(deprecated, reason = "clients look for it in the older form")]
pub(super) fn unversioned() -> taskqueue::TaskQueueVersioningInfo {
    const NEVER: prost_types::Timestamp = prost_types::Timestamp { seconds: -62_135_596_800, nanos: 0 };
    taskqueue::TaskQueueVersioningInfo {
        current_version: "__unversioned__".to_owned(),
        update_time: Some(NEVER),
        ..Default::default()
    }
}

pub(super) fn stats(state: &State, now: Now) -> taskqueue::TaskQueueStats {
    let oldest = state.backlog.priorities().map(|priority| state.backlog_age(priority, now.time)).max();
    taskqueue::TaskQueueStats {
        approximate_backlog_count: state.backlog.n_tasks(),
        approximate_backlog_age: prost_types::Duration::try_from(oldest.unwrap_or_default()).ok(),
        tasks_add_rate: state.rates.added.per_second(now.monotonic),
        tasks_dispatch_rate: state.rates.dispatched.per_second(now.monotonic),
        rate_limiting_active: state.rates.is_throttled(),
    }
}

/// Stats of the priorities in use. Rates are counted for the queue as a whole.
pub(super) fn stats_by_priority(state: &State, now: Now) -> HashMap<i32, taskqueue::TaskQueueStats> {
    let of = |priority: Priority| taskqueue::TaskQueueStats {
        approximate_backlog_count: state.backlog.n_tasks_of(priority),
        approximate_backlog_age: prost_types::Duration::try_from(state.backlog_age(priority, now.time)).ok(),
        ..taskqueue::TaskQueueStats::default()
    };
    state.backlog.priorities().map(|priority| (priority.key(), of(priority))).collect()
}

pub(super) fn status(state: &State) -> taskqueue::TaskQueueStatus {
    let (ack_level, read_level) = state.backlog.task_ids();
    taskqueue::TaskQueueStatus {
        backlog_count_hint: state.backlog.n_tasks(),
        read_level,
        ack_level,
        rate_per_second: state.rates.limit.per_second(),
        task_id_block: state.backlog.ids_left.map(|(start_id, end_id)| taskqueue::TaskIdBlock { start_id, end_id }),
    }
}

/// An empty description, because Nexus tasks are not built yet. Tools request all types at once and show none if one is
/// rejected.
pub(super) fn of_nexus_tasks(request: &public::DescribeTaskQueueRequest) -> public::DescribeTaskQueueResponse {
    let none = taskqueue::TaskQueueStats {
        approximate_backlog_age: Some(prost_types::Duration::default()),
        ..taskqueue::TaskQueueStats::default()
    };
    public::DescribeTaskQueueResponse {
        versioning_info: Some(unversioned()),
        stats: request.report_stats.then_some(none),
        ..public::DescribeTaskQueueResponse::default()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the public API has a narrower number here than in the poll")]
pub(super) fn rate_limit(state: &State) -> EffectiveRateLimit {
    let per_second = state.rates.limit.per_second();
    let source = if per_second < UNLIMITED_PER_SECOND { RateLimitSource::Worker } else { RateLimitSource::System };
    EffectiveRateLimit { requests_per_second: per_second as f32, rate_limit_source: source.into() }
}
