//! Batches and the statements they become.

use bytes::Bytes;
use persistence::engine::KeyRange;
use persistence::tables::{HISTORY_TREE, TASK_QUEUES, VISIBILITY};
use uuid::Uuid;

use super::*;

fn partition() -> Partition {
    Partition::new(&TASK_QUEUES, vec![Uuid::nil().into(), "queue".into(), 1.into()])
}

fn key(task_id: i64) -> Vec<Value> {
    vec![0.into(), 0_i64.into(), task_id.into()]
}

fn row(task_id: i64) -> Row {
    Row { key: key(task_id), values: vec![blob("new")] }
}

fn blob(text: &'static str) -> Value {
    Bytes::from_static(text.as_bytes()).into()
}

fn data_is(task_id: i64, text: &'static str) -> Condition {
    Condition::Value { key: key(task_id), column: 0, equals: blob(text) }
}

/// Shapes and the values after those of the partition, which every statement has somewhere.
fn check(batch: Batch, expected: Vec<(Shape, Vec<Value>)>) {
    batch.check();
    let partition = batch.partition.key.clone();
    let steps = steps(&batch).unwrap();
    let of_step = |step: Step| {
        let values = step.values.into_iter().map(|value| value.0).filter(|value| !partition.contains(value));
        (step.shape, values.collect())
    };
    assert_eq!(steps.into_iter().map(of_step).collect::<Vec<_>>(), expected);
}

#[test]
fn an_empty_batch_has_no_statement() {
    check(Batch::new(partition()), vec![]);
}

#[test]
fn conditions_ride_on_what_is_put_or_deleted() {
    let batch = Batch {
        conditions: vec![Condition::Absent { key: key(7) }, data_is(8, "old"), data_is(9, "old")],
        puts: vec![row(7), row(8)],
        deletes: vec![key(9)],
        ..Batch::new(partition())
    };
    let whole = |task_id: i64| key(task_id);
    check(
        batch,
        vec![
            (Shape::PutIfAbsent, [whole(7), vec![blob("new")]].concat()),
            (Shape::PutIf(vec![0]), [vec![blob("new")], whole(8), vec![blob("old")]].concat()),
            (Shape::DeleteIf(vec![0]), [whole(9), vec![blob("old")]].concat()),
        ],
    );
}

#[test]
fn a_row_that_is_only_a_condition_is_kept() {
    let batch = Batch { conditions: vec![data_is(8, "old")], ..Batch::new(partition()) };
    let values = [vec![blob("old")], key(8), vec![blob("old")]].concat();
    check(batch, vec![(Shape::KeepIf(vec![0]), values)]);
}

#[test]
fn a_condition_within_a_range_delete_deletes_its_row() {
    let range = KeyRange::prefix(key(8)[..2].to_vec());
    let batch =
        Batch { conditions: vec![data_is(8, "old")], range_deletes: vec![range.clone()], ..Batch::new(partition()) };
    let shape = RangeShape::new(&Range::new(&range).unwrap());
    check(
        batch,
        vec![
            (Shape::DeleteIf(vec![0]), [key(8), vec![blob("old")]].concat()),
            (Shape::DeleteRange(shape), key(8)[..2].to_vec()),
        ],
    );
}

#[test]
fn static_columns_are_set_and_compared_in_one_statement() {
    let batch = Batch {
        conditions: vec![Condition::Static { column: 0, equals: Some(4_i64.into()) }],
        statics: vec![(0, 5_i64.into())],
        ..Batch::new(partition())
    };
    let shape = Shape::SetStatics { set: vec![(0, Cell::Bound)], conditions: vec![(0, Cell::Bound)] };
    check(batch, vec![(shape, vec![5_i64.into(), 4_i64.into()]), anchored()]);
}

/// Every batch that compares a static column has it.
fn anchored() -> (Shape, Vec<Value>) {
    (Shape::PutKey, vec![i32::MIN.into(), i64::MIN.into(), i64::MIN.into()])
}

#[test]
fn a_static_column_that_is_only_a_condition_is_set_to_what_it_is() {
    let lease = |equals: Option<Value>| Batch {
        conditions: vec![Condition::Static { column: 0, equals }],
        ..Batch::new(partition())
    };
    let shape = |cell| Shape::SetStatics { set: vec![(0, cell)], conditions: vec![(0, cell)] };
    check(lease(Some(4_i64.into())), vec![(shape(Cell::Bound), vec![4_i64.into(), 4_i64.into()]), anchored()]);
    check(lease(None), vec![(shape(Cell::Null), vec![]), anchored()]);
}

#[test]
fn deleting_every_row_spares_the_anchor_and_the_static_columns() {
    let all = |partition| Batch { range_deletes: vec![KeyRange::all()], ..Batch::new(partition) };
    let part = |equal: &[Value], above: Value| {
        let range = Range { equal: equal.to_vec(), lower: Excluded(vec![above.clone()]), upper: Unbounded };
        (Shape::DeleteRange(RangeShape::new(&range)), [equal, &[above]].concat())
    };
    let [subqueue, pass, task_id]: [Value; 3] = [i32::MIN.into(), i64::MIN.into(), i64::MIN.into()];
    let parts = vec![
        part(&[subqueue.clone(), pass.clone()], task_id),
        part(std::slice::from_ref(&subqueue), pass),
        part(&[], subqueue),
    ];
    check(all(partition()), parts);

    let tree = Partition::new(&HISTORY_TREE, vec![Uuid::nil().into()]);
    let whole = Range { equal: vec![], lower: Unbounded, upper: Unbounded };
    check(all(tree), vec![(Shape::DeleteRange(RangeShape::new(&whole)), vec![])]);
}

#[test]
fn a_row_cannot_be_absent_and_have_a_value() {
    let absent = || Condition::Absent { key: key(7) };
    for conditions in [vec![absent(), data_is(7, "old")], vec![data_is(7, "old"), absent()]] {
        let batch = Batch { conditions, puts: vec![row(7)], ..Batch::new(partition()) };
        assert_eq!(steps(&batch), None);
    }
}

#[test]
fn every_versioned_change_has_a_version_of_its_own() {
    let partition = Partition::new(&VISIBILITY, vec![Uuid::nil().into(), 0_i64.into()]);
    let key = |kind: i32| -> Vec<Value> {
        vec![kind.into(), "name".into(), blob("value"), 7_i64.into(), Uuid::from_u128(1).into()]
    };
    let row = Row { key: key(2), values: vec![3_i64.into(), blob("new")] };
    let versioned = vec![
        Versioned { version: 11, change: RowChange::Put(row.clone()) },
        Versioned { version: 12, change: RowChange::Delete(key(3)) },
        Versioned { version: 13, change: RowChange::DeleteRange(KeyRange::prefix(vec![4.into()])) },
    ];
    let range = RangeShape::new(&Range::new(&KeyRange::prefix(vec![4.into()])).unwrap());
    check(
        Batch { versioned, ..Batch::new(partition) },
        vec![
            (Shape::PutAt, [row.key, row.values, vec![11_i64.into()]].concat()),
            (Shape::DeleteAt, [vec![12_i64.into()], key(3)].concat()),
            (Shape::DeleteRangeAt(range), vec![13_i64.into(), 4.into()]),
        ],
    );
}
