//! Seven open runs, and what they are searched by.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use cluster::search_attributes::custom::CustomAttributes;
use cluster::search_attributes::datetime;
use persistence::stores::visibility::value::{Value, ValueType};
use workflow::Timestamp;

use super::super::evaluate::matches;
use super::super::parse;

pub(super) fn custom() -> CustomAttributes {
    let attributes = [
        ("Kw", ValueType::Keyword),
        ("Kw2", ValueType::Keyword),
        ("Txt", ValueType::Text),
        ("KwList", ValueType::KeywordList),
        ("Num", ValueType::Int),
        ("Dbl", ValueType::Double),
        ("Flag", ValueType::Bool),
        ("At", ValueType::Datetime),
    ];
    attributes.into_iter().map(|(name, value_type)| (name.to_owned(), value_type)).collect()
}

/// A run: its workflow id, and the search attributes that are set.
pub(super) struct Run {
    pub(super) workflow_id: &'static str,
    indexed: BTreeMap<&'static str, Value>,
}

fn keyword(text: &str) -> Value {
    Value::Keyword(text.to_owned())
}

fn keywords(keywords: &[&str]) -> Value {
    Value::KeywordList(keywords.iter().map(|keyword| (*keyword).to_owned()).collect())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn moment(written: &str) -> Value {
    Value::Datetime(datetime::parse(written).expect("a moment"))
}

pub(super) fn runs() -> Vec<Run> {
    let run =
        |workflow_id, indexed: Vec<(&'static str, Value)>| Run { workflow_id, indexed: indexed.into_iter().collect() };
    vec![
        run("none", vec![]),
        run(
            "a",
            vec![
                ("Kw", keyword("Alpha")),
                ("Txt", text("The quick brown fox")),
                ("KwList", keywords(&["red", "Green"])),
                ("Num", Value::Int(5)),
                ("Dbl", Value::Double(2.5)),
                ("Flag", Value::Bool(true)),
                ("At", moment("2024-01-02T03:04:05.123456789Z")),
            ],
        ),
        run(
            "b",
            vec![
                ("Kw", keyword("alphabet")),
                ("Txt", text("lazy well-known dog")),
                ("KwList", keywords(&["blue"])),
                ("Num", Value::Int(-3)),
                ("Dbl", Value::Double(3.0)),
                ("Flag", Value::Bool(false)),
                ("At", moment("2024-01-02T03:04:05.123456Z")),
            ],
        ),
        run(
            "c",
            vec![
                ("Kw", keyword("it's")),
                ("Txt", text("Über café")),
                ("KwList", keywords(&["red", "a b"])),
                ("Num", Value::Int(0)),
                ("Dbl", Value::Double(-1.25)),
                ("At", moment("2024-01-02T03:04:05+02:00")),
            ],
        ),
        run(
            "d",
            vec![
                ("Kw", keyword("100%")),
                ("Num", Value::Int(9_007_199_254_740_993)),
                ("At", moment("2030-01-01T00:00:00.1Z")),
            ],
        ),
        run("e", vec![("Kw", keyword("back\\slash")), ("Txt", text("a\"b"))]),
        run("f", vec![("Kw", keyword(""))]),
    ]
}

impl Run {
    pub(super) fn value(&self, attribute: &Attribute) -> Option<Cow<'_, Value>> {
        match attribute {
            Attribute::System(system) => self.system(*system).map(Cow::Owned),
            Attribute::Indexed { name, .. } => self.indexed.get(name.as_str()).map(Cow::Borrowed),
        }
    }

    fn system(&self, attribute: SystemAttribute) -> Option<Value> {
        match attribute {
            SystemAttribute::WorkflowId | SystemAttribute::RootWorkflowId => Some(keyword(self.workflow_id)),
            SystemAttribute::RunId | SystemAttribute::RootRunId => {
                Some(keyword("00000000-0000-4000-8000-000000000000"))
            }
            SystemAttribute::WorkflowType => Some(keyword("T")),
            SystemAttribute::TaskQueue => Some(keyword("q")),
            SystemAttribute::ExecutionStatus => Some(keyword("Running")),
            SystemAttribute::StartTime | SystemAttribute::ExecutionTime => {
                Some(Value::Datetime(Timestamp(1_800_000_000_000_000_000)))
            }
            SystemAttribute::CloseTime
            | SystemAttribute::HistoryLength
            | SystemAttribute::ExecutionDuration
            | SystemAttribute::StateTransitionCount
            | SystemAttribute::HistorySizeBytes
            | SystemAttribute::ParentWorkflowId
            | SystemAttribute::ParentRunId => None,
        }
    }
}

/// The workflow ids that a query finds, or what is wrong with it.
pub(super) fn answer(query: &str) -> Result<String, String> {
    let query = parse(query, &custom()).map_err(|error| error.to_string())?;
    let found =
        |run: &Run| query.filter.as_ref().is_none_or(|filter| matches(filter, &|attribute| run.value(attribute)));
    let mut ids: Vec<_> = runs().iter().filter(|run| found(run)).map(|run| run.workflow_id).collect();
    ids.sort_unstable();
    Ok(ids.join(" "))
}
