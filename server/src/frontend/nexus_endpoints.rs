//! Nexus endpoints, as operators define them. Sending requests through them is not built.
//!
//! An endpoint is stored with its target namespace's id, and returned with its name.

use cluster::errors::ServiceError;
use persistence::error::StoreError;
use persistence::stores::nexus::StoredEndpoint;
use prost::Message as _;
use proto::everrow::record;
use proto::temporal::api::nexus::v1::endpoint_target::{Variant, Worker};
use proto::temporal::api::nexus::v1::{Endpoint, EndpointSpec, EndpointTarget};
use proto::temporal::api::operatorservice::v1 as operator;
use uuid::Uuid;
use workflow::{NamespaceId, Timestamp};

use super::call::Call;
use super::validate::{invalid, nexus as check};
use super::{Frontend, pages};

/// Attempts at a change under conflicts with other nodes. Changes on this node are serialized.
const CHANGE_TRIES: usize = 10;
/// Endpoints per read.
const PAGE: usize = 100;

pub(super) async fn create(
    frontend: &Frontend,
    call: Call<operator::CreateNexusEndpointRequest>,
) -> Result<operator::CreateNexusEndpointResponse, ServiceError> {
    let spec = checked(frontend, call.request.spec).await?;
    let (id, created_at) = (frontend.env.new_uuid(), frontend.env.now().0);
    let record = record::NexusEndpoint { spec: Some(spec.clone()), created_at, modified_at: None };
    let _one_at_a_time = frontend.defined.changing_endpoints.lock().await;
    for _ in 0..CHANGE_TRIES {
        let Table { version, endpoints } = Table::read(frontend).await?;
        if let Some(own) = endpoints.iter().find(|endpoint| endpoint.id == id) {
            // An earlier attempt, whose outcome was unknown, succeeded.
            return Ok(operator::CreateNexusEndpointResponse { endpoint: Some(shown(frontend, own).await?) });
        }
        if endpoints.iter().any(|endpoint| name_of(endpoint) == spec.name) {
            return Err(taken("creating", &spec.name));
        }
        let created = frontend.defined.nexus_endpoints.create(version, id, record.clone()).await;
        if let Some(endpoint) = unless_overtaken(created)? {
            return Ok(operator::CreateNexusEndpointResponse { endpoint: Some(shown(frontend, &endpoint).await?) });
        }
    }
    Err(contended())
}

pub(super) async fn update(
    frontend: &Frontend,
    call: Call<operator::UpdateNexusEndpointRequest>,
) -> Result<operator::UpdateNexusEndpointResponse, ServiceError> {
    let operator::UpdateNexusEndpointRequest { id, version: expected, spec } = call.request;
    let spec = checked(frontend, spec).await?;
    let _one_at_a_time = frontend.defined.changing_endpoints.lock().await;
    for _ in 0..CHANGE_TRIES {
        let Table { version, endpoints } = Table::read(frontend).await?;
        let Some(stored) = endpoints.iter().find(|endpoint| endpoint.id.to_string() == id) else {
            let message = format!("error updating Nexus endpoint. endpoint ID {id} not found");
            return Err(ServiceError::NotFound(message));
        };
        if stored.version != expected {
            let current = stored.version;
            let message = format!("nexus endpoint version mismatch. received: {expected} expected {current}");
            return Err(ServiceError::FailedPrecondition(message));
        }
        if endpoints.iter().any(|other| other.id != stored.id && name_of(other) == spec.name) {
            return Err(taken("updating", &spec.name));
        }
        let modified_at = Some(frontend.env.now().0);
        let record = record::NexusEndpoint { spec: Some(spec.clone()), modified_at, ..stored.record.clone() };
        let updated = frontend.defined.nexus_endpoints.update(version, stored.id, expected, record).await;
        if let Some(endpoint) = unless_overtaken(updated)? {
            return Ok(operator::UpdateNexusEndpointResponse { endpoint: Some(shown(frontend, &endpoint).await?) });
        }
    }
    Err(contended())
}

