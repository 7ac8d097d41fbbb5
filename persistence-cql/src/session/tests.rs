//! Configurations that are turned away before anything is sent.

use super::*;

fn check_refused(config: &CqlConfig, why: &str) {
    match check(config) {
        Err(ConnectError::Config(message)) => assert!(message.contains(why), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_keyspace_has_a_plain_name() {
    assert!(check(&CqlConfig::default()).is_ok());
    for keyspace in ["", "Everrow", "1st", "a-b", "a; b", "a\"b", &"a".repeat(49)] {
        check_refused(&CqlConfig { keyspace: keyspace.to_owned(), ..CqlConfig::default() }, "keyspace");
    }
}

#[test]
fn there_is_somebody_to_ask() {
    check_refused(&CqlConfig { contact_points: Vec::new(), ..CqlConfig::default() }, "contact_points");
}

#[test]
fn the_local_datacenter_is_required_where_there_are_several() {
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert!(check_datacenter(None, &all(&["east"])).is_ok());
    assert!(check_datacenter(Some("west"), &all(&["east", "west"])).is_ok());
    assert!(check_datacenter(None, &all(&["east", "west"])).is_err());
    assert!(check_datacenter(Some("north"), &all(&["east", "west"])).is_err());
}
