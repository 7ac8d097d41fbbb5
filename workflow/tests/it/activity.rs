//! Activities.

use std::time::Duration;

use proto::temporal::api::command::v1::ScheduleActivityTaskCommandAttributes;
use proto::temporal::api::common::v1::{Priority, RetryPolicy};
use proto::temporal::api::enums::v1::{RetryState, TimeoutType, WorkflowTaskFailedCause};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::history::v1::ActivityTaskTimedOutEventAttributes;
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{
    ActivityRef, CancelActivity, CompleteActivity, EventId, FailActivity, Heartbeat, HeartbeatFlags, Input, Rejection,
    Reply, TaskRef, TimerTask, TransferTask,
};

use crate::run::{
    Run, SECOND, activity_attributes, cancel_activity, failure, never_retried, payloads, plain_start, schedule,
    schedule_activity, span,
};

fn after_scheduling(change: impl FnOnce(&mut ScheduleActivityTaskCommandAttributes)) -> Run {
    let mut attributes = activity_attributes();
    change(&mut attributes);
    Run::after(vec![schedule(attributes)])
}

#[test]
fn a_scheduled_activity_is_dispatched() {
    let run = after_scheduling(|_| {});
    let expected = TransferTask::Activity {
        task_queue: "payments".to_owned(),
        scheduled_event_id: EventId(5),
        attempt: 1,
        stamp: 0,
        version: 7,
    };
    assert!(run.transfers().contains(&&expected));
    let Attributes::ActivityTaskScheduledEventAttributes(event) = run.event(5) else { panic!("not scheduled") };
    let policy = event.retry_policy.as_ref().unwrap();
    assert_eq!((policy.initial_interval, policy.maximum_interval), (span(SECOND), span(100 * SECOND)));
    assert_eq!((policy.backoff_coefficient, policy.maximum_attempts), (2.0, 0));
    assert_eq!(run.activity(5).scheduled_batch_id, EventId(4), "the node that it was written in");
}

#[test]
fn timeouts_are_filled_in_from_one_another() {
    // (schedule-to-close, schedule-to-start, start-to-close, heartbeat, run) → the first four, in seconds.
    let cases = [
        ((0, 0, 10, 0, 0), (0, 0, 10, 0)),
        ((0, 0, 10, 30, 60), (60, 60, 10, 10)),
        ((20, 0, 0, 0, 0), (20, 20, 20, 0)),
        ((20, 30, 40, 50, 0), (20, 20, 20, 20)),
        ((90, 80, 70, 5, 60), (60, 60, 60, 5)),
        ((0, 5, 10, 0, 60), (60, 5, 10, 0)),
    ];
    for ((to_close, to_start, start_to_close, heartbeat, of_run), expected) in cases {
        let seconds = |seconds: u64| span(Duration::from_secs(seconds));
        let mut start = plain_start();
        start.run_timeout = (of_run > 0).then(|| Duration::from_secs(of_run));
        let mut run = Run::started_as(start);
        let attributes = ScheduleActivityTaskCommandAttributes {
            schedule_to_close_timeout: seconds(to_close),
            schedule_to_start_timeout: seconds(to_start),
            start_to_close_timeout: seconds(start_to_close),
            heartbeat_timeout: seconds(heartbeat),
            ..activity_attributes()
        };
        run.work(vec![schedule(attributes)]);
        let Attributes::ActivityTaskScheduledEventAttributes(event) = run.event(5) else { panic!("not scheduled") };
        let recorded = [
            event.schedule_to_close_timeout,
            event.schedule_to_start_timeout,
            event.start_to_close_timeout,
            event.heartbeat_timeout,
        ];
        let expected = [seconds(expected.0), seconds(expected.1), seconds(expected.2), seconds(expected.3)];
        assert_eq!(recorded, expected, "{to_close} {to_start} {start_to_close} {heartbeat} {of_run}");
    }
}

