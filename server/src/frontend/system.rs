//! RPCs about the server as a whole.

use cluster::errors::ServiceError;
use cluster::version;
use proto::temporal::api::version::v1::{ReleaseInfo, VersionInfo};
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::get_system_info_response::Capabilities;

use super::Frontend;
use super::call::Call;

/// Clients that are known to work, and up to which version.
const SUPPORTED_CLIENTS: [(&str, &str); 8] = [
    ("temporal-go", "<2.0.0"),
    ("temporal-java", "<2.0.0"),
    ("temporal-php", "<2.0.0"),
    ("temporal-typescript", "<2.0.0"),
    ("temporal-cli", "<2.0.0"),
    ("temporal-server", "<2.0.0"),
    ("temporal-ui", "<3.0.0"),
    ("Nexus-go-sdk", "<2.0.0"),
];

/// Only built capabilities: SDKs change what they send by them.
pub(super) async fn system_info(
    _frontend: &Frontend,
    _call: Call<public::GetSystemInfoRequest>,
) -> Result<public::GetSystemInfoResponse, ServiceError> {
    let capabilities = Capabilities {
        signal_and_query_header: true,
        internal_error_differentiation: true,
        activity_failure_include_heartbeat: true,
        encoded_failure_attributes: true,
        upsert_memo: true,
        eager_workflow_start: true,
        sdk_metadata: true,
        count_group_by_execution_status: true,
        supports_schedules: true,
        // Workers send their build ids; versioning by them is not built.
        build_id_based_versioning: true,
        ..Capabilities::default()
    };
    Ok(public::GetSystemInfoResponse {
        server_version: version::COMPATIBLE_SERVER.into(),
        capabilities: Some(capabilities),
    })
}

pub(super) async fn cluster_info(
    frontend: &Frontend,
    _call: Call<public::GetClusterInfoRequest>,
) -> Result<public::GetClusterInfoResponse, ServiceError> {
    let cluster = &frontend.cluster;
    let owned = |(name, versions): (&str, &str)| (name.to_owned(), versions.to_owned());
    let current = ReleaseInfo {
        version: version::COMPATIBLE_SERVER.into(),
        notes: format!("Everrow {}", version::EVERROW),
        ..ReleaseInfo::default()
    };
    Ok(public::GetClusterInfoResponse {
        supported_clients: SUPPORTED_CLIENTS.into_iter().map(owned).collect(),
        server_version: version::COMPATIBLE_SERVER.into(),
        cluster_id: cluster.id.to_string(),
        version_info: Some(VersionInfo { current: Some(current), ..VersionInfo::default() }),
        cluster_name: cluster.name.clone(),
        history_shard_count: cluster.n_shards,
        persistence_store: cluster.store.into(),
        // Visibility is in the same store.
        visibility_store: cluster.store.into(),
        initial_failover_version: cluster.initial_failover_version,
        failover_version_increment: cluster.failover_version_increment,
    })
}

/// Workers always send these. They are not used yet, and a namespace's capabilities say so.
pub(super) async fn worker_heartbeat(
    frontend: &Frontend,
    call: Call<public::RecordWorkerHeartbeatRequest>,
) -> Result<public::RecordWorkerHeartbeatResponse, ServiceError> {
    frontend.enter(&call.request.namespace).await?;
    Ok(public::RecordWorkerHeartbeatResponse::default())
}
