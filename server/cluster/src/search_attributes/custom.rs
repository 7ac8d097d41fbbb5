//! The search attributes that a namespace defines for itself, and how any name is resolved in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use persistence::stores::visibility::value::ValueType;
use thiserror::Error;

use super::attribute::{Attribute, Predefined, RESERVED_PREFIX, SystemAttribute};

/// Custom attributes of one type in one namespace. They are in the namespace's record, which is read whole, and a
/// request to add tens of thousands must not search a place for each. The reference has 3 to 10 of each type.
pub const OF_ONE_TYPE_MAX: usize = 200;

#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "Unable to create search attributes: cannot have more than {OF_ONE_TYPE_MAX} search attribute of type {}.",
    .0.name()
)]
pub struct TooMany(ValueType);

/// Types by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomAttributes(BTreeMap<String, ValueType>);

/// In queries an alias of `WorkflowId`, unless the namespace has an attribute of this name.
const SCHEDULE_ID: &str = "ScheduleId";

impl CustomAttributes {
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// From the aliases in a namespace's record: the place of each attribute, as the API shows it, to its name. A place
    /// is named by type and number (`Keyword01`).
    #[must_use]
    pub fn of_aliases(aliases: &HashMap<String, String>) -> Self {
        let typed = aliases.iter().filter_map(|(place, name)| {
            let value_type = ValueType::from_name(place.trim_end_matches(|c: char| c.is_ascii_digit()))?;
            Some((name.clone(), value_type))
        });
        Self(typed.collect())
    }

    #[must_use]
    pub fn value_type(&self, name: &str) -> Option<ValueType> {
        self.0.get(name).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, ValueType)> {
        self.0.iter().map(|(name, value_type)| (name.as_str(), *value_type))
    }

    /// Resolves a name in a query: an attribute of the server, one of the namespace, or one of the server with its
    /// prefix omitted or added.
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

/// The aliases with these attributes added; `None` if nothing changes. An existing attribute keeps its type.
pub fn with_added<'a>(
    aliases: &HashMap<String, String>,
    attributes: impl IntoIterator<Item = (&'a str, ValueType)>,
) -> Result<Option<HashMap<String, String>>, TooMany> {
    let known: HashSet<&str> = aliases.values().map(String::as_str).collect();
    let mut changed = aliases.clone();
    for (name, value_type) in attributes {
        if !known.contains(name) {
            changed.insert(free_place(&changed, value_type).ok_or(TooMany(value_type))?, name.to_owned());
        }
    }
    Ok((changed != *aliases).then_some(changed))
}

/// The first place that is free for an attribute of this type.
fn free_place(aliases: &HashMap<String, String>, value_type: ValueType) -> Option<String> {
    places(value_type).take(OF_ONE_TYPE_MAX).find(|place| !aliases.contains_key(place))
}

fn places(value_type: ValueType) -> impl Iterator<Item = String> {
    (1..).map(move |number| format!("{}{number:02}", value_type.name()))
}

/// The places reported to clients outside a namespace, as many as the reference has: here a namespace has as many as it
/// needs, up to `OF_ONE_TYPE_MAX`.
pub fn usual_places() -> impl Iterator<Item = (String, ValueType)> {
    const HOW_MANY: [(ValueType, usize); 7] = [
        (ValueType::Bool, 3),
        (ValueType::Datetime, 3),
        (ValueType::Double, 3),
        (ValueType::Int, 3),
        (ValueType::Keyword, 10),
        (ValueType::Text, 3),
        (ValueType::KeywordList, 3),
    ];
    HOW_MANY.into_iter().flat_map(|(value_type, n)| places(value_type).take(n).map(move |place| (place, value_type)))
}

/// Whether users may not define an attribute of this name.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    const NEVER_NAMES: [&str; 4] = ["NamespaceId", "MemoEncoding", "Memo", "VisibilityTaskKey"];
    of_server(name).is_some() || NEVER_NAMES.contains(&name) || name.starts_with(RESERVED_PREFIX)
}

/// The attribute that the server itself knows by exactly this name.
#[must_use]
pub fn of_server(name: &str) -> Option<Attribute> {
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

#[cfg(test)]
mod tests;
