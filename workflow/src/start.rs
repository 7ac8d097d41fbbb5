//! Starting a run: its first event and state. Whether it may start is in start_policy.rs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::common::v1::{
    Header, Link, Memo, Payload, Payloads, Priority, RetryPolicy, SearchAttributes, WorkflowType,
};
use proto::temporal::api::enums::v1::ContinueAsNewInitiator;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{HistoryEvent, WorkflowExecutionStartedEventAttributes};
use proto::temporal::api::workflow::v1::ResetPoints;
use uuid::Uuid;

use crate::apply::count;
use crate::branch::Branch;
use crate::cron;
use crate::draft::{Annotation, Draft, Entry};
use crate::facts::{Facts, Limits};
use crate::ids::{EventId, ExecutionKey, NamespaceId, RunId};
use crate::input::{Parent, Start};
use crate::items::Items;
use crate::options;
use crate::outcome::{Rejection, Reply, Transition};
use crate::properties;
use crate::request_ids::RequestIds;
use crate::reset::{self, ResetPoint};
use crate::retry;
use crate::signal;
use crate::state::{ExecutionState, Status, Unrecorded};
use crate::tasks::TimerTask;
use crate::time::{Timestamp, limit, nonzero, span, to_proto};
use crate::workflow_task::{self, WorkflowTask};
use crate::workflow_task_attempt;

/// Start parameters of a run. Recorded in its first event.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    pub workflow_type: String,
    pub task_queue: String,
    pub started_at: Timestamp,
    pub execution_timeout: Option<Duration>,
    pub run_timeout: Option<Duration>,
    pub task_timeout: Duration,
    /// Deadline of the whole chain of runs.
    pub execution_expires_at: Option<Timestamp>,
    pub run_expires_at: Option<Timestamp>,
    pub first_task_backoff: Duration,
    pub retry_policy: Option<RetryPolicy>,
    /// Counts from 1.
    pub attempt: i32,
    pub cron_schedule: String,
    pub first_run_id: RunId,
    pub original_run_id: RunId,
    pub continued_from: Option<RunId>,
    pub parent: Option<Parent>,
    pub priority: Option<Priority>,
    pub links: Vec<Link>,
    /// Time of the reset, if a reset created the run.
    pub reset_at: Option<Timestamp>,
    /// Kept only if a retry or a cron schedule may need it.
    pub again: Option<StartedAgain>,
}

/// Start parameters that only a retry or a cron run needs again.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedAgain {
    pub input: Option<Payloads>,
    pub header: Option<Header>,
    pub last_completion_result: Option<Payloads>,
    pub memo: Option<Memo>,
    pub search_attributes: Option<SearchAttributes>,
}

/// Data that a run takes over from the previous run of its chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Continued {
    pub from: RunId,
    pub first_run_id: RunId,
    pub initiator: ContinueAsNewInitiator,
    /// Attempt of the new run; counts from 1, and grows with retries only.
    pub attempt: i32,
    pub backoff: Duration,
    pub execution_expires_at: Option<Timestamp>,
    pub reset_points: Arc<Vec<ResetPoint>>,
}

