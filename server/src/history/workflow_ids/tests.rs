//! When the filter is built, and that it has no false negatives.

use uuid::Uuid;

use super::*;

const NAMESPACE: NamespaceId = NamespaceId(Uuid::from_u128(1));

fn id(n: usize) -> String {
    format!("workflow-{n}")
}

fn is_wanted(ids: &WorkflowIds) -> bool {
    let wanted = std::pin::pin!(ids.wanted.notified());
    futures_util::FutureExt::now_or_never(wanted).is_some()
}

#[test]
fn a_filter_forgets_nobody_and_takes_few_strangers_in() {
    const N: usize = 20_000;
    let mut filter = Filter::new(N);
    (0..N).for_each(|n| filter.add(NAMESPACE, &id(n)));
    assert!((0..N).all(|n| filter.may_have(NAMESPACE, &id(n))));
    let n_false_positives = (N..2 * N).filter(|n| filter.may_have(NAMESPACE, &id(*n))).count();
    assert!(n_false_positives < N / 50, "{n_false_positives} of {N} absent ids");
    let other = NamespaceId(Uuid::from_u128(2));
    let n_of_other = (0..N).filter(|n| filter.may_have(other, &id(*n))).count();
    assert!(n_of_other < N / 50, "{n_of_other} of another namespace");
}

#[test]
fn an_id_that_is_added_again_takes_no_room() {
    let mut filter = Filter::new(10);
    (0..100).for_each(|_| filter.add(NAMESPACE, "the same"));
    assert!(!filter.is_full());
    (0..10).for_each(|n| filter.add(NAMESPACE, &id(n)));
    assert!(filter.is_full());
}

#[test]
fn nothing_is_ruled_out_before_all_is_known() {
    let ids = WorkflowIds::new(1 << 20);
    assert!(ids.may_have(NAMESPACE, "new"));
    assert!(ids.begin(0));
    ids.add(NAMESPACE, "added while learning");
    assert!(ids.may_have(NAMESPACE, "new"));
    ids.complete();
    assert!(!ids.may_have(NAMESPACE, "new"));
    assert!(ids.may_have(NAMESPACE, "added while learning"));
    ids.add(NAMESPACE, "new");
    assert!(ids.may_have(NAMESPACE, "new"));
}

#[test]
fn ids_are_learned_once_looking_for_them_has_cost_as_much() {
    const N_RUNS: usize = 1000;
    let ids = WorkflowIds::new(1 << 20);
    for n in 1..N_RUNS / IDS_PER_MISS {
        ids.record_miss(|| N_RUNS);
        assert!(!is_wanted(&ids), "after {n} looks");
    }
    for _ in 0..N_RUNS / IDS_PER_MISS {
        ids.record_miss(|| N_RUNS);
    }
    assert!(is_wanted(&ids));
}

#[test]
fn a_shard_without_runs_is_learned_at_once() {
    let ids = WorkflowIds::new(1 << 20);
    ids.record_miss(|| 0);
    assert!(is_wanted(&ids));
}

#[test]
fn what_does_not_fit_is_looked_for_again() {
    let ids = WorkflowIds::new(1 << 10);
    assert!(!ids.begin(ids.ids_max), "more than fit");
    assert!(ids.begin(0));
    ids.complete();
    assert!(!ids.may_have(NAMESPACE, "new"));
    (0..2 * ids.ids_max).for_each(|n| ids.add(NAMESPACE, &id(n)));
    assert!(ids.may_have(NAMESPACE, "new"), "a full filter is thrown away");
    ids.record_miss(|| 2 * ids.ids_max);
    assert!(!is_wanted(&ids), "it is counted from the beginning");
}

#[test]
fn runs_that_are_not_counted_are_not_read_again_and_again() {
    let ids = WorkflowIds::new(1 << 20);
    assert!(ids.begin(0));
    // Some look like others, and take no room.
    (0..IDS_MIN + IDS_MIN / 2).for_each(|n| ids.add(NAMESPACE, &id(n)));
    assert!(!ids.add_page(&[]), "it is full");
    ids.record_miss(|| 0);
    assert!(!is_wanted(&ids), "there are as many as were seen");
    (0..IDS_MIN).for_each(|_| ids.record_miss(|| 0));
    assert!(is_wanted(&ids));
    assert!(ids.begin(0));
    (0..IDS_MIN + IDS_MIN / 2).for_each(|n| ids.add(NAMESPACE, &id(n)));
    assert!(ids.add_page(&[]), "now there is room");
}

#[test]
fn what_is_known_is_not_learned_again() {
    let ids = WorkflowIds::new(1 << 20);
    assert!(ids.begin(0));
    assert!(!ids.begin(0));
    ids.complete();
    assert!(!ids.begin(0));
    assert!(!ids.may_have(NAMESPACE, "new"));
}

#[test]
fn after_each_failure_learning_waits_twice_as_long() {
    let ids = WorkflowIds::new(1 << 20);
    for n_failures in 0..4 {
        assert!(ids.begin(0));
        ids.fail();
        let n_misses = (1..).find(|_| {
            ids.record_miss(|| 0);
            is_wanted(&ids)
        });
        assert_eq!(n_misses, Some(MISSES_AFTER_FAILURE << n_failures));
    }
}

#[test]
fn a_filter_that_fills_up_while_it_is_learned_is_not_completed() {
    let ids = WorkflowIds::new(1 << 10);
    assert!(ids.begin(0));
    (0..2 * ids.ids_max).for_each(|n| ids.add(NAMESPACE, &id(n)));
    ids.complete();
    assert!(ids.may_have(NAMESPACE, "new"));
}