#[test]
fn a_bad_activity_command_fails_its_task() {
    use WorkflowTaskFailedCause as Cause;
    type Change = fn(&mut ScheduleActivityTaskCommandAttributes);
    let cases: [(Change, &str); 9] = [
        (|command| command.activity_id.clear(), "activityId is not set"),
        (|command| command.activity_type = None, "activityType is not set"),
        (
            |command| command.priority = Some(Priority { priority_key: -1, ..Default::default() }),
            "invalid priorities: priority key can't be negative",
        ),
        (|command| command.task_queue = None, "taskQueue is not set"),
        (|command| command.task_queue.as_mut().unwrap().name.clear(), "missing task queue name"),
        (
            |command| command.start_to_close_timeout = None,
            "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. ActivityId=pay ActivityType=Pay",
        ),
        (
            |command| command.heartbeat_timeout = Some(prost_types::Duration { seconds: -1, nanos: 0 }),
            "invalid HeartbeatTimeout: negative duration",
        ),
        (
            |command| command.retry_policy = Some(RetryPolicy { backoff_coefficient: 0.5, ..Default::default() }),
            "BackoffCoefficient cannot be less than 1 on retry policy.",
        ),
        (|command| command.activity_id = "x".repeat(1001), "activityId exceeds length limit. Length=1001 Limit=1000"),
    ];
    for (change, expected) in cases {
        let mut attributes = activity_attributes();
        change(&mut attributes);
        let mut run = Run::working();
        let reply = run.try_complete_task(vec![schedule(attributes)]).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!(cause, Cause::BadScheduleActivityAttributes);
        assert_eq!(message, format!("BadScheduleActivityAttributes: {expected}"));
    }
    let mut run = Run::working();
    let reply = run.try_complete_task(vec![schedule_activity("a"), schedule_activity("a")]).unwrap();
    assert!(matches!(reply, Reply::BadCommand { cause: Cause::ScheduleActivityDuplicateId, .. }));
    let mut run = Run::working();
    run.facts.limits.pending_activities = 1;
    let reply = run.try_complete_task(vec![schedule_activity("a"), schedule_activity("b")]).unwrap();
    assert!(matches!(reply, Reply::BadCommand { cause: Cause::PendingActivitiesLimitExceeded, .. }));
}

#[test]
fn an_activity_is_started_once_but_a_repeated_poll_hears_the_same() {
    let mut run = after_scheduling(|_| {});
    let first = run.start_activity(5).unwrap();
    let Reply::ActivityStarted(started) = &first else { panic!("unexpected {first:?}") };
    assert_eq!((started.attempt, started.activity_id.as_str(), started.scheduled_batch_id), (1, "pay", EventId(4)));
    assert_eq!(format!("{first:?}"), format!("{:?}", run.start_activity(5).unwrap()));
    let other = workflow::StartActivity {
        scheduled_event_id: EventId(5),
        attempt: 1,
        stamp: 0,
        request_id: "other".to_owned(),
        identity: String::new(),
    };
    assert_eq!(run.input(Input::StartActivity(other)).unwrap_err(), Rejection::AlreadyStarted("Activity"));
    assert_eq!(run.history_from(6), Vec::<String>::new(), "the start is recorded with the end");
    assert_eq!(run.start_activity(9).unwrap_err(), Rejection::ActivityNotFound);
}

#[test]
fn a_copy_of_an_earlier_attempt_does_not_start_the_next_before_its_time() {
    let mut run = after_scheduling(|_| {});
    run.start_activity(5).unwrap();
    run.fail_activity(5, failure("again")).unwrap();
    assert_eq!(run.activity(5).unrecorded.attempt, 2);
    let copy = workflow::StartActivity {
        scheduled_event_id: EventId(5),
        attempt: 1,
        stamp: 0,
        request_id: "copy".to_owned(),
        identity: String::new(),
    };
    assert_eq!(run.input(Input::StartActivity(copy)).unwrap_err(), Rejection::ActivityNotFound);
}