/// Begins a new run: its first event, a signal if it came with one, and its first workflow task.
///
/// # Errors
/// If the cron schedule is invalid.
pub fn start(
    key: ExecutionKey,
    start: Start,
    continued: Option<Continued>,
    facts: &Facts,
) -> Result<Box<Transition>, Rejection> {
    let chain = match continued {
        Some(continued) => Chain::next(continued),
        None => Chain::first(&key, &start, facts)?,
    };
    // A child's first workflow task is scheduled once its parent has recorded its start.
    let waits_for_parent = start.parent.is_some() && chain.continued_from.is_none();
    let mut start = start;
    // A delayed first task, or one that waits for the parent, goes through matching.
    start.is_eager &= !waits_for_parent && chain.backoff.is_zero();
    let (signal, request_id, run_id) = (start.signal.take(), std::mem::take(&mut start.request_id), key.run_id);
    let schedule_id = start.schedule_id.take();
    let eager_worker = start.is_eager.then(|| start.identity.clone());
    let first = first_event(&key, start, chain, facts);
    let mut draft = Draft::begin(key, first, facts);
    assert_eq!(draft.state.key.run_id, run_id, "the run has the id it was given");
    assert!(!draft.state.started.task_timeout.is_zero(), "a workflow task has a timeout");
    draft.state.unrecorded.start_request_id.clone_from(&request_id);
    draft.state.unrecorded.schedule_id = schedule_id;
    if let Some(signal) = signal {
        signal::record(&mut draft, signal);
    }
    let version = draft.version();
    if let Some(expires_at) = draft.state.started.run_expires_at {
        draft.timer(expires_at, TimerTask::RunTimeout { version });
    }
    let mut task = None;
    if let Some(identity) = eager_worker {
        task = Some(Box::new(workflow_task_attempt::begin_at_once(&mut draft, request_id, identity)));
    } else if !waits_for_parent {
        workflow_task_attempt::begin_or_wait(&mut draft);
    }
    Ok(draft.finish(Reply::Started { run_id, task }))
}

/// A run's place in its chain.
struct Chain {
    continued_from: Option<RunId>,
    first_run_id: RunId,
    initiator: ContinueAsNewInitiator,
    attempt: i32,
    backoff: Duration,
    execution_expires_at: Option<Timestamp>,
    reset_points: Arc<Vec<ResetPoint>>,
}

impl Chain {
    fn next(continued: Continued) -> Self {
        Self {
            continued_from: Some(continued.from),
            first_run_id: continued.first_run_id,
            initiator: continued.initiator,
            attempt: continued.attempt,
            backoff: continued.backoff,
            execution_expires_at: continued.execution_expires_at,
            reset_points: continued.reset_points,
        }
    }

    fn first(key: &ExecutionKey, start: &Start, facts: &Facts) -> Result<Self, Rejection> {
        let schedule = if start.cron_schedule.is_empty() {
            None
        } else {
            let parsed = cron::Schedule::parse(&start.cron_schedule);
            Some(parsed.map_err(|reason| Rejection::InvalidArgument(reason.to_owned()))?)
        };
        let scheduled = schedule.as_ref().and_then(|schedule| schedule.backoff(facts.now, facts.now));
        let initiator = match schedule {
            Some(_) => ContinueAsNewInitiator::CronSchedule,
            None => ContinueAsNewInitiator::Unspecified,
        };
        Ok(Self {
            continued_from: None,
            first_run_id: key.run_id,
            initiator,
            attempt: 1,
            backoff: start.start_delay.or(scheduled).unwrap_or(Duration::ZERO),
            execution_expires_at: start.execution_timeout.map(|timeout| (facts.now + timeout).rounded_to_millis()),
            reset_points: Arc::default(),
        })
    }
}

