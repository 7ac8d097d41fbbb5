//! Claims about versioned tables. All but the first are about changes that arrive out of order, and are made of engines
//! that more than one process writes to.

use std::sync::Arc;

use bytes::Bytes;

use super::given::{all, apply, fresh};
use super::tables::VERSIONED;
use crate::engine::{Batch, Engine, KeyRange, Partition, Row, RowChange, Versioned};
use crate::table::Value;

/// Versions look like moments in µs.
const FIRST: i64 = 1_700_000_000_000_000;

pub async fn changes_in_the_order_of_their_versions_all_count(engine: Arc<dyn Engine>) {
    let partition = fresh(&VERSIONED);
    change(&*engine, &partition, vec![put(1, 1), put(1, 2)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 1), row(2, 1)]);
    change(&*engine, &partition, vec![put(2, 1)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 2), row(2, 1)]);
    change(&*engine, &partition, vec![delete(3, 1)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(2, 1)]);
    change(&*engine, &partition, vec![put(4, 1)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 4), row(2, 1)]);
    change(&*engine, &partition, vec![delete_range(5, 1)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(2, 1)]);
    change(&*engine, &partition, vec![put(6, 1)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 6), row(2, 1)]);
}

pub async fn an_older_put_never_overwrites_a_newer_one(engine: Arc<dyn Engine>) {
    let partition = fresh(&VERSIONED);
    change(&*engine, &partition, vec![put(2, 1)]).await;
    change(&*engine, &partition, vec![put(1, 1)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 2)]);
}

pub async fn an_older_delete_leaves_a_newer_row(engine: Arc<dyn Engine>) {
    let partition = fresh(&VERSIONED);
    change(&*engine, &partition, vec![put(2, 1), put(2, 2)]).await;
    change(&*engine, &partition, vec![delete(1, 1), delete_range(1, 2)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 2), row(2, 2)]);
}

/// Also a row that was never there before.
pub async fn a_put_older_than_a_delete_stays_deleted(engine: Arc<dyn Engine>) {
    let partition = fresh(&VERSIONED);
    change(&*engine, &partition, vec![put(1, 1)]).await;
    change(&*engine, &partition, vec![delete(3, 1), delete(3, 2), delete_range(3, 3)]).await;
    change(&*engine, &partition, vec![put(2, 1), put(2, 2), put(2, 3)]).await;
    assert_eq!(all(&*engine, &partition).await, []);
    change(&*engine, &partition, vec![put(4, 1), put(4, 2), put(4, 3)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 4), row(2, 4), row(3, 4)], "a newer one is put again");
}

pub async fn of_a_put_and_a_delete_of_one_version_the_delete_counts(engine: Arc<dyn Engine>) {
    for deletion in [delete(1, 1), delete_range(1, 1)] {
        for changes in [[put(1, 1), deletion.clone()], [deletion.clone(), put(1, 1)]] {
            let partition = fresh(&VERSIONED);
            for one in changes {
                change(&*engine, &partition, vec![one]).await;
            }
            assert_eq!(all(&*engine, &partition).await, []);
        }
    }
}

pub async fn each_change_of_a_batch_has_its_own_version(engine: Arc<dyn Engine>) {
    let partition = fresh(&VERSIONED);
    change(&*engine, &partition, vec![put(5, 1), put(5, 2), put(5, 3), put(5, 4)]).await;
    change(&*engine, &partition, vec![put(4, 1), put(6, 2), delete(4, 3), delete(6, 4)]).await;
    assert_eq!(all(&*engine, &partition).await, [row(1, 5), row(2, 6), row(3, 5)]);
}

pub async fn changes_come_to_the_same_end_in_whatever_order(engine: Arc<dyn Engine>) {
    let changes = [put(1, 1), delete(2, 1), put(3, 1), delete_range(4, 1)];
    let mut orders = vec![Vec::new()];
    for one in 0..changes.len() {
        let insert = |order: &Vec<usize>, place: usize| [&order[..place], &[one], &order[place..]].concat();
        orders = orders.iter().flat_map(|order| (0..=order.len()).map(move |place| insert(order, place))).collect();
    }
    assert_eq!(orders.len(), 24);
    for (last, expected) in [(3, vec![row(1, 3)]), (4, vec![])] {
        for order in &orders {
            let partition = fresh(&VERSIONED);
            let arriving = order.iter().map(|index| &changes[*index]).filter(|one| one.version <= FIRST + last);
            for one in arriving {
                change(&*engine, &partition, vec![one.clone()]).await;
            }
            assert_eq!(all(&*engine, &partition).await, expected, "in the order {order:?}");
        }
    }
}

/// A row whose values hold the version that put it.
fn row(a: i32, version: i32) -> Row {
    Row { key: key(a), values: vec![version.into(), Bytes::from(version.to_be_bytes().to_vec()).into()] }
}

fn key(a: i32) -> Vec<Value> {
    vec![a.into(), "".into()]
}

fn put(version: i32, a: i32) -> Versioned {
    versioned(version, RowChange::Put(row(a, version)))
}

fn delete(version: i32, a: i32) -> Versioned {
    versioned(version, RowChange::Delete(key(a)))
}

fn delete_range(version: i32, a: i32) -> Versioned {
    versioned(version, RowChange::DeleteRange(KeyRange::prefix(vec![a.into()])))
}

fn versioned(version: i32, change: RowChange) -> Versioned {
    Versioned { version: FIRST + i64::from(version), change }
}

async fn change(engine: &dyn Engine, partition: &Partition, versioned: Vec<Versioned>) {
    apply(engine, Batch { versioned, ..Batch::new(partition.clone()) }).await;
}
