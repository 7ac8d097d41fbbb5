//! The admin service, for operators' tools. RPCs that are not built answer `Unimplemented` by name.

use cluster::errors::ServiceError;
use proto::everrow::admin::admin_service_server::AdminService;
use proto::everrow::admin::{ExplainListRequest, ExplainListResponse};
use tonic::{Request, Response, Status, async_trait};

use super::Frontend;
use super::call::answer;

#[derive(Clone)]
pub struct Admin(pub Frontend);

#[async_trait]
impl AdminService for Admin {
    async fn explain_list(
        &self,
        request: Request<ExplainListRequest>,
    ) -> Result<Response<ExplainListResponse>, Status> {
        answer("ExplainList", explain_list(&self.0, request.into_inner())).await
    }
}

async fn explain_list(frontend: &Frontend, request: ExplainListRequest) -> Result<ExplainListResponse, ServiceError> {
    let namespace = frontend.enter(&request.namespace).await?;
    let custom = &namespace.custom_attributes;
    let lines = frontend.peers.visibility()?.explain(namespace.id, custom, &request.query).await?;
    Ok(ExplainListResponse { lines })
}
