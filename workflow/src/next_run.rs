//! The run that follows another one: continued as new, retried, or by a cron schedule.

use std::time::Duration;

use proto::temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes;
use proto::temporal::api::common::v1::{Callback, Payloads, RetryPolicy, WorkflowType};
use proto::temporal::api::enums::v1::{ContinueAsNewInitiator, RetryState};
use proto::temporal::api::failure::v1::Failure;

use crate::close::backoff_at_least;
use crate::commands::normalize_queue;
use crate::cron;
use crate::draft::Draft;
use crate::ids::ExecutionKey;
use crate::input::Start;
use crate::outcome::Rejection;
use crate::reset;
use crate::retry;
use crate::start::{Continued, Started, StartedAgain, capped_run_timeout, capped_task_timeout, start};
use crate::time::{limit, nonzero, parse_span, span, to_proto};
use crate::workflow_task::normal_queue;

/// How the next run begins, and when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Follow {
    initiator: ContinueAsNewInitiator,
    backoff: Duration,
}

impl Follow {
    /// After a failure: the last result of this cron schedule. A retry carries none.
    pub(crate) fn last_result_of(&self, started: &Started) -> Option<Payloads> {
        let is_cron = self.initiator == ContinueAsNewInitiator::CronSchedule;
        started.again.as_ref().filter(|_| is_cron).and_then(|again| again.last_completion_result.clone())
    }
}

/// Whether a failed run is retried, or repeated by its cron schedule.
pub(crate) fn after_failure(draft: &Draft, failure: Option<&Failure>) -> (RetryState, Option<Follow>) {
    match retry_interval(draft, failure) {
        Ok(backoff) => {
            let follow = Follow { initiator: ContinueAsNewInitiator::Retry, backoff };
            (RetryState::InProgress, Some(follow))
        }
        Err(retry_state) => (retry_state, by_schedule(draft)),
    }
}

fn retry_interval(draft: &Draft, failure: Option<&Failure>) -> Result<Duration, RetryState> {
    let started = &draft.state.started;
    let policy = started.retry_policy.as_ref().ok_or(RetryState::RetryPolicyNotSet)?;
    if !retry::is_retryable(failure, &policy.non_retryable_error_types) {
        return Err(RetryState::NonRetryableFailure);
    }
    retry::next_interval(&retry::Attempt {
        policy,
        number: started.attempt,
        now: draft.now(),
        expires_at: started.execution_expires_at,
        requested_delay: retry::requested_delay(failure),
        interval_max: retry::interval_max(policy),
    })
}

/// Whether and when a run is repeated by its cron schedule.
pub(crate) fn by_schedule(draft: &Draft) -> Option<Follow> {
    let started = &draft.state.started;
    let schedule = cron::Schedule::parse(&started.cron_schedule).ok()?;
    let backoff = schedule.backoff(started.started_at + started.first_task_backoff, draft.now())?;
    Some(Follow { initiator: ContinueAsNewInitiator::CronSchedule, backoff })
}

/// Starts the next run with the start parameters of this one.
pub(crate) fn again(draft: &mut Draft, follow: &Follow, failure: Option<Failure>, last_result: Option<Payloads>) {
    let started = draft.state.started.clone();
    let again = started.again.clone().unwrap_or(StartedAgain {
        input: None,
        header: None,
        last_completion_result: None,
        memo: None,
        search_attributes: None,
    });
    let next = Start {
        workflow_type: started.workflow_type.clone(),
        task_queue: started.task_queue.clone(),
        input: again.input,
        header: again.header,
        run_timeout: started.run_timeout,
        task_timeout: started.task_timeout,
        retry_policy: started.retry_policy.clone(),
        cron_schedule: started.cron_schedule.clone(),
        memo: again.memo,
        search_attributes: again.search_attributes,
        continued_failure: failure,
        last_completion_result: last_result,
        // A retry keeps callbacks, which wait for the final outcome; the next run of a schedule is another outcome.
        callbacks: if follow.initiator == ContinueAsNewInitiator::Retry { callbacks(draft) } else { Vec::new() },
        ..follower(draft)
    };
    let is_retry = follow.initiator == ContinueAsNewInitiator::Retry;
    let continued = Continued {
        attempt: if is_retry { started.attempt.saturating_add(1) } else { 1 },
        ..continued(draft, follow.initiator, follow.backoff)
    };
    follow_by(draft, next, continued).expect("a run that was started once can be started again");
}

/// Starts the run of a `ContinueAsNewWorkflowExecution` command.
pub(crate) fn continue_as_new(
    draft: &mut Draft,
    command: ContinueAsNewWorkflowExecutionCommandAttributes,
) -> Result<(), Rejection> {
    let initiator = match command.initiator() {
        ContinueAsNewInitiator::Unspecified => ContinueAsNewInitiator::Workflow,
        given @ (ContinueAsNewInitiator::Workflow
        | ContinueAsNewInitiator::Retry
        | ContinueAsNewInitiator::CronSchedule) => given,
    };
    let backoff = span(command.backoff_start_interval.as_ref());
    let next = Start {
        workflow_type: command.workflow_type.map(|kind| kind.name).unwrap_or_default(),
        task_queue: command.task_queue.map(|queue| queue.name).unwrap_or_default(),
        input: command.input,
        header: command.header,
        run_timeout: limit(command.workflow_run_timeout.as_ref()),
        task_timeout: span(command.workflow_task_timeout.as_ref()),
        retry_policy: command.retry_policy,
        cron_schedule: command.cron_schedule,
        memo: command.memo,
        search_attributes: command.search_attributes,
        continued_failure: command.failure,
        last_completion_result: command.last_completion_result,
        callbacks: callbacks(draft),
        ..follower(draft)
    };
    let is_retry = initiator == ContinueAsNewInitiator::Retry;
    let continued = Continued {
        attempt: if is_retry { draft.state.started.attempt.saturating_add(1) } else { 1 },
        ..continued(draft, initiator, backoff)
    };
    follow_by(draft, next, continued)
}

