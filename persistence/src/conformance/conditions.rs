//! Claims about conditional batches: when they are applied, and what a refusal returns.

use std::sync::Arc;

use super::given::{all, apply, composite, key, numbered, puts, refused, row, statics};
use crate::engine::{Batch, Condition, Current, Engine, KeyRange, Partition};
use crate::table::Value;

pub async fn a_static_condition_compares_with_the_value(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, leased(&partition, 1)).await;
    let renewed = Batch { conditions: vec![range_id_is(Some(1))], ..leased(&partition, 2) };
    apply(&*engine, renewed.clone()).await;
    assert_eq!(refused(&*engine, renewed).await, [Current::Static(Some(2_i64.into()))]);
    assert_eq!(statics(&*engine, &partition).await[0], Some(2_i64.into()));
}

pub async fn an_unset_static_can_be_a_condition(engine: Arc<dyn Engine>) {
    let partition = composite();
    let unleased = Batch { conditions: vec![range_id_is(Some(1))], ..leased(&partition, 2) };
    assert_eq!(refused(&*engine, unleased).await, [Current::Static(None)]);
    let first = Batch { conditions: vec![range_id_is(None)], ..leased(&partition, 1) };
    apply(&*engine, first.clone()).await;
    assert_eq!(refused(&*engine, first).await, [Current::Static(Some(1_i64.into()))]);
}

pub async fn an_absent_row_can_be_a_condition(engine: Arc<dyn Engine>) {
    let partition = composite();
    let create = |version: i64| Batch {
        conditions: vec![Condition::Absent { key: key(0, "", 0) }],
        ..puts(&partition, vec![row(key(0, "", 0), version)])
    };
    apply(&*engine, create(1)).await;
    assert_eq!(refused(&*engine, create(2)).await, [Current::Row(Some(row(key(0, "", 0), 1)))]);
    apply(&*engine, Batch { deletes: vec![key(0, "", 0)], ..Batch::new(partition.clone()) }).await;
    apply(&*engine, create(3)).await;
    assert_eq!(all(&*engine, &partition).await, [row(key(0, "", 0), 3)]);
}

pub async fn a_value_condition_compares_with_the_row(engine: Arc<dyn Engine>) {
    let partition = composite();
    let update = |from: i64, to: i64| Batch {
        conditions: vec![version_is(0, from)],
        ..puts(&partition, vec![row(key(0, "", 0), to)])
    };
    assert_eq!(refused(&*engine, update(1, 2)).await, [Current::Row(None)], "an absent row equals nothing");
    apply(&*engine, puts(&partition, vec![row(key(0, "", 0), 1)])).await;
    apply(&*engine, update(1, 2)).await;
    assert_eq!(refused(&*engine, update(1, 3)).await, [Current::Row(Some(row(key(0, "", 0), 2)))]);
    let delete =
        Batch { conditions: vec![version_is(0, 2)], deletes: vec![key(0, "", 0)], ..Batch::new(partition.clone()) };
    apply(&*engine, delete).await;
    assert_eq!(all(&*engine, &partition).await, []);
}

pub async fn all_conditions_must_hold(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, Batch { puts: numbered(1..3), ..leased(&partition, 5) }).await;
    let batch = |range_id: i64, first: i64, second: i64, created: i32| Batch {
        conditions: vec![
            range_id_is(Some(range_id)),
            version_is(1, first),
            version_is(2, second),
            Condition::Absent { key: key(created, "", 0) },
        ],
        puts: numbered([created]),
        ..Batch::new(partition.clone())
    };
    for wrong in [batch(4, 1, 2, 7), batch(5, 0, 2, 7), batch(5, 1, 1, 7), batch(5, 1, 2, 1)] {
        assert_eq!(refused(&*engine, wrong).await.len(), 4);
    }
    apply(&*engine, batch(5, 1, 2, 7)).await;
    assert_eq!(all(&*engine, &partition).await, numbered([1, 2, 7]));
}

pub async fn a_refused_batch_leaves_nothing(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, Batch { puts: numbered(0..4), ..leased(&partition, 5) }).await;
    let before = (statics(&*engine, &partition).await, all(&*engine, &partition).await);
    let batch = Batch {
        conditions: vec![range_id_is(Some(4))],
        statics: vec![(0, 6_i64.into()), (1, "other".into())],
        puts: vec![row(key(0, "", 0), 100), row(key(9, "", 0), 100)],
        deletes: vec![key(1, "", 0)],
        range_deletes: vec![KeyRange::prefix(vec![2.into()])],
        ..Batch::new(partition.clone())
    };
    refused(&*engine, batch).await;
    assert_eq!((statics(&*engine, &partition).await, all(&*engine, &partition).await), before);
}

pub async fn a_refusal_returns_the_current_values_of_every_condition(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, Batch { puts: numbered(0..2), ..leased(&partition, 5) }).await;
    let batch = Batch {
        conditions: vec![
            version_is(1, 1),
            range_id_is(Some(4)),
            Condition::Static { column: 1, equals: None },
            version_is(3, 3),
            Condition::Absent { key: key(0, "", 0) },
        ],
        puts: numbered([0]),
        ..Batch::new(partition.clone())
    };
    let expected = [
        Current::Row(Some(row(key(1, "", 0), 1))),
        Current::Static(Some(5_i64.into())),
        Current::Static(None),
        Current::Row(None),
        Current::Row(Some(row(key(0, "", 0), 0))),
    ];
    assert_eq!(refused(&*engine, batch).await, expected);
}

pub async fn a_condition_sees_the_write_acknowledged_before_it(engine: Arc<dyn Engine>) {
    let partition = composite();
    for range_id in 0..20 {
        let condition = range_id_is((range_id > 0).then_some(range_id));
        apply(&*engine, Batch { conditions: vec![condition], ..leased(&partition, range_id + 1) }).await;
    }
    assert_eq!(statics(&*engine, &partition).await[0], Some(20_i64.into()));
}

fn leased(partition: &Partition, range_id: i64) -> Batch {
    Batch { statics: vec![(0, range_id.into())], ..Batch::new(partition.clone()) }
}

fn range_id_is(range_id: Option<i64>) -> Condition {
    Condition::Static { column: 0, equals: range_id.map(Value::from) }
}

fn version_is(number: i32, version: i64) -> Condition {
    Condition::Value { key: key(number, "", 0), column: 0, equals: version.into() }
}
