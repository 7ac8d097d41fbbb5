//! Workflow tasks.

use std::time::Duration;

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, ScheduleNexusOperationCommandAttributes};
use proto::temporal::api::common::v1::WorkerVersionStamp;
use proto::temporal::api::enums::v1::{CommandType, SuggestContinueAsNewReason, TimeoutType, WorkflowTaskFailedCause};
use proto::temporal::api::history::v1::history_event::Attributes;
use workflow::{EventId, FailWorkflowTask, Input, Rejection, Reply, StickyDispatch, TaskRef, TimerTask, TransferTask};

use crate::run::{
    Run, SECOND, activity_attributes, complete_workflow, failure, marker, name, payloads, schedule, start_timer, sticky,
};

#[test]
fn a_started_task_tells_its_worker_what_it_needs() {
    let mut run = Run::started();
    run.take_tasks();
    let started = run.start_task();
    assert_eq!((started.scheduled_event_id, started.started_event_id), (EventId(2), EventId(3)));
    assert_eq!((started.previous_started_event_id, started.attempt, started.next_event_id), (0, 1, EventId(4)));
    assert!(!started.is_sticky && started.transient_events.is_empty());
    let timeout = TimerTask::WorkflowTaskStartToClose { scheduled_event_id: EventId(2), attempt: 1, version: 7 };
    assert_eq!(run.timers(), [(run.facts.now + 10 * SECOND, &timeout)]);
    run.complete_task(Vec::new());
    run.signal("").unwrap();
    assert_eq!(run.start_task().previous_started_event_id, 3);
}

#[test]
fn a_task_is_started_once_but_a_repeated_poll_hears_the_same() {
    let mut run = Run::started();
    let first = run.try_start_task("poll-1").unwrap();
    let again = run.try_start_task("poll-1").unwrap();
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert_eq!(run.try_start_task("poll-2").unwrap_err(), Rejection::AlreadyStarted("Workflow"));
    assert_eq!(run.history_from(3), ["WorkflowTaskStarted"]);
    let mut idle = Run::idle();
    let input = workflow::StartWorkflowTask {
        scheduled_event_id: EventId(2),
        request_id: "late".to_owned(),
        identity: String::new(),
        task_queue: "orders".to_owned(),
        updates: Vec::new(),
        worker_version: None,
    };
    assert_eq!(idle.input(Input::StartWorkflowTask(input)).unwrap_err(), Rejection::WorkflowTaskNotFound);
}

#[test]
fn only_the_token_of_the_task_in_flight_is_good() {
    let run = Run::working();
    let good = run.task_ref();
    let bad = [
        TaskRef { scheduled_event_id: EventId(9), ..good },
        TaskRef { attempt: Some(2), ..good },
        TaskRef { started_event_id: Some(EventId(9)), ..good },
    ];
    for task in bad {
        let mut run = Run::working();
        let completion = workflow::CompleteWorkflowTask { task, ..run.completion(Vec::new()) };
        let refused = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap_err();
        assert_eq!(refused, Rejection::WorkflowTaskNotFound);
    }
}

#[test]
fn a_failing_task_becomes_transient() {
    let mut run = Run::working();
    run.take_tasks();
    run.fail_task();
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed"], "the second attempt leaves no event");
    assert_eq!((run.scheduled().attempt, run.scheduled().event_id), (2, EventId(5)));
    assert!(matches!(run.transfers()[..], [TransferTask::WorkflowTask { attempt: 2, .. }]));
    let started = run.start_task();
    let shown: Vec<String> = started.transient_events.iter().map(name).collect();
    assert_eq!(shown, ["WorkflowTaskScheduled", "WorkflowTaskStarted"]);
    let ids: Vec<i64> = started.transient_events.iter().map(|event| event.event_id).collect();
    assert_eq!((ids.as_slice(), started.next_event_id), (&[5, 6][..], EventId(5)));
    run.fail_task();
    assert_eq!((run.scheduled().attempt, run.history_from(5).len()), (3, 0), "nor does a third");
    run.work(vec![marker("m")]);
    let expected = ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted", "MarkerRecorded"];
    assert_eq!(run.history_from(5), expected, "all is written once it completes");
    let Attributes::WorkflowTaskScheduledEventAttributes(scheduled) = run.event(5) else { panic!("not scheduled") };
    assert_eq!(scheduled.attempt, 3);
    run.signal("").unwrap();
    assert_eq!(run.scheduled().attempt, 1);
}

