//! The order of keys is the order of values, and a key can be read back.

use super::*;
use crate::table::Table;

static TABLE: Table = Table {
    name: "t",
    partition: &[Column::new("p", Kind::Text)],
    clustering: &[Column::new("a", Kind::Int), Column::new("b", Kind::Text)],
    statics: &[Column::new("s", Kind::Int), Column::new("r", Kind::Int)],
    values: &[],
    is_versioned: false,
};

fn partition(name: &str) -> Partition {
    Partition::new(&TABLE, vec![name.into()])
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut key = Vec::new();
    put_values(&mut key, std::slice::from_ref(value));
    key
}

/// Each list is in the order that the encoding must keep.
#[test]
fn bytes_compare_as_values_do() {
    let ascending: [Vec<Value>; 5] = [
        [i32::MIN, -65_536, -256, -1, 0, 1, 255, 256, i32::MAX].map(Value::from).to_vec(),
        [i64::MIN, -4_294_967_296, -1, 0, 1, 4_294_967_296, i64::MAX].map(Value::from).to_vec(),
        ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0b", "aa", "b", "ä", "中", "😀"].map(Value::from).to_vec(),
        [0_u128, 1, 1 << 64, u128::MAX].map(|number| Value::from(Uuid::from_u128(number))).to_vec(),
        [&b""[..], b"\0", b"\0\0", b"\0\x01", b"\x01", b"\x01\0", b"\xff", b"\xff\0", b"\xff\xff"]
            .map(|bytes| Value::from(Bytes::copy_from_slice(bytes)))
            .to_vec(),
    ];
    for values in ascending {
        for pair in values.windows(2) {
            assert!(pair[0] < pair[1], "the table itself is in order: {pair:?}");
            let (lesser, greater) = (encoded(&pair[0]), encoded(&pair[1]));
            assert!(lesser < greater, "{pair:?} became {lesser:x?} and {greater:x?}");
            assert!(!greater.starts_with(&lesser), "{pair:?}: one is a prefix of the other");
        }
        for value in values {
            let bytes = encoded(&value);
            let mut rest = bytes.as_slice();
            assert_eq!(take_value(value.kind(), &mut rest), Some(value));
            assert!(rest.is_empty());
        }
    }
}

#[test]
fn clustering_columns_are_read_back_from_a_key() {
    let values = vec![Value::from(-7), Value::from("a\0b")];
    let key = row(&partition("p\0"), &values);
    let rest = key.strip_prefix(rows_prefix(&partition("p\0")).as_slice()).unwrap();
    assert!(key.strip_prefix(rows_prefix(&partition("p")).as_slice()).is_none(), "another partition");
    assert_eq!(clustering(TABLE.clustering, rest), Some(values));
    assert_eq!(clustering(TABLE.clustering, &rest[..rest.len() - 1]), None, "cut short");
    assert_eq!(clustering(TABLE.clustering, &[rest, &[0]].concat()), None, "something follows");
}

#[test]
fn spans_hold_the_rows_of_a_range_and_no_others() {
    let keys: Vec<Vec<Value>> =
        [(-1, "z"), (1, ""), (1, "a"), (1, "a\0"), (1, "b"), (2, ""), (2, "a"), (i32::MAX, "\u{10ffff}")]
            .map(|(a, b)| vec![Value::from(a), Value::from(b)])
            .to_vec();
    let one = || vec![Value::from(1)];
    let one_a = || vec![Value::from(1), Value::from("a")];
    let bounds = [
        Bound::Unbounded,
        Bound::Included(one()),
        Bound::Excluded(one()),
        Bound::Included(one_a()),
        Bound::Excluded(one_a()),
    ];
    for lower in &bounds {
        for upper in &bounds {
            let range = KeyRange { lower: lower.clone(), upper: upper.clone() };
            let span = span(&partition("p"), &range);
            for key in &keys {
                let within = span.contains(&row(&partition("p"), key));
                assert_eq!(within, range.contains(key), "{key:?} in {range:?}");
                assert!(!span.contains(&row(&partition("o"), key)) && !span.contains(&row(&partition("p\0"), key)));
            }
            for column in 0..TABLE.statics.len() {
                assert!(!span.contains(&static_column(&partition("p"), column)), "statics lie apart from rows");
            }
        }
    }
}

#[test]
fn a_continued_span_leaves_out_the_row_it_continues_after() {
    let key = |b: &str| vec![Value::from(1), Value::from(b)];
    let all = || span(&partition("p"), &KeyRange::all());
    let after = Continuation(key("b"));
    let forward = all().continued(&partition("p"), &after, Order::Ascending);
    let backward = all().continued(&partition("p"), &after, Order::Descending);
    for (b, is_after, is_before) in [("a", false, true), ("b", false, false), ("b\0", true, false), ("c", true, false)]
    {
        assert_eq!(forward.contains(&row(&partition("p"), &key(b))), is_after, "{b:?}");
        assert_eq!(backward.contains(&row(&partition("p"), &key(b))), is_before, "{b:?}");
    }
    let prefix = span(&partition("p"), &KeyRange::prefix(key("b")));
    assert!(prefix.continued(&partition("p"), &after, Order::Ascending).is_empty());
}
