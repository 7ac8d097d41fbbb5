//! What a configuration may say, and what the operator hears if it is wrong.

use std::io::Write as _;

use super::*;

fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(file.path(), environment)
}

fn error(text: &str, environment: &[(&str, &str)]) -> String {
    load(text, environment).unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_a_whole_configuration() {
    let config = load("", &[]).unwrap();
    assert_eq!(config.cluster.shards, 4);
    assert_eq!(config.frontend.listen.port(), PORT);
    assert_eq!(config.store.engine, EngineKind::Embedded);
    assert!(config.store.embedded.fsync);
}

#[test]
fn the_example_file_says_the_defaults() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/everrow.example.toml");
    let config = Config::load(Path::new(example), []).unwrap();
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn a_file_sets_what_it_names() {
    let config = load(
        "[cluster]\nshards = 512\n[store]\nengine = \"cassandra\"\n[store.cassandra]\nkeyspace = \"prod\"\n\
         [history]\ncache_bytes = 1000\n[log]\nformat = \"json\"",
        &[],
    )
    .unwrap();
    assert_eq!(config.cluster.shards, 512);
    assert_eq!(config.store.engine, EngineKind::Cassandra);
    assert_eq!(config.store.cassandra.keyspace, "prod");
    assert_eq!(config.history.cache_bytes, 1000);
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn the_environment_outweighs_the_file() {
    let config = load(
        "[cluster]\nshards = 512",
        &[
            ("EVERROW__CLUSTER__SHARDS", "64"),
            ("EVERROW__LOG__LEVEL", "debug"),
            ("EVERROW__STORE__ENGINE", "memory"),
            ("EVERROW__STORE__CASSANDRA__CONTACT_POINTS", "[\"a:9042\", \"b:9042\"]"),
            ("EVERROW__CLUSTER__NAME", "7"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!(config.cluster.shards, 64);
    assert_eq!(config.log.level, "debug");
    assert_eq!(config.store.engine, EngineKind::Memory);
    assert_eq!(config.store.cassandra.contact_points, ["a:9042", "b:9042"]);
    assert_eq!(config.cluster.name, "7", "what is text stays text");
}

#[test]
fn a_wrong_file_is_told_by_name_line_and_what_is_allowed() {
    let unknown = error("[cluster]\nshard = 4", &[]);
    for part in ["line 2", "unknown field `shard`", "`shards`"] {
        assert!(unknown.contains(part), "{part} in {unknown}");
    }
    let kind = error("[store]\nengine = \"postgres\"", &[]);
    for part in ["line 2", "postgres", "embedded", "cassandra"] {
        assert!(kind.contains(part), "{part} in {kind}");
    }
    assert!(error("[cluster]\nshards = 0", &[]).contains("cluster.shards = 0: there are 1 to 16384 shards"));
    assert!(error("not toml", &[]).contains("line 1"));
}

#[test]
fn a_wrong_variable_is_told_by_its_name() {
    let cases = [
        ("EVERROW__CLUSTER__SHARDS", "many", "invalid type"),
        ("EVERROW__CLUSTER__SHARD", "4", "unknown field `shard`"),
        ("EVERROW__CLUSTER__NAME__X", "4", "name is not a section"),
        ("EVERROW__", "4", "unknown field"),
    ];
    for (variable, value, reason) in cases {
        let error = error("[cluster]\nname = \"active\"", &[(variable, value)]);
        assert!(error.contains(variable) && error.contains(reason), "{variable}: {error}");
    }
}

#[test]
fn a_missing_file_is_told_by_its_path() {
    let error = Config::load(Path::new("/nowhere/everrow.toml"), []).unwrap_err().to_string();
    assert!(error.contains("/nowhere/everrow.toml"), "{error}");
}
