//! Pausing: nothing goes to a worker, nothing is lost.

use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{Input, PauseRequest, Rejection, Reply, TransferTask, WorkflowTask};

use crate::run::{Run, SECOND, failure, name, schedule_activity, start_timer};

fn request(request_id: &str) -> PauseRequest {
    PauseRequest { identity: "operator".into(), reason: "deploying".into(), request_id: request_id.into() }
}

fn pause(run: &mut Run) {
    run.input(Input::Pause(request("p"))).unwrap();
}

fn unpause(run: &mut Run) {
    run.input(Input::Unpause(request("u"))).unwrap();
}

fn pause_activity(run: &mut Run, id: &str) {
    let target = workflow::ActivityTarget::Id(id.to_owned());
    let (identity, reason, request_id) = ("op".to_owned(), "hot".to_owned(), String::new());
    run.input(Input::PauseActivity(workflow::PauseActivity { target, identity, reason, request_id })).unwrap();
}

fn n_activity_tasks(run: &mut Run) -> usize {
    let tasks = run.take_tasks();
    let is_activity = |task: &&workflow::Task| matches!(task, workflow::Task::Transfer(TransferTask::Activity { .. }));
    tasks.iter().filter(is_activity).count()
}

#[test]
fn what_comes_while_a_run_is_paused_is_recorded_and_told_afterwards() {
    let mut run = Run::after(vec![start_timer("t", SECOND)]);
    pause(&mut run);
    run.signal("s").unwrap();
    run.fire_next_timer().unwrap();
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(6), ["WorkflowExecutionPaused", "WorkflowExecutionSignaled", "TimerFired"]);
    assert_eq!(run.state.workflow_task, WorkflowTask::None);
    unpause(&mut run);
    assert_eq!(run.history_from(9), ["WorkflowExecutionUnpaused", "WorkflowTaskScheduled"]);
    let ignored: Vec<i64> = run.events().filter(|event| event.worker_may_ignore).map(|event| event.event_id).collect();
    assert_eq!(ignored, [6, 9], "workers that do not know them");
    let Attributes::WorkflowExecutionPausedEventAttributes(paused) = run.event(6) else { panic!("not paused") };
    assert_eq!((paused.identity.as_str(), paused.reason.as_str()), ("operator", "deploying"));
}

#[test]
fn a_workflow_task_that_no_worker_has_is_taken_back() {
    let mut run = Run::started();
    pause(&mut run);
    assert_eq!(run.history_from(3), ["WorkflowTaskFailed", "WorkflowExecutionPaused"]);
    let Attributes::WorkflowTaskFailedEventAttributes(failed) = run.event(3) else { panic!("not failed") };
    assert_eq!(failed.cause(), WorkflowTaskFailedCause::WorkflowPauseRequestedBeforeTaskStarted);
    assert_eq!((failed.scheduled_event_id, failed.started_event_id), (2, 0));
    unpause(&mut run);
    assert_eq!(run.scheduled().attempt, 1);

    let mut run = Run::working();
    run.fail_task();
    assert_eq!(run.scheduled().attempt, 2, "a transient one");
    pause(&mut run);
    assert_eq!(run.history_from(5), ["WorkflowExecutionPaused"]);
    unpause(&mut run);
    assert_eq!((run.scheduled().attempt, run.history_from(6).len()), (1, 2));
}

#[test]
fn a_worker_may_finish_what_it_has() {
    let mut run = Run::working();
    pause(&mut run);
    assert!(run.state.paused().is_some(), "though nothing says so in history yet");
    assert!(run.state.pause.is_none());
    let refused = workflow::CompleteWorkflowTask { force_new_task: true, ..run.completion(Vec::new()) };
    let refused = run.input(Input::CompleteWorkflowTask(Box::new(refused))).unwrap_err();
    let message = "Workflow is paused and force create new workflow task is not allowed.";
    assert_eq!(refused, Rejection::FailedPrecondition(message.to_owned()));
    run.take_tasks();
    run.complete_task(vec![schedule_activity("a")]);
    assert_eq!(run.history_from(4), ["WorkflowTaskCompleted", "ActivityTaskScheduled", "WorkflowExecutionPaused"]);
    assert_eq!(n_activity_tasks(&mut run), 0, "what it asks for waits");
    unpause(&mut run);
    assert_eq!(n_activity_tasks(&mut run), 1);
}

