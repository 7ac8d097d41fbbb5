//! Valid configurations, and the operator's errors for wrong ones.

use std::collections::BTreeSet;
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

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/everrow.example.toml");

#[test]
fn the_example_file_has_the_defaults() {
    let config = Config::load(Path::new(EXAMPLE), []).unwrap();
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn the_example_file_has_every_key_and_no_other() {
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let mut accepted = BTreeSet::new();
    collect_keys("", &mut accepted);
    assert!(accepted.contains("matching.spool_batch") && accepted.contains("store.cassandra.tls.identity.key_file"));
    assert_eq!(documented_keys(&example), accepted);
}

/// The keys that the structs accept below a section. serde names them in its error for a key that does not exist.
fn collect_keys(section: &str, keys: &mut BTreeSet<String>) {
    for key in accepted_keys(section).unwrap() {
        let path = if section.is_empty() { key } else { format!("{section}.{key}") };
        match accepted_keys(&path) {
            Some(_) => collect_keys(&path, keys),
            None => drop(keys.insert(path)),
        }
    }
}

/// `None`: this is no section with a fixed set of keys.
fn accepted_keys(section: &str) -> Option<Vec<String>> {
    let header = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
    let error = toml::from_str::<Config>(&format!("{header}no_such_key = 1")).err()?;
    let (_, expected) = error.message().split_once("unknown field `no_such_key`, expected ")?;
    Some(expected.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Keys of a file, those in comments included: their default is to be unset.
fn documented_keys(text: &str) -> BTreeSet<String> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_.".contains(c));
    let (mut section, mut keys) = (String::new(), BTreeSet::new());
    for line in text.lines().map(|line| line.trim_start_matches("# ")) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')).filter(|name| is_name(name))
        {
            name.clone_into(&mut section);
        } else if let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| is_name(key)) {
            keys.insert(format!("{section}.{key}"));
        }
    }
    keys
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
fn a_wrong_file_is_reported_by_name_line_and_what_is_allowed() {
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
fn a_wrong_variable_is_reported_by_its_name() {
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
