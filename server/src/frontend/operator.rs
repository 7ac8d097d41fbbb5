//! The operator service: one line from each RPC to its handler. RPCs that are not built answer `Unimplemented` by name.

use proto::temporal::api::operatorservice::v1::operator_service_server::OperatorService;
use proto::temporal::api::operatorservice::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::call::answer;
use super::{Frontend, clusters, namespace, nexus_endpoints, search_attributes};

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl OperatorService for Frontend {
    async fn add_search_attributes(
        &self,
        request: Request<AddSearchAttributesRequest>,
    ) -> Answer<AddSearchAttributesResponse> {
        answer("AddSearchAttributes", search_attributes::add(self, request.into())).await
    }

    async fn remove_search_attributes(
        &self,
        request: Request<RemoveSearchAttributesRequest>,
    ) -> Answer<RemoveSearchAttributesResponse> {
        answer("RemoveSearchAttributes", search_attributes::remove(self, request.into())).await
    }

    async fn list_search_attributes(
        &self,
        request: Request<ListSearchAttributesRequest>,
    ) -> Answer<ListSearchAttributesResponse> {
        answer("ListSearchAttributes", search_attributes::list(self, request.into())).await
    }

    async fn delete_namespace(&self, request: Request<DeleteNamespaceRequest>) -> Answer<DeleteNamespaceResponse> {
        answer("DeleteNamespace", namespace::delete(self, request.into())).await
    }

    async fn add_or_update_remote_cluster(
        &self,
        request: Request<AddOrUpdateRemoteClusterRequest>,
    ) -> Answer<AddOrUpdateRemoteClusterResponse> {
        answer("AddOrUpdateRemoteCluster", clusters::add_or_update(self, request.into())).await
    }

    async fn remove_remote_cluster(
        &self,
        request: Request<RemoveRemoteClusterRequest>,
    ) -> Answer<RemoveRemoteClusterResponse> {
        answer("RemoveRemoteCluster", clusters::remove(self, request.into())).await
    }

    async fn list_clusters(&self, request: Request<ListClustersRequest>) -> Answer<ListClustersResponse> {
        answer("ListClusters", clusters::list(self, request.into())).await
    }

    async fn create_nexus_endpoint(
        &self,
        request: Request<CreateNexusEndpointRequest>,
    ) -> Answer<CreateNexusEndpointResponse> {
        answer("CreateNexusEndpoint", nexus_endpoints::create(self, request.into())).await
    }

    async fn update_nexus_endpoint(
        &self,
        request: Request<UpdateNexusEndpointRequest>,
    ) -> Answer<UpdateNexusEndpointResponse> {
        answer("UpdateNexusEndpoint", nexus_endpoints::update(self, request.into())).await
    }

    async fn delete_nexus_endpoint(
        &self,
        request: Request<DeleteNexusEndpointRequest>,
    ) -> Answer<DeleteNexusEndpointResponse> {
        answer("DeleteNexusEndpoint", nexus_endpoints::delete(self, request.into())).await
    }

    async fn get_nexus_endpoint(&self, request: Request<GetNexusEndpointRequest>) -> Answer<GetNexusEndpointResponse> {
        answer("GetNexusEndpoint", nexus_endpoints::get(self, request.into())).await
    }

    async fn list_nexus_endpoints(
        &self,
        request: Request<ListNexusEndpointsRequest>,
    ) -> Answer<ListNexusEndpointsResponse> {
        answer("ListNexusEndpoints", nexus_endpoints::list(self, request.into())).await
    }
}
