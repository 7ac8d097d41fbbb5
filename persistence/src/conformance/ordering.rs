//! Claims about the order of rows, for every kind of clustering column.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::given::{apply, fresh, puts, range};
use super::tables::{BY_BIGINT, BY_BLOB, BY_INT, BY_TEXT, BY_UUID};
use crate::engine::{Engine, KeyRange, Order, Row};
use crate::table::{Table, Value};

pub async fn ints_come_in_numeric_order(engine: Arc<dyn Engine>) {
    let ascending = [i32::MIN, -65_537, -256, -1, 0, 1, 255, 256, 65_536, i32::MAX];
    check(&*engine, &BY_INT, ascending.map(Value::from).to_vec()).await;
}

pub async fn bigints_come_in_numeric_order(engine: Arc<dyn Engine>) {
    let ascending = [i64::MIN, -4_294_967_297, -256, -1, 0, 1, 255, 4_294_967_296, i64::MAX];
    check(&*engine, &BY_BIGINT, ascending.map(Value::from).to_vec()).await;
}

pub async fn texts_come_in_the_order_of_their_bytes(engine: Arc<dyn Engine>) {
    let ascending = ["", "\0", "\0\0", "\0a", "\u{1}", "A", "a", "a\0", "a\0b", "a\u{1}", "aa", "b", "ä", "中", "😀"];
    check(&*engine, &BY_TEXT, ascending.map(Value::from).to_vec()).await;
}

/// Random and nil ones only: CQL orders others by their version first.
pub async fn uuids_come_in_the_order_of_their_bytes(engine: Arc<dyn Engine>) {
    let mut ascending: Vec<Uuid> = (0..9).map(|_| Uuid::new_v4()).collect();
    ascending.sort();
    ascending.insert(0, Uuid::nil());
    check(&*engine, &BY_UUID, ascending.into_iter().map(Value::from).collect()).await;
}

pub async fn blobs_come_in_the_order_of_their_bytes(engine: Arc<dyn Engine>) {
    let ascending: [&[u8]; 11] =
        [b"", b"\0", b"\0\0", b"\0\x01", b"\0\xff", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"\xff\xff"];
    check(&*engine, &BY_BLOB, ascending.map(|bytes| Bytes::from_static(bytes).into()).to_vec()).await;
}

/// Puts the keys in another order, and reads them in both, whole and from every key to every other.
async fn check(engine: &dyn Engine, table: &'static Table, ascending: Vec<Value>) {
    let partition = fresh(table);
    let rows: Vec<Row> =
        (0_i32..).zip(&ascending).map(|(n, key)| Row { key: vec![key.clone()], values: vec![n.into()] }).collect();
    let (even, odd): (Vec<Row>, Vec<Row>) = rows.iter().rev().cloned().partition(|row| row.values[0] > Value::Int(4));
    apply(engine, puts(&partition, odd)).await;
    apply(engine, puts(&partition, even)).await;

    assert_eq!(range(engine, &partition, KeyRange::all(), Order::Ascending).await, rows);
    let reversed: Vec<Row> = rows.iter().rev().cloned().collect();
    assert_eq!(range(engine, &partition, KeyRange::all(), Order::Descending).await, reversed);

    for (place, key) in ascending.iter().enumerate() {
        let key = vec![key.clone()];
        let upwards = KeyRange { lower: Bound::Excluded(key.clone()), upper: Bound::Unbounded };
        assert_eq!(range(engine, &partition, upwards, Order::Ascending).await, rows[place + 1..], "above {key:?}");
        let downwards = KeyRange { lower: Bound::Unbounded, upper: Bound::Excluded(key.clone()) };
        assert_eq!(range(engine, &partition, downwards, Order::Ascending).await, rows[..place], "below {key:?}");
        let exactly = KeyRange::prefix(key.clone());
        assert_eq!(range(engine, &partition, exactly, Order::Ascending).await, rows[place..=place], "at {key:?}");
    }
}
