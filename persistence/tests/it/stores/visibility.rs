//! Visibility on each engine: in order, once for each run, and gone when the run is. Late writes, on the model.

use std::ops::Bound;
use std::sync::Arc;

use persistence::engine::{Engine, KeyRange, Partition, Slice};
use persistence::stores::visibility::record::{Close, Record, Term, WORKFLOW_ID, WORKFLOW_TYPE};
use persistence::stores::visibility::value::Value;
use persistence::stores::visibility::{Change, Index, Known, Put, Removal, Segment, VisibilityStore};
use persistence::tables::VISIBILITY;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use uuid::Uuid;
use workflow::{Listing, NamespaceId, RunId, Timestamp};

use super::{benches, on_model};

const NAMESPACE: NamespaceId = NamespaceId(Uuid::from_u128(9));
const ALL: (Bound<Timestamp>, Bound<Timestamp>) = (Bound::Unbounded, Bound::Unbounded);

fn open(n: u32) -> Record {
    Record {
        namespace_id: NAMESPACE,
        workflow_id: format!("order-{n}").into(),
        run_id: RunId(uuid::Builder::from_random_bytes(u128::from(n).to_be_bytes()).into_uuid()),
        workflow_type: "cook".to_owned(),
        task_queue: "kitchen".to_owned(),
        status: WorkflowExecutionStatus::Running,
        started_at: Timestamp(1000 + i64::from(n)),
        executes_at: Timestamp(1000 + i64::from(n)),
        closed: None,
        memo: Default::default(),
        search_attributes: Default::default(),
        parent: None,
        root: None,
        listing: Listing { started_in: 5, closed_in: None },
        version: 1,
    }
}

fn closed(n: u32, closed_in: i64) -> Record {
    let at = Timestamp(9000 - i64::from(n));
    Record {
        status: WorkflowExecutionStatus::Completed,
        closed: Some(Close { at, history_length: 5, history_size: 500, state_transitions: 3 }),
        listing: Listing { started_in: 5, closed_in: Some(closed_in) },
        version: 7,
        ..open(n)
    }
}

fn later(record: Record) -> Record {
    Record { version: record.version + 1, ..record }
}

fn put(record: Record, known: Known) -> Change {
    Change::Put(Box::new(Put { record, terms: Vec::new(), stale: Vec::new(), known }))
}

async fn scan(store: &VisibilityStore, segment: i64, index: Index) -> Vec<Record> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.scan((NAMESPACE, segment), &index, after, 2).await.unwrap();
        found.extend(page.runs.into_iter().filter_map(|run| run.record));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

async fn by_term(store: &VisibilityStore, index: &str, from: &[u8], to: &[u8]) -> Vec<RunId> {
    let (from, to) = (Bound::Included(from.to_vec()), Bound::Included(to.to_vec()));
    let index = Index::Terms { index: Arc::from(index), from, to };
    let page = store.scan((NAMESPACE, 5), &index, None, 100).await.unwrap();
    page.runs.iter().map(|run| run.run_id).collect()
}

#[tokio::test]
async fn runs_are_listed_in_the_orders_that_lists_want() {
    for bench in benches() {
        let store = &bench.stores.visibility;
        let started: Vec<Change> = (1..=5).map(|n| put(open(n), Known::Never)).collect();
        store.write(&started).await.unwrap();
        let newest_first: Vec<Record> = (1..=5).rev().map(open).collect();
        assert_eq!(scan(store, 5, Index::Started(ALL.0, ALL.1)).await, newest_first);
        assert_eq!(scan(store, 5, Index::Open(ALL.0, ALL.1)).await, newest_first);
        let within = Index::Open(Bound::Included(Timestamp(1002)), Bound::Excluded(Timestamp(1004)));
        assert_eq!(scan(store, 5, within).await, [open(3), open(2)]);

        store.write(&[put(closed(2, 5), Known::Surely), put(closed(4, 5), Known::Surely)]).await.unwrap();
        assert_eq!(scan(store, 5, Index::Open(ALL.0, ALL.1)).await, [open(5), open(3), open(1)]);
        let completed = |from, to| Index::Closed(WorkflowExecutionStatus::Completed, from, to);
        assert_eq!(scan(store, 5, completed(ALL.0, ALL.1)).await, [closed(2, 5), closed(4, 5)]);
        let late = completed(Bound::Excluded(Timestamp(8996)), Bound::Unbounded);
        assert_eq!(scan(store, 5, late).await, [closed(2, 5)]);
        let failed = Index::Closed(WorkflowExecutionStatus::Failed, ALL.0, ALL.1);
        assert!(scan(store, 5, failed).await.is_empty());
        assert_eq!(scan(store, 5, Index::Started(ALL.0, ALL.1)).await[1], closed(4, 5));
    }
}

