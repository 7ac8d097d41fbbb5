//! What operators do to activities.

use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::common::v1::{Priority, RetryPolicy};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use workflow::{
    ActivityTarget, Heartbeat, HeartbeatFlags, Input, Jitter, OptionsChange, PauseActivity, Rejection, Reply,
    ResetActivity, TimerTask, TransferTask, UnpauseActivity, UpdateActivity,
};

use crate::run::{
    Run, SECOND, activity_attributes, cancel_activity, failure, payloads, schedule, schedule_activity, span,
};

const AT_ONCE: Jitter = Jitter { span: Duration::ZERO, seed: 0 };

fn by_id(id: &str) -> ActivityTarget {
    ActivityTarget::Id(id.to_owned())
}

fn pause(run: &mut Run, target: ActivityTarget, request_id: &str) -> Result<Reply, Rejection> {
    let (identity, reason) = ("operator".to_owned(), "too hot".to_owned());
    run.input(Input::PauseActivity(PauseActivity { target, identity, reason, request_id: request_id.to_owned() }))
}

fn unpause(run: &mut Run, target: ActivityTarget) -> Result<Reply, Rejection> {
    run.input(Input::UnpauseActivity(UnpauseActivity {
        target,
        reset_attempts: false,
        reset_heartbeat: false,
        jitter: AT_ONCE,
    }))
}

fn plain_reset(target: ActivityTarget) -> ResetActivity {
    ResetActivity {
        target,
        reset_heartbeat: false,
        keep_paused: false,
        restore_original_options: false,
        jitter: AT_ONCE,
    }
}

fn update(run: &mut Run, options: ActivityOptions, fields: &[&str]) -> Result<Reply, Rejection> {
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    let change = OptionsChange::Merge { options: Box::new(options), fields };
    run.input(Input::UpdateActivity(Box::new(UpdateActivity { target: by_id("pay"), change })))
}

fn heartbeat(run: &mut Run) -> HeartbeatFlags {
    let activity = run.activity_ref(5);
    let beat = Heartbeat { activity, details: Some(payloads("half")), identity: "activity-worker".to_owned() };
    let Reply::Heartbeat(flags) = run.input(Input::Heartbeat(beat)).unwrap() else {
        panic!("no answer to a heartbeat")
    };
    flags
}

/// How often the activity was sent to matching.
fn n_dispatched(run: &Run) -> usize {
    run.transfers().iter().filter(|task| matches!(task, TransferTask::Activity { .. })).count()
}

fn scheduled() -> Run {
    Run::after(vec![schedule_activity("pay")])
}

fn started() -> Run {
    let mut run = scheduled();
    run.start_activity(5).unwrap();
    run
}

#[test]
fn a_paused_activity_waits_until_it_is_unpaused() {
    let mut run = scheduled();
    pause(&mut run, by_id("pay"), "p").unwrap();
    assert_eq!(run.start_activity(5).unwrap_err(), Rejection::ActivityNotFound);
    // Its deadlines do not count meanwhile.
    run.later(Duration::from_secs(10_000));
    run.take_tasks();
    unpause(&mut run, by_id("pay")).unwrap();
    assert_eq!(n_dispatched(&run), 0, "it is sent to matching when its moment has come");
    run.fire_next_timer().unwrap();
    assert_eq!(n_dispatched(&run), 1);
    run.start_activity(5).unwrap();
    run.complete_activity(5).unwrap();
}

#[test]
fn what_was_dispatched_before_a_pause_is_void_after_it() {
    let mut run = scheduled();
    pause(&mut run, by_id("pay"), "p").unwrap();
    unpause(&mut run, by_id("pay")).unwrap();
    let old = workflow::StartActivity {
        scheduled_event_id: workflow::EventId(5),
        attempt: 1,
        stamp: 0,
        request_id: "old".to_owned(),
        identity: "worker".to_owned(),
    };
    assert_eq!(run.input(Input::StartActivity(old)).unwrap_err(), Rejection::ActivityNotFound);
    run.start_activity(5).unwrap();
}

#[test]
fn a_pause_is_granted_once() {
    let mut run = scheduled();
    pause(&mut run, by_id("pay"), "p").unwrap();
    let version = run.state.unrecorded.db_record_version;
    pause(&mut run, by_id("pay"), "p").unwrap();
    assert_eq!(run.state.unrecorded.db_record_version, version, "the same request changes nothing");
    let refused = pause(&mut run, by_id("pay"), "q").unwrap_err();
    assert_eq!(refused, Rejection::FailedPrecondition("activity is already paused".to_owned()));
}

