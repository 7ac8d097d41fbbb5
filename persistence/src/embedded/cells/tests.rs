//! Values survive the way to bytes and back.

use super::*;

#[test]
fn every_kind_is_read_back_and_damage_is_noticed() {
    let values = vec![
        Value::from(-1),
        Value::from(i64::MIN),
        Value::from("a\0ä"),
        Value::from(Uuid::nil()),
        Value::from(Bytes::from_static(b"\0\xff")),
        Value::from(""),
    ];
    let columns: Vec<Column> = values.iter().map(|value| Column::new("c", value.kind())).collect();
    let bytes = encode(&values);
    assert_eq!(decode(&columns, &bytes), Some(values));
    assert_eq!(decode(&columns, &bytes[..bytes.len() - 1]), None);
    assert_eq!(decode(&columns, &[bytes.clone(), vec![0]].concat()), None);
    assert_eq!(decode(&columns[1..], &bytes), None);
}
