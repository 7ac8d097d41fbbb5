//! The order of values is the order of their index keys.

use std::cmp::Ordering;

use workflow::Timestamp;

use super::{Value, ValueType, phrases, words};

fn key(value: &Value) -> Vec<u8> {
    let mut keys = value.index_keys().into_iter();
    let key = keys.next().expect("a simple value has a key");
    assert_eq!(keys.next(), None, "a simple value has one key");
    key
}

fn rising() -> Vec<Vec<Value>> {
    let doubles = [f64::NEG_INFINITY, -1e300, -1.5, -1.0, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.0, 1.5, 1e300];
    vec![
        ["", "A", "a", "a\0", "aa", "b", "ä", "日本"].map(|text| Value::Keyword(text.to_owned())).to_vec(),
        [i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX].map(Value::Int).to_vec(),
        doubles.map(Value::Double).to_vec(),
        [false, true].map(Value::Bool).to_vec(),
        [i64::MIN, -1, 0, 1, 1_700_000_000_000_000_001, i64::MAX].map(|at| Value::Datetime(Timestamp(at))).to_vec(),
    ]
}

#[test]
fn keys_are_ordered_as_values_are() {
    for values in rising() {
        for (at, lower) in values.iter().enumerate() {
            assert_eq!(lower.cmp(lower), Ordering::Equal);
            for higher in &values[at + 1..] {
                assert!(lower < higher, "{lower:?} < {higher:?}");
                assert!(key(lower) < key(higher), "key of {lower:?} < key of {higher:?}");
            }
        }
    }
}

#[test]
fn both_zeros_are_one_value() {
    assert_eq!(Value::Double(0.0), Value::Double(-0.0));
    assert_eq!(key(&Value::Double(0.0)), key(&Value::Double(-0.0)));
}

#[test]
fn a_list_has_a_key_for_each_of_its_keywords() {
    let list = Value::KeywordList(vec!["b".to_owned(), "a".to_owned(), "b".to_owned()]);
    assert_eq!(list.index_keys().into_iter().collect::<Vec<_>>(), [b"a".to_vec(), b"b".to_vec()]);
}

#[test]
fn a_text_has_a_key_for_each_of_its_words() {
    let text = Value::Text("The quick, the DEAD.".to_owned());
    let expected = ["dead", "quick", "the"].map(|word| word.as_bytes().to_vec());
    assert_eq!(text.index_keys().into_iter().collect::<Vec<_>>(), expected);
    assert!(Value::Text(" ... ".to_owned()).index_keys().is_empty());
}

#[test]
fn words_are_letters_and_digits_in_lower_case() {
    assert_eq!(words("Über-42 x_y").collect::<Vec<_>>(), ["über", "42", "x", "y"]);
}

#[test]
fn a_query_of_a_text_is_a_choice_of_phrases() {
    assert_eq!(phrases("a well-Known  -- b"), [vec!["a"], vec!["well", "known"], vec!["b"]]);
}

#[test]
fn every_type_is_found_by_its_name_and_by_its_number() {
    for value_type in ValueType::ALL {
        assert_eq!(ValueType::from_name(value_type.name()), Some(value_type));
        assert_eq!(ValueType::from_proto(value_type.to_proto()), Some(value_type));
    }
    assert_eq!(ValueType::from_name("keyword"), None);
}
