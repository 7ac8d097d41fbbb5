//! Names, their places and what they resolve to.

use std::collections::HashMap;

use persistence::stores::visibility::value::ValueType;

use super::{CustomAttributes, OF_ONE_TYPE_MAX, TooMany, free_place, is_reserved, with_added};

fn aliases(aliases: &[(&str, &str)]) -> HashMap<String, String> {
    aliases.iter().map(|(place, name)| ((*place).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn the_column_of_an_attribute_names_its_type() {
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
fn the_first_free_place_is_taken_until_there_is_none() {
    let mut taken = HashMap::new();
    for number in 1..=OF_ONE_TYPE_MAX {
        let place = free_place(&taken, ValueType::Bool).unwrap();
        assert_eq!(place, format!("Bool{number:02}"));
        taken.insert(place, format!("flag{number}"));
    }
    assert_eq!(free_place(&taken, ValueType::Bool), None);
    taken.remove("Bool07");
    assert_eq!(free_place(&taken, ValueType::Bool).as_deref(), Some("Bool07"));
}

#[test]
fn tens_of_thousands_of_attributes_are_refused() {
    let names: Vec<String> = (0..50_000).map(|number| format!("Attribute{number}")).collect();
    let many = |count: usize| names[..count].iter().map(|name| (name.as_str(), ValueType::Keyword));
    assert_eq!(with_added(&HashMap::new(), many(names.len())), Err(TooMany(ValueType::Keyword)));
    let all = with_added(&HashMap::new(), many(OF_ONE_TYPE_MAX)).unwrap().unwrap();
    assert_eq!(all.len(), OF_ONE_TYPE_MAX);
    assert_eq!(with_added(&all, many(OF_ONE_TYPE_MAX)), Ok(None), "what is there needs no place");
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
