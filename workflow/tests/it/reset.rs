//! Reset: a run that begins with a part of another one's history.

use proto::temporal::api::common::v1::{Payload, Payloads, Priority};
use proto::temporal::api::enums::v1::{
    EventType, ResetReapplyExcludeType, ResetReapplyType, RetryState, UpdateAdmittedEventOrigin,
    WorkflowTaskFailedCause,
};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::history::v1::ActivityTaskStartedEventAttributes;
use proto::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;
use workflow::{
    ChildStarted, EventId, Input, Reapplied, Rejection, RunId, Signal, Start, TimerTask, TransferTask, UpdateOptions,
};

use crate::answers::{acceptance, response, update_request};
use crate::others::{self, start_child};
use crate::run::{
    Run, SECOND, complete_workflow, continue_as_new, name, plain_start, schedule_activity, signal, start_timer,
};

/// A run whose second workflow task completed last; the first started a timer and two activities, of which one is at a
/// worker.
fn eventful() -> Run {
    let mut run = Run::started_as(Start { run_timeout: Some(600 * SECOND), ..plain_start() });
    run.start_task();
    run.complete_task(vec![schedule_activity("a"), schedule_activity("b"), start_timer("t", 60 * SECOND)]);
    run.start_activity(6).unwrap();
    run.signal("before").unwrap();
    run.work(Vec::new());
    run
}

#[test]
fn a_run_is_reset_to_where_its_workflow_task_was_at_a_worker() {
    let mut base = eventful();
    let completed = base.state.last_event_id().0;
    assert_eq!(base.history_from(completed), ["WorkflowTaskCompleted"]);
    base.signal("after").unwrap();
    base.later(5 * SECOND);
    let run = base.reset(completed).unwrap();
    assert_eq!(
        run.history_from(completed),
        ["WorkflowTaskFailed", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]
    );
    assert_eq!(run.history_from(1)[..7], base.history_from(1)[..7], "it begins as the base did");
    let Attributes::WorkflowTaskFailedEventAttributes(failed) = run.event(completed) else { panic!("no failure") };
    assert_eq!(failed.cause(), WorkflowTaskFailedCause::ResetWorkflow);
    assert_eq!(failed.base_run_id, base.state.key.run_id.to_string());
    assert_eq!(failed.new_run_id, run.state.key.run_id.to_string());
    assert_eq!(failed.fork_event_version, 7);
    let failure = failed.failure.as_ref().unwrap();
    assert_eq!(failure.message, "bad deploy");
    assert!(matches!(failure.failure_info, Some(FailureInfo::ResetWorkflowFailureInfo(_))));
    assert_eq!(run.state.unrecorded.start_request_id, "start-1", "the start, if it is repeated, finds this run");
    assert_eq!(run.state.unrecorded.reset_request_id, "reset-1");
    assert_eq!(run.state.started.original_run_id, base.state.key.run_id);
}

#[test]
fn what_is_pending_is_cared_for_by_the_new_run() {
    let mut base = eventful();
    let completed = base.state.last_event_id().0;
    base.later(5 * SECOND);
    let run = base.reset(completed).unwrap();
    let activity = run.activity(5);
    assert_eq!(activity.scheduled_at, run.facts.now, "its time begins anew");
    let dispatched = run.transfers().into_iter().filter(|task| matches!(task, TransferTask::Activity { .. })).count();
    assert_eq!(dispatched, 2, "no worker has one of this run");
    let timers = run.timers();
    let timer = base.state.timers.get(7).unwrap();
    let has = |at, task: &TimerTask| timers.contains(&(at, task));
    assert!(has(timer.fires_at, &TimerTask::UserTimer { started_event_id: timer.started_event_id, version: 7 }));
    assert!(has(run.facts.now + 600 * SECOND, &TimerTask::RunTimeout { version: 7 }), "a whole run's time");
    assert!(timers.iter().any(|(_, task)| matches!(task, TimerTask::ActivityTimeout { .. })));
    assert_eq!(run.state.started.reset_at, Some(run.facts.now));
    assert_eq!(run.state.started.run_expires_at, Some(run.facts.now + 600 * SECOND));
}

