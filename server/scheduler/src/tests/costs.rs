//! Schedules whose times are hard to find: each decision does a bounded part, and what is asked of them ends.

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy as Policy;
use proto::temporal::api::schedule::v1 as public;

use super::given::{Scene, backfill, days, every_ten_seconds};
use crate::decide::{Input, Update};

/// Every second is a time, and every second is excluded.
fn never(policy: Policy) -> public::Schedule {
    let range = |start, end| vec![public::Range { start, end, step: 0 }];
    let always = public::StructuredCalendarSpec {
        second: range(0, 59),
        minute: range(0, 59),
        hour: range(0, 23),
        day_of_month: range(1, 31),
        month: range(1, 12),
        day_of_week: range(0, 6),
        ..Default::default()
    };
    let spec = public::ScheduleSpec {
        structured_calendar: vec![always.clone(); 20],
        exclude_structured_calendar: vec![always],
        ..Default::default()
    };
    public::Schedule { spec: Some(spec), ..every_ten_seconds(policy) }
}

#[test]
fn a_schedule_whose_times_are_all_excluded_has_nothing_to_do() {
    let scene = Scene::new(never(Policy::AllowAll));
    assert_eq!(scene.wakes_at(), Some(days(7)), "it is forgotten like one without times");
    let described = scene.schedule.described();
    let info = described.info.expect("what it did");
    assert_eq!(info.future_action_times, []);
    let (from, to) = (super::given::at(0), super::given::at(days(365)));
    let spec = scene.schedule.spec().expect("a specification");
    assert!(scene.schedule.matching_times(&spec, from, to).is_err());
}

#[test]
fn an_update_to_such_a_schedule_ends_its_times() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    scene.run_until(20);
    let update = Update {
        definition: never(Policy::AllowAll),
        search_attributes: None,
        memo: None,
        conflict_token: 0,
        request_id: "update".into(),
    };
    scene.input(25, Input::Update(Box::new(update))).expect("it is new");
    assert_eq!(scene.wakes_at(), Some(25 + days(7)));
    assert_eq!(scene.started, [10, 20]);
}

/// A thousand searches in one decision took a minute.
#[test]
fn many_backfills_of_such_a_schedule_are_dropped_one_by_one() {
    let mut scene = Scene::new(never(Policy::AllowAll));
    let mut patch = backfill(Policy::AllowAll, -days(100), -days(50));
    let one = patch.backfill_request[0];
    patch.backfill_request = vec![one; 50];
    scene.patch(1, patch);
    let left = scene.schedule.work.backfills.len();
    assert!((40..50).contains(&left), "{left} are left to later decisions");
    scene.run_until(60);
    assert_eq!((scene.schedule.work.backfills.len(), scene.started.len()), (0, 0));
}

#[test]
fn a_backfill_of_a_century_is_worked_off_in_parts() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    scene.patch(1, backfill(Policy::AllowAll, -days(50 * 365), days(50 * 365)));
    assert!(scene.started.len() <= 20, "{} at once", scene.started.len());
    assert_eq!(scene.schedule.work.backfills.len(), 1);
}
