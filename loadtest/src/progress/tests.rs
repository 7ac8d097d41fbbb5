//! Runs are played by hand, once event by event and once replayed whole: both must give the same commands.

use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::history::v1::{
    ActivityTaskCompletedEventAttributes, WorkflowExecutionSignaledEventAttributes,
    WorkflowExecutionStartedEventAttributes, WorkflowTaskCompletedEventAttributes,
};

use super::*;

static PADDING: Bytes = Bytes::new();
static PLACE: Place<'static> = Place { workflow_id: "w", task_queue: "q", padding: &PADDING };

fn events(attributes: Vec<Attributes>) -> Vec<HistoryEvent> {
    let number = |(event_id, attributes)| HistoryEvent { event_id, attributes: Some(attributes), ..Default::default() };
    (1..).zip(attributes).map(number).collect()
}

fn started(script: &str) -> Attributes {
    let input = Some(payload::json(script));
    Attributes::WorkflowExecutionStartedEventAttributes(WorkflowExecutionStartedEventAttributes {
        input,
        ..Default::default()
    })
}

fn task_completed(started_event_id: i64) -> Attributes {
    Attributes::WorkflowTaskCompletedEventAttributes(WorkflowTaskCompletedEventAttributes {
        started_event_id,
        ..Default::default()
    })
}

fn activity_completed(result: u64) -> Attributes {
    Attributes::ActivityTaskCompletedEventAttributes(ActivityTaskCompletedEventAttributes {
        result: Some(payload::json(result)),
        ..Default::default()
    })
}

fn signaled(name: &str, value: u64) -> Attributes {
    Attributes::WorkflowExecutionSignaledEventAttributes(WorkflowExecutionSignaledEventAttributes {
        signal_name: name.into(),
        input: Some(payload::json(value)),
        ..Default::default()
    })
}

fn kinds(commands: &[Command]) -> Vec<CommandType> {
    commands.iter().map(Command::command_type).collect()
}

#[test]
fn a_script_without_steps_completes_at_once() {
    let mut progress = Progress::default();
    progress.apply(&events(vec![started("7")]), PLACE);
    assert_eq!(progress.answer(3, PLACE), [commands::complete(7)]);
}

#[test]
fn the_next_step_begins_when_all_of_a_step_is_over() {
    let mut progress = Progress::default();
    let history = events(vec![
        started("0 activities:2 timers:1@5ms"),
        task_completed(2),
        activity_completed(3),
        activity_completed(5),
    ]);
    progress.apply(&history[..1], PLACE);
    assert_eq!(kinds(&progress.answer(2, PLACE)), [CommandType::ScheduleActivityTask; 2]);
    progress.apply(&history[1..3], PLACE);
    assert_eq!(progress.answer(4, PLACE), []);
    progress.apply(&history[3..], PLACE);
    assert_eq!(kinds(&progress.answer(5, PLACE)), [CommandType::StartTimer]);
    assert_eq!(progress.sum(), 8);
}

#[test]
fn a_replay_of_the_whole_history_gives_the_same_commands_as_having_seen_it_grow() {
    let mut replayed = Progress::default();
    let history = events(vec![started("0 activities:1 activities:1"), task_completed(2), activity_completed(3)]);
    replayed.apply(&history, PLACE);
    assert_eq!(replayed.answer(4, PLACE), [commands::schedule_activity("1-1".into(), 1, "q", &PADDING)]);
}

#[test]
fn gathering_ends_on_request_and_not_before() {
    let mut progress = Progress::default();
    progress.apply(&events(vec![started("0 gather"), signaled("add", 4), signaled("add", 5)]), PLACE);
    assert_eq!(progress.answer(4, PLACE), []);
    progress.apply(&events(vec![signaled(END_SIGNAL, 0)]), PLACE);
    assert_eq!(progress.answer(6, PLACE), [commands::complete(9)]);
}

#[test]
fn what_is_left_of_a_script_goes_to_the_next_run() {
    let mut progress = Progress::default();
    progress.apply(&events(vec![started("2 continue-as-new continue-as-new activities:1")]), PLACE);
    let rest: Script = "2 continue-as-new activities:1".parse().expect("a script");
    assert_eq!(progress.answer(2, PLACE), [commands::continue_as_new(&rest, "q")]);
}

#[test]
fn events_that_leave_a_gap_do_not_continue_what_was_seen() {
    let mut progress = Progress::default();
    let history = events(vec![started("0"), signaled("add", 1), signaled("add", 2)]);
    progress.apply(&history[..1], PLACE);
    assert!(progress.is_continued_by(&history[1..]));
    assert!(!progress.is_continued_by(&history[2..]));
}