/// Validates a command's attributes and fills in defaults from its run.
pub(crate) fn normalize(
    draft: &Draft,
    mut command: ContinueAsNewWorkflowExecutionCommandAttributes,
) -> Result<ContinueAsNewWorkflowExecutionCommandAttributes, String> {
    let started = &draft.state.started;
    let limits = &draft.facts.limits;
    let kind = command.workflow_type.take().filter(|kind| !kind.name.is_empty());
    let kind = kind.unwrap_or_else(|| WorkflowType { name: started.workflow_type.clone() });
    if kind.name.len() > limits.id_length {
        return Err(format!(
            "WorkflowType on ContinueAsNewWorkflowExecutionCommand exceeds length limit. \
             WorkflowType={} Length={} Limit={}",
            kind.name,
            kind.name.len(),
            limits.id_length
        ));
    }
    let named = |complaint: String| format!("{complaint}. WorkflowType={}", kind.name);
    let queue = command.task_queue.get_or_insert_with(|| normal_queue(started.task_queue.clone()));
    normalize_queue(queue, Some(&started.task_queue), limits.id_length).map_err(|reason| {
        named(format!("error validating ContinueAsNewWorkflowExecutionCommand TaskQueue: {reason}"))
    })?;
    let parse = |name: &str, value: Option<&prost_types::Duration>| {
        parse_span(value)
            .map_err(|reason| named(format!("Invalid {name} on ContinueAsNewWorkflowExecutionCommand: {reason}")))
    };
    let run_timeout = nonzero(parse("WorkflowRunTimeout", command.workflow_run_timeout.as_ref())?);
    let task_timeout = nonzero(parse("WorkflowTaskTimeout", command.workflow_task_timeout.as_ref())?);
    parse("BackoffStartInterval", command.backoff_start_interval.as_ref())?;
    let run_timeout = capped_run_timeout(run_timeout.or(started.run_timeout), started.execution_timeout);
    let task_timeout = capped_task_timeout(task_timeout.unwrap_or(started.task_timeout), run_timeout, limits);
    command.workflow_run_timeout = Some(to_proto(run_timeout.unwrap_or(Duration::ZERO)));
    command.workflow_task_timeout = Some(to_proto(task_timeout));
    command.retry_policy = normalize_policy(command.retry_policy.take()).map_err(named)?;
    command.workflow_type = Some(kind);
    Ok(command)
}

fn normalize_policy(policy: Option<RetryPolicy>) -> Result<Option<RetryPolicy>, String> {
    let Some(policy) = policy.map(retry::with_defaults) else { return Ok(None) };
    retry::check_policy(&policy)
        .map_err(|reason| format!("invalid WorkflowRetryPolicy on ContinueAsNewWorkflowExecutionCommand: {reason}"))?;
    Ok(Some(policy))
}

fn callbacks(draft: &Draft) -> Vec<Callback> {
    draft.state.callbacks.iter().map(|kept| kept.callback.clone()).collect()
}

/// Start parameters that every next run takes over from the one before it.
fn follower(draft: &Draft) -> Start {
    let started = &draft.state.started;
    Start {
        workflow_type: String::new(),
        task_queue: String::new(),
        input: None,
        header: None,
        execution_timeout: started.execution_timeout,
        run_timeout: None,
        task_timeout: Duration::ZERO,
        identity: String::new(),
        request_id: draft.facts.new_request_id.to_string(),
        retry_policy: None,
        cron_schedule: String::new(),
        memo: None,
        search_attributes: None,
        start_delay: None,
        continued_failure: None,
        last_completion_result: None,
        user_metadata: None,
        links: started.links.clone(),
        priority: draft.state.current_priority().cloned(),
        callbacks: Vec::new(),
        parent: started.parent.clone(),
        schedule_id: draft.state.unrecorded.schedule_id.clone(),
        is_eager: false,
        signal: None,
    }
}

fn continued(draft: &Draft, initiator: ContinueAsNewInitiator, backoff: Duration) -> Continued {
    let started = &draft.state.started;
    let interval_min = draft.facts.limits.start_interval_min;
    Continued {
        from: draft.state.key.run_id,
        first_run_id: started.first_run_id,
        initiator,
        attempt: 1,
        backoff: backoff_at_least(&draft.state, draft.now(), backoff, interval_min),
        execution_expires_at: started.execution_expires_at,
        reset_points: reset::points_left(&draft.state, draft.facts),
    }
}

fn follow_by(draft: &mut Draft, next: Start, continued: Continued) -> Result<(), Rejection> {
    let key = ExecutionKey { run_id: draft.facts.new_run_id, ..draft.state.key.clone() };
    assert_ne!(key.run_id, draft.state.key.run_id, "the next run has its own id");
    assert!(!draft.state.is_running(), "one run ends before the next begins");
    let new_run = start(key, next, Some(continued), draft.facts)?;
    draft.continue_in(new_run);
    Ok(())
}
