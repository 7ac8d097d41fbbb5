//! Requests that change a schedule, and its end.

use proto::temporal::api::enums::v1::ScheduleOverlapPolicy as Policy;
use proto::temporal::api::schedule::v1 as public;

use super::given::{Scene, every_ten_seconds, trigger};
use crate::decide::{Input, Refusal, Update};

fn update(conflict_token: i64, request_id: &str) -> Input {
    Input::Update(Box::new(Update {
        definition: every_ten_seconds(Policy::BufferAll),
        search_attributes: None,
        memo: None,
        conflict_token,
        request_id: request_id.into(),
    }))
}

#[test]
fn an_update_must_know_what_it_changes() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    let token = scene.schedule.conflict_token;
    assert_eq!(scene.input(1, update(token + 1, "a")), Err(Refusal::Conflict));
    assert_eq!(scene.input(1, update(token, "b")), Ok(()));
    assert_eq!(scene.schedule.conflict_token, token + 1);
    assert_eq!(scene.input(2, update(token, "c")), Err(Refusal::Conflict));
    assert_eq!(scene.input(2, update(0, "d")), Ok(()), "who has no token means any state");
    assert_eq!(scene.schedule.policies().overlap_policy(), Policy::BufferAll);
}

#[test]
fn the_same_request_changes_a_schedule_once() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    let patch = |request: &str| Input::Patch { patch: trigger(Policy::AllowAll, 1), request_id: request.into() };
    assert_eq!(scene.input(1, patch("once")), Ok(()));
    assert_eq!(scene.input(2, patch("once")), Err(Refusal::Known));
    assert_eq!(scene.input(2, patch("twice")), Ok(()));
    assert_eq!(scene.schedule.work.starting.len(), 2);
    for number in 0..40 {
        assert_eq!(scene.input(3, patch(&number.to_string())), Ok(()));
    }
    assert_eq!(scene.schedule.requests.changes.len(), 32, "only the last ones are remembered");
}

#[test]
fn notes_come_with_pausing_and_change_the_token() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    let token = scene.schedule.conflict_token;
    scene.patch(1, public::SchedulePatch { pause: "holidays".into(), ..Default::default() });
    assert_eq!((scene.schedule.is_paused(), scene.wakes_at()), (true, None));
    assert_eq!(scene.schedule.state().notes, "holidays");
    assert_eq!(scene.schedule.conflict_token, token + 1);
}

#[test]
fn an_action_that_cannot_be_done_leaves_room_for_the_next() {
    use crate::decide::Outcome;
    let mut scene = Scene::new(every_ten_seconds(Policy::BufferAll));
    scene.input(20, Input::Woken).expect("a timer is never refused");
    assert_eq!((scene.schedule.work.starting.len(), scene.waiting()), (1, 1));
    let id = scene.schedule.work.starting[0].id;
    scene.input(20, Input::Acted(vec![Outcome::StartFailed { id }])).expect("outcomes are never refused");
    scene.act(20);
    assert_eq!(scene.started, [20]);
    assert_eq!(scene.schedule.counts.actions, 1);
}

#[test]
fn a_deleted_schedule_is_over_and_has_a_timer_for_what_is_left() {
    let mut scene = Scene::new(every_ten_seconds(Policy::Skip));
    scene.input(3, Input::Delete).expect("it can be deleted");
    assert!(scene.schedule.is_over);
    assert_eq!(scene.wakes_at(), Some(3));
    assert_eq!(scene.timers.last(), Some(&super::given::at(3)));
}

#[test]
fn what_is_listed_is_short_and_what_is_described_is_whole() {
    let mut scene = Scene::new(every_ten_seconds(Policy::AllowAll));
    scene.run_until(200);
    let described = scene.schedule.described();
    let info = described.info.expect("it is described");
    assert_eq!((info.action_count, info.recent_actions.len(), info.future_action_times.len()), (20, 10, 10));
    let listed = scene.schedule.list_info();
    assert_eq!((listed.recent_actions.len(), listed.future_action_times.len()), (5, 5));
    assert_eq!(listed.recent_actions, info.recent_actions[5..]);
    assert_eq!(described.conflict_token.as_ref(), 1_i64.to_be_bytes());
}
