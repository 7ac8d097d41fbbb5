//! Tables of offers and the pairs they make.

use super::{Matcher, Position, Priority, Rank};

fn rank(priority: i32, task_id: i64) -> Rank {
    Rank { priority: Priority::from_key(priority), position: Position { pass: 0, task_id } }
}

/// Tasks as (priority key, task id), pollers by name; the pairs as "task→poller" in the order they are made.
fn check(tasks: &[(i32, i64)], pollers: &[&str], expected: &[&str]) {
    let mut matcher = Matcher::new();
    for &(priority, task_id) in tasks {
        matcher.add_task(rank(priority, task_id), task_id);
    }
    for &poller in pollers {
        matcher.add_poller(poller);
    }
    let pairs: Vec<_> =
        std::iter::from_fn(|| matcher.pair()).map(|(_, task, poller)| format!("{task}→{poller}")).collect();
    assert_eq!(pairs, expected, "tasks {tasks:?}, pollers {pollers:?}");
    assert!(!matcher.has_pair(), "no pair is left behind");
}

#[test]
fn nothing_pairs_with_nothing() {
    check(&[], &[], &[]);
    check(&[(3, 1)], &[], &[]);
    check(&[], &["a"], &[]);
}

#[test]
fn older_tasks_and_longer_waiting_pollers_go_first() {
    check(&[(3, 2), (3, 1), (3, 3)], &["a", "b"], &["1→a", "2→b"]);
}

#[test]
fn priority_goes_before_age() {
    check(&[(3, 1), (5, 2), (1, 3)], &["a", "b", "c"], &["3→a", "1→b", "2→c"]);
}

#[test]
fn no_priority_means_three_and_strange_ones_mean_the_nearest() {
    check(&[(4, 1), (0, 2), (2, 3)], &["a", "b", "c"], &["3→a", "2→b", "1→c"]);
    assert_eq!(Priority::from_key(-7).key(), 1);
    assert_eq!(Priority::from_key(0).key(), 3);
    assert_eq!(Priority::from_key(99).key(), 5);
}

#[test]
fn a_pass_goes_before_age() {
    let mut matcher: Matcher<i64, ()> = Matcher::new();
    for (pass, task_id) in [(2, 1), (1, 2)] {
        matcher.add_task(Rank { priority: Priority::from_key(3), position: Position { pass, task_id } }, task_id);
    }
    assert_eq!(matcher.first_task().map(|(_, task)| *task), Some(2));
}

#[test]
fn a_removed_poller_gets_nothing() {
    let mut matcher = Matcher::new();
    let gone = matcher.add_poller("gone");
    matcher.add_poller("here");
    assert_eq!(matcher.remove_poller(gone), Some("gone"));
    assert_eq!(matcher.remove_poller(gone), None);
    matcher.add_task(rank(3, 1), 1);
    assert_eq!(matcher.pair().map(|(_, _, poller)| poller), Some("here"));
}

#[test]
fn a_new_task_takes_the_longest_waiting_poller_but_overtakes_no_waiting_task() {
    let mut matcher = Matcher::new();
    matcher.add_poller("a");
    matcher.add_poller("b");
    assert_eq!(matcher.take_free_poller(), Some("a"));
    matcher.add_task(rank(5, 1), 1);
    assert_eq!(matcher.take_free_poller(), None);
    assert_eq!(matcher.n_pollers(), 1);
}

#[test]
fn the_first_of_a_priority_is_its_oldest() {
    let mut matcher: Matcher<i64, ()> = Matcher::new();
    for (priority, task_id) in [(2, 9), (3, 5), (3, 4)] {
        matcher.add_task(rank(priority, task_id), task_id);
    }
    assert_eq!(matcher.first_of(Priority::from_key(3)), Some(&4));
    assert_eq!(matcher.first_of(Priority::from_key(4)), None);
    assert_eq!(matcher.first_of(Priority::from_key(1)), None);
    assert_eq!(matcher.remove_task(rank(2, 9)), Some(9));
    assert_eq!(matcher.first_task().map(|(_, task)| *task), Some(4));
}