#[test]
fn news_turn_a_transient_task_into_a_first_attempt() {
    let mut run = Run::working();
    run.fail_task();
    run.signal("").unwrap();
    let started = run.start_task();
    assert_eq!((started.attempt, started.scheduled_event_id), (1, EventId(6)));
    let expected = ["WorkflowTaskFailed", "WorkflowExecutionSignaled", "WorkflowTaskScheduled", "WorkflowTaskStarted"];
    assert_eq!(run.history_from(4), expected);
    // And so do news that came while it was in flight.
    let mut run = Run::working();
    run.fail_task();
    run.start_task();
    run.signal("").unwrap();
    run.fail_task();
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]);
    assert_eq!(run.scheduled().attempt, 1);
}

#[test]
fn a_worker_that_takes_too_long_loses_its_task() {
    let mut run = Run::working();
    run.take_tasks();
    let timeout = TimerTask::WorkflowTaskStartToClose { scheduled_event_id: EventId(2), attempt: 1, version: 7 };
    run.later(9 * SECOND).input(Input::Due(timeout.clone())).unwrap();
    assert_eq!(run.timers().len(), 1, "too early: it is armed again");
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(4), ["WorkflowTaskTimedOut"]);
    let Attributes::WorkflowTaskTimedOutEventAttributes(timed_out) = run.event(4) else { panic!("not timed out") };
    assert_eq!((timed_out.timeout_type(), timed_out.started_event_id), (TimeoutType::StartToClose, 3));
    assert_eq!(run.scheduled().attempt, 2);
    run.input(Input::Due(timeout)).unwrap();
    assert_eq!(run.scheduled().attempt, 2, "a stale timer does nothing");
}

