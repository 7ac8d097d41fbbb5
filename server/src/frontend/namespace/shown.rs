//! A namespace as clients see it.

use cluster::namespaces::Namespace;
use proto::temporal::api::enums::v1::ReplicationState;
use proto::temporal::api::namespace::v1::namespace_info::{Capabilities, Limits};
use proto::temporal::api::namespace::v1::{NamespaceConfig, NamespaceInfo};
use proto::temporal::api::replication::v1::{ClusterReplicationConfig, FailoverStatus, NamespaceReplicationConfig};
use proto::temporal::api::workflowservice::v1 as public;
use workflow::Timestamp;

use super::super::validate::sizes::{BLOB_BYTES_MAX, MEMO_BYTES_MAX};

pub(super) fn described(namespace: &Namespace) -> public::DescribeNamespaceResponse {
    let failovers = namespace.record.failover_history.iter();
    public::DescribeNamespaceResponse {
        namespace_info: Some(info(namespace)),
        config: Some(config(namespace)),
        replication_config: Some(replication(namespace)),
        failover_version: namespace.failover_version,
        is_global_namespace: namespace.record.is_global,
        failover_history: failovers
            .map(|failover| FailoverStatus {
                failover_time: Some(Timestamp(failover.at).into()),
                failover_version: failover.failover_version,
            })
            .collect(),
        ..public::DescribeNamespaceResponse::default()
    }
}

pub(super) fn updated(namespace: &Namespace) -> public::UpdateNamespaceResponse {
    public::UpdateNamespaceResponse {
        namespace_info: Some(info(namespace)),
        config: Some(config(namespace)),
        replication_config: Some(replication(namespace)),
        failover_version: namespace.failover_version,
        is_global_namespace: namespace.record.is_global,
    }
}

fn info(namespace: &Namespace) -> NamespaceInfo {
    let record = &namespace.record;
    // Only built capabilities: SDKs change their behaviour by them.
    let capabilities = Capabilities {
        eager_workflow_start: true,
        sync_update: true,
        async_update: true,
        worker_poll_complete_on_shutdown: true,
        workflow_pause: true,
        ..Capabilities::default()
    };
    let limits = Limits {
        blob_size_limit_error: BLOB_BYTES_MAX as i64,
        memo_size_limit_error: MEMO_BYTES_MAX as i64,
        ..Limits::default()
    };
    NamespaceInfo {
        name: record.name.clone(),
        state: record.state,
        description: record.description.clone(),
        owner_email: record.owner_email.clone(),
        data: record.data.clone(),
        id: namespace.id.to_string(),
        capabilities: Some(capabilities),
        limits: Some(limits),
        supports_schedules: true,
    }
}

fn config(namespace: &Namespace) -> NamespaceConfig {
    let record = &namespace.record;
    NamespaceConfig {
        workflow_execution_retention_ttl: record.retention,
        bad_binaries: Some(record.bad_binaries.clone().unwrap_or_default()),
        history_archival_state: record.history_archival_state,
        history_archival_uri: record.history_archival_uri.clone(),
        visibility_archival_state: record.visibility_archival_state,
        visibility_archival_uri: record.visibility_archival_uri.clone(),
        custom_search_attribute_aliases: record.custom_search_attribute_aliases.clone(),
    }
}

fn replication(namespace: &Namespace) -> NamespaceReplicationConfig {
    let clusters = namespace.record.clusters.iter();
    NamespaceReplicationConfig {
        active_cluster_name: namespace.record.active_cluster.clone(),
        clusters: clusters.map(|name| cluster(name)).collect(),
        state: ReplicationState::Normal.into(),
    }
}

fn cluster(name: &str) -> ClusterReplicationConfig {
    ClusterReplicationConfig { cluster_name: name.to_owned(), ..ClusterReplicationConfig::default() }
}
