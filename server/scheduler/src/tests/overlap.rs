//! What becomes of a start while a run of the schedule is open.

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy as Policy;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus as Status;
use proto::temporal::api::failure::v1::Failure;

use super::given::{Scene, every_ten_seconds, execution, payloads, span, trigger};
use crate::decide::Refusal;
use crate::schedule::Stop;

/// The run of second 10 is open until 35 and then completes: what was started by then, what by 36, and what was skipped.
fn check(policy: Policy, by_35: &[i64], by_36: &[i64], n_skipped: i64) {
    let mut scene = Scene::new(every_ten_seconds(policy));
    scene.run_until(35);
    assert_eq!(scene.started, by_35, "{policy:?} while the first one runs");
    scene.close(35, 10, Status::Completed);
    assert_eq!(scene.started, by_36, "{policy:?} after the first one");
    assert_eq!(scene.schedule.counts.overlap_skipped, n_skipped, "{policy:?}");
}

#[test]
fn an_open_run_stands_in_the_way_as_the_policy_says() {
    check(Policy::Skip, &[10], &[10], 2);
    check(Policy::Unspecified, &[10], &[10], 2);
    check(Policy::BufferOne, &[10], &[10, 20], 1);
    check(Policy::BufferAll, &[10], &[10, 20], 0);
    check(Policy::AllowAll, &[10, 20, 30], &[10, 20, 30], 0);
    // Of two that wait for the same end, the later one replaces the earlier one.
    check(Policy::CancelOther, &[10], &[10, 30], 0);
    check(Policy::TerminateOther, &[10], &[10, 30], 0);
}

#[test]
fn waiting_starts_begin_one_after_the_other() {
    let mut scene = Scene::new(every_ten_seconds(Policy::BufferAll));
    scene.run_until(39);
    assert_eq!((scene.started.clone(), scene.waiting()), (vec![10], 2));
    scene.close(39, 10, Status::Completed);
    assert_eq!((scene.started.clone(), scene.waiting()), (vec![10, 20], 1));
    scene.close(39, 20, Status::Completed);
    assert_eq!((scene.started.clone(), scene.waiting()), (vec![10, 20, 30], 0));
    assert_eq!(scene.running(), ["30"]);
}

#[test]
fn a_run_is_asked_to_stop_once_and_terminating_outdoes_cancelling() {
    let mut scene = Scene::new(every_ten_seconds(Policy::CancelOther));
    scene.run_until(35);
    assert_eq!(scene.stopped, [("10".to_owned(), Stop::Cancel)]);
    scene.patch(36, trigger(Policy::TerminateOther, 36));
    assert_eq!(scene.stopped[1..], [("10".to_owned(), Stop::Terminate)]);
    scene.close(37, 10, Status::Terminated);
    assert_eq!(scene.started, [10, 36]);
}

#[test]
fn runs_beside_others_are_not_waited_for_but_known() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    scene.run_until(20);
    assert!(scene.running().is_empty());
    scene.close(25, 10, Status::Completed);
    let statuses: Vec<_> = scene.schedule.recent_actions.iter().map(|action| action.start_workflow_status()).collect();
    assert_eq!(statuses, [Status::Completed, Status::Running]);
    assert_eq!(scene.schedule.carried.last_completion_result, None);
}

#[test]
fn a_run_hands_its_result_on_and_a_failure_keeps_it() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    scene.run_until(10);
    scene.closed(11, 10, (Status::Completed, Some(payloads("7")), None)).expect("it is known");
    scene.run_until(20);
    let failure = Failure { message: "no".into(), ..Default::default() };
    scene.closed(21, 20, (Status::Failed, None, Some(failure.clone()))).expect("it is known");
    assert_eq!(scene.schedule.carried.last_completion_result, Some(payloads("7")));
    assert_eq!(scene.schedule.carried.continued_failure, Some(failure));
    scene.run_until(30);
    scene.closed(31, 30, (Status::Completed, Some(payloads("8")), None)).expect("it is known");
    assert_eq!(scene.schedule.carried.continued_failure, None);
}

#[test]
fn a_failure_pauses_a_schedule_that_wants_it() {
    let table = [
        (Status::Failed, Some("paused due to workflow failure: run-2024-01-01T00:00:10Z: no")),
        (Status::TimedOut, Some("paused due to workflow timeout: run-2024-01-01T00:00:10Z")),
        (Status::Canceled, None),
        (Status::Terminated, None),
        (Status::Completed, None),
    ];
    for (status, notes) in table {
        let mut definition = every_ten_seconds(Policy::Skip);
        definition.policies.as_mut().expect("policies").pause_on_failure = true;
        let mut scene = Scene::new(definition);
        scene.run_until(10);
        let failure = (status == Status::Failed).then(|| Failure { message: "no".into(), ..Default::default() });
        scene.closed(12, 10, (status, None, failure)).expect("it is known");
        assert_eq!(scene.schedule.is_paused(), notes.is_some(), "{status:?}");
        assert_eq!(scene.schedule.state().notes, notes.unwrap_or_default(), "{status:?}");
    }
}

#[test]
fn an_end_that_comes_before_the_start_is_known_is_recorded_later() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    let timer = scene.timers.remove(0);
    assert_eq!(timer, super::given::at(10));
    scene.input(10, crate::decide::Input::Woken).expect("a timer is never refused");
    assert_eq!(scene.closed(10, 10, (Status::Completed, None, None)), Err(Refusal::TooEarly));
    scene.act(10);
    scene.close(10, 10, Status::Completed);
    assert!(scene.running().is_empty());
    assert_eq!(scene.started, [10]);
    // A run that the schedule did not start is ignored.
    assert_eq!(scene.closed(11, 50, (Status::Completed, None, None)), Ok(()));
}

#[test]
fn workflow_ids_carry_the_time_unless_they_are_to_stay() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    scene.schedule.definition.policies.as_mut().expect("policies").catchup_window = Some(span(60));
    scene.input(10, crate::decide::Input::Woken).expect("a timer is never refused");
    let start = scene.schedule.work.starting[0].clone();
    assert_eq!(scene.schedule.workflow_id(&start), execution(10).workflow_id);
    scene.schedule.definition.policies.as_mut().expect("policies").keep_original_workflow_id = true;
    assert_eq!(scene.schedule.workflow_id(&start), "run");
}
