//! Names, their places and what they resolve to.

use std::collections::HashMap;

use persistence::stores::visibility::value::ValueType;

use super::{CustomAttributes, free_place, is_reserved};

fn aliases(aliases: &[(&str, &str)]) -> HashMap<String, String> {
    aliases.iter().map(|(place, name)| ((*place).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn the_place_of_an_attribute_tells_its_type() {
    let custom = CustomAttributes::of_aliases(&aliases(&[
        ("Keyword01", "Customer"),
        ("KeywordList01", "Tags"),
        ("Int123", "Amount"),
        ("Nonsense01", "Lost"),
    ]));
    let known: Vec<_> = custom.iter().collect();
    assert_eq!(known, [("Amount", ValueType::Int), ("Customer", ValueType::Keyword), ("Tags", ValueType::KeywordList)]);
}

#[test]
fn places_have_no_end() {
    let mut taken = HashMap::new();
    for number in 1..=120 {
        let place = free_place(&taken, ValueType::Bool);
        assert_eq!(place, format!("Bool{number:02}"));
        taken.insert(place, format!("flag{number}"));
    }
    taken.remove("Bool07");
    assert_eq!(free_place(&taken, ValueType::Bool), "Bool07");
}

#[test]
fn names_of_the_server_are_reserved() {
    for name in ["WorkflowId", "BuildIds", "TemporalAnything", "Temporal", "Memo", "NamespaceId"] {
        assert!(is_reserved(name), "{name}");
    }
    for name in ["Customer", "ScheduleId", "workflowid", "MyTemporal"] {
        assert!(!is_reserved(name), "{name}");
    }
}