/// Deletes any version, as the reference does, although the request must name one.
pub(super) async fn delete(
    frontend: &Frontend,
    call: Call<operator::DeleteNexusEndpointRequest>,
) -> Result<operator::DeleteNexusEndpointResponse, ServiceError> {
    let id = check::deleted(&call.request.id, call.request.version)?;
    let _one_at_a_time = frontend.defined.changing_endpoints.lock().await;
    for _ in 0..CHANGE_TRIES {
        let table_version = frontend.defined.nexus_endpoints.table_version().await?;
        let Some(stored) = frontend.defined.nexus_endpoints.get(id).await? else {
            return Err(ServiceError::NotFound(format!("error deleting nexus endpoint with ID: {id}")));
        };
        let deleted = frontend.defined.nexus_endpoints.delete(table_version, id, stored.version).await;
        if unless_overtaken(deleted)?.is_some() {
            return Ok(operator::DeleteNexusEndpointResponse {});
        }
    }
    Err(contended())
}

pub(super) async fn get(
    frontend: &Frontend,
    call: Call<operator::GetNexusEndpointRequest>,
) -> Result<operator::GetNexusEndpointResponse, ServiceError> {
    let id = check::asked_for(&call.request.id)?;
    let stored = frontend.defined.nexus_endpoints.get(id).await?;
    let stored = stored.ok_or_else(|| ServiceError::NotFound(format!("Nexus endpoint with ID `{id}` not found")))?;
    Ok(operator::GetNexusEndpointResponse { endpoint: Some(shown(frontend, &stored).await?) })
}

/// With a name, only the endpoint of that name, if there is one.
pub(super) async fn list(
    frontend: &Frontend,
    call: Call<operator::ListNexusEndpointsRequest>,
) -> Result<operator::ListNexusEndpointsResponse, ServiceError> {
    let operator::ListNexusEndpointsRequest { page_size, next_page_token, name } = call.request;
    if !name.is_empty() {
        let Table { endpoints, .. } = Table::read(frontend).await?;
        let mut listed = Vec::new();
        if let Some(named) = endpoints.iter().find(|endpoint| name_of(endpoint) == name) {
            listed.push(shown(frontend, named).await?);
        }
        return Ok(operator::ListNexusEndpointsResponse { endpoints: listed, ..Default::default() });
    }
    let limit = check::page_size(page_size)?;
    let after = match next_page_token.is_empty() {
        true => None,
        false => Some(Uuid::from_slice(&next_page_token).map_err(|_| invalid("Invalid NextPageToken."))?),
    };
    let mut page = frontend.defined.nexus_endpoints.list(after, limit).await?;
    let n_fitting = pages::n_fitting(page.endpoints.iter().map(|stored| stored.record.encoded_len()));
    page.has_more |= n_fitting < page.endpoints.len();
    page.endpoints.truncate(n_fitting);
    let last = page.endpoints.last().filter(|_| page.has_more);
    let next_page_token = last.map(|last| bytes::Bytes::copy_from_slice(last.id.as_bytes())).unwrap_or_default();
    let mut endpoints = Vec::with_capacity(page.endpoints.len());
    for stored in &page.endpoints {
        endpoints.push(shown(frontend, stored).await?);
    }
    Ok(operator::ListNexusEndpointsResponse { next_page_token, endpoints })
}

/// The name of an endpoint whose target is this namespace, if there is one.
pub(super) async fn leading_to(frontend: &Frontend, namespace_id: NamespaceId) -> Result<Option<String>, ServiceError> {
    let namespace_id = namespace_id.to_string();
    let Table { endpoints, .. } = Table::read(frontend).await?;
    let leads = |stored: &&StoredEndpoint| match variant_of(stored.record.spec.as_ref()) {
        Some(Variant::Worker(worker)) => worker.namespace == namespace_id,
        Some(Variant::External(_)) | None => false,
    };
    Ok(endpoints.iter().find(leads).map(|endpoint| name_of(endpoint).to_owned()))
}

/// All endpoints, and the table version that a change must still find.
struct Table {
    version: i64,
    endpoints: Vec<StoredEndpoint>,
}

