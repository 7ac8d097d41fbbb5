//! A backlog has one writer, keeps its order, and forgets what is done.

use bytes::Bytes;
use persistence::error::StoreError;
use persistence::model::Fault;
use persistence::stores::shards::{Claim, RangeId};
use persistence::stores::task_queues::{BacklogPlace, BacklogTask, Completed, QueueKey};
use proto::everrow::record;
use uuid::Uuid;
use workflow::NamespaceId;

use super::{benches, on_model};

const START: BacklogPlace = BacklogPlace { pass: 0, task_id: 0 };

fn queue(name: &str) -> QueueKey {
    QueueKey { namespace_id: NamespaceId(Uuid::from_u128(1)), name: name.into(), task_type: 1 }
}

fn claim(owner: &str) -> Claim {
    Claim { owner: owner.to_owned(), nonce: Uuid::new_v4() }
}

fn task(subqueue: i32, pass: i64, task_id: i64) -> BacklogTask {
    let data = Bytes::from(format!("{subqueue}/{pass}/{task_id}"));
    BacklogTask { subqueue, place: BacklogPlace { pass, task_id }, data }
}

#[tokio::test]
async fn tasks_are_read_in_the_order_of_their_subqueue() {
    for bench in benches() {
        let (store, queue) = (&bench.stores.task_queues, queue("q"));
        assert_eq!(store.load(&queue).await.unwrap(), None);
        let mut lease = store.lease(&queue, claim("one")).await.unwrap();
        assert_eq!((lease.range_id, lease.record.owner.as_str()), (RangeId(1), "one"));
        lease.record.subqueues.push(record::Subqueue { subqueue: 2, acked_pass: 4, ..Default::default() });
        let tasks = vec![task(1, 9, 3), task(1, 8, 4), task(2, 1, 1), task(1, 9, 2)];
        store.append(&queue, lease.range_id, tasks, &lease.record).await.unwrap();

        let all = store.read(&queue, 1, START, 10).await.unwrap();
        assert_eq!((all.tasks, all.has_more), (vec![task(1, 8, 4), task(1, 9, 2), task(1, 9, 3)], false));
        let page = store.read(&queue, 1, BacklogPlace { pass: 8, task_id: 4 }, 1).await.unwrap();
        assert_eq!((page.tasks, page.has_more), (vec![task(1, 9, 2)], true));
        assert_eq!(store.load(&queue).await.unwrap(), Some(lease));
    }
}

#[tokio::test]
async fn what_is_done_goes_and_the_rest_stays() {
    for bench in benches() {
        let (store, queue) = (&bench.stores.task_queues, queue("q"));
        let lease = store.lease(&queue, claim("one")).await.unwrap();
        let tasks = vec![task(1, 1, 1), task(1, 2, 2), task(1, 3, 3), task(2, 1, 4)];
        store.append(&queue, lease.range_id, tasks, &lease.record).await.unwrap();
        let done = Completed { subqueue: 1, up_to: BacklogPlace { pass: 2, task_id: 2 } };
        store.save(&queue, lease.range_id, &lease.record, &[done]).await.unwrap();
        assert_eq!(store.read(&queue, 1, START, 10).await.unwrap().tasks, [task(1, 3, 3)]);
        assert_eq!(store.read(&queue, 2, START, 10).await.unwrap().tasks, [task(2, 1, 4)]);

        store.delete(&queue, lease.range_id).await.unwrap();
        assert_eq!(store.read(&queue, 1, START, 10).await.unwrap().tasks, []);
        assert_eq!(store.read(&queue, 2, START, 10).await.unwrap().tasks, []);
        let next = store.lease(&queue, claim("two")).await.unwrap();
        assert_eq!(next.range_id, RangeId(2), "ids made of the lease do not come again");
    }
}

#[tokio::test]
async fn whoever_lost_the_lease_writes_nothing() {
    for bench in benches() {
        let (store, queue) = (&bench.stores.task_queues, queue("q"));
        let old = store.lease(&queue, claim("one")).await.unwrap();
        let new = store.lease(&queue, claim("two")).await.unwrap();
        store.append(&queue, new.range_id, vec![task(1, 1, 1)], &new.record).await.unwrap();
        let done = Completed { subqueue: 1, up_to: BacklogPlace { pass: 9, task_id: 9 } };
        for refused in [
            store.append(&queue, old.range_id, vec![task(1, 1, 2)], &old.record).await,
            store.save(&queue, old.range_id, &old.record, &[done]).await,
            store.delete(&queue, old.range_id).await,
        ] {
            assert!(matches!(refused, Err(StoreError::LeaseLost(_))), "{refused:?}");
        }
        assert_eq!(store.read(&queue, 1, START, 10).await.unwrap().tasks, [task(1, 1, 1)]);
        assert_eq!(store.load(&queue).await.unwrap(), Some(new));
    }
}

#[tokio::test]
async fn an_unknown_outcome_of_a_claim_is_settled_by_its_nonce() {
    for fault in [Fault::TimeoutApplied, Fault::TimeoutNotApplied, Fault::AppliedLater] {
        let (model, stores) = on_model();
        let mine = claim("one");
        for expected in [RangeId(1), RangeId(2)] {
            model.inject(fault);
            let lease = stores.task_queues.lease(&queue("q"), mine.clone()).await.unwrap();
            assert_eq!(lease.range_id, expected, "{fault:?}");
            stores.task_queues.save(&queue("q"), lease.range_id, &lease.record, &[]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn user_data_changes_only_from_the_version_that_was_read() {
    for bench in benches() {
        let store = &bench.stores.task_queues;
        let namespace_id = NamespaceId(Uuid::from_u128(1));
        let update = |version, data: &'static str| store.update_user_data(namespace_id, "q", version, data.into());
        assert_eq!(store.user_data(namespace_id, "q").await.unwrap(), None);
        assert_eq!(update(None, "a").await.unwrap(), 1);
        assert_eq!(update(Some(1), "b").await.unwrap(), 2);
        assert!(matches!(update(None, "c").await, Err(StoreError::Refused(_))));
        assert!(matches!(update(Some(1), "c").await, Err(StoreError::Refused(_))));
        let stored = store.user_data(namespace_id, "q").await.unwrap().unwrap();
        assert_eq!((stored.version, stored.data.as_ref()), (2, b"b".as_slice()));
        assert_eq!(store.user_data(namespace_id, "other").await.unwrap(), None);
    }
}

#[tokio::test]
async fn queues_that_were_leased_are_found_until_they_are_forgotten() {
    for bench in benches() {
        let (store, namespace_id) = (&bench.stores.task_queues, queue("a").namespace_id);
        for name in ["a", "b", "a"] {
            store.lease(&queue(name), claim("one")).await.unwrap();
        }
        store.load(&queue("only looked at")).await.unwrap();
        assert_eq!(store.queues(namespace_id, 10).await.unwrap(), [queue("a"), queue("b")]);
        assert_eq!(store.queues(namespace_id, 1).await.unwrap(), [queue("a")]);
        store.forget_name(&queue("a")).await.unwrap();
        assert_eq!(store.queues(namespace_id, 10).await.unwrap(), [queue("b")]);
        assert_eq!(store.queues(NamespaceId(Uuid::from_u128(2)), 10).await.unwrap(), []);
    }
}