#[test]
fn activities_that_no_worker_has_wait_and_those_at_a_worker_go_on() {
    let mut run = Run::after(vec![schedule_activity("a"), schedule_activity("b")]);
    let stamp = run.activity(5).unrecorded.stamp;
    run.start_activity(6).unwrap();
    pause(&mut run);
    assert_eq!(run.activity(5).unrecorded.stamp, stamp + 1, "what was dispatched is void");
    run.take_tasks();
    run.fail_activity(6, failure("boom")).unwrap();
    run.fire_next_timer().unwrap();
    assert_eq!(n_activity_tasks(&mut run), 0, "a retry waits, too");
    unpause(&mut run);
    assert_eq!(n_activity_tasks(&mut run), 2);
}

#[test]
fn a_run_is_paused_once_and_unpaused_once() {
    let mut run = Run::idle();
    let not_paused = Rejection::FailedPrecondition("workflow is not paused.".to_owned());
    assert_eq!(run.input(Input::Unpause(request(""))).unwrap_err(), not_paused);
    pause(&mut run);
    assert!(matches!(run.input(Input::Pause(request("p"))), Ok(Reply::Done)), "a repeated request");
    let already = Rejection::FailedPrecondition("workflow is already paused.".to_owned());
    for other in ["q", ""] {
        assert_eq!(run.input(Input::Pause(request(other))).unwrap_err(), already);
    }
    assert_eq!(
        run.admit("update").unwrap_err(),
        Rejection::FailedPrecondition("Workflow is paused. Cannot update the workflow.".to_owned())
    );
    unpause(&mut run);
    assert_eq!(run.input(Input::Unpause(request(""))).unwrap_err(), not_paused);
    run.terminate().unwrap();
    assert_eq!(run.input(Input::Pause(request("r"))).unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn workers_that_do_not_know_a_pause_may_ignore_it() {
    let mut run = Run::idle();
    pause(&mut run);
    unpause(&mut run);
    let events: Vec<(String, bool)> = run.events().map(|event| (name(event), event.worker_may_ignore)).collect();
    let ignored: Vec<&str> = events.iter().filter(|(_, ignored)| *ignored).map(|(name, _)| name.as_str()).collect();
    assert_eq!(ignored, ["WorkflowExecutionPaused", "WorkflowExecutionUnpaused"]);
}

#[test]
fn what_is_paused_is_told_among_the_search_attributes() {
    let shown = |run: &Run| {
        let attributes = workflow::shown_search_attributes(&run.state);
        attributes.indexed_fields.get("TemporalPauseInfo").map(|value| value.data.clone())
    };
    let mut run = Run::after(vec![schedule_activity("one"), schedule_activity("two")]);
    assert_eq!(shown(&run), None);
    pause_activity(&mut run, "one");
    pause_activity(&mut run, "two");
    let activity_type = run.activity(5).activity_type.clone();
    assert_eq!(shown(&run).unwrap(), format!(r#"["property:activityType={activity_type}"]"#));
    pause(&mut run);
    let expected = format!(r#"["Workflow:order-1","Reason:deploying","property:activityType={activity_type}"]"#);
    assert_eq!(shown(&run).unwrap(), expected);
}

#[test]
fn lists_hear_that_something_is_paused_and_what_they_were_told_before() {
    /// Old pause attributes in visibility tasks, if there are any.
    fn forgotten(run: &mut Run) -> Vec<String> {
        let told = run.take_tasks().into_iter().filter_map(|task| match task {
            workflow::Task::Visibility(task) => Some(task.replaced),
            workflow::Task::Transfer(_) | workflow::Task::Timer { .. } => None,
        });
        told.map(|replaced| String::from_utf8(replaced["TemporalPauseInfo"].data.to_vec()).unwrap()).collect()
    }
    let mut run = Run::after(vec![schedule_activity("one")]);
    let of_activity = format!(r#"["property:activityType={}"]"#, run.activity(5).activity_type);
    run.take_tasks();
    pause_activity(&mut run, "one");
    assert_eq!(forgotten(&mut run), [""]);
    pause(&mut run);
    assert_eq!(forgotten(&mut run), [of_activity]);
    run.signal("s").unwrap();
    assert_eq!(forgotten(&mut run), [""; 0]);
    unpause(&mut run);
    let of_both =
        format!(r#"["Workflow:order-1","Reason:deploying","property:activityType={}"]"#, run.activity(5).activity_type);
    assert_eq!(forgotten(&mut run), [of_both]);
}
