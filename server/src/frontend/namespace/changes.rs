//! Changes of a namespace's record by requests. Pure.

use cluster::errors::ServiceError;
use prost::Message as _;
use prost_types::Duration;
use proto::everrow::record;
use proto::temporal::api::enums::v1::{ArchivalState, NamespaceState, ReplicationState};
use proto::temporal::api::namespace::v1::{NamespaceConfig, UpdateNamespaceInfo};
use proto::temporal::api::replication::v1::NamespaceReplicationConfig;
use proto::temporal::api::workflowservice::v1 as public;
use workflow::Timestamp;

use super::super::validate::{invalid, span};

/// Short enough for tests, and never zero, which could be read as unlimited.
const RETENTION_MIN_SECONDS: i64 = 60 * 60;
const BAD_BINARIES_MAX: usize = 10;
/// Size of a namespace's record with its description, data and bad binaries: every node caches the records in use, and
/// `ListNamespaces` returns them whole.
const RECORD_BYTES_MAX: usize = 128 << 10;
/// Namespaces that live in one cluster have no failover version.
const NO_VERSION: i64 = 0;

pub(super) fn registered(
    request: public::RegisterNamespaceRequest,
    cluster: &str,
) -> Result<record::Namespace, ServiceError> {
    if request.is_global_namespace {
        return Err(invalid("Cannot register global namespace when not enabled"));
    }
    let retention = retention(request.workflow_execution_retention_period)?;
    let active = if request.active_cluster_name.is_empty() { cluster } else { &request.active_cluster_name };
    let mut clusters: Vec<String> = request.clusters.into_iter().map(|cluster| cluster.cluster_name).collect();
    if clusters.is_empty() {
        clusters.push(active.to_owned());
    }
    local_clusters(active, &clusters, cluster)?;
    sized(record::Namespace {
        name: request.namespace,
        state: NamespaceState::Registered.into(),
        description: request.description,
        owner_email: request.owner_email,
        data: request.data,
        retention: Some(retention),
        history_archival_state: ArchivalState::Disabled.into(),
        visibility_archival_state: ArchivalState::Disabled.into(),
        active_cluster: active.to_owned(),
        clusters,
        failover_version: NO_VERSION,
        ..record::Namespace::default()
    })
}

pub(super) fn deprecated(record: &record::Namespace) -> record::Namespace {
    record::Namespace {
        state: NamespaceState::Deprecated.into(),
        config_version: record.config_version + 1,
        ..record.clone()
    }
}

/// `None` if the request changes nothing.
pub(super) fn updated(
    record: &record::Namespace,
    request: &public::UpdateNamespaceRequest,
    cluster: &str,
    now: Timestamp,
) -> Result<Option<record::Namespace>, ServiceError> {
    let mut changed = record.clone();
    if let Some(info) = &request.update_info {
        update_info(&mut changed, info)?;
    }
    if let Some(config) = &request.config {
        update_config(&mut changed, config, now)?;
    }
    if !request.delete_bad_binary.is_empty() {
        let checksum = &request.delete_bad_binary;
        let removed = changed.bad_binaries.as_mut().and_then(|bad| bad.binaries.remove(checksum));
        removed.ok_or_else(|| invalid(format!("Bad binary checksum {checksum} doesn't exists.")))?;
    }
    if let Some(replication) = &request.replication_config {
        update_replication(&mut changed, replication)?;
    }
    if changed.is_global || request.promote_namespace {
        return Err(invalid(format!(
            "global namespace is not enabled on this cluster, cannot update global namespace or promote local \
             namespace: {}",
            request.namespace
        )));
    }
    local_clusters(&changed.active_cluster, &changed.clusters, cluster)?;
    if changed == *record {
        return Ok(None);
    }
    changed.config_version += 1;
    sized(changed).map(Some)
}

