//! Operator configuration: how to reach the cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CqlConfig {
    /// Some nodes of the cluster, `host:port`; the others are found through them.
    pub contact_points: Vec<String>,
    pub keyspace: String,
    /// The data centre of this node. Requests stay in it, and the local levels of consistency are counted in it.
    /// Unset: the cluster has one data centre.
    pub local_datacenter: Option<String>,
    /// Replication of the keyspace that `schema setup` creates. Unset: the keyspace must exist already.
    pub replication: Option<Replication>,
    pub consistency: Level,
    pub serial_consistency: SerialLevel,
    pub credentials: Option<Credentials>,
    pub tls: Option<TlsConfig>,
    pub compression: Compression,
    pub connect_timeout_ms: u64,
    /// Longer than the database's own timeouts, so that the database reports what timed out.
    pub request_timeout_ms: u64,
    /// Per node, on ScyllaDB too (not per shard).
    pub connections_per_host: usize,
}

impl Default for CqlConfig {
    fn default() -> Self {
        Self {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            keyspace: "everrow".to_owned(),
            local_datacenter: None,
            replication: None,
            consistency: Level::LocalQuorum,
            serial_consistency: SerialLevel::LocalSerial,
            credentials: None,
            tls: None,
            compression: Compression::None,
            connect_timeout_ms: 5_000,
            request_timeout_ms: 12_000,
            connections_per_host: 2,
        }
    }
}

/// `replication = 3`, or `replication = { dc1 = 3, dc2 = 3 }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Replication {
    /// For clusters of one data centre: `SimpleStrategy`.
    Copies(u32),
    /// Copies by data centre: `NetworkTopologyStrategy`.
    PerDatacenter(BTreeMap<String, u32>),
}

/// Of plain reads and writes, and of the commit of conditional ones. Weaker levels would lose acknowledged writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    LocalQuorum,
    Quorum,
    All,
}

/// Paxos consistency of conditional writes and serial reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SerialLevel {
    LocalSerial,
    Serial,
}

/// LZ4 pays where traffic between zones is billed; within a zone it only costs time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    None,
    Lz4,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration is printed at start-up; the password must not be.
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Files are PEM.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The authorities that may have signed the nodes' certificates.
    pub ca_file: PathBuf,
    /// Client certificate, for clusters that require one.
    #[serde(default)]
    pub identity: Option<Identity>,
    #[serde(default)]
    pub host_verification: HostVerification,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

/// Nodes are dialled by address, which many certificates do not name: then only the chain can be verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostVerification {
    #[default]
    ChainAndName,
    ChainOnly,
}

#[cfg(test)]
mod tests;
