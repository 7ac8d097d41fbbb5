//! Payloads, what they hold, and how they are shown.

use persistence::stores::visibility::value::{Value, ValueType};
use proto::temporal::api::common::v1::{Payload, SearchAttributes};
use workflow::Timestamp;

use super::{WrongType, decode, decode_as, encode, shown, write_types};
use crate::search_attributes::attribute::Attribute;
use crate::search_attributes::custom::CustomAttributes;

fn json(data: &str) -> Payload {
    encoded("json/plain", data)
}

fn encoded(encoding: &str, data: &str) -> Payload {
    Payload {
        metadata: [("encoding".to_owned(), encoding.to_owned().into())].into(),
        data: data.to_owned().into(),
        ..Payload::default()
    }
}

fn keyword(text: &str) -> Value {
    Value::Keyword(text.to_owned())
}

#[test]
fn values_are_of_the_type() {
    let cases = [
        (ValueType::Keyword, r#""a""#, keyword("a")),
        (ValueType::Keyword, r#"["a"]"#, keyword("a")),
        (ValueType::Text, r#""a b""#, Value::Text("a b".to_owned())),
        (ValueType::Int, "-5", Value::Int(-5)),
        (ValueType::Double, "5", Value::Double(5.0)),
        (ValueType::Double, "2.5", Value::Double(2.5)),
        (ValueType::Bool, "true", Value::Bool(true)),
        (ValueType::Datetime, r#""1970-01-01T00:00:01Z""#, Value::Datetime(Timestamp(1_000_000_000))),
        (ValueType::KeywordList, r#"["a", null, "b"]"#, Value::KeywordList(vec!["a".to_owned(), "b".to_owned()])),
    ];
    for (value_type, data, expected) in cases {
        assert_eq!(decode_as(&json(data), value_type), Ok(Some(expected)), "{data}");
    }
}

#[test]
fn nothing_takes_an_attribute_away() {
    for value_type in ValueType::ALL {
        for data in ["null", "[]"] {
            assert_eq!(decode_as(&json(data), value_type), Ok(None), "{data} as {}", value_type.name());
        }
        assert_eq!(decode_as(&encoded("binary/null", ""), value_type), Ok(None));
    }
}

#[test]
fn other_types_are_refused() {
    let cases = [
        (ValueType::Keyword, "5"),
        (ValueType::Keyword, r#"["a", "b"]"#),
        (ValueType::Keyword, r#"{"a": 1}"#),
        (ValueType::Keyword, "{"),
        (ValueType::Keyword, ""),
        (ValueType::Text, "true"),
        (ValueType::Int, r#""5""#),
        (ValueType::Int, "5.0"),
        (ValueType::Int, "5.5"),
        (ValueType::Int, "9223372036854775808"),
        (ValueType::Int, "[1, 2]"),
        (ValueType::Double, r#""x""#),
        (ValueType::Bool, r#""true""#),
        (ValueType::Bool, "1"),
        (ValueType::Datetime, r#""2024-01-01""#),
        (ValueType::Datetime, "5"),
        (ValueType::KeywordList, r#""red""#),
        (ValueType::KeywordList, r#"["a", 5]"#),
        (ValueType::KeywordList, "[{}]"),
    ];
    for (value_type, data) in cases {
        assert_eq!(decode_as(&json(data), value_type), Err(WrongType), "{data} as {}", value_type.name());
    }
    assert_eq!(decode_as(&encoded("binary/plain", "x"), ValueType::Keyword), Err(WrongType));
    assert_eq!(decode_as(&Payload { data: r#""x""#.into(), ..Payload::default() }, ValueType::Keyword), Err(WrongType));
}

#[test]
fn wrong_values_are_shown_as_the_reference_shows_them() {
    let cases = [
        ("5", "5"),
        ("5.0", "5"),
        ("5.5", "5.5"),
        ("123456", "123456"),
        ("1234567", "1.234567e+06"),
        ("9223372036854775808", "9.223372036854776e+18"),
        ("0.00001", "1e-05"),
        ("true", "true"),
        (r#""x""#, "x"),
        (r#"["a", 5]"#, "[a 5]"),
        (r#"{"b": [], "a": null}"#, "map[a:<nil> b:[]]"),
        ("{", r#"value from <data:"{">"#),
    ];
    for (data, expected) in cases {
        assert_eq!(shown(&json(data)), expected);
    }
    assert_eq!(shown(&encoded("binary/plain", "xy")), "[120 121]");
}

#[test]
fn a_value_is_of_the_type_that_is_defined_whatever_a_client_wrote() {
    let custom: CustomAttributes = [("Customer".to_owned(), ValueType::Keyword)].into_iter().collect();
    let fields = [("Customer", r#""a""#), ("BuildIds", r#"["b"]"#), ("Gone", r#""x""#)];
    let mut attributes =
        SearchAttributes { indexed_fields: fields.map(|(name, data)| (name.to_owned(), json(data))).into() };
    let written = attributes.indexed_fields.get_mut("Customer").expect("it is there");
    written.metadata.insert("type".to_owned(), "Int".into());
    write_types(&mut attributes, &custom);
    let type_of = |name: &str| attributes.indexed_fields[name].metadata.get("type").cloned();
    assert_eq!(type_of("Customer").as_deref(), Some("Keyword".as_bytes()));
    assert_eq!(type_of("BuildIds").as_deref(), Some("KeywordList".as_bytes()));
    assert_eq!(type_of("Gone"), None);
    assert_eq!(decode("Customer", &attributes.indexed_fields["Customer"]), Some(keyword("a")));
    assert_eq!(decode("Gone", &attributes.indexed_fields["Gone"]), None);
}

#[test]
fn what_is_encoded_is_decoded() {
    let values = [
        keyword("a"),
        Value::Text("a b".to_owned()),
        Value::KeywordList(vec!["a".to_owned(), "b".to_owned()]),
        Value::Int(-5),
        Value::Double(2.5),
        Value::Bool(true),
        Value::Datetime(Timestamp(1_700_000_000_123_456_789)),
    ];
    for value in values {
        let attribute = Attribute::Indexed { name: "Any".to_owned(), value_type: value.value_type() };
        assert_eq!(decode("Any", &encode(&attribute, &value)), Some(value));
    }
}