fn sized(record: record::Namespace) -> Result<record::Namespace, ServiceError> {
    match record.encoded_len() {
        ..=RECORD_BYTES_MAX => Ok(record),
        bytes => Err(invalid(format!("Namespace exceeds maximum allowed size ({bytes}/{RECORD_BYTES_MAX})"))),
    }
}

fn update_info(record: &mut record::Namespace, info: &UpdateNamespaceInfo) -> Result<(), ServiceError> {
    if !info.description.is_empty() {
        record.description.clone_from(&info.description);
    }
    if !info.owner_email.is_empty() {
        record.owner_email.clone_from(&info.owner_email);
    }
    // Merged only: a key cannot be removed.
    record.data.extend(info.data.clone());
    match (record.state(), info.state()) {
        (_, NamespaceState::Unspecified) => Ok(()),
        (old, new) if old == new => Ok(()),
        (NamespaceState::Registered, NamespaceState::Deprecated | NamespaceState::Deleted)
        | (NamespaceState::Deprecated, NamespaceState::Deleted) => {
            record.set_state(info.state());
            Ok(())
        }
        (
            NamespaceState::Unspecified
            | NamespaceState::Registered
            | NamespaceState::Deprecated
            | NamespaceState::Deleted,
            _,
        ) => Err(invalid("Invalid namespace state update.")),
    }
}

fn update_config(record: &mut record::Namespace, config: &NamespaceConfig, now: Timestamp) -> Result<(), ServiceError> {
    if config.workflow_execution_retention_ttl.is_some() {
        record.retention = Some(retention(config.workflow_execution_retention_ttl)?);
    }
    if let Some(bad) = &config.bad_binaries {
        let binaries = &mut record.bad_binaries.get_or_insert_default().binaries;
        for (checksum, binary) in &bad.binaries {
            let mut binary = binary.clone();
            binary.create_time = Some(now.into());
            binaries.insert(checksum.clone(), binary);
        }
        if binaries.len() > BAD_BINARIES_MAX {
            return Err(invalid(format!("Total resetBinaries cannot exceed the max limit: {BAD_BINARIES_MAX}")));
        }
    }
    for (field, alias) in &config.custom_search_attribute_aliases {
        let aliases = &mut record.custom_search_attribute_aliases;
        if alias.is_empty() {
            aliases.remove(field);
        } else if aliases.values().any(|known| known == alias) {
            // The alias is there already: nothing to do.
        } else if aliases.contains_key(field) {
            return Err(invalid("Custom search attribute field name already allocated."));
        } else {
            aliases.insert(field.clone(), alias.clone());
        }
    }
    Ok(())
}

fn update_replication(
    record: &mut record::Namespace,
    replication: &NamespaceReplicationConfig,
) -> Result<(), ServiceError> {
    if !replication.clusters.is_empty() {
        record.clusters = replication.clusters.iter().map(|cluster| cluster.cluster_name.clone()).collect();
    }
    if replication.state() == ReplicationState::Handover {
        return Err(invalid("Handover can only be set for global namespace"));
    }
    if !replication.active_cluster_name.is_empty() {
        record.active_cluster.clone_from(&replication.active_cluster_name);
    }
    Ok(())
}

fn retention(mut retention: Option<Duration>) -> Result<Duration, ServiceError> {
    let is_proper = span(&mut retention).is_ok();
    retention
        .filter(|retention| is_proper && retention.seconds >= RETENTION_MIN_SECONDS)
        .ok_or_else(|| invalid("A valid retention period is not set on request."))
}

/// A namespace of one cluster is active in it and lives nowhere else.
fn local_clusters(active: &str, clusters: &[String], this: &str) -> Result<(), ServiceError> {
    if let Some(unknown) = std::iter::once(active).chain(clusters.iter().map(String::as_str)).find(|name| *name != this)
    {
        return Err(invalid(format!("Invalid cluster name: {unknown}")));
    }
    if clusters.len() != 1 {
        return Err(invalid("Invalid local namespace clusters"));
    }
    Ok(())
}