#[test]
fn a_worker_hears_of_a_pause_and_may_finish() {
    let mut run = started();
    pause(&mut run, by_id("pay"), "p").unwrap();
    let flags = heartbeat(&mut run);
    assert_eq!(flags, HeartbeatFlags { cancel_requested: false, paused: true, reset: false });
    run.complete_activity(5).unwrap();
    assert_eq!(run.history_from(6), ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"]);
}

#[test]
fn an_attempt_that_fails_under_a_pause_is_not_followed_until_it_ends() {
    let mut run = started();
    pause(&mut run, by_id("pay"), "p").unwrap();
    run.take_tasks();
    run.fail_activity(5, failure("boom")).unwrap();
    assert!(run.tasks.is_empty(), "nothing is to come: {:?}", run.tasks);
    let progress = &run.activity(5).unrecorded;
    assert_eq!((progress.attempt, progress.last_failure.as_ref().unwrap().message.as_str()), (2, "boom"));
    unpause(&mut run, by_id("pay")).unwrap();
    assert_eq!(run.activity(5).unrecorded.attempt, 2);
    run.fire_next_timer().unwrap();
    assert_eq!(n_dispatched(&run), 1);
}

#[test]
fn unpausing_may_begin_anew() {
    let mut run = started();
    heartbeat(&mut run);
    run.fail_activity(5, failure("boom")).unwrap();
    pause(&mut run, ActivityTarget::All, "p").unwrap();
    run.input(Input::UnpauseActivity(UnpauseActivity {
        target: ActivityTarget::All,
        reset_attempts: true,
        reset_heartbeat: true,
        jitter: Jitter { span: 60 * SECOND, seed: 7 },
    }))
    .unwrap();
    let progress = &run.activity(5).unrecorded;
    assert_eq!((progress.attempt, progress.heartbeat_details.is_some()), (1, false));
    let wait = progress.attempt_scheduled_at.since(run.facts.now);
    assert!(wait > Duration::ZERO && wait < 60 * SECOND, "{wait:?}");
}

#[test]
fn targets_are_found_by_id_by_type_or_all() {
    let mut other = activity_attributes();
    (other.activity_id, other.activity_type.as_mut().unwrap().name) = ("ship".to_owned(), "Ship".to_owned());
    let commands =
        || -> Vec<Command> { vec![schedule_activity("pay"), schedule_activity("refund"), schedule(other.clone())] };
    let cases = [
        (by_id("refund"), vec![6]),
        (ActivityTarget::Type("Pay".to_owned()), vec![5, 6]),
        (ActivityTarget::Type("Ship".to_owned()), vec![7]),
        (ActivityTarget::All, vec![5, 6, 7]),
    ];
    for (target, expected) in cases {
        let mut run = Run::after(commands());
        pause(&mut run, target.clone(), "p").unwrap();
        let paused: Vec<i64> = run
            .state
            .activities
            .iter()
            .filter(|(_, activity)| activity.unrecorded.pause.is_some())
            .map(|(id, _)| id)
            .collect();
        assert_eq!(paused, expected, "{target:?}");
    }
    for nobody in [by_id("nobody"), by_id(""), ActivityTarget::Type("Nothing".to_owned())] {
        let mut run = Run::after(commands());
        assert_eq!(pause(&mut run, nobody.clone(), "p").unwrap_err(), Rejection::NoSuchActivity);
        assert_eq!(unpause(&mut run, nobody.clone()).unwrap_err(), Rejection::NoSuchActivity);
        assert_eq!(run.input(Input::ResetActivity(plain_reset(nobody))).unwrap_err(), Rejection::NoSuchActivity);
    }
    let mut run = Run::idle();
    assert_eq!(pause(&mut run, ActivityTarget::All, "p").unwrap_err(), Rejection::NoSuchActivity);
    run.terminate().unwrap();
    assert_eq!(pause(&mut run, ActivityTarget::All, "p").unwrap_err(), Rejection::ExecutionClosed);
}

#[test]
fn a_reset_begins_anew_at_once_unless_a_worker_has_it() {
    let mut run = started();
    heartbeat(&mut run);
    run.fail_activity(5, failure("boom")).unwrap();
    run.take_tasks();
    let reset = ResetActivity { reset_heartbeat: true, ..plain_reset(by_id("pay")) };
    run.input(Input::ResetActivity(reset.clone())).unwrap();
    let progress = run.activity(5).unrecorded.clone();
    assert_eq!((progress.attempt, progress.stamp, progress.is_reset), (1, 1, false));
    assert_eq!((progress.heartbeat_details, progress.last_failure), (None, None));
    assert!(
        run.timers().iter().any(|(at, task)| *at == run.facts.now && matches!(task, TimerTask::ActivityRetry { .. }))
    );

    let mut run = started();
    heartbeat(&mut run);
    run.input(Input::ResetActivity(reset)).unwrap();
    assert_eq!(heartbeat(&mut run), HeartbeatFlags { cancel_requested: false, paused: false, reset: true });
    run.fail_activity(5, failure("boom")).unwrap();
    let progress = &run.activity(5).unrecorded;
    assert_eq!(
        (progress.is_reset, progress.resets_heartbeats, progress.heartbeat_details.is_some()),
        (false, false, false)
    );
}

#[test]
fn a_reset_ends_a_pause_unless_it_is_to_be_kept() {
    for keep_paused in [false, true] {
        let mut run = scheduled();
        pause(&mut run, by_id("pay"), "p").unwrap();
        run.take_tasks();
        run.input(Input::ResetActivity(ResetActivity { keep_paused, ..plain_reset(by_id("pay")) })).unwrap();
        assert_eq!(run.activity(5).unrecorded.pause.is_some(), keep_paused);
        assert_eq!(run.tasks.is_empty(), keep_paused, "{:?}", run.tasks);
    }
}

#[test]
fn updated_options_hold_from_now_on_and_can_be_restored() {
    let mut run = scheduled();
    let options = ActivityOptions {
        task_queue: Some(TaskQueue { name: "other".to_owned(), ..Default::default() }),
        heartbeat_timeout: span(3 * SECOND),
        start_to_close_timeout: span(99 * SECOND),
        retry_policy: Some(RetryPolicy { maximum_attempts: 4, ..Default::default() }),
        priority: Some(Priority { priority_key: 2, ..Default::default() }),
        ..Default::default()
    };
    let fields = ["taskQueue.name", "heartbeatTimeout", "retryPolicy.maximumAttempts", "priority.priorityKey"];
    let Reply::ActivityOptions(shown) = update(&mut run, options, &fields).unwrap() else { panic!("no options") };
    assert_eq!(shown.start_to_close_timeout, span(10 * SECOND), "a field that is not named stays");
    assert_eq!(shown.retry_policy.unwrap().maximum_attempts, 4);
    let activity = run.activity(5);
    assert_eq!((activity.task_queue.as_str(), activity.heartbeat_timeout), ("other", Some(3 * SECOND)));
    assert_eq!(activity.retry_policy.as_ref().unwrap().backoff_coefficient, 2.0);
    // It goes to its new queue.
    run.fire_next_timer().unwrap();
    let dispatched = run.transfers();
    assert!(
        matches!(dispatched.last(), Some(TransferTask::Activity { task_queue, stamp: 1, .. }) if task_queue == "other")
    );

    let restore = UpdateActivity { target: ActivityTarget::All, change: OptionsChange::Restore };
    run.input(Input::UpdateActivity(Box::new(restore))).unwrap();
    let activity = run.activity(5);
    assert_eq!((activity.task_queue.as_str(), activity.heartbeat_timeout), ("payments", None));
    assert_eq!(activity.unrecorded.original_options, None);
}

#[test]
fn options_that_cannot_be_are_refused() {
    let with_policy = |policy| ActivityOptions { retry_policy: Some(policy), ..Default::default() };
    let cases: [(ActivityOptions, &str, &str); 6] = [
        (ActivityOptions::default(), "taskQueue.name", "TaskQueue is not provided"),
        (ActivityOptions::default(), "retryPolicy.maximumAttempts", "RetryPolicy is not provided"),
        (ActivityOptions::default(), "retryPolicy", "RetryPolicy is not provided"),
        (ActivityOptions::default(), "priority.fairnessKey", "Priority is not provided"),
        (
            with_policy(RetryPolicy { maximum_attempts: -1, ..Default::default() }),
            "retryPolicy.maximumAttempts",
            "MaximumAttempts cannot be negative on retry policy.",
        ),
        (
            ActivityOptions::default(),
            "startToCloseTimeout",
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. ActivityId=pay ActivityType=Pay",
        ),
    ];
    for (options, field, expected) in cases {
        let refused = update(&mut scheduled(), options, &[field]).unwrap_err();
        assert_eq!(refused, Rejection::InvalidArgument(expected.to_owned()), "{field}");
    }
}

#[test]
fn a_shorter_timeout_of_an_activity_at_work_is_kept() {
    let mut run = started();
    let options = ActivityOptions { start_to_close_timeout: span(2 * SECOND), ..Default::default() };
    update(&mut run, options, &["startToCloseTimeout"]).unwrap();
    run.fire_next_timer().unwrap();
    assert_eq!(run.activity(5).unrecorded.attempt, 2, "it timed out and is tried again");
}

#[test]
fn a_canceled_activity_is_not_scheduled_again() {
    let mut run = started();
    run.signal("s").unwrap();
    run.work(vec![cancel_activity(5)]);
    pause(&mut run, by_id("pay"), "p").unwrap();
    run.take_tasks();
    unpause(&mut run, by_id("pay")).unwrap();
    assert_eq!(n_dispatched(&run), 0);
    run.fail_activity(5, failure("boom")).unwrap();
    assert_eq!(run.history().iter().filter(|event| *event == "ActivityTaskFailed").count(), 1);
}
