//! Claims about sizes: of values, of batches, of partitions.

use std::sync::Arc;

use bytes::Bytes;

use super::given::{all, apply, composite, key, numbered, page, puts, slice, statics};
use crate::engine::{BATCH_BYTES, Batch, Engine, KeyRange, Order, PAGE_BYTES, Row, Slice};
use crate::error::StoreError;

pub async fn values_may_have_two_mebibytes(engine: Arc<dyn Engine>) {
    let partition = composite();
    for size in [1, 1 << 10, 64 << 10, 1 << 20, 2 << 20] {
        let written = sized(0, size);
        apply(&*engine, puts(&partition, vec![written.clone()])).await;
        assert!(all(&*engine, &partition).await == [written], "a value of {size} bytes came back otherwise");
    }
}

pub async fn a_batch_may_have_four_mebibytes(engine: Arc<dyn Engine>) {
    let partition = composite();
    let rows: Vec<Row> = (0..64).map(|number| sized(number, 64 << 10)).collect();
    apply(&*engine, puts(&partition, rows.clone())).await;
    assert!(all(&*engine, &partition).await == rows, "rows came back otherwise");
}

/// Twice what fits in a page, although the limit would take them all.
pub async fn large_rows_are_paged_by_their_size(engine: Arc<dyn Engine>) {
    const ROW: usize = 1 << 20;
    let partition = composite();
    let rows: Vec<Row> = (0..2 * (PAGE_BYTES / ROW) as i32).map(|number| sized(number, ROW)).collect();
    for row in &rows {
        apply(&*engine, puts(&partition, vec![row.clone()])).await;
    }
    let mut wanted = Slice::new(partition.clone(), KeyRange::all(), 10_000);
    let first = page(&*engine, wanted.clone()).await;
    assert!(first.rows.len() <= PAGE_BYTES / ROW + 1, "{} rows in a page", first.rows.len());
    assert!(first.next.is_some());
    for order in [Order::Ascending, Order::Descending] {
        wanted.order = order;
        let mut read = slice(&*engine, wanted.clone()).await;
        read.sort_by(|left, right| left.key.cmp(&right.key));
        assert!(read == rows, "{order:?}: a row is missing, or came twice");
    }
}

pub async fn a_batch_that_is_too_large_is_not_applied(engine: Arc<dyn Engine>) {
    let partition = composite();
    let batch = puts(&partition, vec![sized(0, 1), sized(1, BATCH_BYTES)]);
    assert!(matches!(engine.write(batch).await, Err(StoreError::TooLarge(_))));
    let mut batch = puts(&partition, numbered([0]));
    batch.puts[0].key = key(0, &"long".repeat(10_000), 0);
    assert!(matches!(engine.write(batch).await, Err(StoreError::TooLarge(_))));
    assert_eq!(all(&*engine, &partition).await, []);
}

pub async fn a_key_that_is_too_large_is_read_as_absent(engine: Arc<dyn Engine>) {
    let partition = composite();
    let whole = key(0, &"long".repeat(20_000), 0);
    for range in [KeyRange::prefix(whole.clone()), KeyRange::prefix(whole[..2].to_vec())] {
        assert_eq!(slice(&*engine, Slice::new(partition.clone(), range, 10)).await, []);
    }
}

/// Written in batches, paged through, read from its end, and deleted as one range.
pub async fn a_partition_may_have_a_hundred_thousand_rows(engine: Arc<dyn Engine>) {
    const ROWS: i32 = 100_000;
    const BATCH: usize = 1000;
    let partition = composite();
    let numbers: Vec<i32> = (0..ROWS).collect();
    apply(&*engine, Batch { statics: vec![(0, 1_i64.into())], ..Batch::new(partition.clone()) }).await;
    for numbers in numbers.chunks(BATCH) {
        apply(&*engine, puts(&partition, numbered(numbers.iter().copied()))).await;
    }

    let mut wanted = Slice::new(partition.clone(), KeyRange::all(), 5000);
    let mut next = 0;
    loop {
        let page = page(&*engine, wanted.clone()).await;
        for row in page.rows {
            assert_eq!(row.key, key(next, "", 0));
            next += 1;
        }
        let Some(continuation) = page.next else { break };
        wanted.after = Some(continuation);
    }
    assert_eq!(next, ROWS);

    let tail = Slice { order: Order::Descending, ..Slice::new(partition.clone(), KeyRange::all(), 3) };
    let tail = page(&*engine, tail).await;
    assert_eq!(tail.rows, numbered([ROWS - 1, ROWS - 2, ROWS - 3]));

    let doomed = KeyRange { lower: std::ops::Bound::Included(vec![2.into()]), upper: std::ops::Bound::Unbounded };
    apply(&*engine, Batch { range_deletes: vec![doomed], ..Batch::new(partition.clone()) }).await;
    assert_eq!(all(&*engine, &partition).await, numbered(0..2));
    apply(&*engine, puts(&partition, numbered([500]))).await;
    assert_eq!(all(&*engine, &partition).await, numbered([0, 1, 500]));
    assert_eq!(statics(&*engine, &partition).await[0], Some(1_i64.into()));
}

/// A row whose value does not repeat, so that no part can be taken for another.
fn sized(number: i32, size: usize) -> Row {
    let seed = number.unsigned_abs();
    let bytes = (0..size as u32).map(|place| place.wrapping_mul(2_654_435_761).wrapping_add(seed).to_le_bytes()[3]);
    Row { key: key(number, "", 0), values: vec![i64::from(number).into(), Bytes::from_iter(bytes).into()] }
}
