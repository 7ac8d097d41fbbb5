//! The known clusters: so far only this one.

use cluster::errors::ServiceError;
use proto::temporal::api::operatorservice::v1 as operator;
use uuid::Uuid;

use super::Frontend;
use super::call::Call;

const PAGE: usize = 100;

pub(super) async fn list(
    frontend: &Frontend,
    call: Call<operator::ListClustersRequest>,
) -> Result<operator::ListClustersResponse, ServiceError> {
    let limit = usize::try_from(call.request.page_size).ok().filter(|size| *size > 0).unwrap_or(PAGE);
    let after = String::from_utf8_lossy(&call.request.next_page_token).into_owned();
    let known = frontend.defined.clusters.list().await?;
    let mut rest = known.into_iter().filter(|cluster| cluster.name > after);
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let next_page_token = match (rest.next(), page.last()) {
        (Some(_), Some(last)) => bytes::Bytes::copy_from_slice(last.name.as_bytes()),
        (Some(_) | None, _) => bytes::Bytes::new(),
    };
    let clusters = page.into_iter().map(|cluster| {
        let (address, http_address) = if cluster.name == frontend.cluster.name {
            (frontend.defined.own_address.clone(), frontend.defined.own_http_address.clone())
        } else {
            (cluster.record.address, cluster.record.http_address)
        };
        operator::ClusterMetadata {
            cluster_id: Uuid::from_slice(&cluster.record.cluster_id).map(|id| id.to_string()).unwrap_or_default(),
            address,
            http_address,
            initial_failover_version: cluster.record.initial_failover_version,
            history_shard_count: cluster.record.n_shards,
            is_connection_enabled: cluster.record.is_connection_enabled,
            is_replication_enabled: false,
            cluster_name: cluster.name,
        }
    });
    Ok(operator::ListClustersResponse { clusters: clusters.collect(), next_page_token })
}

pub(super) async fn add_or_update(
    _frontend: &Frontend,
    _call: Call<operator::AddOrUpdateRemoteClusterRequest>,
) -> Result<operator::AddOrUpdateRemoteClusterResponse, ServiceError> {
    Err(ServiceError::Unimplemented("several clusters are not built yet: no remote cluster can be added".into()))
}

pub(super) async fn remove(
    frontend: &Frontend,
    call: Call<operator::RemoveRemoteClusterRequest>,
) -> Result<operator::RemoveRemoteClusterResponse, ServiceError> {
    if call.request.cluster_name == frontend.cluster.name {
        return Err(ServiceError::InvalidArgument("Cannot delete current cluster metadata.".into()));
    }
    Err(ServiceError::NotFound("The cluster to be deleted cannot be found in clusters cache.".into()))
}
