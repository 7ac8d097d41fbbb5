//! Every limit just below it, at it and just above it.

use std::collections::HashMap;

use prost::Message;
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    Command, CompleteWorkflowExecutionCommandAttributes, ContinueAsNewWorkflowExecutionCommandAttributes,
    ModifyWorkflowPropertiesCommandAttributes, RecordMarkerCommandAttributes, ScheduleActivityTaskCommandAttributes,
    SignalExternalWorkflowExecutionCommandAttributes, StartChildWorkflowExecutionCommandAttributes,
    UpsertWorkflowSearchAttributesCommandAttributes,
};
use proto::temporal::api::common::v1::{Memo, Payload, SearchAttributes};
use proto::temporal::api::enums::v1::{CommandType, WorkflowTaskFailedCause as Cause};
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use workflow::{Heartbeat, Input, LimitCause, Limits, Rejection, Reply};

use crate::others;
use crate::others::{cancel, cancel_attributes, child_attributes, signal_attributes, start, start_child};
use crate::run::{
    Run, SECOND, activity_attributes, command, continue_as_new, fail_workflow, failure, marker, payloads, schedule,
    schedule_activity, signal, start_timer,
};

/// How far a limit lies above what is tried: just below it, at it, just above it.
const MARGINS: [isize; 3] = [1, 0, -1];

fn limit(size: usize, margin: isize) -> usize {
    size.checked_add_signed(margin).unwrap()
}

fn bad_command(reply: Reply) -> (Cause, String) {
    let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
    (cause, message)
}

fn end_reason(run: &Run) -> (&str, &str) {
    let Attributes::WorkflowExecutionTerminatedEventAttributes(end) = run.last_event().attributes.as_ref().unwrap()
    else {
        panic!("not terminated")
    };
    (&end.reason, &end.identity)
}

#[test]
fn so_many_things_may_be_pending_and_no_more() {
    type Case = (fn(usize) -> Command, Cause, &'static str);
    let cases: [Case; 5] = [
        (|n| schedule_activity(&n.to_string()), Cause::PendingActivitiesLimitExceeded, "pending activities"),
        (
            |n| start_child(&n.to_string()),
            Cause::PendingChildWorkflowsLimitExceeded,
            "pending child workflow executions",
        ),
        (
            |n| others::signal(signal_attributes(&n.to_string())),
            Cause::PendingSignalsLimitExceeded,
            "pending signals to external workflows",
        ),
        (
            |n| cancel(cancel_attributes(&n.to_string())),
            Cause::PendingRequestCancelLimitExceeded,
            "pending requests to cancel external workflows",
        ),
        (|n| start_timer(&n.to_string(), SECOND), Cause::BadStartTimerAttributes, "pending timers"),
    ];
    for (another, cause, what) in cases {
        for n_commands in 2..=4 {
            let mut run = Run::working();
            let limits = &mut run.facts.limits;
            (limits.pending_activities, limits.pending_children) = (3, 3);
            (limits.pending_external_signals, limits.pending_external_cancels) = (3, 3);
            limits.pending_timers = 3;
            let reply = run.try_complete_task((0..n_commands).map(another).collect()).unwrap();
            if n_commands <= 3 {
                assert!(matches!(reply, Reply::WorkflowTaskCompleted { .. }), "{n_commands} {what}: {reply:?}");
                continue;
            }
            let (told, message) = bad_command(reply);
            assert_eq!(told, cause);
            let reason = format!("the number of {what}, 3, has reached the per-workflow limit of 3");
            assert!(message.ends_with(&format!(": {reason}")), "{message}");
            assert!(run.state.is_running(), "the next task may do better");
        }
    }
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    let limits = Limits::default();
    assert_eq!(
        (limits.blob_size, limits.search_attribute_value_size, limits.search_attributes_size),
        (2 << 20, 2048, 40960)
    );
    assert_eq!((limits.history_size, limits.history_count), (50 << 20, 51_200));
    assert_eq!((limits.suggest_continue_as_new_size, limits.suggest_continue_as_new_count), (4 << 20, 4096));
    assert_eq!((limits.mutable_state_size, limits.transaction_size), (8 << 20, 4 << 20));
    let pending = [limits.pending_activities, limits.pending_children];
    assert_eq!((pending, limits.pending_external_signals, limits.pending_external_cancels), ([2000; 2], 2000, 2000));
    assert_eq!((limits.signals, limits.updates_in_flight, limits.updates), (10_000, 10, 2000));
    assert_eq!((limits.buffered_events, limits.buffered_events_size), (100, 2 << 20));
    assert_eq!((limits.id_length, limits.callbacks, limits.activity_failure_size), (1000, 32, 4096));
}

fn field(text: &'static str) -> HashMap<String, Payload> {
    HashMap::from([("k".to_owned(), payloads(text).payloads.remove(0))])
}

fn upsert(text: &'static str) -> Command {
    let search_attributes = Some(SearchAttributes { indexed_fields: field(text) });
    let attributes = UpsertWorkflowSearchAttributesCommandAttributes { search_attributes };
    let attributes = CommandAttributes::UpsertWorkflowSearchAttributesCommandAttributes(attributes);
    command(CommandType::UpsertWorkflowSearchAttributes, attributes)
}

fn modify(text: &'static str) -> Command {
    let attributes = ModifyWorkflowPropertiesCommandAttributes { upserted_memo: Some(Memo { fields: field(text) }) };
    let attributes = CommandAttributes::ModifyWorkflowPropertiesCommandAttributes(attributes);
    command(CommandType::ModifyWorkflowProperties, attributes)
}

fn marker_with(text: &'static str) -> Command {
    let attributes = RecordMarkerCommandAttributes {
        marker_name: "m".to_owned(),
        details: HashMap::from([("k".to_owned(), payloads(text))]),
        ..Default::default()
    };
    command(CommandType::RecordMarker, CommandAttributes::RecordMarkerCommandAttributes(attributes))
}

fn complete_with(text: &'static str) -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes { result: Some(payloads(text)) };
    let attributes = CommandAttributes::CompleteWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::CompleteWorkflowExecution, attributes)
}

