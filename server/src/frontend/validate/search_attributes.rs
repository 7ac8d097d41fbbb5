//! Search attributes of requests that start a workflow.

use cluster::errors::ServiceError;
use cluster::search_attributes::check::{Defined, sizes};
use proto::temporal::api::common::v1::SearchAttributes;
use workflow::RefusedSearchAttributes;

use super::invalid;

/// Checks attributes against the namespace's definitions, and writes their types beside them.
pub(crate) fn admit(attributes: Option<&mut SearchAttributes>, defined: Defined<'_>) -> Result<(), ServiceError> {
    let Some(attributes) = attributes else { return Ok(()) };
    defined.admit(attributes).map_err(|refused| match refused {
        RefusedSearchAttributes::Undefined(reason) | RefusedSearchAttributes::Wrong(reason) => invalid(reason),
    })?;
    sizes(attributes).map_err(invalid)
}
