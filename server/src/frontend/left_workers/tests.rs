//! How long, and how many.

use super::*;

const BEGIN: Timestamp = Timestamp(1_000_000_000_000);

const NAMESPACE: NamespaceId = NamespaceId(uuid::Uuid::from_u128(7));

fn worker(number: usize) -> String {
    format!("worker-{number}")
}

fn after(span: Duration) -> Timestamp {
    BEGIN + span
}

#[test]
fn a_worker_is_remembered_for_half_a_minute_after_it_said_so_last() {
    let mut left = LeftWorkers::default();
    left.insert(NAMESPACE, &worker(1), BEGIN);
    left.insert(NAMESPACE, &worker(2), BEGIN);
    left.insert(NAMESPACE, &worker(1), after(Duration::from_secs(10)));
    assert!(left.contains(NAMESPACE, &worker(2), after(REMEMBERED_FOR - Duration::from_nanos(1))));
    assert!(!left.contains(NAMESPACE, &worker(2), after(REMEMBERED_FOR)));
    assert!(left.contains(NAMESPACE, &worker(1), after(REMEMBERED_FOR)), "it said so again");
    assert!(!left.contains(NAMESPACE, &worker(1), after(REMEMBERED_FOR + Duration::from_secs(10))));
    assert!(left.left_at.is_empty() && left.in_order.is_empty());
}

#[test]
fn a_worker_of_the_same_key_elsewhere_is_another_one() {
    let mut left = LeftWorkers::default();
    left.insert(NAMESPACE, &worker(1), BEGIN);
    assert!(!left.contains(NamespaceId(uuid::Uuid::from_u128(8)), &worker(1), BEGIN));
}

#[test]
fn of_too_many_the_oldest_are_forgotten() {
    let mut left = LeftWorkers::default();
    for number in 0..=REMEMBERED_MAX {
        left.insert(NAMESPACE, &worker(number), BEGIN);
    }
    assert_eq!((left.left_at.len(), left.in_order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    assert!(!left.contains(NAMESPACE, &worker(0), BEGIN));
    assert!(left.contains(NAMESPACE, &worker(1), BEGIN) && left.contains(NAMESPACE, &worker(REMEMBERED_MAX), BEGIN));
}

#[test]
fn a_worker_without_a_key_is_not_remembered() {
    let mut left = LeftWorkers::default();
    left.insert(NAMESPACE, "", BEGIN);
    assert!(!left.contains(NAMESPACE, "", BEGIN));
    assert!(left.in_order.is_empty());
}

#[test]
fn a_long_key_takes_no_more_memory_than_a_short_one() {
    let mut left = LeftWorkers::default();
    let long = "k".repeat(4_000_000);
    left.insert(NAMESPACE, &long, BEGIN);
    assert!(left.contains(NAMESPACE, &long, BEGIN));
    assert_eq!(size_of_val(&left.in_order[0]), size_of::<(Timestamp, u64)>(), "nothing of the key is kept");
}