#[tokio::test]
async fn a_run_that_closes_elsewhere_is_found_there_and_is_open_nowhere() {
    for bench in benches() {
        let store = &bench.stores.visibility;
        store.write(&[put(open(1), Known::Never)]).await.unwrap();
        store.write(&[put(closed(1, 6), Known::Surely)]).await.unwrap();
        let completed = Index::Closed(WorkflowExecutionStatus::Completed, ALL.0, ALL.1);
        assert_eq!(scan(store, 6, completed.clone()).await, [closed(1, 6)]);
        assert!(scan(store, 5, completed).await.is_empty());
        assert!(scan(store, 5, Index::Open(ALL.0, ALL.1)).await.is_empty());
        let found = store.find((NAMESPACE, 5), open(1).started_at, open(1).run_id).await.unwrap();
        assert_eq!(found, Some(closed(1, 6)));
    }
}

#[tokio::test]
async fn a_run_is_found_by_its_terms_until_they_are_others() {
    for bench in benches() {
        let store = &bench.stores.visibility;
        let of = |number: i64| Term::of_attribute("Size", &Value::Int(number)).collect::<Vec<_>>();
        for n in 1..=3 {
            let put = Put { record: open(n), terms: of(i64::from(n)), stale: Vec::new(), known: Known::Never };
            store.write(&[Change::Put(Box::new(put))]).await.unwrap();
        }
        let key = |number: i64| of(number)[0].key.clone();
        assert_eq!(by_term(store, WORKFLOW_ID, b"order-2", b"order-2").await, [open(2).run_id]);
        assert_eq!(by_term(store, WORKFLOW_TYPE, b"cook", b"cook").await.len(), 3);
        assert_eq!(by_term(store, "Size:Int", &key(2), &key(9)).await, [open(2).run_id, open(3).run_id]);
        let put = Put { record: later(open(2)), terms: of(8), stale: of(2), known: Known::Surely };
        store.write(&[Change::Put(Box::new(put))]).await.unwrap();
        assert_eq!(by_term(store, "Size:Int", &key(2), &key(9)).await, [open(3).run_id, open(2).run_id]);
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_run_that_was_removed() {
    for bench in benches() {
        let store = &bench.stores.visibility;
        let terms: Vec<Term> = Term::of_attribute("Size", &Value::Int(3)).collect();
        let known = Known::Never;
        let first = Put { record: open(1), terms: terms.clone(), stale: Vec::new(), known };
        store.write(&[Change::Put(Box::new(first))]).await.unwrap();
        store.write(&[put(closed(1, 6), Known::Surely)]).await.unwrap();
        let removal = Change::Remove(Box::new(Removal { record: closed(1, 6), terms: terms.clone() }));
        // Once more does no harm.
        for _ in 0..2 {
            store.write(std::slice::from_ref(&removal)).await.unwrap();
        }
        assert_eq!(n_rows(&*bench.engine).await, 0);
    }
}

/// Of the segments that runs are in.
async fn n_rows(engine: &dyn Engine) -> usize {
    let mut n_rows = 0;
    for segment in [5_i64, 6] {
        let partition = Partition::new(&VISIBILITY, vec![NAMESPACE.0.into(), segment.into()]);
        n_rows += engine.read(Slice::new(partition, KeyRange::all(), 100)).await.unwrap().rows.len();
    }
    n_rows
}

#[tokio::test]
async fn telling_it_again_changes_nothing() {
    for bench in benches() {
        let store = &bench.stores.visibility;
        for known in [Known::Never, Known::Perhaps, Known::Perhaps] {
            store.write(&[put(closed(1, 5), known)]).await.unwrap();
            assert_eq!(scan(store, 5, Index::Started(ALL.0, ALL.1)).await, [closed(1, 5)]);
            assert!(scan(store, 5, Index::Open(ALL.0, ALL.1)).await.is_empty());
        }
    }
}

#[tokio::test]
async fn segments_are_listed_newest_first() {
    for bench in benches() {
        let store = &bench.stores.visibility;
        for id in [7, 3, 12] {
            store.put_segment(NAMESPACE, announced(id)).await.unwrap();
        }
        let sealed = Segment { sealed_at: Some(Timestamp(44)), is_settled: true, ..announced(7) };
        store.put_segment(NAMESPACE, sealed).await.unwrap();
        assert_eq!(store.segments(NAMESPACE).await.unwrap(), [announced(12), sealed, announced(3)]);
        assert!(store.segments(NamespaceId(Uuid::from_u128(10))).await.unwrap().is_empty());
    }
}

fn announced(id: i64) -> Segment {
    Segment { id, announced_at: Timestamp(id * 1_000_000), sealed_at: None, is_settled: false }
}

#[tokio::test]
async fn a_start_that_is_told_late_does_not_reopen_a_closed_run() {
    let (_, stores) = on_model();
    let store = &stores.visibility;
    for (n, closed_in) in [(1, 5), (2, 6)] {
        store.write(&[put(closed(n, closed_in), Known::Perhaps)]).await.unwrap();
        store.write(&[put(open(n), Known::Never)]).await.unwrap();
        let completed = Index::Closed(WorkflowExecutionStatus::Completed, ALL.0, ALL.1);
        assert_eq!(scan(store, closed_in, completed).await, [closed(n, closed_in)]);
    }
    assert!(scan(store, 5, Index::Open(ALL.0, ALL.1)).await.is_empty());
    assert_eq!(scan(store, 5, Index::Started(ALL.0, ALL.1)).await, [closed(2, 6), closed(1, 5)]);
}

#[tokio::test]
async fn a_term_that_is_told_late_does_not_come_back() {
    let (_, stores) = on_model();
    let store = &stores.visibility;
    let of = |number: i64| Term::of_attribute("Size", &Value::Int(number)).collect::<Vec<_>>();
    let second = Put { record: later(open(1)), terms: of(2), stale: of(1), known: Known::Perhaps };
    let first = Put { record: open(1), terms: of(1), stale: Vec::new(), known: Known::Never };
    for told in [second, first] {
        store.write(&[Change::Put(Box::new(told))]).await.unwrap();
    }
    assert!(by_term(store, "Size:Int", &of(1)[0].key, &of(1)[0].key).await.is_empty());
    assert_eq!(by_term(store, "Size:Int", &of(2)[0].key, &of(2)[0].key).await, [open(1).run_id]);
    assert_eq!(scan(store, 5, Index::Started(ALL.0, ALL.1)).await, [later(open(1))]);
}

#[tokio::test]
async fn what_is_told_late_of_a_removed_run_leaves_nothing() {
    let (model, stores) = on_model();
    let store = &stores.visibility;
    store.write(&[Change::Remove(Box::new(Removal { record: closed(1, 6), terms: Vec::new() }))]).await.unwrap();
    // Even if the run went on in between, unknown to the remover.
    for told in [open(1), closed(1, 6), later(closed(1, 6))] {
        store.write(&[put(told, Known::Perhaps)]).await.unwrap();
    }
    assert_eq!(n_rows(&*model).await, 0);
}

#[tokio::test]
async fn what_is_told_late_of_a_removed_namespace_leaves_nothing() {
    let (model, stores) = on_model();
    let store = &stores.visibility;
    for id in [5, 6] {
        store.put_segment(NAMESPACE, announced(id)).await.unwrap();
    }
    store.write(&[put(open(1), Known::Never)]).await.unwrap();
    store.remove_namespace(NAMESPACE, Timestamp(20_000)).await.unwrap();
    store.put_segment(NAMESPACE, announced(5)).await.unwrap();
    store.write(&[put(closed(1, 6), Known::Perhaps)]).await.unwrap();
    assert_eq!(n_rows(&*model).await, 0);
    assert_eq!(store.segments(NAMESPACE).await.unwrap(), []);
}

#[tokio::test]
async fn what_is_told_late_of_a_segment_takes_nothing_back() {
    let (_, stores) = on_model();
    let store = &stores.visibility;
    let sealed = Segment { sealed_at: Some(Timestamp(44)), ..announced(7) };
    let settled = Segment { is_settled: true, ..sealed };
    let steps = [announced(7), sealed, settled];
    for (reached, step) in steps.iter().enumerate() {
        store.put_segment(NAMESPACE, *step).await.unwrap();
        for late in &steps[..=reached] {
            store.put_segment(NAMESPACE, *late).await.unwrap();
            assert_eq!(store.segments(NAMESPACE).await.unwrap(), [*step]);
        }
    }
    store.remove_segment(NAMESPACE, settled).await.unwrap();
    for late in steps {
        store.put_segment(NAMESPACE, late).await.unwrap();
        assert_eq!(store.segments(NAMESPACE).await.unwrap(), []);
    }
    let again = Segment { announced_at: Timestamp(900_000_000), ..announced(7) };
    for step in [again, Segment { is_settled: true, ..again }] {
        store.put_segment(NAMESPACE, step).await.unwrap();
        assert_eq!(store.segments(NAMESPACE).await.unwrap(), [step], "it is announced once more");
    }
}
