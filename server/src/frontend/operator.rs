//! The operator's service. What is not built answers so by name.

use std::collections::HashMap;

use proto::temporal::api::operatorservice::v1 as public;
use proto::temporal::api::operatorservice::v1::operator_service_server::OperatorService;
use tonic::{Request, Response, Status, async_trait};

use super::call::answer;
use super::validate::search_attributes;

#[derive(Debug, Clone, Copy)]
pub struct Operator;

#[async_trait]
impl OperatorService for Operator {
    async fn list_search_attributes(
        &self,
        _request: Request<public::ListSearchAttributesRequest>,
    ) -> Result<Response<public::ListSearchAttributesResponse>, Status> {
        let types = |attributes: &[(&str, _)]| -> HashMap<String, i32> {
            attributes.iter().map(|(name, kind)| ((*name).to_owned(), i32::from(*kind))).collect()
        };
        let mut system_attributes = types(&search_attributes::SYSTEM);
        system_attributes.extend(types(&search_attributes::PREDEFINED));
        system_attributes.extend(types(&search_attributes::SET_BY_SERVER));
        let known = public::ListSearchAttributesResponse { system_attributes, ..Default::default() };
        answer("ListSearchAttributes", async { Ok(known) }).await
    }
}
