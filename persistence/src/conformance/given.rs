//! Fixtures of the claims: fresh partitions, short batches, and reads that follow their pages.

use bytes::Bytes;
use uuid::Uuid;

use super::tables::COMPOSITE;
use crate::engine::{Batch, Consistency, Engine, KeyRange, Order, Outcome, Page, Partition, Row, Slice, Statics};
use crate::table::{Table, Value};

/// An unused partition of a table whose key is one UUID.
pub(super) fn fresh(table: &'static Table) -> Partition {
    Partition::new(table, vec![Uuid::new_v4().into()])
}

/// An unused partition of `COMPOSITE`.
pub(super) fn composite() -> Partition {
    Partition::new(&COMPOSITE, vec![Uuid::new_v4().into(), "composite".into()])
}

/// A key of `COMPOSITE`.
pub(super) fn key(a: i32, b: &str, c: i64) -> Vec<Value> {
    vec![a.into(), b.into(), c.into()]
}

/// A row of `COMPOSITE`.
pub(super) fn row(key: Vec<Value>, version: i64) -> Row {
    Row { key, values: vec![version.into(), Bytes::from(version.to_be_bytes().to_vec()).into()] }
}

/// Rows of `COMPOSITE` by number, in order.
pub(super) fn numbered(numbers: impl IntoIterator<Item = i32>) -> Vec<Row> {
    numbers.into_iter().map(|number| row(key(number, "", 0), i64::from(number))).collect()
}

pub(super) fn puts(partition: &Partition, rows: Vec<Row>) -> Batch {
    Batch { puts: rows, ..Batch::new(partition.clone()) }
}

pub(super) async fn apply(engine: &dyn Engine, batch: Batch) {
    assert_eq!(engine.write(batch).await, Ok(Outcome::Applied));
}

/// The refusal's values.
pub(super) async fn refused(engine: &dyn Engine, batch: Batch) -> Vec<crate::engine::Current> {
    match engine.write(batch).await {
        Ok(Outcome::Refused(current)) => current,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(super) async fn statics(engine: &dyn Engine, partition: &Partition) -> Statics {
    engine.statics(partition.clone(), Consistency::Quorum).await.expect("statics are readable")
}

pub(super) async fn page(engine: &dyn Engine, slice: Slice) -> Page {
    let limit = slice.limit;
    let page = engine.read(slice).await.expect("a page is readable");
    assert!(page.rows.len() <= limit, "{} rows with limit {limit}", page.rows.len());
    page
}

/// All rows of a range, read in pages.
pub(super) async fn slice(engine: &dyn Engine, mut slice: Slice) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        let page = page(engine, slice.clone()).await;
        rows.extend(page.rows);
        match page.next {
            Some(next) => slice.after = Some(next),
            None => return rows,
        }
    }
}

pub(super) async fn range(engine: &dyn Engine, partition: &Partition, range: KeyRange, order: Order) -> Vec<Row> {
    slice(engine, Slice { order, ..Slice::new(partition.clone(), range, 1000) }).await
}

pub(super) async fn all(engine: &dyn Engine, partition: &Partition) -> Vec<Row> {
    range(engine, partition, KeyRange::all(), Order::Ascending).await
}
