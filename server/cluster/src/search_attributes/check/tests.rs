//! What a namespace admits, and the words with which it refuses.

use persistence::stores::visibility::value::ValueType;
use proto::temporal::api::common::v1::{Payload, SearchAttributes};
use workflow::RefusedSearchAttributes::{self, Undefined, Wrong};

use super::{Defined, sizes};
use crate::search_attributes::custom::CustomAttributes;

fn attributes(fields: &[(&str, &str)]) -> SearchAttributes {
    let field = |(name, data): &(&str, &str)| {
        let metadata = [("encoding".to_owned(), "json/plain".into())].into();
        ((*name).to_owned(), Payload { metadata, data: (*data).to_owned().into(), ..Payload::default() })
    };
    SearchAttributes { indexed_fields: fields.iter().map(field).collect() }
}

fn admit(fields: &[(&str, &str)]) -> Result<(), RefusedSearchAttributes> {
    let custom: CustomAttributes = [("Kw", ValueType::Keyword), ("Num", ValueType::Int)]
        .map(|(name, kind)| (name.to_owned(), kind))
        .into_iter()
        .collect();
    Defined { namespace: "default", custom: &custom }.admit(&mut attributes(fields))
}

#[test]
fn attributes_are_those_that_are_defined_and_may_be_set() {
    let undefined =
        |name| Err(Undefined(format!("Namespace default has no mapping defined for search attribute {name}")));
    let kept = |name| Err(Wrong(format!("{name} attribute can't be set in SearchAttributes")));
    let wrong = |reason: &str| Err(Wrong(format!("invalid value for search attribute {reason}")));
    let cases = [
        (&[][..], Ok(())),
        (&[("Kw", r#""a""#), ("Num", "5"), ("TemporalNamespaceDivision", r#""x""#)], Ok(())),
        (&[("Kw", "null"), ("Num", "[]")], Ok(())),
        (&[("Nope", r#""a""#)], undefined("Nope")),
        (&[("Memo", r#""a""#)], undefined("Memo")),
        (&[("Keyword01", r#""a""#)], undefined("Keyword01")),
        (&[("TemporalFoo", r#""a""#)], undefined("TemporalFoo")),
        (&[("Kw", "5"), ("Nope", "5"), ("Also", "5")], undefined("Also")),
        (&[("WorkflowId", r#""a""#)], kept("WorkflowId")),
        (&[("TemporalWorkerDeployment", r#""a""#)], kept("TemporalWorkerDeployment")),
        (&[("Kw", "5")], wrong("Kw of type Keyword: 5")),
        (&[("Kw", r#"["a", "b"]"#)], wrong("Kw of type Keyword: [a b]")),
        (&[("Num", r#""5""#)], wrong("Num of type Int: 5")),
        (&[("TemporalChangeVersion", "1")], wrong("TemporalChangeVersion of type KeywordList: 1")),
    ];
    for (fields, expected) in cases {
        assert_eq!(admit(fields), expected, "{fields:?}");
    }
}

#[test]
fn there_are_no_more_than_a_hundred() {
    let names: Vec<String> = (0..101).map(|number| format!("A{number}")).collect();
    let custom: CustomAttributes = names.iter().map(|name| (name.clone(), ValueType::Int)).collect();
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let admit =
        |count: usize| Defined { namespace: "default", custom: &custom }.admit(&mut attributes(&fields[..count]));
    assert_eq!(admit(100), Ok(()));
    assert_eq!(admit(101), Err(Wrong("number of search attributes 101 exceeds limit 100".to_owned())));
}

#[test]
fn what_they_weigh_is_bounded() {
    let text = |bytes: usize| "x".repeat(bytes);
    assert_eq!(sizes(&attributes(&[("Kw", &text(2048))])), Ok(()));
    let too_big = "search attribute Kw value size 2049 exceeds size limit 2048".to_owned();
    assert_eq!(sizes(&attributes(&[("Kw", &text(2049))])), Err(too_big));
    let names: Vec<String> = (0..20).map(|number| format!("A{number}")).collect();
    let value = text(2048);
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
    assert_eq!(sizes(&attributes(&fields[..19])), Ok(()));
    let refused = sizes(&attributes(&fields)).expect_err("it is too much");
    assert!(refused.starts_with("total size of search attributes 4") && refused.ends_with("exceeds size limit 40960"));
}