#[test]
fn a_task_that_fails_again_and_again_is_given_more_and_more_time() {
    let mut run = Run::working();
    let mut timeouts = Vec::new();
    for _ in 0..12 {
        run.fail_task();
        timeouts.push(run.scheduled().start_to_close_timeout);
        run.start_task();
    }
    assert_eq!(&timeouts[..2], [10 * SECOND, 10 * SECOND], "attempts 2 and 3");
    assert!(timeouts[2] >= 14 * SECOND && timeouts[2] <= 15 * SECOND, "attempt 4: {:?}", timeouts[2]);
    assert!(timeouts.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(timeouts[11] <= 610 * SECOND, "but not without end");
}

/// A run whose worker has it in its cache, with a task on the way to it.
fn stuck_run() -> Run {
    let mut run = Run::working();
    let completion = workflow::CompleteWorkflowTask { sticky: sticky(), ..run.completion(Vec::new()) };
    run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    run.take_tasks();
    run.signal("").unwrap();
    run
}

#[test]
fn a_sticky_task_goes_to_its_worker_first() {
    let mut run = stuck_run();
    let dispatch = StickyDispatch { normal_task_queue: "orders".to_owned(), schedule_to_start_timeout: 5 * SECOND };
    let expected = TransferTask::WorkflowTask {
        task_queue: "sticky-1".to_owned(),
        sticky: Some(dispatch),
        scheduled_event_id: EventId(6),
        attempt: 1,
        version: 7,
    };
    assert_eq!(run.transfers(), [&expected]);
    assert!(run.start_task().is_sticky);
}

#[test]
fn a_sticky_task_that_nobody_takes_falls_back() {
    let mut run = stuck_run();
    run.fire_next_timer().unwrap();
    assert_eq!(run.history_from(7), ["WorkflowTaskTimedOut", "WorkflowTaskScheduled"]);
    let Attributes::WorkflowTaskTimedOutEventAttributes(timed_out) = run.event(7) else { panic!("not timed out") };
    assert_eq!((timed_out.timeout_type(), timed_out.started_event_id), (TimeoutType::ScheduleToStart, 0));
    assert_eq!((run.scheduled().task_queue.as_str(), run.scheduled().attempt), ("orders", 1));
    assert!(!run.start_task().is_sticky);
}

#[test]
fn failing_on_the_sticky_queue_is_not_an_attempt() {
    let mut run = stuck_run();
    run.start_task();
    run.fail_task();
    assert_eq!(run.history_from(7), ["WorkflowTaskStarted", "WorkflowTaskFailed", "WorkflowTaskScheduled"]);
    assert_eq!((run.scheduled().task_queue.as_str(), run.scheduled().attempt), ("orders", 1));
}

#[test]
fn a_task_taken_from_the_normal_queue_leaves_the_sticky_one() {
    let mut run = stuck_run();
    let input = workflow::StartWorkflowTask {
        scheduled_event_id: EventId(6),
        request_id: "p".to_owned(),
        identity: String::new(),
        task_queue: "orders".to_owned(),
        updates: Vec::new(),
        worker_version: None,
    };
    let reply = run.input(Input::StartWorkflowTask(input)).unwrap();
    assert!(matches!(reply, Reply::WorkflowTaskStarted(started) if !started.is_sticky));
    assert_eq!(run.state.unrecorded.sticky, None);
}

#[test]
fn a_reset_sticky_queue_gets_no_task_any_more() {
    let mut run = stuck_run();
    run.input(Input::ResetSticky).unwrap();
    assert_eq!(run.try_start_task("p").unwrap_err(), Rejection::WorkflowTaskNotFound);
    run.fire_next_timer().unwrap();
    assert_eq!(run.scheduled().task_queue, "orders");
}

#[test]
fn a_worker_may_keep_its_task_alive_but_not_for_ever() {
    let mut run = Run::working();
    let mut n_heartbeats = 0;
    loop {
        run.later(Duration::from_secs(9 * 60));
        let heartbeat = workflow::CompleteWorkflowTask {
            force_new_task: true,
            return_new_task: true,
            ..run.completion(Vec::new())
        };
        let reply = run.input(Input::CompleteWorkflowTask(Box::new(heartbeat))).unwrap();
        if matches!(reply, Reply::WorkflowTaskHeartbeatTimedOut) {
            break;
        }
        let Reply::WorkflowTaskCompleted { new_task: Some(new_task), .. } = reply else {
            panic!("unexpected {reply:?}")
        };
        assert!(new_task.is_sticky);
        n_heartbeats += 1;
    }
    assert_eq!(n_heartbeats, 3);
    let heartbeat = ["WorkflowTaskCompleted", "WorkflowTaskScheduled", "WorkflowTaskStarted"];
    assert_eq!(run.history_from(4)[..3], heartbeat);
    assert_eq!(run.history().last().unwrap(), "WorkflowTaskTimedOut");
}

#[test]
fn a_bad_command_keeps_nothing_of_its_task() {
    let mut run = Run::working();
    let reply = run.try_complete_task(vec![marker("lost"), start_timer("", SECOND)]).unwrap();
    assert!(matches!(reply, Reply::BadCommand { cause: WorkflowTaskFailedCause::BadStartTimerAttributes, .. }));
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed"]);
    let Attributes::WorkflowTaskFailedEventAttributes(failed) = run.event(4) else { panic!("not failed") };
    let message = "BadStartTimerAttributes: TimerId is not set on StartTimerCommand.";
    assert_eq!(failed.failure.as_ref().unwrap().message, message);
    run.start_task();
    let refused = run.try_complete_task(vec![start_timer("", SECOND)]).unwrap_err();
    assert_eq!(refused, Rejection::InvalidArgument(message.to_owned()), "the second time it is left to time out");
    assert!(run.state.workflow_task.is_running());
}

#[test]
fn nothing_follows_a_command_that_closes() {
    let mut run = Run::working();
    let refused = run.try_complete_task(vec![complete_workflow(), marker("m")]).unwrap_err();
    let message = "invalid command sequence: [CompleteWorkflowExecution, RecordMarker], \
                   command CompleteWorkflowExecution must be the last command.";
    assert_eq!(refused, Rejection::InvalidArgument(message.to_owned()));
    assert!(run.state.workflow_task.is_running());
    let refused = run.try_complete_task(vec![Command::default()]).unwrap_err();
    assert_eq!(refused, Rejection::InvalidArgument("unknown command type: Unspecified".to_owned()));
}

#[test]
fn commands_that_are_not_built_yet_fail_their_task() {
    use WorkflowTaskFailedCause as Cause;
    let nexus = ScheduleNexusOperationCommandAttributes::default();
    let cases = [(
        CommandType::ScheduleNexusOperation,
        CommandAttributes::ScheduleNexusOperationCommandAttributes(nexus),
        Cause::FeatureDisabled,
    )];
    for (kind, attributes, expected) in cases {
        let mut run = Run::working();
        let command = Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() };
        let reply = run.try_complete_task(vec![command]).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!(cause, expected);
        assert!(message.ends_with("not supported yet"), "{message}");
    }
    let mut run = Run::working();
    let bare = Command { command_type: CommandType::StartTimer.into(), ..Default::default() };
    let reply = run.try_complete_task(vec![bare]).unwrap();
    assert!(matches!(reply, Reply::BadCommand { cause: Cause::BadStartTimerAttributes, .. }), "{reply:?}");
}

