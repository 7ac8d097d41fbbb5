//! What an operator may write.

use super::*;

fn parse(text: &str) -> Result<CqlConfig, toml::de::Error> {
    toml::from_str(text)
}

#[test]
fn nothing_need_be_said() {
    let config = parse("").unwrap();
    assert_eq!(config.keyspace, "everrow");
    assert_eq!(config.consistency, Level::LocalQuorum);
    assert_eq!(config.serial_consistency, SerialLevel::LocalSerial);
    assert_eq!(config.replication, None);
}

#[test]
fn replication_is_a_number_or_one_per_datacenter() {
    assert_eq!(parse("replication = 3").unwrap().replication, Some(Replication::Copies(3)));
    let per_datacenter = Replication::PerDatacenter([("east".to_owned(), 3), ("west".to_owned(), 2)].into());
    assert_eq!(parse("replication = { east = 3, west = 2 }").unwrap().replication, Some(per_datacenter));
}

#[test]
fn everything_can_be_said() {
    let config = parse(
        r#"
        contact_points = ["a:9042", "b:9042"]
        local_datacenter = "east"
        consistency = "quorum"
        serial_consistency = "serial"
        compression = "lz4"
        credentials = { user = "everrow", password = "secret" }
        tls = { ca_file = "ca.pem", identity = { cert_file = "c.pem", key_file = "k.pem" }, host_verification = "chain_only" }
        "#,
    )
    .unwrap();
    assert_eq!(config.tls.as_ref().unwrap().host_verification, HostVerification::ChainOnly);
    assert!(!format!("{config:?}").contains("secret"), "the password is shown");
}

#[test]
fn a_misspelt_key_is_reported() {
    assert!(parse("keyspaces = 'x'").is_err());
    assert!(parse("consistency = 'one'").is_err());
    assert!(parse("tls = { ca = 'x' }").is_err());
}