#[test]
fn a_completed_activity_is_recorded_with_its_start() {
    let mut run = after_scheduling(|_| {});
    run.start_activity(5).unwrap();
    let started_at = run.facts.now;
    run.later(SECOND).complete_activity(5).unwrap();
    assert_eq!(run.history_from(6), ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"]);
    let started = run.events().nth(5).unwrap();
    assert_eq!(started.event_time, Some(started_at.into()), "the start has its own time");
    let Attributes::ActivityTaskCompletedEventAttributes(end) = run.event(7) else { panic!("not completed") };
    assert_eq!((end.scheduled_event_id, end.started_event_id), (5, 6));
}

#[test]
fn only_the_attempt_that_runs_may_end_an_activity() {
    let mut run = after_scheduling(|_| {});
    let unstarted = run.complete_activity(5).unwrap_err();
    assert_eq!(unstarted, Rejection::ActivityNotFound);
    run.start_activity(5).unwrap();
    let (attempt, started_event_id, started_at) = (Some(2), None, None);
    let stale = ActivityRef::Task(TaskRef { scheduled_event_id: EventId(5), attempt, started_event_id, started_at });
    let input = CompleteActivity { activity: stale, result: None, identity: String::new() };
    assert_eq!(run.input(Input::CompleteActivity(input)).unwrap_err(), Rejection::ActivityNotFound);
}

#[test]
fn an_activity_is_completed_by_its_id_even_unstarted() {
    let mut run = after_scheduling(|_| {});
    let by_id = |id: &str| ActivityRef::Id(id.to_owned());
    let complete = |id: &str| {
        Input::CompleteActivity(CompleteActivity { activity: by_id(id), result: None, identity: "admin".to_owned() })
    };
    assert_eq!(run.input(complete("nobody")).unwrap_err(), Rejection::ActivityIdNotFound("nobody".to_owned()));
    assert!(matches!(run.input(complete("")).unwrap_err(), Rejection::InvalidArgument(_)));
    let fail =
        FailActivity { activity: by_id("pay"), failure: None, last_heartbeat_details: None, identity: String::new() };
    assert_eq!(run.input(Input::FailActivity(fail)).unwrap_err(), Rejection::ActivityNotFound, "but it cannot fail so");
    run.input(complete("pay")).unwrap();
    assert_eq!(run.history_from(6), ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"]);
}

#[test]
fn a_failed_attempt_is_retried_with_backoff() {
    let mut run = after_scheduling(|_| {});
    let mut waits = Vec::new();
    for attempt in 2..=4 {
        run.start_activity(5).unwrap();
        run.take_tasks();
        run.fail_activity(5, failure("boom")).unwrap();
        let retry = TimerTask::ActivityRetry { scheduled_event_id: EventId(5), attempt, stamp: 0, version: 7 };
        let (at, _) = run.timers().into_iter().find(|(_, task)| **task == retry).expect("a retry waits");
        waits.push(at.since(run.facts.now));
        assert!(run.transfers().is_empty());
        run.facts.now = at;
        run.input(Input::Due(retry)).unwrap();
        assert!(matches!(run.transfers()[..], [TransferTask::Activity { attempt: again, .. }] if *again == attempt));
    }
    assert_eq!(waits, [SECOND, 2 * SECOND, 4 * SECOND]);
    assert_eq!(run.history_from(6), Vec::<String>::new(), "retries leave no event");
    let reply = run.start_activity(5).unwrap();
    assert!(matches!(reply, Reply::ActivityStarted(started) if started.attempt == 4));
    run.complete_activity(5).unwrap();
    let Attributes::ActivityTaskStartedEventAttributes(started) = run.event(6) else { panic!("not started") };
    assert_eq!((started.attempt, started.last_failure.as_ref().unwrap().message.as_str()), (4, "boom"));
}

fn application_failure(info: ApplicationFailureInfo) -> Failure {
    Failure { failure_info: Some(FailureInfo::ApplicationFailureInfo(info)), ..Default::default() }
}

#[test]
fn retries_end_for_a_reason() {
    let boom = || application_failure(ApplicationFailureInfo { r#type: "Boom".to_owned(), ..Default::default() });
    let fatal = application_failure(ApplicationFailureInfo { non_retryable: true, ..Default::default() });
    let policy = |change: fn(&mut RetryPolicy)| {
        let mut policy = RetryPolicy::default();
        change(&mut policy);
        Some(policy)
    };
    let cases = [
        (policy(|_| {}), fatal, RetryState::NonRetryableFailure),
        (
            policy(|policy| policy.non_retryable_error_types.push("Boom".to_owned())),
            boom(),
            RetryState::NonRetryableFailure,
        ),
        (never_retried(), boom(), RetryState::MaximumAttemptsReached),
        (policy(|policy| policy.initial_interval = span(30 * SECOND)), boom(), RetryState::Timeout),
    ];
    for (retry_policy, failure, expected) in cases {
        let mut run = after_scheduling(|command| {
            command.retry_policy = retry_policy;
            command.schedule_to_close_timeout = span(20 * SECOND);
        });
        run.start_activity(5).unwrap();
        run.fail_activity(5, failure).unwrap();
        assert_eq!(run.history_from(6), ["ActivityTaskStarted", "ActivityTaskFailed", "WorkflowTaskScheduled"]);
        let Attributes::ActivityTaskFailedEventAttributes(end) = run.event(7) else { panic!("not failed") };
        assert_eq!(end.retry_state(), expected);
    }
}

#[test]
fn the_application_may_choose_the_delay() {
    let mut run = after_scheduling(|_| {});
    run.start_activity(5).unwrap();
    let delay = 1000 * SECOND;
    let info = ApplicationFailureInfo { next_retry_delay: span(delay), ..Default::default() };
    run.fail_activity(5, application_failure(info)).unwrap();
    assert_eq!(run.activity(5).unrecorded.attempt_scheduled_at, run.facts.now + delay);
}

#[test]
fn a_large_failure_is_cut_before_it_is_kept() {
    let mut run = after_scheduling(|_| {});
    run.start_activity(5).unwrap();
    run.fail_activity(5, failure(&"é".repeat(5000))).unwrap();
    let kept = run.activity(5).unrecorded.last_failure.as_ref().unwrap();
    assert_eq!(kept.message, "Failure exceeds size limit.");
    assert!(prost::Message::encoded_len(kept) < 4096);
}

const NOT_ENOUGH_TIME: &str =
    "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying";

/// How the activity timed out.
pub(crate) fn timed_out(run: &Run) -> &ActivityTaskTimedOutEventAttributes {
    let ended = run.events().find_map(|event| match &event.attributes {
        Some(Attributes::ActivityTaskTimedOutEventAttributes(end)) => Some(end),
        Some(_) | None => None,
    });
    ended.expect("an activity timed out")
}

/// A run whose activity only meets its timers, and how long the activity lasted.
fn left_alone(change: fn(&mut ScheduleActivityTaskCommandAttributes), is_started: bool) -> (Run, Duration) {
    let mut run = after_scheduling(|command| {
        change(command);
        if command.schedule_to_start_timeout.is_some() {
            command.schedule_to_close_timeout = span(100 * SECOND);
        }
    });
    let scheduled_at = run.facts.now;
    run.tasks.retain(|task| matches!(task, workflow::Task::Timer { task: TimerTask::ActivityTimeout { .. }, .. }));
    if is_started {
        run.start_activity(5).unwrap();
    }
    while run.state.activities.get(5).is_some() {
        run.fire_next_timer().unwrap();
    }
    let lasted = run.facts.now.since(scheduled_at);
    (run, lasted)
}

#[test]
fn each_timeout_ends_an_activity_in_its_way() {
    type Change = fn(&mut ScheduleActivityTaskCommandAttributes);
    // (timeouts, started?, moment) → (type, message, retry state)
    let cases: [(Change, bool, u64, TimeoutType, &str, RetryState); 5] = [
        (
            |command| command.schedule_to_start_timeout = span(5 * SECOND),
            false,
            5,
            TimeoutType::ScheduleToStart,
            "activity ScheduleToStart timeout",
            RetryState::Timeout,
        ),
        (
            |command| command.schedule_to_close_timeout = span(4 * SECOND),
            false,
            4,
            TimeoutType::ScheduleToStart,
            "activity ScheduleToStart timeout",
            RetryState::Timeout,
        ),
        (
            |command| command.retry_policy = never_retried(),
            true,
            10,
            TimeoutType::StartToClose,
            "activity StartToClose timeout",
            RetryState::MaximumAttemptsReached,
        ),
        (
            |command| {
                command.retry_policy = never_retried();
                command.heartbeat_timeout = span(3 * SECOND);
            },
            true,
            3,
            TimeoutType::Heartbeat,
            "activity Heartbeat timeout",
            RetryState::MaximumAttemptsReached,
        ),
        (
            |command| command.schedule_to_close_timeout = span(10 * SECOND),
            true,
            10,
            TimeoutType::ScheduleToClose,
            NOT_ENOUGH_TIME,
            RetryState::Timeout,
        ),
    ];
    for (change, is_started, moment, expected_type, expected_message, expected_state) in cases {
        let (run, lasted) = left_alone(change, is_started);
        assert_eq!(lasted, Duration::from_secs(moment), "{expected_message}");
        let end = timed_out(&run);
        let failure = end.failure.as_ref().unwrap();
        let Some(FailureInfo::TimeoutFailureInfo(info)) = &failure.failure_info else { panic!("not a timeout") };
        assert_eq!((info.timeout_type(), failure.message.as_str()), (expected_type, expected_message));
        assert_eq!((end.retry_state(), end.started_event_id != 0), (expected_state, is_started));
        assert_eq!(run.history().last().unwrap(), "WorkflowTaskScheduled");
    }
}

#[test]
fn an_attempt_that_times_out_is_retried() {
    let mut run = after_scheduling(|command| command.heartbeat_timeout = span(3 * SECOND));
    run.start_activity(5).unwrap();
    run.later(2 * SECOND);
    let heartbeat = Heartbeat {
        activity: run.activity_ref(5),
        details: Some(payloads("half")),
        identity: "activity-worker".to_owned(),
    };
    let reply = run.input(Input::Heartbeat(heartbeat)).unwrap();
    assert!(matches!(reply, Reply::Heartbeat(HeartbeatFlags { cancel_requested: false, .. })));
    let alive_at = run.facts.now;
    run.tasks.retain(|task| matches!(task, workflow::Task::Timer { task: TimerTask::ActivityTimeout { .. }, .. }));
    while run.activity(5).unrecorded.attempt == 1 {
        run.fire_next_timer().unwrap();
    }
    assert_eq!(run.facts.now, alive_at + 3 * SECOND, "it counts from the last sign of life");
    assert_eq!(run.history_from(6), Vec::<String>::new());
    let progress = &run.activity(5).unrecorded;
    assert_eq!((progress.attempt, progress.heartbeat_details.clone()), (2, Some(payloads("half"))));
    assert_eq!(progress.last_failure.as_ref().unwrap().message, "activity Heartbeat timeout");
}

#[test]
fn one_timer_is_armed_for_the_earliest_deadline() {
    let mut run = after_scheduling(|command| {
        command.schedule_to_close_timeout = span(100 * SECOND);
        command.schedule_to_start_timeout = span(50 * SECOND);
    });
    let scheduled_at = run.facts.now;
    let armed = |run: &Run| -> Vec<Duration> {
        let timers = run.timers();
        let of_activity = timers.iter().filter(|(_, task)| matches!(task, TimerTask::ActivityTimeout { .. }));
        of_activity.map(|(at, _)| at.since(scheduled_at)).collect()
    };
    assert_eq!(armed(&run), [50 * SECOND]);
    run.start_activity(5).unwrap();
    assert_eq!(armed(&run), [50 * SECOND, 10 * SECOND], "the start has an earlier one");
}

#[test]
fn a_started_activity_hears_that_it_should_cancel() {
    let mut run = after_scheduling(|_| {});
    run.start_activity(5).unwrap();
    let cancel = |run: &Run| {
        Input::CancelActivity(CancelActivity { activity: run.activity_ref(5), details: None, identity: String::new() })
    };
    let early = cancel(&run);
    let message = "unable to mark activity as canceled without activity being request canceled first".to_owned();
    assert_eq!(run.input(early).unwrap_err(), Rejection::InvalidArgument(message));
    run.signal("").unwrap();
    run.work(vec![cancel_activity(5)]);
    assert_eq!(run.history().last().unwrap(), "ActivityTaskCancelRequested");
    let heartbeat = Heartbeat { activity: run.activity_ref(5), details: None, identity: String::new() };
    let reply = run.input(Input::Heartbeat(heartbeat)).unwrap();
    assert!(matches!(reply, Reply::Heartbeat(HeartbeatFlags { cancel_requested: true, .. })));
    let cancel = cancel(&run);
    run.input(cancel).unwrap();
    assert_eq!(run.history_from(11), ["ActivityTaskStarted", "ActivityTaskCanceled", "WorkflowTaskScheduled"]);
    let Attributes::ActivityTaskCanceledEventAttributes(end) = run.event(12) else { panic!("not canceled") };
    assert_eq!((end.latest_cancel_requested_event_id, end.started_event_id), (10, 11));
}

#[test]
fn an_activity_that_should_cancel_is_not_retried() {
    let mut run = after_scheduling(|_| {});
    run.start_activity(5).unwrap();
    run.signal("").unwrap();
    run.work(vec![cancel_activity(5)]);
    run.fail_activity(5, failure("boom")).unwrap();
    let Attributes::ActivityTaskFailedEventAttributes(end) = run.event(12) else { panic!("not failed") };
    assert_eq!(end.retry_state(), RetryState::CancelRequested);
}

#[test]
fn only_a_pending_activity_is_asked_to_cancel_and_only_once() {
    for commands in [vec![cancel_activity(0)], vec![cancel_activity(99)], vec![cancel_activity(5), cancel_activity(5)]]
    {
        let mut run = after_scheduling(|_| {});
        run.start_activity(5).unwrap();
        run.signal("").unwrap();
        run.start_task();
        let reply = run.try_complete_task(commands).unwrap();
        let expected = WorkflowTaskFailedCause::BadRequestCancelActivityAttributes;
        assert!(matches!(reply, Reply::BadCommand { cause, .. } if cause == expected));
    }
}