const TEXT: &str = "a payload that is long enough for everything else to be small beside it";

/// A command with a payload, the payload's size, and what is said of one that is too large.
type Oversized = (Command, usize, Cause, &'static str);

fn memo() -> Option<Memo> {
    Some(Memo { fields: field(TEXT) })
}

fn oversized() -> Vec<Oversized> {
    let (input, size) = (Some(payloads(TEXT)), payloads(TEXT).encoded_len());
    let memo_size = memo().as_ref().map_or(0, Message::encoded_len);
    vec![
        (
            schedule(ScheduleActivityTaskCommandAttributes { input: input.clone(), ..activity_attributes() }),
            size,
            Cause::BadScheduleActivityAttributes,
            "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.",
        ),
        (
            complete_with(TEXT),
            size,
            // Sic: the reference says so.
            Cause::BadScheduleActivityAttributes,
            "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.",
        ),
        (
            fail_workflow(failure(TEXT)),
            failure(TEXT).encoded_len(),
            Cause::BadFailWorkflowExecutionAttributes,
            "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.",
        ),
        (
            marker_with(TEXT),
            size + 1,
            Cause::BadRecordMarkerAttributes,
            "RecordMarkerCommandAttributes.Details exceeds size limit.",
        ),
        (
            others::signal(SignalExternalWorkflowExecutionCommandAttributes { input, ..signal_attributes("other") }),
            size,
            Cause::BadSignalWorkflowExecutionAttributes,
            "SignalExternalWorkflowExecutionCommandAttributes.Input exceeds size limit.",
        ),
        (
            upsert(TEXT),
            1 + TEXT.len(),
            Cause::BadSearchAttributes,
            "UpsertWorkflowSearchAttributesCommandAttributes exceeds size limit.",
        ),
        (
            modify(TEXT),
            memo_size,
            Cause::BadModifyWorkflowPropertiesAttributes,
            "ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.",
        ),
    ]
}

fn oversized_for_other_runs() -> Vec<Oversized> {
    let (input, size) = (Some(payloads(TEXT)), payloads(TEXT).encoded_len());
    let memo_size = memo().as_ref().map_or(0, Message::encoded_len);
    let child = || child_attributes("child");
    let next = ContinueAsNewWorkflowExecutionCommandAttributes::default;
    vec![
        (
            continue_as_new(ContinueAsNewWorkflowExecutionCommandAttributes { input: input.clone(), ..next() }),
            size,
            Cause::BadContinueAsNewAttributes,
            "ContinueAsNewWorkflowExecutionCommandAttributes. Input exceeds size limit.",
        ),
        (
            continue_as_new(ContinueAsNewWorkflowExecutionCommandAttributes { memo: memo(), ..next() }),
            memo_size,
            Cause::BadContinueAsNewAttributes,
            "ContinueAsNewWorkflowExecutionCommandAttributes. Memo exceeds size limit.",
        ),
        (
            start(StartChildWorkflowExecutionCommandAttributes { input: input.clone(), ..child() }),
            size,
            Cause::BadStartChildExecutionAttributes,
            "StartChildWorkflowExecutionCommandAttributes. Input exceeds size limit.",
        ),
        (
            start(StartChildWorkflowExecutionCommandAttributes { memo: memo(), input: None, ..child() }),
            memo_size,
            Cause::BadStartChildExecutionAttributes,
            "StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit.",
        ),
    ]
}

#[test]
fn a_payload_of_a_command_that_is_too_large_ends_the_run() {
    for (command, size, cause, reason) in oversized().into_iter().chain(oversized_for_other_runs()) {
        for margin in MARGINS {
            let mut run = Run::working();
            run.facts.limits.blob_size = limit(size, margin);
            let reply = run.try_complete_task(vec![command.clone()]).unwrap();
            if margin >= 0 {
                assert!(matches!(reply, Reply::WorkflowTaskCompleted { .. }), "{margin} {reason}: {reply:?}");
                continue;
            }
            let (told, message) = bad_command(reply);
            assert_eq!(told, cause, "{reason}");
            assert!(message.ends_with(&format!(": {reason}")), "{message} for {reason}");
            assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTerminated"]);
            assert_eq!(end_reason(&run), (message.as_str(), "history-service"));
        }
    }
}

#[test]
fn a_memo_grows_up_to_its_limit() {
    let size_of = |fields| Memo { fields }.encoded_len();
    for margin in MARGINS {
        let mut run = Run::after(vec![modify("one")]);
        // The old value makes room for the new one.
        run.facts.limits.blob_size = limit(size_of(field(TEXT)), margin);
        run.signal("").unwrap();
        run.start_task();
        let reply = run.try_complete_task(vec![modify(TEXT)]).unwrap();
        assert_eq!(matches!(reply, Reply::WorkflowTaskCompleted { .. }), margin >= 0, "{reply:?}");
    }
}

#[test]
fn search_attributes_are_so_large_each_and_all_together() {
    let search_attributes = Some(SearchAttributes { indexed_fields: field(TEXT) });
    let own = search_attributes.as_ref().map_or(0, Message::encoded_len);
    // What the server writes about a run counts with what its workflow does.
    let mut upserted = Run::working();
    upserted.complete_task(vec![upsert(TEXT)]);
    let commands = [
        (upsert(TEXT), upserted.state.search_attributes.encoded_len()),
        (
            start(StartChildWorkflowExecutionCommandAttributes {
                search_attributes: search_attributes.clone(),
                ..child_attributes("child")
            }),
            own,
        ),
        (
            continue_as_new(ContinueAsNewWorkflowExecutionCommandAttributes {
                search_attributes,
                ..Default::default()
            }),
            own,
        ),
    ];
    for (command, total) in commands {
        for margin in MARGINS {
            let cases = [
                (Limits { search_attribute_value_size: limit(TEXT.len(), margin), ..Limits::default() }, TEXT.len()),
                (Limits { search_attributes_size: limit(total, margin), ..Limits::default() }, total),
            ];
            let reasons = ["search attribute k value size", "total size of search attributes"];
            for ((limits, size), reason) in cases.into_iter().zip(reasons) {
                let mut run = Run::working();
                run.facts.limits = limits;
                let reply = run.try_complete_task(vec![command.clone()]).unwrap();
                if margin >= 0 {
                    assert!(matches!(reply, Reply::WorkflowTaskCompleted { .. }), "{reason}: {reply:?}");
                    continue;
                }
                let message = bad_command(reply).1;
                let expected = format!(": {reason} {size} exceeds size limit {}", size - 1);
                assert!(message.ends_with(&expected), "{message}");
                assert!(!run.state.is_running());
            }
        }
    }
}

#[test]
fn an_id_of_a_command_is_so_long_at_most() {
    let queue = |name: String| Some(TaskQueue { name, ..Default::default() });
    let commands = |id: String| {
        [
            (schedule_activity(&id), Cause::BadScheduleActivityAttributes),
            (
                schedule(ScheduleActivityTaskCommandAttributes {
                    task_queue: queue(id.clone()),
                    ..activity_attributes()
                }),
                Cause::BadScheduleActivityAttributes,
            ),
            (start_timer(&id, SECOND), Cause::BadStartTimerAttributes),
            (marker(&id), Cause::BadRecordMarkerAttributes),
            (start_child(&id), Cause::BadStartChildExecutionAttributes),
            (others::signal(signal_attributes(&id)), Cause::BadSignalWorkflowExecutionAttributes),
            (cancel(cancel_attributes(&id)), Cause::BadRequestCancelExternalWorkflowExecutionAttributes),
        ]
    };
    for length in [999, 1000, 1001] {
        for (command, cause) in commands("x".repeat(length)) {
            let mut run = Run::working();
            let reply = run.try_complete_task(vec![command]).unwrap();
            if length <= 1000 {
                assert!(matches!(reply, Reply::WorkflowTaskCompleted { .. }), "{length} {cause:?}: {reply:?}");
            } else {
                assert_eq!(bad_command(reply).0, cause);
                assert!(run.state.is_running(), "the next task may do better");
            }
        }
    }
}

#[test]
fn a_run_takes_so_many_signals_of_such_a_size() {
    for n_signals in 2..=4 {
        let mut run = Run::working();
        run.facts.limits.signals = 3;
        let taken: Vec<_> = (0..n_signals).map(|_| run.signal("")).collect();
        let (last, before) = taken.split_last().unwrap();
        assert!(before.iter().all(Result::is_ok));
        let message = "exceeded workflow execution limit for signal events".to_owned();
        let refused = Err(Rejection::LimitExceeded { cause: LimitCause::Signals, message });
        assert_eq!(last.as_ref().err(), (n_signals > 3).then_some(refused).and_then(Result::<Reply, _>::err).as_ref());
    }
    let size = signal("").input.as_ref().map_or(0, Message::encoded_len);
    for margin in MARGINS {
        let mut run = Run::working();
        run.facts.limits.blob_size = limit(size, margin);
        let message = "Blob data size exceeds limit.".to_owned();
        let refused = Rejection::LimitExceeded { cause: LimitCause::BlobSize, message };
        assert_eq!(run.signal("").err(), (margin < 0).then_some(refused));
    }
}

#[test]
fn so_many_events_wait_for_a_task_in_flight() {
    let size = {
        let mut run = Run::working();
        run.signal("").unwrap();
        run.state.unrecorded.buffered_events.iter().map(|(_, event)| event.encoded_len()).sum::<usize>()
    };
    for margin in MARGINS {
        let mut run = Run::working();
        run.facts.limits.buffered_events = limit(3, margin);
        (0..3).for_each(|_| drop(run.signal("").unwrap()));
        assert_eq!(run.history_from(4).is_empty(), margin >= 0);
        let mut run = Run::working();
        run.facts.limits.buffered_events_size = limit(size, margin);
        run.signal("").unwrap();
        assert_eq!(run.history_from(4).is_empty(), margin >= 0);
        if margin < 0 {
            let Attributes::WorkflowTaskFailedEventAttributes(failed) = run.event(4) else { panic!("not a failure") };
            assert_eq!(failed.cause(), Cause::ForceCloseCommand);
        }
    }
}

/// Completes a task under a limit that lies so far above what the run has then.
fn grown(margin: isize, set: impl FnOnce(&mut Limits, &Run, &Run, isize)) -> (Run, Option<String>) {
    let commands = || vec![marker("m"), schedule_activity("a")];
    let mut unlimited = Run::working();
    unlimited.complete_task(commands());
    let mut run = Run::working();
    let mut limits = run.facts.limits.clone();
    set(&mut limits, &run, &unlimited, margin);
    run.facts.limits = limits;
    let reply = run.try_complete_task(commands()).unwrap();
    if let Reply::Terminated { message } = reply {
        return (run, Some(message));
    }
    (run, None)
}

#[test]
fn a_run_that_outgrows_a_limit_is_terminated() {
    type Set = fn(&mut Limits, &Run, &Run, isize);
    let cases: [(&str, Set); 3] = [
        ("Workflow history size exceeds limit.", |limits, before, _, margin| {
            limits.history_size = before.state.history_size + margin as i64;
        }),
        ("Workflow history count exceeds limit.", |limits, _, after, margin| {
            limits.history_count = after.state.last_event_id().0 + margin as i64;
        }),
        ("Workflow mutable state size exceeds limit.", |limits, _, after, margin| {
            limits.mutable_state_size = limit(after.state.mutable_state_size(), margin);
        }),
    ];
    for (reason, set) in cases {
        for margin in MARGINS {
            let (run, told) = grown(margin, set);
            assert_eq!(told.as_deref(), (margin < 0).then_some(reason));
            assert_eq!(run.state.is_running(), margin >= 0);
            if margin < 0 {
                assert_eq!(run.history_from(4), ["WorkflowTaskFailed", "WorkflowExecutionTerminated"]);
                assert_eq!(end_reason(&run), (reason, "history-service"));
            }
        }
    }
}

#[test]
fn a_transition_is_only_so_large() {
    for margin in MARGINS {
        let mut size = 0;
        let (run, told) = grown(margin, |limits, before, after, margin| {
            size = after.state.history_size - before.state.history_size;
            limits.transaction_size = size + margin as i64;
        });
        let message = format!("transaction size of {size} bytes exceeds limit of {} bytes", size - 1);
        assert_eq!(told, (margin < 0).then(|| message.clone()));
        if margin < 0 {
            let Attributes::WorkflowExecutionTerminatedEventAttributes(end) = run.event(5) else { panic!("runs on") };
            let details = end.details.as_ref().map(|details| details.payloads[0].data.clone());
            assert_eq!(
                (end.reason.as_str(), details),
                ("Transaction size exceeds limit.", Some(format!("{message:?}").into()))
            );
        }
    }
}

#[test]
fn what_an_activity_tells_of_its_progress_counts_until_it_ends() {
    let mut run = Run::after(vec![schedule_activity("a")]);
    run.start_activity(5).unwrap();
    let before = run.state.mutable_state_size();
    let heartbeat = |run: &Run| {
        let details = Some(payloads(TEXT));
        Input::Heartbeat(Heartbeat { activity: run.activity_ref(5), details, identity: String::new() })
    };
    run.input(heartbeat(&run)).unwrap();
    let grown = run.state.mutable_state_size() - before;
    assert!((TEXT.len()..2 * TEXT.len()).contains(&grown), "{grown}");
    run.input(heartbeat(&run)).unwrap();
    assert_eq!(run.state.mutable_state_size() - before, grown, "the last one counts");
    run.complete_activity(5).unwrap();
    assert!(run.state.mutable_state_size() < before);
}

#[test]
fn a_failure_is_kept_up_to_its_limit() {
    let size = failure(TEXT).encoded_len();
    for margin in MARGINS {
        let mut run = Run::after(vec![schedule_activity("a")]);
        run.facts.limits.activity_failure_size = limit(size, margin);
        run.start_activity(5).unwrap();
        run.fail_activity(5, failure(TEXT)).unwrap();
        let kept = run.activity(5).unrecorded.last_failure.as_ref().unwrap();
        assert_eq!(kept.message == TEXT, margin >= 0, "{kept:?}");
    }
}
