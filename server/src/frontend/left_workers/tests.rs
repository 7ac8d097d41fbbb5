//! How long, and how many.

use super::*;

const BEGIN: Timestamp = Timestamp(1_000_000_000_000);

fn worker(number: usize) -> Worker {
    (NamespaceId(uuid::Uuid::from_u128(7)), format!("worker-{number}"))
}

fn after(span: Duration) -> Timestamp {
    BEGIN + span
}

#[test]
fn a_worker_is_remembered_for_half_a_minute_after_it_said_so_last() {
    let mut left = LeftWorkers::default();
    left.insert(worker(1), BEGIN);
    left.insert(worker(2), BEGIN);
    left.insert(worker(1), after(Duration::from_secs(10)));
    assert!(left.contains(&worker(2), after(REMEMBERED_FOR - Duration::from_nanos(1))));
    assert!(!left.contains(&worker(2), after(REMEMBERED_FOR)));
    assert!(left.contains(&worker(1), after(REMEMBERED_FOR)), "it said so again");
    assert!(!left.contains(&worker(1), after(REMEMBERED_FOR + Duration::from_secs(10))));
    assert!(left.left_at.is_empty() && left.in_order.is_empty());
}

#[test]
fn a_worker_of_the_same_key_elsewhere_is_another_one() {
    let mut left = LeftWorkers::default();
    left.insert(worker(1), BEGIN);
    let (_, key) = worker(1);
    assert!(!left.contains(&(NamespaceId(uuid::Uuid::from_u128(8)), key), BEGIN));
}

#[test]
fn of_too_many_the_oldest_are_forgotten() {
    let mut left = LeftWorkers::default();
    for number in 0..=REMEMBERED_MAX {
        left.insert(worker(number), BEGIN);
    }
    assert_eq!((left.left_at.len(), left.in_order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    assert!(!left.contains(&worker(0), BEGIN));
    assert!(left.contains(&worker(1), BEGIN) && left.contains(&worker(REMEMBERED_MAX), BEGIN));
}
