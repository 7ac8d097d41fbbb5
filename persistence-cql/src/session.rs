//! The connection to the cluster: contact points, routing, timeouts, TLS.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::NewSessionError;
use scylla::policies::load_balancing::{DefaultPolicy, LoadBalancingPolicy};
use scylla::policies::timestamp_generator::MonotonicTimestampGenerator;
use scylla::statement::{Consistency, SerialConsistency};
use thiserror::Error;

use crate::config::{Compression, CqlConfig, Level, SerialLevel};

#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("in the configuration of the CQL store: {0}")]
    Config(String),
    #[error("cannot read a TLS file: {0}")]
    Tls(String),
    #[error("cannot connect to {contact_points}: {reason}")]
    Unreachable { contact_points: String, reason: Box<NewSessionError> },
    #[error("there is no keyspace {0}: run `everrow schema setup`")]
    NoKeyspace(String),
}

/// A session in the configured keyspace.
pub(crate) async fn connect(config: &CqlConfig) -> Result<Session, ConnectError> {
    let keyspace = &config.keyspace;
    let builder = builder(config)?.use_keyspace(keyspace, false).keyspaces_to_fetch([keyspace]);
    let session = builder.build().await.map_err(|reason| {
        let is_missing = matches!(reason, NewSessionError::UseKeyspaceError(_));
        if is_missing { ConnectError::NoKeyspace(keyspace.clone()) } else { unreachable(config, reason) }
    })?;
    check_datacenter(config.local_datacenter.as_deref(), &datacenters(&session))?;
    Ok(session)
}

/// A session in no keyspace, for creating it.
pub(crate) async fn connect_outside_keyspace(config: &CqlConfig) -> Result<Session, ConnectError> {
    builder(config)?.build().await.map_err(|reason| unreachable(config, reason))
}

pub(crate) fn serial_reads(config: &CqlConfig) -> Consistency {
    match config.serial_consistency {
        SerialLevel::LocalSerial => Consistency::LocalSerial,
        SerialLevel::Serial => Consistency::Serial,
    }
}

fn builder(config: &CqlConfig) -> Result<SessionBuilder, ConnectError> {
    check(config)?;
    let connections = std::num::NonZeroUsize::new(config.connections_per_host)
        .ok_or_else(|| ConnectError::Config("connections_per_host is 0".to_owned()))?;
    let mut builder = SessionBuilder::new()
        .known_nodes(&config.contact_points)
        .default_execution_profile_handle(profile(config).into_handle())
        .connection_timeout(Duration::from_millis(config.connect_timeout_ms))
        .pool_size(PoolSize::PerHost(connections))
        // Orders plain writes of this process even if they go through different nodes: a delayed write cannot overwrite
        // a later one. Conditional writes still get their timestamp from Paxos.
        .timestamp_generator(Arc::new(MonotonicTimestampGenerator::new()))
        .compression(match config.compression {
            Compression::None => None,
            Compression::Lz4 => Some(scylla::client::Compression::Lz4),
        });
    if let Some(credentials) = &config.credentials {
        builder = builder.user(&credentials.user, &credentials.password);
    }
    if let Some(tls) = &config.tls {
        builder = builder.tls_context(Some(crate::tls::client_config(tls).map_err(ConnectError::Tls)?));
    }
    Ok(builder)
}

/// Routes to a replica in the local data centre.
pub(crate) fn routing(config: &CqlConfig) -> Arc<dyn LoadBalancingPolicy> {
    let mut routing = DefaultPolicy::builder().token_aware(true).permit_dc_failover(false);
    if let Some(datacenter) = &config.local_datacenter {
        routing = routing.prefer_datacenter(datacenter.clone());
    }
    routing.build()
}

fn profile(config: &CqlConfig) -> ExecutionProfile {
    // Reads use the driver's retry policy; writes set their own.
    ExecutionProfile::builder()
        .load_balancing_policy(routing(config))
        .request_timeout(Some(Duration::from_millis(config.request_timeout_ms)))
        .consistency(match config.consistency {
            Level::LocalQuorum => Consistency::LocalQuorum,
            Level::Quorum => Consistency::Quorum,
            Level::All => Consistency::All,
        })
        .serial_consistency(Some(match config.serial_consistency {
            SerialLevel::LocalSerial => SerialConsistency::LocalSerial,
            SerialLevel::Serial => SerialConsistency::Serial,
        }))
        .build()
}

/// The keyspace's name becomes part of statements, so only plain names are accepted.
fn check(config: &CqlConfig) -> Result<(), ConnectError> {
    const LONGEST_KEYSPACE_NAME: usize = 48;
    let name = &config.keyspace;
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !plain || name.len() > LONGEST_KEYSPACE_NAME {
        let rule = "a lower-case letter, then lower-case letters, digits and underscores, at most 48 in all";
        return Err(ConnectError::Config(format!("keyspace = {name:?} is not {rule}")));
    }
    if config.contact_points.is_empty() {
        return Err(ConnectError::Config("contact_points is empty".to_owned()));
    }
    Ok(())
}

fn datacenters(session: &Session) -> BTreeSet<String> {
    let state = session.get_cluster_state();
    state.get_nodes_info().iter().filter_map(|node| node.datacenter.clone()).collect()
}

/// With several data centres, "local" must be the same one on all nodes that share a lease: Paxos in two data centres
/// would grant the lease twice.
fn check_datacenter(local: Option<&str>, all: &BTreeSet<String>) -> Result<(), ConnectError> {
    let names = || all.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match local {
        None if all.len() > 1 => {
            let message = format!("local_datacenter must be set, and to the same on all nodes: there are {}", names());
            Err(ConnectError::Config(message))
        }
        Some(local) if !all.contains(local) => {
            Err(ConnectError::Config(format!("local_datacenter = {local:?} has no node: there are {}", names())))
        }
        None | Some(_) => Ok(()),
    }
}

fn unreachable(config: &CqlConfig, reason: NewSessionError) -> ConnectError {
    ConnectError::Unreachable { contact_points: config.contact_points.join(", "), reason: Box::new(reason) }
}

#[cfg(test)]
mod tests;
