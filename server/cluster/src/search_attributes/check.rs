//! Checks a run's search attributes in a namespace. Pure; the messages are the reference's.

use std::collections::BTreeMap;

use prost::Message as _;
use proto::temporal::api::common::v1::SearchAttributes;
use workflow::{Limits, RefusedSearchAttributes};

use super::attribute::{Predefined, SystemAttribute};
use super::custom::{CustomAttributes, of_server};
use super::payload;

const ATTRIBUTES_MAX: usize = 100;

/// Search attributes of a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Defined<'a> {
    pub namespace: &'a str,
    pub custom: &'a CustomAttributes,
}

impl Defined<'_> {
    /// Checks names, types and number, and writes the types beside the values.
    pub fn admit(self, attributes: &mut SearchAttributes) -> Result<(), RefusedSearchAttributes> {
        self.check(attributes)?;
        payload::write_types(attributes, self.custom);
        Ok(())
    }

    fn check(self, attributes: &SearchAttributes) -> Result<(), RefusedSearchAttributes> {
        // Sorted, so that the same one of several errors is always reported.
        let fields: BTreeMap<_, _> = attributes.indexed_fields.iter().collect();
        let is_known = |name: &str| of_server(name).is_some() || self.custom.value_type(name).is_some();
        if let Some(unknown) = fields.keys().find(|name| !is_known(name)) {
            let Self { namespace, .. } = self;
            let reason = format!("Namespace {namespace} has no mapping defined for search attribute {unknown}");
            return Err(RefusedSearchAttributes::Undefined(reason));
        }
        let wrong = |reason| Err(RefusedSearchAttributes::Wrong(reason));
        if fields.len() > ATTRIBUTES_MAX {
            return wrong(format!("number of search attributes {} exceeds limit {ATTRIBUTES_MAX}", fields.len()));
        }
        for (name, value) in fields {
            let is_kept = Predefined::from_name(name).is_some_and(|attribute| !attribute.settable);
            if is_kept || SystemAttribute::from_name(name).is_some() {
                return wrong(format!("{name} attribute can't be set in SearchAttributes"));
            }
            let value_type = payload::type_of(name, self.custom).expect("what is known and can be set has a type");
            if payload::decode_as(value, value_type).is_err() {
                let (kind, shown) = (value_type.name(), payload::shown(value));
                return wrong(format!("invalid value for search attribute {name} of type {kind}: {shown}"));
            }
        }
        Ok(())
    }
}

/// Checks the sizes in a request. Those in commands are checked where the run's own attributes are known.
pub fn sizes(attributes: &SearchAttributes) -> Result<(), String> {
    let Limits { search_attribute_value_size, search_attributes_size, .. } = Limits::default();
    let fields: BTreeMap<_, _> = attributes.indexed_fields.iter().collect();
    for (name, value) in fields {
        let (size, limit) = (value.data.len(), search_attribute_value_size);
        if size > limit {
            return Err(format!("search attribute {name} value size {size} exceeds size limit {limit}"));
        }
    }
    let (total, limit) = (attributes.encoded_len(), search_attributes_size);
    if total > limit {
        return Err(format!("total size of search attributes {total} exceeds size limit {limit}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
