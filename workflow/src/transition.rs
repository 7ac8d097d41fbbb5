//! transition: the one place where an input is applied to a state. Returns data; performs no effects.

use crate::commands::encode_string;
use crate::draft::Draft;
use crate::facts::Facts;
use crate::input::Input;
use crate::outcome::{Decision, Outcome, Rejection, Reply, Transition};
use crate::state::ExecutionState;
use crate::tasks::TimerTask;
use crate::{
    activity_attempt, activity_operation, child, close, external, options, pause, reset, signal, timer, update,
    workflow_task_attempt,
};

/// Decides how an input changes a run.
///
/// # Errors
/// If the input is not valid for this run; nothing changes then.
pub fn transition(state: &ExecutionState, input: Input, facts: &Facts) -> Result<Decision, Rejection> {
    let decision = decide(state, input, facts)?;
    Ok(match decision {
        Decision::Changed(changed) => Decision::Changed(within_limits(state, changed, facts)),
        Decision::Unchanged(reply) => Decision::Unchanged(reply),
    })
}

fn decide(state: &ExecutionState, input: Input, facts: &Facts) -> Result<Decision, Rejection> {
    check_open(state, &input)?;
    let mut draft = Draft::new(state, facts);
    let outcome = match input {
        Input::Signal(signal) => signal::receive(&mut draft, signal)?,
        Input::SignalAndBegin(signal) => signal::receive_and_begin(&mut draft, signal)?,
        Input::RequestCancel(request) => close::request_cancel(&mut draft, request)?,
        Input::Due(task) => due(&mut draft, task),
        Input::Terminate(request) => close::terminate(&mut draft, request)?,
        Input::Pause(request) => pause::pause(&mut draft, request)?,
        Input::Unpause(request) => pause::unpause(&mut draft, request)?,
        Input::LeaveTo(run_id) => reset::leave_to(&mut draft, run_id),
        Input::Delete => close::delete(&mut draft),
        Input::AdmitUpdate(input) => update::admit(&mut draft, &input)?,
        Input::StartWorkflowTask(input) => workflow_task_attempt::start(&mut draft, input)?,
        Input::CompleteWorkflowTask(input) => {
            return workflow_task_attempt::complete(state, *input, facts).map(Decision::Changed);
        }
        Input::FailWorkflowTask(input) => workflow_task_attempt::fail(&mut draft, input)?,
        Input::StartActivity(input) => activity_attempt::start(&mut draft, input)?,
        Input::Heartbeat(input) => activity_attempt::heartbeat(&mut draft, input)?,
        Input::CompleteActivity(input) => activity_attempt::complete(&mut draft, input)?,
        Input::FailActivity(input) => activity_attempt::fail(&mut draft, input)?,
        Input::CancelActivity(input) => activity_attempt::cancel(&mut draft, input)?,
        Input::PauseActivity(input) => activity_operation::pause(&mut draft, input)?,
        Input::UnpauseActivity(input) => activity_operation::unpause(&mut draft, &input)?,
        Input::ResetActivity(input) => activity_operation::reset(&mut draft, &input)?,
        Input::UpdateActivity(input) => activity_operation::update_options(&mut draft, &input)?,
        Input::Join(input) => options::join(&mut draft, input)?,
        Input::UpdateOptions(input) => options::update(&mut draft, input),
        Input::ResetSticky => reset_sticky(&mut draft),
        Input::ScheduleFirstTask => workflow_task_attempt::begin(&mut draft),
        Input::ChildStarted(input) => child::start(&mut draft, input)?,
        Input::ChildStartFailed(input) => child::fail_start(&mut draft, input)?,
        Input::ChildClosed(input) => child::close(&mut draft, *input)?,
        Input::ExternalSignaled(answer) => external::signaled(&mut draft, answer),
        Input::ExternalSignalFailed(answer, cause) => external::signal_failed(&mut draft, answer, cause),
        Input::ExternalCancelRequested(answer) => external::cancel_requested(&mut draft, answer),
        Input::ExternalCancelFailed(answer, cause) => external::cancel_failed(&mut draft, answer, cause),
    };
    Ok(match outcome {
        Outcome::Changed(reply) => Decision::Changed(draft.finish(reply)),
        Outcome::Unchanged(reply) => Decision::Unchanged(reply),
    })
}

