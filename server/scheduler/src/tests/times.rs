//! When a schedule acts: by its times, late, paused, with few actions left, and when it is done.

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy as Policy;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus as Status;
use proto::temporal::api::schedule::v1 as public;

use super::given::{Scene, at, backfill, days, every_ten_seconds, span, trigger};

#[test]
fn a_schedule_acts_in_its_times_and_sleeps_in_between() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    assert_eq!(scene.wakes_at(), Some(10));
    scene.run_until(31);
    assert_eq!(scene.started, [10, 20, 30]);
    assert_eq!((scene.wakes_at(), scene.timers.len()), (Some(40), 1));
    assert_eq!(scene.schedule.counts.actions, 3);
}

#[test]
fn a_schedule_without_times_waits_to_be_asked_and_is_forgotten_in_the_end() {
    let mut definition = every_ten_seconds(Policy::Skip);
    definition.spec = None;
    let mut scene = Scene::new(definition);
    assert_eq!(scene.wakes_at(), Some(days(7)));
    scene.patch(100, trigger(Policy::Unspecified, 100));
    assert_eq!((scene.started.clone(), scene.wakes_at()), (vec![100], None));
    scene.close(200, 100, Status::Completed);
    assert_eq!(scene.wakes_at(), Some(100 + days(7)));
    scene.run_until(99 + days(7));
    assert!(!scene.schedule.is_over);
    scene.run_until(100 + days(7));
    assert!(scene.schedule.is_over);
}

#[test]
fn what_was_missed_is_made_up_for_within_the_window() {
    let mut definition = every_ten_seconds(Policy::AllowAll);
    definition.policies.as_mut().expect("policies").catchup_window = Some(span(30));
    let mut scene = Scene::new(definition);
    scene.wake(65);
    assert_eq!(scene.started, [40, 50, 60]);
    assert_eq!(scene.schedule.counts.missed_catchup_window, 3);
    assert_eq!(scene.wakes_at(), Some(70));
}

#[test]
fn a_window_has_a_least_length_and_a_default() {
    let table = [(None, 365 * 24 * 60 * 60), (Some(span(0)), 10), (Some(span(-5)), 10), (Some(span(11)), 11)];
    for (given, expected) in table {
        let mut definition = every_ten_seconds(Policy::Skip);
        definition.policies.as_mut().expect("policies").catchup_window = given;
        let policies = Scene::new(definition).schedule.policies();
        assert_eq!(policies.catchup_window, Some(span(expected)), "{given:?}");
        assert_eq!(policies.overlap_policy(), Policy::Skip);
    }
}

#[test]
fn a_schedule_that_slept_for_very_long_is_brought_up_to_date_in_parts() {
    let mut definition = every_ten_seconds(Policy::Skip);
    definition.policies.as_mut().expect("policies").catchup_window = Some(span(10));
    let mut scene = Scene::new(definition);
    scene.wake(200_000);
    assert_eq!(scene.schedule.counts.missed_catchup_window, 10_000);
    assert!(scene.wakes_at().is_some_and(|wakes_at| wakes_at <= 200_000), "the rest comes at once");
    scene.wake(200_000);
    // The last two are within the window, and the later one finds the earlier one in its way.
    assert_eq!(scene.schedule.counts.missed_catchup_window, 19_998);
    assert_eq!((scene.started.as_slice(), scene.schedule.counts.overlap_skipped), (&[199_990][..], 1));
    assert_eq!(scene.wakes_at(), Some(200_010));
}

#[test]
fn a_paused_schedule_does_what_it_is_asked_and_nothing_else() {
    let mut definition = every_ten_seconds(Policy::AllowAll);
    definition.state = Some(public::ScheduleState { paused: true, ..Default::default() });
    let mut scene = Scene::new(definition);
    assert_eq!(scene.wakes_at(), None);
    scene.patch(25, trigger(Policy::Unspecified, 25));
    assert_eq!(scene.started, [25]);
    scene.patch(35, public::SchedulePatch { unpause: "go".into(), ..Default::default() });
    assert_eq!((scene.schedule.state().notes.as_str(), scene.wakes_at()), ("go", Some(40)));
    scene.run_until(40);
    assert_eq!(scene.started, [25, 40]);
    assert_eq!(scene.schedule.counts.missed_catchup_window, 0);
}

#[test]
fn actions_can_be_counted() {
    let mut definition = every_ten_seconds(Policy::AllowAll);
    definition.state =
        Some(public::ScheduleState { limited_actions: true, remaining_actions: 2, ..Default::default() });
    let mut scene = Scene::new(definition);
    let token = scene.schedule.conflict_token;
    scene.patch(5, trigger(Policy::Unspecified, 5));
    scene.run_until(100);
    assert_eq!(scene.started, [5, 10, 20]);
    assert_eq!(scene.schedule.state().remaining_actions, 0);
    assert_eq!(scene.schedule.conflict_token, token + 2);
    assert_eq!(scene.wakes_at(), Some(20 + days(7)), "nothing is left to do");
}

#[test]
fn a_backfill_takes_its_own_policy_and_a_rest() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    scene.run_until(20);
    scene.patch(25, public::SchedulePatch { pause: "no more".into(), ..Default::default() });
    let before = scene.started.len();
    scene.patch(1000, backfill(Policy::AllowAll, 200, 340));
    assert_eq!(scene.started[before..], [200, 210, 220, 230, 240, 250, 260, 270, 280, 290], "both ends are times");
    assert_eq!(scene.wakes_at(), Some(1001));
    scene.run_until(1001);
    assert_eq!(scene.started[before + 10..], [300, 310, 320, 330, 340]);
    assert_eq!(scene.wakes_at(), None);
    scene.patch(1002, backfill(Policy::BufferAll, 400, 420));
    let first = scene.running()[0].to_owned();
    assert_eq!(first, "10", "the schedule's own run still stands in the way");
    assert_eq!(scene.waiting(), 3);
}

#[test]
fn a_backfill_that_waits_goes_on_when_a_run_ends() {
    let mut definition = every_ten_seconds(Policy::BufferAll);
    definition.state = Some(public::ScheduleState { paused: true, ..Default::default() });
    let mut scene = Scene::with_patch(definition, Some(backfill(Policy::BufferAll, -200, -10)));
    assert_eq!((scene.started.clone(), scene.waiting()), (vec![-200], 9));
    for nominal in (-200..-10).step_by(10) {
        scene.close(1, nominal, Status::Completed);
    }
    assert_eq!(scene.started.len(), 20);
    assert_eq!((scene.waiting(), scene.schedule.work.backfills.len()), (0, 0));
}

#[test]
fn no_more_than_a_thousand_starts_wait() {
    let mut scene = Scene::new(every_ten_seconds(Policy::BufferAll));
    scene.wake(10 * 1005);
    assert_eq!((scene.waiting(), scene.schedule.counts.buffer_dropped), (999, 5));
    assert_eq!(scene.started, [10]);
}

#[test]
fn an_update_is_not_made_up_for() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    scene.run_until(20);
    let update = crate::decide::Update {
        definition: {
            let mut definition = every_ten_seconds(Policy::AllowAll);
            definition.spec.as_mut().expect("a specification").interval[0].interval = Some(span(7));
            definition
        },
        search_attributes: None,
        memo: None,
        conflict_token: 0,
        request_id: String::new(),
    };
    scene.input(29, crate::decide::Input::Update(Box::new(update))).expect("there is no conflict");
    assert_eq!(scene.schedule.moments.updated_at, Some(at(29)));
    let next = scene.wakes_at().expect("it goes on");
    assert!((29..36).contains(&next), "the first of the new times after the update");
}
