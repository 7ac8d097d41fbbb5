//! Claims about pages and their continuations.

use std::sync::Arc;

use super::given::{all, apply, composite, key, numbered, page, puts, row, slice};
use crate::engine::{Batch, Continuation, Engine, KeyRange, Order, Row, Slice};
use crate::table::Value;

pub async fn pages_in_both_orders_miss_and_repeat_nothing(engine: Arc<dyn Engine>) {
    let partition = composite();
    let rows = numbered(0..23);
    apply(&*engine, puts(&partition, rows.clone())).await;
    let reversed: Vec<Row> = rows.iter().rev().cloned().collect();
    for limit in [1, 2, 7, 22, 23, 24] {
        for (order, expected) in [(Order::Ascending, &rows), (Order::Descending, &reversed)] {
            let wanted = Slice { order, ..Slice::new(partition.clone(), KeyRange::all(), limit) };
            assert_eq!(&slice(&*engine, wanted).await, expected, "{order:?} in pages of {limit}");
        }
    }
    let part = KeyRange {
        lower: std::ops::Bound::Excluded(vec![3.into()]),
        upper: std::ops::Bound::Included(vec![20.into()]),
    };
    let wanted = Slice { order: Order::Descending, ..Slice::new(partition, part, 4) };
    assert_eq!(slice(&*engine, wanted).await, reversed[2..19]);
}

/// Even rows stay, odd ones come and go between the pages: each even row is read once.
pub async fn paging_bears_rows_put_and_deleted_meanwhile(engine: Arc<dyn Engine>) {
    for order in [Order::Ascending, Order::Descending] {
        let partition = composite();
        let lasting = numbered((0..100).map(|n| 2 * n));
        apply(&*engine, puts(&partition, lasting.clone())).await;
        let mut wanted = Slice { order, ..Slice::new(partition.clone(), KeyRange::all(), 7) };
        let mut read = Vec::new();
        loop {
            let page = page(&*engine, wanted.clone()).await;
            read.extend(page.rows);
            let Some(Continuation(last)) = page.next else { break };
            let Value::Int(number) = last[0] else { panic!("the first column is an int") };
            let odd = number | 1;
            let mut batch = puts(&partition, vec![row(key(odd, "", 0), 0), row(key(odd - 4, "", 0), 0)]);
            batch.deletes.push(key(odd + 4, "", 0));
            // The row that the page ended with may be gone: its continuation still says where to go on.
            if number % 2 != 0 {
                batch.puts.retain(|row| row.key != last);
                batch.deletes.push(last.clone());
            }
            apply(&*engine, batch).await;
            wanted.after = Some(Continuation(last));
        }
        let in_order = read.windows(2).all(|pair| match order {
            Order::Ascending => pair[0].key < pair[1].key,
            Order::Descending => pair[0].key > pair[1].key,
        });
        assert!(in_order, "{order:?}: a row came twice or out of order");
        let mut evens: Vec<Row> = read.into_iter().filter(|row| lasting.contains(row)).collect();
        evens.sort_by(|left, right| left.key.cmp(&right.key));
        assert_eq!(evens, lasting, "{order:?}");
    }
}

pub async fn a_page_has_no_more_rows_than_its_limit(engine: Arc<dyn Engine>) {
    let partition = composite();
    let rows = numbered(0..10);
    apply(&*engine, puts(&partition, rows.clone())).await;
    let first = page(&*engine, Slice::new(partition.clone(), KeyRange::all(), 4)).await;
    assert_eq!(first.rows, rows[..4]);
    assert_eq!(first.next, Some(Continuation(key(3, "", 0))));
    let rest = Slice { after: first.next, ..Slice::new(partition.clone(), KeyRange::all(), 100) };
    let rest = page(&*engine, rest).await;
    assert_eq!(rest.rows, rows[4..]);
    assert_eq!(rest.next, None);
    let single = page(&*engine, Slice::new(partition, KeyRange::prefix(key(5, "", 0)), 10)).await;
    assert_eq!(single.rows, rows[5..=5]);
}

pub async fn an_unknown_partition_is_empty(engine: Arc<dyn Engine>) {
    let partition = composite();
    assert_eq!(all(&*engine, &partition).await, []);
    let single = page(&*engine, Slice::new(partition.clone(), KeyRange::prefix(key(0, "", 0)), 1)).await;
    assert_eq!(single.rows, []);
    apply(&*engine, Batch { range_deletes: vec![KeyRange::all()], ..Batch::new(partition.clone()) }).await;
    assert_eq!(all(&*engine, &partition).await, []);
}
