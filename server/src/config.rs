//! The configuration: one typed tree, a struct per service, defaults and their reasons in place. Every key of the file
//! is optional; an environment variable `EVERROW__SECTION__KEY` overrides the file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use cluster::config::ClusterConfig;
use persistence_cql::CqlConfig;
use serde::Deserialize;
use thiserror::Error;
use toml::{Table, Value};

use crate::history::config::HistoryConfig;
use crate::matching::config::MatchingConfig;

#[cfg(test)]
mod tests;

/// The port that every client of the API expects.
pub const PORT: u16 = 7233;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub cluster: ClusterConfig,
    pub frontend: FrontendConfig,
    pub http: HttpConfig,
    pub store: StoreConfig,
    pub history: HistoryConfig,
    pub matching: MatchingConfig,
    pub metrics: MetricsConfig,
    pub log: LogConfig,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrontendConfig {
    /// Where the public gRPC API is served. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Client connections over all addresses. Lower if the limit of open files does not allow them.
    pub connections_max: usize,
    /// Bytes of requests and responses in transit, over all connections; half of it for one of them.
    pub buffer_bytes: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Where the public API is served as JSON over HTTP; not served if unset. Port 0 takes any free one.
    pub address: Option<SocketAddr>,
    /// Accepted `Host` names, besides `localhost` and any IP address; `*` is any. A page that points its own name here
    /// (DNS rebinding) sends another one.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call it: `https://console.example.com`. `*` is any.
    pub allowed_origins: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    pub engine: EngineKind,
    /// Creates and updates the schema on Cassandra at start-up. Off: `everrow schema` does, by hand.
    pub apply_schema: bool,
    pub embedded: EmbeddedConfig,
    pub cassandra: CqlConfig,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let (engine, embedded, cassandra) = (EngineKind::default(), EmbeddedConfig::default(), CqlConfig::default());
        Self { engine, apply_schema: true, embedded, cassandra }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// In a local directory.
    #[default]
    Embedded,
    /// On Cassandra or ScyllaDB.
    Cassandra,
    /// In memory: all data is lost when the process ends. For trying things out.
    Memory,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddedConfig {
    /// Created if missing. One process at a time.
    pub data: PathBuf,
    /// Acknowledge writes only after fsync. Off, a power loss loses the last acknowledged writes.
    pub fsync: bool,
    /// Size of the block cache in bytes; allocated as blocks are read.
    pub cache_bytes: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// Where Prometheus reads `/metrics`; not served if unset. Port 0 takes any free one.
    pub address: Option<SocketAddr>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug` or `trace`, also by module: `info,server::history=debug`.
    pub level: String,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    #[default]
    Text,
    /// One object per line.
    Json,
}

impl Default for FrontendConfig {
    fn default() -> Self {
        let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
        Self { listen, connections_max: 4096, buffer_bytes: 96 << 20 }
    }
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self { data: "everrow-data".into(), fsync: true, cache_bytes: 16 << 20 }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".into(), format: LogFormat::Text }
    }
}

/// Error for the operator, whose text must suffice to fix it.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {error}", file.display())]
    Unreadable { file: PathBuf, error: std::io::Error },
    #[error("the configuration file {} is wrong:\n{error}", file.display())]
    WrongFile { file: PathBuf, error: String },
    #[error("the environment variable {variable} is wrong: {error}")]
    WrongVariable { variable: String, error: String },
    #[error("{key} = {value}: {allowed}")]
    OutOfRange { key: &'static str, value: String, allowed: &'static str },
}

/// Prefix of our environment variables.
const VARIABLE_PREFIX: &str = "EVERROW__";
/// A few messages of the largest size, in either direction, on one connection.
const BUFFER_BYTES_MIN: usize = 32 << 20;
/// Each shard costs memory on its owner and a partition in the store.
const SHARDS_MAX: i32 = 16_384;

impl Config {
    /// Reads the file, then the environment.
    pub fn load(file: &Path, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(file).map_err(|error| ConfigError::Unreadable { file: file.to_owned(), error })?;
        let wrong = |error: toml::de::Error| ConfigError::WrongFile { file: file.to_owned(), error: error.to_string() };
        // The bare file is deserialized first: its errors point to a line.
        toml::from_str::<Self>(&text).map_err(wrong)?;
        let mut table: Table = toml::from_str(&text).map_err(wrong)?;
        apply_environment(&mut table, environment)?;
        let config: Self = table.try_into().map_err(wrong)?;
        config.check()?;
        Ok(config)
    }

    /// Checks what the types cannot express.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |key, value: &dyn ToString, allowed| {
            Err(ConfigError::OutOfRange { key, value: value.to_string(), allowed })
        };
        if !(1..=SHARDS_MAX).contains(&self.cluster.shards) {
            return wrong("cluster.shards", &self.cluster.shards, "there are 1 to 16384 shards");
        }
        if self.frontend.buffer_bytes < BUFFER_BYTES_MIN {
            return wrong(
                "frontend.buffer_bytes",
                &self.frontend.buffer_bytes,
                "at least 33554432, for 4 MiB messages",
            );
        }
        if self.frontend.connections_max == 0 {
            return wrong("frontend.connections_max", &0, "at least 1");
        }
        if self.cluster.name.is_empty() {
            return wrong("cluster.name", &"\"\"", "a cluster has a name");
        }
        if self.store.engine == EngineKind::Cassandra && self.store.cassandra.contact_points.is_empty() {
            return wrong("store.cassandra.contact_points", &"[]", "name at least one node as \"host:port\"");
        }
        Ok(())
    }
}

/// Applies one variable at a time, so that an error names the wrong one.
fn apply_environment(
    table: &mut Table,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    let mut variables: Vec<_> = environment.into_iter().filter(|(name, _)| name.starts_with(VARIABLE_PREFIX)).collect();
    variables.sort();
    for (variable, text) in variables {
        let keys = variable[VARIABLE_PREFIX.len()..].to_ascii_lowercase();
        let path: Vec<&str> = keys.split("__").collect();
        // TOML if it parses, otherwise a string: a bare word. A number may be meant as text (a password).
        let as_toml =
            toml::from_str::<Table>(&format!("value = {text}")).ok().and_then(|mut read| read.remove("value"));
        let candidates = as_toml.into_iter().chain([Value::String(text)]);
        let mut error = String::new();
        let accepted = candidates.into_iter().find_map(|value| {
            let mut changed = table.clone();
            set(&mut changed, &path, value)
                .and_then(|()| changed.clone().try_into::<Config>().map_err(|wrong| wrong.message().to_owned()))
                .map(|_| changed)
                .map_err(|wrong| error = wrong)
                .ok()
        });
        *table = accepted.ok_or(ConfigError::WrongVariable { variable, error })?;
    }
    Ok(())
}

fn set(table: &mut Table, path: &[&str], value: Value) -> Result<(), String> {
    let (key, sections) = path.split_last().ok_or("it names no key")?;
    let mut table = table;
    for section in sections {
        let entry = table.entry(*section).or_insert_with(|| Value::Table(Table::new()));
        table = entry.as_table_mut().ok_or_else(|| format!("{section} is not a section"))?;
    }
    table.insert((*key).to_owned(), value);
    Ok(())
}