fn first_event(key: &ExecutionKey, start: Start, chain: Chain, facts: &Facts) -> Entry {
    let run_timeout = capped_run_timeout(start.run_timeout, start.execution_timeout);
    let task_timeout = capped_task_timeout(start.task_timeout, run_timeout, &facts.limits);
    let parent = start.parent;
    // A timeout that a client omits stays omitted; the timeouts of a command are filled in before they get here.
    let is_by_command = parent.is_some() || chain.initiator == ContinueAsNewInitiator::Workflow;
    let recorded_run_timeout = run_timeout.or_else(|| is_by_command.then_some(Duration::ZERO));
    let attributes = WorkflowExecutionStartedEventAttributes {
        workflow_type: Some(WorkflowType { name: start.workflow_type }),
        parent_workflow_namespace: parent.as_ref().map(|parent| parent.namespace.clone()).unwrap_or_default(),
        parent_workflow_namespace_id: parent.as_ref().map(|parent| parent.namespace_id.to_string()).unwrap_or_default(),
        parent_workflow_execution: parent.as_ref().map(|parent| parent.execution.clone()),
        parent_initiated_event_id: parent.as_ref().map_or(0, |parent| parent.initiated_event_id.0),
        parent_initiated_event_version: parent.as_ref().map_or(0, |parent| parent.initiated_version),
        root_workflow_execution: parent.and_then(|parent| parent.root),
        task_queue: Some(workflow_task::normal_queue(start.task_queue)),
        input: start.input,
        workflow_execution_timeout: start.execution_timeout.map(to_proto),
        workflow_run_timeout: recorded_run_timeout.map(to_proto),
        workflow_task_timeout: Some(to_proto(task_timeout)),
        continued_execution_run_id: chain.continued_from.map(|id| id.to_string()).unwrap_or_default(),
        initiator: chain.initiator.into(),
        continued_failure: start.continued_failure,
        last_completion_result: start.last_completion_result,
        original_execution_run_id: key.run_id.to_string(),
        identity: start.identity,
        first_execution_run_id: chain.first_run_id.to_string(),
        retry_policy: start.retry_policy.map(retry::with_defaults),
        attempt: chain.attempt,
        workflow_execution_expiration_time: chain.execution_expires_at.map(Into::into),
        cron_schedule: start.cron_schedule,
        first_workflow_task_backoff: Some(to_proto(chain.backoff)),
        prev_auto_reset_points: chain
            .continued_from
            .map(|_| ResetPoints { points: chain.reset_points.iter().map(Into::into).collect() }),
        memo: start.memo.and_then(|memo| without_nulls(memo.fields)).map(|fields| Memo { fields }),
        search_attributes: start
            .search_attributes
            .and_then(|attributes| without_nulls(attributes.indexed_fields))
            .map(|indexed_fields| SearchAttributes { indexed_fields }),
        header: start.header,
        workflow_id: key.workflow_id.to_string(),
        priority: start.priority,
        completion_callbacks: start.callbacks,
        eager_execution_accepted: start.is_eager,
        ..Default::default()
    };
    let annotation = Annotation { user_metadata: start.user_metadata, event_group_markers: Vec::new() };
    let what = Attributes::WorkflowExecutionStartedEventAttributes(attributes);
    Entry { links: start.links, annotation, ..what.into() }
}

/// `None` if nothing is left.
pub(crate) fn without_nulls(mut fields: HashMap<String, Payload>) -> Option<HashMap<String, Payload>> {
    fields.retain(|_, value| !properties::is_null(value));
    (!fields.is_empty()).then_some(fields)
}

/// Caps the run timeout at the execution timeout.
pub(crate) fn capped_run_timeout(run: Option<Duration>, execution: Option<Duration>) -> Option<Duration> {
    match (run, execution) {
        (Some(run), Some(execution)) => Some(run.min(execution)),
        (run, execution) => run.or(execution),
    }
}

/// Caps the workflow task timeout at the run timeout and at the server's maximum.
pub(crate) fn capped_task_timeout(task: Duration, run: Option<Duration>, limits: &Limits) -> Duration {
    let task = nonzero(task).unwrap_or(limits.default_task_timeout).min(limits.task_timeout_max);
    assert!(task <= limits.task_timeout_max, "the server's bound holds");
    run.map_or(task, |run| task.min(run))
}

