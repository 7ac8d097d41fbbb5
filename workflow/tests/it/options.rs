//! Starts that join an open run, and options that are changed from outside.

use proto::temporal::api::common::v1::{Callback, Priority};
use proto::temporal::api::enums::v1::EventType;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{EventId, Input, Join, Rejection, Reply, UpdateOptions};

use crate::run::{Run, continue_as_new, fail_workflow, failure, plain_start};

fn join(run: &mut Run, request_id: &str, n_callbacks: usize) -> Result<Reply, Rejection> {
    let callbacks = vec![Callback::default(); n_callbacks];
    run.input(Input::Join(Join { request_id: request_id.to_owned(), callbacks, links: Vec::new() }))
}

fn update(run: &mut Run, priority: Option<Priority>, fields: &[&str]) -> Option<Priority> {
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    let input = Input::UpdateOptions(UpdateOptions { identity: "operator".to_owned(), priority, fields });
    let Reply::Priority(priority) = run.input(input).unwrap() else { panic!("no priority") };
    priority
}

#[test]
fn a_start_that_joins_is_recorded_once() {
    let mut run = Run::idle();
    join(&mut run, "again", 2).unwrap();
    join(&mut run, "again", 2).unwrap();
    assert_eq!(run.history_from(5), ["WorkflowExecutionOptionsUpdated"]);
    assert!(run.last_event().worker_may_ignore);
    let Attributes::WorkflowExecutionOptionsUpdatedEventAttributes(event) = run.event(5) else { panic!("no update") };
    assert_eq!((event.attached_request_id.as_str(), event.attached_completion_callbacks.len()), ("again", 2));
    let known = &run.state.known_requests[0];
    assert_eq!((known.event_type, known.event_id), (EventType::WorkflowExecutionOptionsUpdated, EventId(5)));
    assert_eq!(run.state.callbacks.len(), 2);
    // Without an id it is a new one each time.
    join(&mut run, "", 0).unwrap();
    join(&mut run, "", 0).unwrap();
    assert_eq!(run.history_from(6).len(), 2);
}

#[test]
fn a_start_that_joins_during_a_workflow_task_waits_and_is_known() {
    let mut run = Run::working();
    join(&mut run, "again", 1).unwrap();
    join(&mut run, "again", 1).unwrap();
    assert!(workflow::is_known(&run.state, "again"));
    run.complete_task(Vec::new());
    assert_eq!(run.history_from(4)[..2], ["WorkflowTaskCompleted", "WorkflowExecutionOptionsUpdated"]);
    assert_eq!(run.state.callbacks.len(), 1);
}

#[test]
fn callbacks_have_a_limit() {
    let mut run = Run::idle();
    join(&mut run, "a", 32).unwrap();
    let refused = join(&mut run, "b", 1).unwrap_err();
    let message = "cannot attach more than 32 callbacks to a workflow (32 callbacks already attached)";
    assert_eq!(refused, Rejection::FailedPrecondition(message.to_owned()));
    run.terminate().unwrap();
    assert_eq!(join(&mut run, "c", 0).unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn callbacks_go_on_with_a_retry_and_a_continuation_but_not_with_a_schedule() {
    let mut start = plain_start();
    start.callbacks = vec![Callback::default()];
    let n_inherited = |run: Run| run.new_run.expect("a next run").state.callbacks.len();

    let mut run = Run::started_as(start.clone());
    run.work(vec![continue_as_new(Default::default())]);
    assert_eq!(n_inherited(run), 1);

    start.retry_policy = Some(Default::default());
    let mut run = Run::started_as(start.clone());
    run.work(vec![fail_workflow(failure("boom"))]);
    assert_eq!(n_inherited(run), 1);

    (start.retry_policy, start.cron_schedule) = (None, "@every 1s".to_owned());
    let mut run = Run::started_as(start);
    run.fire_next_timer().unwrap();
    run.work(vec![fail_workflow(failure("boom"))]);
    assert_eq!(n_inherited(run), 0);
}

#[test]
fn a_priority_is_changed_field_by_field() {
    let mut run = Run::idle();
    let of_key = |priority_key| Some(Priority { priority_key, ..Default::default() });
    assert_eq!(update(&mut run, of_key(2), &["priority.priorityKey"]), of_key(2));
    let given = Some(Priority { priority_key: 9, fairness_key: "vip".to_owned(), fairness_weight: 3.0 });
    let both = Some(Priority { priority_key: 2, fairness_key: "vip".to_owned(), fairness_weight: 0.0 });
    assert_eq!(update(&mut run, given.clone(), &["priority.fairnessKey"]), both);
    assert_eq!(update(&mut run, given.clone(), &["versioningOverride"]), both, "another field");
    assert_eq!(update(&mut run, given.clone(), &["priority"]), given);
    assert_eq!(run.history_from(5).len(), 3, "what changes nothing is not recorded");
    assert_eq!(run.state.priority, given);
}

#[test]
fn a_priority_that_is_changed_during_a_workflow_task_counts_at_once() {
    let mut run = Run::working();
    let of_key = |priority_key| Some(Priority { priority_key, ..Default::default() });
    let given = Some(Priority { fairness_key: "vip".to_owned(), ..Default::default() });
    update(&mut run, of_key(2), &["priority.priorityKey"]);
    let both = Priority { priority_key: 2, fairness_key: "vip".to_owned(), fairness_weight: 0.0 };
    assert_eq!(update(&mut run, given, &["priority.fairnessKey"]).as_ref(), Some(&both), "on top of what waits");
    assert_eq!(run.state.current_priority(), Some(&both));
    update(&mut run, Some(both.clone()), &["priority"]);
    run.complete_task(Vec::new());
    let events = ["WorkflowTaskCompleted", "WorkflowExecutionOptionsUpdated", "WorkflowExecutionOptionsUpdated"];
    assert_eq!(run.history_from(4)[..3], events);
    assert!(!run.history_from(7).contains(&events[1].to_owned()), "what changes nothing is not recorded");
    assert_eq!((run.state.priority.as_ref(), run.state.current_priority()), (Some(&both), Some(&both)));
}