#[test]
fn a_workflow_task_that_no_worker_had_is_started_to_be_failed() {
    let base = Run::idle();
    let run = base.reset(3).unwrap();
    assert_eq!(run.history_from(3), ["WorkflowTaskStarted", "WorkflowTaskFailed", "WorkflowTaskScheduled"]);
    let Attributes::WorkflowTaskStartedEventAttributes(started) = run.event(3) else { panic!("not started") };
    assert_eq!((started.identity.as_str(), started.request_id.as_str()), ("history-service", "emptyUuid"));
    assert_eq!(run.state.workflow_task_attempt, 1);
}

#[test]
fn a_transient_workflow_task_can_be_reset_to() {
    let mut base = Run::working();
    base.fail_task();
    base.start_task();
    base.complete_task(Vec::new());
    assert_eq!(base.history_from(5), ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted"]);
    let run = base.reset(7).unwrap();
    assert_eq!(run.history_from(6), ["WorkflowTaskStarted", "WorkflowTaskFailed", "WorkflowTaskScheduled"]);
    assert_eq!(run.scheduled().attempt, 1);
}

#[test]
fn a_point_after_a_workflow_task_that_failed_is_accepted() {
    let mut failed = Run::working();
    failed.fail_task();
    failed.signal("later").unwrap();
    assert_eq!(failed.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionSignaled"]);
    let mut timed_out = Run::working();
    timed_out.fire_next_timer().unwrap();
    assert_eq!(timed_out.history_from(4), ["WorkflowTaskTimedOut"]);
    for (base, point) in [(&failed, 5), (&failed, 6), (&timed_out, 5)] {
        let run = base.reset(point).unwrap();
        let expected = ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskFailed"];
        assert_eq!(run.history_from(point)[..3], expected, "{point}");
        let Attributes::WorkflowTaskScheduledEventAttributes(scheduled) = run.event(point) else { panic!("no task") };
        assert_eq!(scheduled.attempt, 1, "history tells of first attempts only");
        let Attributes::WorkflowTaskFailedEventAttributes(end) = run.event(point + 2) else { panic!("no failure") };
        assert_eq!(end.cause(), WorkflowTaskFailedCause::ResetWorkflow);
        assert_eq!(run.history().last().unwrap(), "WorkflowTaskScheduled");
        assert_eq!(run.scheduled().attempt, 1);
    }
}

#[test]
fn a_point_without_a_workflow_task_is_refused() {
    let base = Run::after(vec![start_timer("t", SECOND), complete_workflow()]);
    for point in [2, 5, 6] {
        let Rejection::InvalidArgument(message) = base.reset(point).err().unwrap() else { panic!("another refusal") };
        assert_eq!(
            message,
            format!(
                "Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: {point}"
            )
        );
    }
    assert!(base.reset(4).is_ok(), "a closed run can be reset");
}

#[test]
fn a_run_that_was_reset_can_be_reset_again() {
    let mut base = eventful();
    let completed = base.state.last_event_id().0;
    let mut first = base.later(SECOND).reset(completed).unwrap();
    first.work(Vec::new());
    first.facts.new_run_id = RunId(Uuid::from_u128(3));
    let last = first.state.last_event_id().0;
    let second = first.later(SECOND).reset(last).unwrap();
    assert_eq!(second.state.branch.ancestors.len(), 2, "events live on two branches besides its own");
    assert_eq!(second.state.started.reset_at, Some(second.facts.now));
    let mut second = second;
    second.facts.new_run_id = RunId(Uuid::from_u128(4));
    let third = second.reset(4).unwrap();
    assert_eq!(third.state.branch.ancestors.len(), 1, "all that it has was the base's");
}

#[test]
fn clients_say_what_is_not_given_to_the_new_run() {
    let mut base = Run::idle();
    base.signal("after").unwrap();
    let signal = base.events().find(|event| event.event_id == 5).unwrap();
    let task = base.last_event();
    let all = ResetReapplyType::AllEligible;
    for (included, excluded, expected) in [
        (ResetReapplyType::Unspecified, vec![], true),
        (all, vec![], true),
        (all, vec![ResetReapplyExcludeType::Update], true),
        (all, vec![ResetReapplyExcludeType::Signal], false),
        (ResetReapplyType::Signal, vec![], true),
        (ResetReapplyType::None, vec![], false),
    ] {
        let reapplied = Reapplied::new(included, &excluded);
        assert_eq!(reapplied.includes(signal), expected, "{included:?} {excluded:?}");
        assert!(!reapplied.includes(task));
    }
}

#[test]
fn the_base_of_a_reset_remembers_the_new_run() {
    let mut run = Run::after(vec![complete_workflow()]);
    let new_run_id = RunId(Uuid::from_u128(2));
    run.input(Input::LeaveTo(new_run_id)).unwrap();
    assert_eq!(run.state.unrecorded.reset_run_id, Some(new_run_id));
}

#[test]
fn a_reset_changes_the_options_of_the_new_run_before_it_begins() {
    let base = eventful();
    let completed = base.state.last_event_id().0;
    let priority = Priority { priority_key: 2, ..Default::default() };
    let change = |fields: &[&str]| UpdateOptions {
        identity: String::new(),
        priority: Some(priority.clone()),
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
    };
    let run = base.reset_with(completed, vec![change(&["priority"]), change(&[])]).unwrap();
    let expected = ["WorkflowTaskFailed", "WorkflowExecutionOptionsUpdated", "WorkflowTaskScheduled"];
    assert_eq!(run.history_from(completed), expected, "what changes nothing is no event");
    assert_eq!(run.state.priority, Some(priority));
}

#[test]
fn each_version_of_a_worker_leaves_one_point_to_reset_to_along_the_chain_of_runs() {
    let mut run = Run::started();
    for checksum in ["one", "two", "one", "two"] {
        run.start_task();
        let completion =
            workflow::CompleteWorkflowTask { binary_checksum: checksum.into(), ..run.completion(Vec::new()) };
        run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        run.signal("").unwrap();
    }
    let points = |run: &Run| -> Vec<(String, i64)> {
        let points = run.state.reset_points.iter();
        points.map(|point| (point.binary_checksum.clone(), point.first_task_completed_event_id.0)).collect()
    };
    let expected = vec![("one".to_owned(), 4), ("two".to_owned(), 8)];
    assert_eq!(points(&run), expected);
    run.start_task();
    let commands = vec![continue_as_new(Default::default())];
    let completion = workflow::CompleteWorkflowTask { binary_checksum: "two".into(), ..run.completion(commands) };
    run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    let next = Run::born(*run.new_run.take().unwrap(), run.facts.clone());
    assert_eq!(points(&next), expected);
    assert!(next.state.reset_points.iter().all(|point| point.run_id == run.state.key.run_id));
    let expires_at = Some(run.facts.now + run.facts.retention);
    assert!(next.state.reset_points.iter().all(|point| point.expires_at == expires_at), "the run may be gone by then");
}

#[test]
fn points_of_runs_that_may_be_gone_are_not_left_to_the_next_run() {
    let mut run = Run::started();
    for n_run in 1..=3 {
        run.facts.now = run.facts.now + run.facts.retention * 2 / 3;
        run.facts.new_run_id = RunId(Uuid::from_u128(100 + n_run));
        run.start_task();
        let (checksum, commands) = (format!("worker {n_run}"), vec![continue_as_new(Default::default())]);
        let completion = workflow::CompleteWorkflowTask { binary_checksum: checksum, ..run.completion(commands) };
        run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        run = Run::born(*run.new_run.take().unwrap(), run.facts.clone());
    }
    let left: Vec<&str> = run.state.reset_points.iter().map(|point| point.binary_checksum.as_str()).collect();
    assert_eq!(left, ["worker 2", "worker 3"]);
}

#[test]
fn an_activity_that_is_known_to_be_at_a_worker_fails() {
    let mut base = eventful();
    let completed = base.state.last_event_id();
    // As histories of other servers have it: its start is recorded while it runs.
    let started = ActivityTaskStartedEventAttributes {
        scheduled_event_id: 6,
        identity: "activity-worker".to_owned(),
        attempt: 1,
        ..Default::default()
    };
    let signaled = base.batches.iter_mut().flatten().find(|event| event.event_id == 8).unwrap();
    signaled.set_event_type(EventType::ActivityTaskStarted);
    signaled.attributes = Some(Attributes::ActivityTaskStartedEventAttributes(started));
    let anew = base.later(SECOND).reset(completed.0).unwrap();
    let from = completed.0;
    assert_eq!(anew.history_from(from), ["WorkflowTaskFailed", "ActivityTaskFailed", "WorkflowTaskScheduled"]);
    let Attributes::ActivityTaskFailedEventAttributes(failed) = anew.event(from + 1) else { panic!("no failure") };
    assert_eq!((failed.scheduled_event_id, failed.started_event_id), (6, 8));
    assert_eq!((failed.retry_state(), failed.identity.as_str()), (RetryState::NonRetryableFailure, "activity-worker"));
}

#[test]
fn updates_are_admitted_again_once() {
    let mut base = Run::updating("u");
    base.answer(vec![acceptance("u"), response("u")]).unwrap();
    let run = base.reset(7).unwrap();
    assert_eq!(run.history_from(7), ["WorkflowTaskFailed", "WorkflowExecutionUpdateAdmitted", "WorkflowTaskScheduled"]);
    let Attributes::WorkflowExecutionUpdateAdmittedEventAttributes(admitted) = run.event(8) else { panic!() };
    assert_eq!(
        (admitted.origin(), admitted.request.as_ref()),
        (UpdateAdmittedEventOrigin::Reapply, Some(&update_request("u")))
    );
    assert!(run.state.find_update("u").unwrap().admitted.is_some());
    let excluded = Reapplied::new(ResetReapplyType::AllEligible, &[ResetReapplyExcludeType::Update]);
    assert!(!base.events().any(|event| excluded.includes(event)));
}

#[test]
fn what_became_of_a_child_is_told_again() {
    let mut base = Run::after(vec![start_child("c")]);
    base.signal("s").unwrap();
    base.work(Vec::new());
    let completed = base.state.last_event_id().0;
    let started = ChildStarted { initiated_event_id: EventId(5), run_id: RunId(Uuid::from_u128(77)), header: None };
    base.input(Input::ChildStarted(started)).unwrap();
    let run = base.reset(completed).unwrap();
    assert_eq!(
        run.history_from(completed),
        ["WorkflowTaskFailed", "ChildWorkflowExecutionStarted", "WorkflowTaskScheduled"]
    );
    assert_eq!(run.state.children.get(5).unwrap().started.as_ref().unwrap().run_id, RunId(Uuid::from_u128(77)));
    let begins = TransferTask::StartChild { initiated_event_id: EventId(5), version: 7 };
    assert!(run.transfers().contains(&&begins), "it may not have begun yet");
    assert_eq!(base.reset(4).unwrap().state.children.len(), 0, "a child that it does not have is nothing to it");
}

#[test]
fn what_the_base_asked_of_others_is_asked_again_as_the_same_request() {
    let mut base = Run::after(vec![start_child("before")]);
    base.signal("s").unwrap();
    base.start_task();
    let point = base.state.next_event_id.0;
    base.complete_task(vec![start_child("after")]);
    let request_id = |run: &Run, id: i64| run.state.children.get(id).unwrap().create_request_id.clone();
    let mut run = base.reset(point).unwrap();
    assert_eq!(request_id(&run, 5), request_id(&base, 5), "its own run is found, if there is one");
    run.work(vec![start_child("after")]);
    let (of_base, of_run) = (base.state.last_event_id().0, run.state.last_event_id().0);
    let of_run = (point..=of_run).find(|id| run.state.children.get(*id).is_some()).unwrap();
    let of_base = (point..=of_base).find(|id| base.state.children.get(*id).is_some()).unwrap();
    assert_ne!(request_id(&run, of_run), request_id(&base, of_base), "what comes later is another request");
    run.facts.new_run_id = RunId(Uuid::from_u128(3));
    let again = run.reset(point).unwrap();
    assert_eq!(request_id(&again, 5), request_id(&base, 5), "however often it is reset");
}

#[test]
fn what_is_on_its_way_to_another_workflow_still_arrives_in_order() {
    let tell = |workflow_id: &str| others::signal(others::signal_attributes(workflow_id));
    let mut base = Run::after(vec![tell("a"), tell("a"), tell("b")]);
    base.signal("s").unwrap();
    base.start_task();
    let point = base.state.next_event_id.0;
    base.complete_task(Vec::new());
    let mut run = base.reset(point).unwrap();
    let sent = |run: &Run| -> Vec<i64> {
        let transfers = run.transfers();
        let id_of = |task: &&TransferTask| {
            let TransferTask::ExternalSignal { initiated_event_id, .. } = task else { return None };
            Some(initiated_event_id.0)
        };
        transfers.iter().filter_map(id_of).collect()
    };
    assert_eq!(sent(&run), [5, 7], "to each workflow the oldest");
    run.take_tasks();
    run.input(Input::ExternalSignaled(others::answer(5))).unwrap();
    assert_eq!(sent(&run), [6]);
}

/// Takes a signal of a MiB.
fn take_large_signal(run: &mut Run, request_id: &str) {
    let payload = Payload { data: vec![7; 1 << 20].into(), ..Default::default() };
    let input = Some(Payloads { payloads: vec![payload] });
    run.input(Input::Signal(Signal { input, ..signal(request_id) })).unwrap();
}

#[test]
fn what_came_after_the_point_is_cut_into_nodes_that_a_store_takes() {
    let mut base = Run::idle();
    for n in 0..10 {
        take_large_signal(&mut base, &format!("s{n}"));
    }
    let run = base.reset(4).unwrap();
    let own: Vec<Vec<String>> = run.batches[2..].iter().map(|node| node.iter().map(name).collect()).collect();
    let signals = |n| vec!["WorkflowExecutionSignaled".to_owned(); n];
    assert_eq!(own.len(), 3, "{own:?}");
    assert_eq!(own[0][0], "WorkflowTaskFailed");
    assert_eq!(own[0][1..], signals(4));
    assert_eq!(own[1], signals(4));
    assert_eq!(own[2][..2], signals(2));
    assert_eq!(own[2][2], "WorkflowTaskScheduled");
}

#[test]
fn an_update_of_a_later_node_is_found_where_it_is() {
    let mut base = Run::idle();
    for n in 0..5 {
        take_large_signal(&mut base, &format!("s{n}"));
    }
    base.admit("u").unwrap();
    base.start_task();
    base.answer(vec![acceptance("u")]).unwrap();
    let run = base.reset(4).unwrap();
    let admitted = run.state.find_update("u").and_then(|update| update.admitted).expect("an event brought it");
    let node = run.batches.iter().find(|node| node[0].event_id == admitted.batch_id.0).expect("its node is there");
    assert!(node.iter().any(|event| event.event_id == admitted.event_id.0), "the node has the event");
    assert_ne!(admitted.batch_id, EventId(4), "the signals before it filled a node");
}
