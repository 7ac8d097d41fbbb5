//! The search attributes that a namespace defines for itself, and how any name is resolved in it.

use std::collections::BTreeMap;

use persistence::stores::visibility::value::ValueType;

use super::attribute::{Attribute, Predefined, RESERVED_PREFIX, SystemAttribute};

/// By name. There are as many as users define: nothing is laid out for a fixed number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomAttributes(BTreeMap<String, ValueType>);

/// In queries another name of `WorkflowId`, unless the namespace has an attribute of this name.
const SCHEDULE_ID: &str = "ScheduleId";

impl CustomAttributes {
    #[must_use]
    pub fn value_type(&self, name: &str) -> Option<ValueType> {
        self.0.get(name).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, ValueType)> {
        self.0.iter().map(|(name, value_type)| (name.as_str(), *value_type))
    }

    /// What a query means by a name: the namespace's own attribute, one of the server's, or one of the server's with its
    /// prefix left out or put in front.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<Attribute> {
        if let Some(attribute) = of_server(name) {
            return Some(attribute);
        }
        if let Some(value_type) = self.value_type(name) {
            return Some(Attribute::Indexed { name: name.to_owned(), value_type });
        }
        let short = name.strip_prefix(RESERVED_PREFIX).unwrap_or(name);
        if short == SCHEDULE_ID {
            return Some(Attribute::System(SystemAttribute::WorkflowId));
        }
        of_server(&format!("{RESERVED_PREFIX}{name}")).or_else(|| of_server(short))
    }
}

fn of_server(name: &str) -> Option<Attribute> {
    let system = SystemAttribute::from_name(name).map(Attribute::System);
    let predefined = || {
        let Predefined { name, value_type, .. } = Predefined::from_name(name)?;
        Some(Attribute::Indexed { name: name.to_owned(), value_type })
    };
    system.or_else(predefined)
}

impl FromIterator<(String, ValueType)> for CustomAttributes {
    fn from_iter<I: IntoIterator<Item = (String, ValueType)>>(attributes: I) -> Self {
        Self(attributes.into_iter().collect())
    }
}
