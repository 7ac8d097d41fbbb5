//! Registering, describing and changing namespaces. `changes` computes the changed record.

use cluster::errors::ServiceError;
use cluster::namespaces::{SYSTEM_NAMESPACE, retired_name};
use proto::everrow::history as request;
use proto::temporal::api::enums::v1::NamespaceState;
use proto::temporal::api::operatorservice::v1 as operator;
use proto::temporal::api::workflowservice::v1 as public;
use uuid::Uuid;
use workflow::NamespaceId;

use super::call::{Call, patiently};
use super::pages::PAGE_BYTES;
use super::validate::{self, ID_BYTES_MAX, invalid};
use super::{Frontend, nexus_endpoints};

mod changes;
mod shown;

#[cfg(test)]
mod tests;

/// Default page size, in namespaces.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1000;

pub(super) async fn register(
    frontend: &Frontend,
    call: Call<public::RegisterNamespaceRequest>,
) -> Result<public::RegisterNamespaceResponse, ServiceError> {
    named(&call.request.namespace)?;
    validate::namespace_name(&call.request.namespace)?;
    let record = changes::registered(call.request, &frontend.cluster.name)?;
    let id = NamespaceId(frontend.env.new_uuid());
    let register = || frontend.namespaces.register(id, record.clone());
    let namespace = patiently(&frontend.env, call.deadline, register).await?;
    tracing::info!(namespace = namespace.name, id = %namespace.id, "namespace registered");
    Ok(public::RegisterNamespaceResponse {})
}

/// Reads from the store, so that a caller sees its own changes.
pub(super) async fn describe(
    frontend: &Frontend,
    call: Call<public::DescribeNamespaceRequest>,
) -> Result<public::DescribeNamespaceResponse, ServiceError> {
    let public::DescribeNamespaceRequest { namespace: name, id, .. } = &call.request;
    if name.len() > ID_BYTES_MAX {
        return Err(invalid("Namespace length exceeds limit."));
    }
    let namespace = match (name.as_str(), id.as_str()) {
        ("", "") => return Err(not_named()),
        ("", id) => {
            let not_found = |_| ServiceError::NamespaceNotFound { namespace: id.to_owned() };
            frontend.namespaces.read_by_id(Uuid::try_parse(id).map(NamespaceId).map_err(not_found)?).await?
        }
        (name, "") => frontend.namespaces.read_by_name(name).await?,
        _ => {
            let message = "GetNamespace operation failed.  Both ID and Name specified in request.";
            return Err(invalid(message));
        }
    };
    Ok(shown::described(&namespace))
}

pub(super) async fn list(
    frontend: &Frontend,
    call: Call<public::ListNamespacesRequest>,
) -> Result<public::ListNamespacesResponse, ServiceError> {
    let page = usize::try_from(call.request.page_size).ok().filter(|page| *page > 0).unwrap_or(PAGE).min(PAGE_MAX);
    let token = &call.request.next_page_token;
    let (namespaces, next_page_token) = frontend.namespaces.list(page, PAGE_BYTES, token).await?;
    let with_deleted = call.request.namespace_filter.is_some_and(|filter| filter.include_deleted);
    let listed = namespaces.iter().filter(|namespace| with_deleted || namespace.state != NamespaceState::Deleted);
    Ok(public::ListNamespacesResponse {
        namespaces: listed.map(|namespace| shown::described(namespace)).collect(),
        next_page_token,
    })
}

pub(super) async fn update(
    frontend: &Frontend,
    call: Call<public::UpdateNamespaceRequest>,
) -> Result<public::UpdateNamespaceResponse, ServiceError> {
    named(&call.request.namespace)?;
    frontend.enter(&call.request.namespace).await?;
    let now = frontend.env.now();
    let change = |record: &_| changes::updated(record, &call.request, &frontend.cluster.name, now);
    let namespace =
        patiently(&frontend.env, call.deadline, || frontend.namespaces.change(&call.request.namespace, change)).await?;
    tracing::info!(namespace = namespace.name, id = %namespace.id, "namespace updated");
    Ok(shown::updated(&namespace))
}

/// Frees the name at once; the contents are deleted in the background.
pub(super) async fn delete(
    frontend: &Frontend,
    call: Call<operator::DeleteNamespaceRequest>,
) -> Result<operator::DeleteNamespaceResponse, ServiceError> {
    let operator::DeleteNamespaceRequest { namespace: name, namespace_id: id, mut namespace_delete_delay } =
        call.request;
    let namespace = match (name.as_str(), id.as_str()) {
        ("", "") => return Err(not_named()),
        ("", id) => {
            let not_found = |_| ServiceError::NamespaceNotFound { namespace: id.to_owned() };
            frontend.namespaces.read_by_id(Uuid::try_parse(id).map(NamespaceId).map_err(not_found)?).await?
        }
        (name, "") => frontend.namespaces.read_by_name(name).await?,
        _ => return Err(invalid("Only one of namespace name or Id should be set on request.")),
    };
    if namespace.name == SYSTEM_NAMESPACE {
        return Err(ServiceError::FailedPrecondition("unable to delete system namespace".into()));
    }
    if let Some(endpoint) = nexus_endpoints::leading_to(frontend, namespace.id).await? {
        let message = format!("cannot delete a namespace that is a target of a Nexus endpoint {endpoint}");
        return Err(ServiceError::FailedPrecondition(message));
    }
    validate::span(&mut namespace_delete_delay).map_err(invalid)?;
    // The removal job first, which survives a crash and renames if need be; then the rename that the caller sees.
    let (namespace_id, delay) = (namespace.id.to_string(), namespace_delete_delay);
    let ask = request::RemoveNamespaceRequest { namespace_id, delay };
    patiently(&frontend.env, call.deadline, || async { frontend.peers.history()?.remove_namespace(ask.clone()).await })
        .await?;
    let deleted = match frontend.namespaces.retire(namespace.id).await {
        Ok(retired) => retired.name.clone(),
        // The namespace had so little in it that it is already removed.
        Err(ServiceError::NamespaceNotFound { .. }) => retired_name(&namespace.name, namespace.id),
        Err(error) => return Err(error),
    };
    tracing::info!(namespace = namespace.name, id = %namespace.id, deleted, "namespace deleted");
    Ok(operator::DeleteNamespaceResponse { deleted_namespace: deleted })
}

pub(super) async fn deprecate(
    frontend: &Frontend,
    call: Call<public::DeprecateNamespaceRequest>,
) -> Result<public::DeprecateNamespaceResponse, ServiceError> {
    named(&call.request.namespace)?;
    frontend.enter(&call.request.namespace).await?;
    let change = |record: &_| Ok(Some(changes::deprecated(record)));
    patiently(&frontend.env, call.deadline, || frontend.namespaces.change(&call.request.namespace, change)).await?;
    Ok(public::DeprecateNamespaceResponse {})
}

fn named(name: &str) -> Result<(), ServiceError> {
    if name.is_empty() { Err(not_named()) } else { Ok(()) }
}

fn not_named() -> ServiceError {
    invalid("Namespace not set on request.")
}
