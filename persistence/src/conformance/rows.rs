//! Claims about single rows: putting, replacing, deleting, and values of every kind.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::given::{all, apply, composite, key, numbered, puts, row, statics};
use super::tables::KINDS;
use crate::engine::{Batch, Durable, Engine, Partition, Row};
use crate::table::Value;

pub async fn every_kind_of_value_is_read_back(engine: Arc<dyn Engine>) {
    let every_byte = Bytes::from_iter(0..=u8::MAX);
    let text = "zero \0, quote ' and \", ä, 中, 😀, \u{10ffff}";
    let full = |uuid: Uuid| kinds(uuid, i32::MIN, i64::MAX, text, every_byte.clone());
    let partition = Partition::new(&KINDS, full(Uuid::new_v4()));
    let written = Row { key: vec![1.into()], values: full(Uuid::new_v4()) };
    let above = full(Uuid::new_v4());
    let batch = Batch {
        puts: vec![written.clone()],
        statics: above.iter().cloned().enumerate().collect(),
        ..Batch::new(partition.clone())
    };
    apply(&*engine, batch).await;
    assert_eq!(all(&*engine, &partition).await, [written]);
    assert_eq!(statics(&*engine, &partition).await, above.into_iter().map(Some).collect::<Vec<_>>());
}

/// They are values, not the absence of one.
pub async fn empty_values_are_read_back(engine: Arc<dyn Engine>) {
    let empty = || kinds(Uuid::nil(), 0, 0, "", Bytes::new());
    let partition = Partition::new(&KINDS, kinds(Uuid::new_v4(), 0, 0, "", Bytes::new()));
    let written = Row { key: vec![0.into()], values: empty() };
    let batch = Batch {
        puts: vec![written.clone()],
        statics: empty().into_iter().enumerate().collect(),
        ..Batch::new(partition.clone())
    };
    apply(&*engine, batch).await;
    assert_eq!(all(&*engine, &partition).await, [written]);
    assert_eq!(statics(&*engine, &partition).await, empty().into_iter().map(Some).collect::<Vec<_>>());
}

pub async fn a_put_replaces_the_whole_row(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, puts(&partition, numbered(0..3))).await;
    apply(&*engine, puts(&partition, vec![row(key(1, "", 0), 100)])).await;
    let [zero, _, two] = numbered(0..3).try_into().expect("three rows");
    assert_eq!(all(&*engine, &partition).await, [zero, row(key(1, "", 0), 100), two]);
}

/// A power loss may drop it until the next one is acknowledged, but every read sees it.
pub async fn a_batch_that_is_durable_with_the_next_is_read_at_once(engine: Arc<dyn Engine>) {
    let partition = composite();
    for n in 0..3 {
        let later = Batch { durable: Durable::WithNext, ..puts(&partition, numbered(n..n + 1)) };
        apply(&*engine, later).await;
        assert_eq!(all(&*engine, &partition).await, numbered(0..n + 1));
    }
    apply(&*engine, puts(&partition, numbered(3..4))).await;
    assert_eq!(all(&*engine, &partition).await, numbered(0..4));
}

pub async fn a_deleted_row_can_be_put_again(engine: Arc<dyn Engine>) {
    let partition = composite();
    for version in 0..3 {
        apply(&*engine, puts(&partition, vec![row(key(1, "", 0), version)])).await;
        assert_eq!(all(&*engine, &partition).await, [row(key(1, "", 0), version)]);
        apply(&*engine, Batch { deletes: vec![key(1, "", 0)], ..Batch::new(partition.clone()) }).await;
        assert_eq!(all(&*engine, &partition).await, []);
    }
}

pub async fn deleting_what_is_absent_changes_nothing(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, puts(&partition, numbered(0..2))).await;
    apply(&*engine, Batch { deletes: vec![key(0, "other", 0), key(9, "", 0)], ..Batch::new(partition.clone()) }).await;
    assert_eq!(all(&*engine, &partition).await, numbered(0..2));
}

/// Callers retry a plain batch after an unknown outcome.
pub async fn a_plain_batch_can_be_repeated(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, puts(&partition, numbered(0..6))).await;
    let batch = Batch {
        statics: vec![(0, 3_i64.into())],
        puts: vec![row(key(1, "", 0), 100), row(key(8, "", 0), 101)],
        deletes: vec![key(0, "", 0)],
        range_deletes: vec![crate::engine::KeyRange::prefix(vec![4.into()])],
        ..Batch::new(partition.clone())
    };
    apply(&*engine, batch.clone()).await;
    let once = (statics(&*engine, &partition).await, all(&*engine, &partition).await);
    apply(&*engine, batch).await;
    let twice = (statics(&*engine, &partition).await, all(&*engine, &partition).await);
    assert_eq!(once, twice);
    assert_eq!(once.1.len(), 5);
}

pub async fn equal_keys_in_other_partitions_are_other_rows(engine: Arc<dyn Engine>) {
    let id: Value = Uuid::new_v4().into();
    let named = |name: &str| Partition::new(&super::tables::COMPOSITE, vec![id.clone(), name.into()]);
    let names = ["", "a", "a\0", "ab", "b"];
    for (version, name) in (0..).zip(names) {
        apply(&*engine, puts(&named(name), vec![row(key(0, "", 0), version)])).await;
    }
    for (version, name) in (0..).zip(names) {
        assert_eq!(all(&*engine, &named(name)).await, [row(key(0, "", 0), version)], "in {name:?}");
    }
}

fn kinds(uuid: Uuid, int: i32, bigint: i64, text: &str, blob: Bytes) -> Vec<Value> {
    vec![uuid.into(), int.into(), bigint.into(), text.into(), blob.into()]
}
