//! Search attributes: defined by operators, listed for clients.

use std::collections::{BTreeMap, HashMap, HashSet};

use cluster::errors::ServiceError;
use cluster::search_attributes::attribute::{PREDEFINED, SystemAttribute};
use cluster::search_attributes::custom::{is_reserved, of_server, usual_places};
use persistence::stores::visibility::value::ValueType;
use proto::everrow::record;
use proto::temporal::api::enums::v1::IndexedValueType;
use proto::temporal::api::operatorservice::v1 as operator;
use proto::temporal::api::workflowservice::v1 as public;

use super::Frontend;
use super::call::{Call, patiently};
use super::validate::invalid;

/// Server-defined attributes, and the places of custom ones; `list` returns the names of those.
pub(super) async fn get(
    _frontend: &Frontend,
    _call: Call<public::GetSearchAttributesRequest>,
) -> Result<public::GetSearchAttributesResponse, ServiceError> {
    let mut keys = of_all_namespaces();
    keys.extend(usual_places().map(|(place, value_type)| (place, value_type.to_proto().into())));
    Ok(public::GetSearchAttributesResponse { keys })
}

pub(super) async fn list(
    frontend: &Frontend,
    call: Call<operator::ListSearchAttributesRequest>,
) -> Result<operator::ListSearchAttributesResponse, ServiceError> {
    let name = namespace_name(&call.request.namespace)?;
    let namespace = frontend.namespaces.read_by_name(name).await?;
    let custom = namespace.custom_attributes.iter();
    Ok(operator::ListSearchAttributesResponse {
        custom_attributes: custom.map(|(name, value_type)| (name.to_owned(), value_type.to_proto().into())).collect(),
        system_attributes: of_all_namespaces(),
        storage_schema: HashMap::new(),
    })
}

pub(super) async fn add(
    frontend: &Frontend,
    call: Call<operator::AddSearchAttributesRequest>,
) -> Result<operator::AddSearchAttributesResponse, ServiceError> {
    let attributes = added(call.request.search_attributes)?;
    let name = namespace_name(&call.request.namespace)?;
    patiently(&frontend.env, call.deadline, || frontend.namespaces.define(name, &attributes)).await?;
    Ok(operator::AddSearchAttributesResponse::default())
}

pub(super) async fn remove(
    frontend: &Frontend,
    call: Call<operator::RemoveSearchAttributesRequest>,
) -> Result<operator::RemoveSearchAttributesResponse, ServiceError> {
    let names = call.request.search_attributes;
    if names.is_empty() {
        return Err(not_set());
    }
    let name = namespace_name(&call.request.namespace)?;
    let change = |record: &_| without(record, &names);
    patiently(&frontend.env, call.deadline, || frontend.namespaces.change(name, change)).await?;
    Ok(operator::RemoveSearchAttributesResponse::default())
}

fn of_all_namespaces() -> HashMap<String, i32> {
    let system = SystemAttribute::ALL.into_iter().map(|attribute| (attribute.name(), attribute.value_type()));
    let predefined = PREDEFINED.into_iter().map(|attribute| (attribute.name, attribute.value_type));
    system.chain(predefined).map(|(name, value_type)| (name.to_owned(), value_type.to_proto().into())).collect()
}

fn not_set() -> ServiceError {
    invalid("SearchAttributes are not set on request.")
}

fn namespace_name(name: &str) -> Result<&str, ServiceError> {
    if name.is_empty() { Err(invalid("Namespace is not set on request.")) } else { Ok(name) }
}

/// The attributes that a request defines.
fn added(attributes: HashMap<String, i32>) -> Result<BTreeMap<String, ValueType>, ServiceError> {
    if attributes.is_empty() {
        return Err(not_set());
    }
    let mut typed = BTreeMap::new();
    for (name, number) in attributes {
        if is_reserved(&name) {
            return Err(invalid(format!("Search attribute {name} is reserved by system.")));
        }
        let kind = IndexedValueType::try_from(number)
            .map_err(|_| invalid(format!("Unknown search attribute type: {number}.")))?;
        let value_type = ValueType::from_proto(kind).ok_or_else(|| {
            invalid("Unable to create search attributes: cannot have more than 0 search attribute of type Unspecified.")
        })?;
        // The reference accepts an empty name and ignores it.
        if !name.is_empty() {
            typed.insert(name, value_type);
        }
    }
    Ok(typed)
}

/// The record without these attributes, if it had any of them.
fn without(record: &record::Namespace, names: &[String]) -> Result<Option<record::Namespace>, ServiceError> {
    let mut changed = record.clone();
    let aliases = &mut changed.custom_search_attribute_aliases;
    let custom: HashSet<&str> = record.custom_search_attribute_aliases.values().map(String::as_str).collect();
    if let Some(name) = names.iter().find(|name| !custom.contains(name.as_str()) && of_server(name).is_some()) {
        return Err(invalid(format!("Unable to remove non-custom search attributes: {name}.")));
    }
    let removed: HashSet<&str> = names.iter().map(String::as_str).collect();
    aliases.retain(|_, alias| !removed.contains(alias.as_str()));
    changed.config_version += 1;
    Ok((changed.custom_search_attribute_aliases != record.custom_search_attribute_aliases).then_some(changed))
}
