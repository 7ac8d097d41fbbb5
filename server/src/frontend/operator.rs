//! The operator's service: one line from each RPC to the function that answers it. What is not built answers so by name.

use proto::temporal::api::operatorservice::v1::operator_service_server::OperatorService;
use proto::temporal::api::operatorservice::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::call::answer;
use super::{Frontend, search_attributes};

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
}
