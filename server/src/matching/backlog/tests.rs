//! Tables of what is written, read and finished, and what follows for memory and store.

use proto::everrow::record::Subqueue;

use super::{Backlog, Done, Limits, Placement};
use crate::matching::matcher::{Position, Priority, Rank};

const LIMITS: Limits = Limits { in_memory: 4, page: 2 };

fn position(task_id: i64) -> Position {
    Position { pass: 0, task_id }
}

fn rank(task_id: i64) -> Rank {
    Rank { priority: Priority::from_key(3), position: position(task_id) }
}

fn done(up_to: i64) -> Vec<Done> {
    vec![Done { priority: Priority::from_key(3), up_to: position(up_to) }]
}

fn appended(task_ids: std::ops::RangeInclusive<i64>) -> Backlog {
    let mut backlog = Backlog::new(LIMITS);
    for task_id in task_ids {
        assert_eq!(backlog.append(rank(task_id)), Placement::Memory);
    }
    backlog
}

#[test]
fn the_ack_level_passes_only_what_is_done() {
    let mut backlog = appended(1..=4);
    for (finished, expected) in [(2, vec![]), (1, done(2)), (4, done(2)), (3, done(4))] {
        backlog.finish(rank(finished));
        assert_eq!(backlog.done(), expected, "after {finished}");
    }
    assert_eq!(backlog.n_unsaved(), 4);
    assert_eq!(backlog.n_tasks(), 0);
}

#[test]
fn what_was_deleted_is_not_deleted_again() {
    let mut backlog = appended(1..=2);
    backlog.finish(rank(1));
    backlog.deleted(&done(1));
    assert_eq!((backlog.done(), backlog.n_unsaved()), (vec![], 0));
    backlog.finish(rank(2));
    assert_eq!(backlog.done(), done(2));
}

#[test]
fn what_does_not_fit_in_memory_is_read_back_in_its_turn() {
    let mut backlog = appended(1..=4);
    assert_eq!(backlog.append(rank(5)), Placement::Store);
    assert_eq!(backlog.next_read(), None, "there is no room for a page");
    backlog.finish(rank(1));
    assert_eq!(backlog.append(rank(6)), Placement::Store, "it may not overtake what is only in the store");
    backlog.finish(rank(2));
    assert_eq!(backlog.next_read(), Some((Priority::from_key(3), position(4))));
    backlog.load(Priority::from_key(3), [position(5), position(6)].into_iter(), true);
    assert_eq!((backlog.next_read(), backlog.n_tasks()), (None, 4));
    backlog.finish(rank(5));
    assert_eq!(backlog.append(rank(7)), Placement::Memory);
}

#[test]
fn a_restored_backlog_is_read_from_its_ack_level() {
    let mut backlog = Backlog::new(LIMITS);
    let subqueue =
        Subqueue { subqueue: 3, acked_pass: 0, acked_task_id: 7, approximate_backlog_count: 9, priority_key: 3 };
    backlog.restore(&[subqueue]);
    assert_eq!(backlog.n_tasks(), 9);
    assert_eq!(backlog.next_read(), Some((Priority::from_key(3), position(7))));
    assert_eq!(backlog.append(rank(12)), Placement::Store);
    backlog.load(Priority::from_key(3), [position(8), position(12)].into_iter(), true);
    assert_eq!(backlog.n_tasks(), 2, "a complete level is counted, not guessed");
    backlog.finish(rank(8));
    assert_eq!(backlog.subqueues()[0].acked_task_id, 8);
}

#[test]
fn levels_do_not_share_memory_or_ack_levels() {
    let mut backlog = appended(1..=4);
    let urgent = Rank { priority: Priority::from_key(1), position: position(5) };
    assert_eq!(backlog.append(urgent), Placement::Memory);
    backlog.finish(urgent);
    assert_eq!(backlog.done(), [Done { priority: Priority::from_key(1), up_to: position(5) }]);
    assert_eq!(backlog.n_tasks_of(Priority::from_key(3)), 4);
    assert_eq!(backlog.priorities().map(Priority::key).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn an_empty_last_page_completes_a_level() {
    let mut backlog = Backlog::new(LIMITS);
    backlog.restore(&[Subqueue { subqueue: 3, approximate_backlog_count: 5, ..Subqueue::default() }]);
    backlog.load(Priority::from_key(3), [].into_iter(), true);
    assert_eq!((backlog.next_read(), backlog.n_tasks()), (None, 0));
}
