//! Claims about ranges of composite keys: what their bounds hold, for reads and for deletes.

use std::ops::Bound;
use std::sync::Arc;

use super::given::{all, apply, composite, key, puts, range, row, statics};
use crate::engine::{Batch, Engine, KeyRange, Order, Row};
use crate::table::Value;

pub async fn bounds_may_be_prefixes_included_or_excluded(engine: Arc<dyn Engine>) {
    let partition = composite();
    let rows = grid();
    apply(&*engine, puts(&partition, rows.clone())).await;
    for lower in bounds() {
        for upper in bounds() {
            let wanted = KeyRange { lower: lower.clone(), upper };
            let mut expected: Vec<Row> = rows.iter().filter(|row| wanted.contains(&row.key)).cloned().collect();
            let ascending = range(&*engine, &partition, wanted.clone(), Order::Ascending).await;
            assert_eq!(ascending, expected, "ascending in {wanted:?}");
            expected.reverse();
            let descending = range(&*engine, &partition, wanted.clone(), Order::Descending).await;
            assert_eq!(descending, expected, "descending in {wanted:?}");
        }
    }
}

pub async fn range_deletes_remove_what_their_bounds_hold(engine: Arc<dyn Engine>) {
    let prefix = |values: Vec<Value>| (Bound::Included(values.clone()), Bound::Included(values));
    let ranges = [
        (Bound::Unbounded, Bound::Unbounded),
        prefix(vec![0.into()]),
        prefix(vec![0.into(), "a".into()]),
        prefix(key(0, "a", 2)),
        prefix(vec![7.into()]),
        (Bound::Unbounded, Bound::Included(vec![0.into()])),
        (Bound::Unbounded, Bound::Excluded(vec![0.into()])),
        (Bound::Included(vec![0.into()]), Bound::Unbounded),
        (Bound::Excluded(vec![0.into()]), Bound::Unbounded),
        (Bound::Included(key(0, "a", 2)), Bound::Excluded(vec![1.into(), "a".into()])),
        (Bound::Excluded(vec![(-1).into(), "a".into()]), Bound::Included(vec![0.into()])),
        (Bound::Excluded(key(-1, "", 1)), Bound::Excluded(key(1, "b", 2))),
    ];
    for (lower, upper) in ranges {
        let partition = composite();
        let doomed = KeyRange { lower, upper };
        apply(&*engine, puts(&partition, grid())).await;
        apply(&*engine, Batch { range_deletes: vec![doomed.clone()], ..Batch::new(partition.clone()) }).await;
        let expected: Vec<Row> = grid().into_iter().filter(|row| !doomed.contains(&row.key)).collect();
        assert_eq!(all(&*engine, &partition).await, expected, "after the delete of {doomed:?}");
    }
}

pub async fn a_batch_may_delete_ranges_and_put_rows_beside_them(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, puts(&partition, grid())).await;
    apply(
        &*engine,
        Batch {
            statics: vec![(0, 7_i64.into())],
            puts: vec![row(key(0, "a", 1), 100), row(key(5, "", 0), 101)],
            deletes: vec![key(0, "a", 2)],
            range_deletes: vec![KeyRange::prefix(vec![(-1).into()]), KeyRange::prefix(vec![1.into()])],
            ..Batch::new(partition.clone())
        },
    )
    .await;
    let rows = all(&*engine, &partition).await;
    let kept = |b: &str, c: i64| grid().into_iter().find(|row| row.key == key(0, b, c)).expect("it is in the grid");
    let expected =
        [kept("", 1), kept("", 2), row(key(0, "a", 1), 100), kept("b", 1), kept("b", 2), row(key(5, "", 0), 101)];
    assert_eq!(rows, expected);
    assert_eq!(statics(&*engine, &partition).await[0], Some(7_i64.into()));
}

pub async fn a_range_delete_stays_in_its_partition(engine: Arc<dyn Engine>) {
    let (emptied, kept) = (composite(), composite());
    for partition in [&emptied, &kept] {
        apply(&*engine, puts(partition, grid())).await;
    }
    apply(&*engine, Batch { range_deletes: vec![KeyRange::all()], ..Batch::new(emptied.clone()) }).await;
    assert_eq!(all(&*engine, &emptied).await, []);
    assert_eq!(all(&*engine, &kept).await, grid());
}

/// Rows with two or three values in each column, in order.
fn grid() -> Vec<Row> {
    let mut rows = Vec::new();
    for a in [-1, 0, 1] {
        for b in ["", "a", "b"] {
            for c in [1, 2] {
                rows.push(row(key(a, b, c), rows.len() as i64));
            }
        }
    }
    rows
}

/// A bound of every kind at prefixes of every length, in the grid and beside it.
fn bounds() -> Vec<Bound<Vec<Value>>> {
    let prefixes = [vec![0.into()], vec![7.into()], vec![0.into(), "a".into()], key(0, "a", 1), key(0, "aa", 1)];
    let mut bounds = vec![Bound::Unbounded];
    for prefix in prefixes {
        bounds.push(Bound::Included(prefix.clone()));
        bounds.push(Bound::Excluded(prefix));
    }
    bounds
}