#[test]
fn a_payload_that_is_too_large_ends_the_run() {
    let mut run = Run::working();
    run.facts.limits.blob_size = 10;
    let mut attributes = activity_attributes();
    attributes.input = Some(payloads("more than ten bytes"));
    let reply = run.try_complete_task(vec![schedule(attributes)]).unwrap();
    assert!(matches!(reply, Reply::BadCommand { .. }), "{reply:?}");
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTerminated"]);
}

#[test]
fn a_message_that_is_too_large_for_its_worker_ends_the_run() {
    let mut run = Run::working();
    let task = run.task_ref();
    let failed = FailWorkflowTask {
        task,
        cause: WorkflowTaskFailedCause::GrpcMessageTooLarge,
        failure: Some(failure("too large")),
        identity: "worker".to_owned(),
        binary_checksum: String::new(),
    };
    run.input(Input::FailWorkflowTask(failed)).unwrap();
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTerminated"]);
    let Attributes::WorkflowExecutionTerminatedEventAttributes(end) = run.event(5) else { panic!("not terminated") };
    assert_eq!((end.reason.as_str(), end.identity.as_str()), ("GrpcMessageTooLarge", "history-service"));
}

#[test]
fn a_long_history_is_told_to_continue_as_new_and_ended_in_the_end() {
    let mut run = Run::started();
    run.facts.limits.suggest_continue_as_new_count = 3;
    run.facts.limits.suggest_continue_as_new_size = 1;
    run.start_task();
    let Attributes::WorkflowTaskStartedEventAttributes(started) = run.event(3) else { panic!("not started") };
    let reasons: Vec<_> = started.suggest_continue_as_new_reasons().collect();
    let expected = [SuggestContinueAsNewReason::HistorySizeTooLarge, SuggestContinueAsNewReason::TooManyHistoryEvents];
    assert_eq!((started.suggest_continue_as_new, reasons.as_slice()), (true, &expected[..]));
    run.facts.limits.history_count = 4;
    let reply = run.try_complete_task(vec![marker("m")]).unwrap();
    let message = "Workflow history count exceeds limit.";
    assert!(matches!(reply, Reply::Terminated { message: told } if told == message));
    assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTerminated"]);
}

#[test]
fn a_new_failover_version_makes_a_first_attempt() {
    let mut run = Run::working();
    run.fail_task();
    run.facts.failover_version = 12;
    let started = run.start_task();
    assert_eq!((started.attempt, started.scheduled_event_id), (1, EventId(5)));
    let versions: Vec<(i64, i64)> =
        run.state.version_history.iter().map(|item| (item.event_id.0, item.version)).collect();
    assert_eq!(versions, [(4, 7), (6, 12)]);
    assert!(run.transfers().len() == 2, "nothing is dispatched twice");
}

#[test]
#[expect(deprecated, reason = "old workers tell their version this way")]
fn a_version_that_a_worker_tells_is_recorded_with_its_answer() {
    let version = Some(WorkerVersionStamp { build_id: "b1".to_owned(), ..Default::default() });
    let mut run = Run::working();
    run.fail_task();
    run.start_task();
    let mut completion = run.completion(Vec::new());
    completion.worker_version.clone_from(&version);
    run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    let Attributes::WorkflowTaskStartedEventAttributes(started) = run.event(6) else { panic!("not started") };
    let Attributes::WorkflowTaskCompletedEventAttributes(completed) = run.event(7) else { panic!("not completed") };
    assert_eq!((&started.worker_version, &completed.worker_version), (&version, &version));
}