/// Rejects inputs that only an open run accepts.
fn check_open(state: &ExecutionState, input: &Input) -> Result<(), Rejection> {
    if state.is_running() {
        return Ok(());
    }
    match input {
        // A repeated signal, a cancel request and a late timer find that there is nothing to do.
        Input::Signal(_) | Input::SignalAndBegin(_) | Input::RequestCancel(_) | Input::Due(_) => Ok(()),
        Input::LeaveTo(_) | Input::Delete => Ok(()),
        // The update's outcome may be recorded.
        Input::AdmitUpdate(_) => Ok(()),
        Input::CompleteWorkflowTask(_) => Err(Rejection::WorkflowTaskNotFound),
        Input::Terminate(_)
        | Input::Pause(_)
        | Input::Unpause(_)
        | Input::StartWorkflowTask(_)
        | Input::FailWorkflowTask(_)
        | Input::StartActivity(_)
        | Input::Heartbeat(_)
        | Input::CompleteActivity(_)
        | Input::FailActivity(_)
        | Input::CancelActivity(_)
        | Input::PauseActivity(_)
        | Input::UnpauseActivity(_)
        | Input::ResetActivity(_)
        | Input::UpdateActivity(_)
        | Input::Join(_)
        | Input::UpdateOptions(_)
        | Input::ResetSticky
        | Input::ScheduleFirstTask
        | Input::ChildStarted(_)
        | Input::ChildStartFailed(_)
        | Input::ChildClosed(_)
        | Input::ExternalSignaled(_)
        | Input::ExternalSignalFailed(..)
        | Input::ExternalCancelRequested(_)
        | Input::ExternalCancelFailed(..) => Err(Rejection::ExecutionClosed),
    }
}

/// A timer task is due. Its purpose may be obsolete.
#[rustfmt::skip]
fn due(draft: &mut Draft, task: TimerTask) -> Outcome {
    if !draft.state.is_running() {
        return Outcome::Unchanged(Reply::Done);
    }
    match task {
        TimerTask::UserTimer { started_event_id, version } => timer::fire(draft, started_event_id, version),
        TimerTask::ActivityTimeout { scheduled_event_id, version, .. } => activity_attempt::time_out(draft, scheduled_event_id, version),
        TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp, version } => activity_attempt::attempt_again(draft, scheduled_event_id, (attempt, stamp), version),
        TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version } => workflow_task_attempt::time_out_sticky(draft, scheduled_event_id, attempt, version),
        TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version } => workflow_task_attempt::time_out_started(draft, scheduled_event_id, attempt, version),
        TimerTask::FirstWorkflowTask { .. } => workflow_task_attempt::begin(draft),
        TimerTask::RunTimeout { .. } => close::time_out_run(draft),
        TimerTask::ExecutionTimeout { .. } => close::time_out_execution(draft),
        // Retention deletes a closed run, which is no transition.
        TimerTask::Retention { .. } | TimerTask::Schedule => Outcome::Unchanged(Reply::Done),
    }
}

fn reset_sticky(draft: &mut Draft) -> Outcome {
    match draft.state.unrecorded.sticky.take() {
        Some(_) => Outcome::Changed(Reply::Done),
        None => Outcome::Unchanged(Reply::Done),
    }
}

/// Terminates a run that exceeds its limits, in place of the decided transition.
fn within_limits(state: &ExecutionState, changed: Box<Transition>, facts: &Facts) -> Box<Transition> {
    let limits = &facts.limits;
    if !changed.state.is_running() {
        return changed;
    }
    let size = changed.state.history_size - state.history_size;
    let (reason, details) = if state.history_size > limits.history_size {
        ("Workflow history size exceeds limit.", None)
    } else if changed.state.last_event_id().0 > limits.history_count {
        ("Workflow history count exceeds limit.", None)
    } else if changed.state.mutable_state_size() > limits.mutable_state_size {
        ("Workflow mutable state size exceeds limit.", None)
    } else if size > limits.transaction_size {
        let details = format!("transaction size of {size} bytes exceeds limit of {} bytes", limits.transaction_size);
        ("Transaction size exceeds limit.", Some(details))
    } else {
        return changed;
    };
    let mut draft = Draft::new(state, facts);
    let encoded = details.as_deref().map(encode_string);
    close::terminate_by_server(&mut draft, reason.to_owned(), encoded);
    draft.finish(Reply::Terminated { message: details.unwrap_or_else(|| reason.to_owned()) })
}