/// Creates the state from a run's first event, which replay has checked.
pub(crate) fn apply_started(key: ExecutionKey, branch: Arc<Branch>, event: &HistoryEvent) -> ExecutionState {
    assert_eq!(event.event_id, EventId::FIRST.0, "a run begins with its first event");
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(first)) = &event.attributes else {
        unreachable!("a run begins with its start")
    };
    let memo = first.memo.clone().unwrap_or_default();
    let search_attributes = first.search_attributes.clone().unwrap_or_default();
    let mut state = ExecutionState {
        started: Arc::new(started(&key, event, first)),
        key,
        status: Status::Running,
        closed: None,
        next_event_id: EventId::FIRST,
        branch,
        version_history: Vec::new(),
        workflow_task: WorkflowTask::None,
        workflow_task_attempt: 1,
        last_completed_started_event_id: None,
        activities: Items::default(),
        timers: Items::default(),
        children: Items::default(),
        external_signals: Items::default(),
        external_cancels: Items::default(),
        cancel_requested: None,
        signal_request_ids: RequestIds::default(),
        updates: Items::default(),
        n_signals: 0,
        history_size: 0,
        memo: Arc::new(memo),
        search_attributes: Arc::new(search_attributes),
        priority: first.priority.clone(),
        callbacks: Arc::default(),
        known_requests: Arc::default(),
        reset_points: Arc::new(reset_points(first)),
        pause: None,
        unrecorded: Unrecorded::default(),
    };
    options::add_callbacks(&mut state, event, "", &first.completion_callbacks);
    count(&mut state, event);
    assert_eq!(state.next_event_id, EventId::FIRST.next(), "one event is recorded");
    assert!(state.started.attempt >= 1, "attempts count from one");
    state
}

fn started(key: &ExecutionKey, event: &HistoryEvent, first: &WorkflowExecutionStartedEventAttributes) -> Started {
    let started_at = event.event_time.map_or(Timestamp(0), Timestamp::from);
    let run_timeout = limit(first.workflow_run_timeout.as_ref());
    let first_task_backoff = span(first.first_workflow_task_backoff.as_ref());
    let execution_expires_at = first.workflow_execution_expiration_time.map(Timestamp::from);
    let run_expires_at = run_timeout.map(|timeout| {
        let expires_at = started_at + first_task_backoff + timeout;
        execution_expires_at.map_or(expires_at, |of_chain| expires_at.min(of_chain))
    });
    let run_id = |text: &str| Uuid::parse_str(text).ok().map(RunId);
    let may_come_again = first.retry_policy.is_some() || !first.cron_schedule.is_empty();
    Started {
        workflow_type: first.workflow_type.as_ref().map(|kind| kind.name.clone()).unwrap_or_default(),
        task_queue: first.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default(),
        started_at,
        execution_timeout: limit(first.workflow_execution_timeout.as_ref()),
        run_timeout,
        task_timeout: span(first.workflow_task_timeout.as_ref()),
        execution_expires_at,
        run_expires_at,
        first_task_backoff,
        retry_policy: first.retry_policy.clone(),
        attempt: first.attempt.max(1),
        cron_schedule: first.cron_schedule.clone(),
        first_run_id: run_id(&first.first_execution_run_id).unwrap_or(key.run_id),
        original_run_id: run_id(&first.original_execution_run_id).unwrap_or(key.run_id),
        continued_from: run_id(&first.continued_execution_run_id),
        parent: parent(first),
        priority: first.priority.clone(),
        links: event.links.clone(),
        reset_at: None,
        again: may_come_again.then(|| StartedAgain {
            input: first.input.clone(),
            header: first.header.clone(),
            last_completion_result: first.last_completion_result.clone(),
            memo: first.memo.clone(),
            search_attributes: first.search_attributes.clone(),
        }),
    }
}

fn reset_points(first: &WorkflowExecutionStartedEventAttributes) -> Vec<ResetPoint> {
    first.prev_auto_reset_points.iter().flat_map(|points| &points.points).filter_map(reset::point).collect()
}

fn parent(first: &WorkflowExecutionStartedEventAttributes) -> Option<Parent> {
    let execution = first.parent_workflow_execution.clone()?;
    Some(Parent {
        namespace: first.parent_workflow_namespace.clone(),
        namespace_id: NamespaceId(Uuid::parse_str(&first.parent_workflow_namespace_id).unwrap_or_default()),
        execution,
        initiated_event_id: EventId(first.parent_initiated_event_id),
        initiated_version: first.parent_initiated_event_version,
        root: first.root_workflow_execution.clone(),
    })
}