impl Table {
    async fn read(frontend: &Frontend) -> Result<Self, ServiceError> {
        let mut page = frontend.defined.nexus_endpoints.list(None, PAGE).await?;
        let (version, mut endpoints) = (page.table_version, page.endpoints);
        while let Some(last) = endpoints.last().filter(|_| page.has_more) {
            page = frontend.defined.nexus_endpoints.list(Some(last.id), PAGE).await?;
            endpoints.append(&mut page.endpoints);
        }
        Ok(Self { version, endpoints })
    }
}

/// The checked spec, as it is stored.
async fn checked(frontend: &Frontend, spec: Option<EndpointSpec>) -> Result<EndpointSpec, ServiceError> {
    let target = match variant_of(spec.as_ref()) {
        Some(Variant::Worker(worker)) if !worker.namespace.is_empty() => {
            Some(frontend.namespaces.by_name(&worker.namespace).await)
        }
        Some(Variant::Worker(_) | Variant::External(_)) | None => None,
    };
    check::spec(spec.as_ref(), |_| match &target {
        Some(Err(error @ ServiceError::NamespaceNotFound { .. })) => {
            let message = format!("could not verify namespace referenced by target exists: {error}");
            Err(ServiceError::FailedPrecondition(message))
        }
        // A store error is not the client's fault: its text stays in the server.
        Some(Err(error)) => Err(error.clone()),
        Some(Ok(_)) | None => Ok(()),
    })?;
    let namespace_id = target.and_then(Result::ok).map(|namespace| namespace.id.to_string());
    Ok(led_to(spec.unwrap_or_default(), namespace_id.unwrap_or_default()))
}

async fn shown(frontend: &Frontend, stored: &StoredEndpoint) -> Result<Endpoint, ServiceError> {
    let spec = stored.record.spec.clone().unwrap_or_default();
    let name = match variant_of(Some(&spec)) {
        Some(Variant::Worker(worker)) => match Uuid::try_parse(&worker.namespace) {
            Ok(id) => match frontend.namespaces.by_id(NamespaceId(id)).await {
                Ok(namespace) => namespace.name.clone(),
                // The namespace was deleted; only its id is left.
                Err(ServiceError::NamespaceNotFound { .. }) => worker.namespace.clone(),
                Err(error) => return Err(error),
            },
            Err(_) => worker.namespace.clone(),
        },
        Some(Variant::External(_)) | None => String::new(),
    };
    Ok(Endpoint {
        version: stored.version,
        id: stored.id.to_string(),
        spec: Some(led_to(spec, name)),
        created_time: Some(Timestamp(stored.record.created_at).into()),
        last_modified_time: stored.record.modified_at.map(|at| Timestamp(at).into()),
        url_prefix: format!("/nexus/endpoints/{}/services", stored.id),
    })
}

/// The spec with its target's namespace replaced.
fn led_to(mut spec: EndpointSpec, namespace: String) -> EndpointSpec {
    if let Some(EndpointTarget { variant: Some(Variant::Worker(worker)) }) = &mut spec.target {
        *worker = Worker { namespace, ..worker.clone() };
    }
    spec
}

fn variant_of(spec: Option<&EndpointSpec>) -> Option<&Variant> {
    spec?.target.as_ref()?.variant.as_ref()
}

fn name_of(endpoint: &StoredEndpoint) -> &str {
    endpoint.record.spec.as_ref().map_or("", |spec| &spec.name)
}

/// `None` if the table must be read again: another change came first, or this write's outcome is unknown.
fn unless_overtaken<T>(written: Result<T, StoreError>) -> Result<Option<T>, ServiceError> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(StoreError::Refused(_) | StoreError::OutcomeUnknown(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn taken(doing: &str, name: &str) -> ServiceError {
    ServiceError::AlreadyExists(format!("error {doing} Nexus endpoint. Endpoint with name {name} already registered"))
}

fn contended() -> ServiceError {
    ServiceError::Unavailable("Nexus endpoints are being changed by other nodes; try again".into())
}
