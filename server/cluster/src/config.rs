//! The settings of the cluster as a whole, which are the same on all of its nodes.

use std::collections::BTreeMap;

use persistence::stores::visibility::value::ValueType;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// The cluster's name in namespaces. Stored with them: it cannot change later.
    pub name: String,
    /// Number of shards of all executions. Recorded at the first start: it cannot change later.
    pub shards: i32,
    /// Namespaces created at start-up if missing, besides the system's own.
    pub namespaces: Vec<String>,
    /// Custom search attributes created in these namespaces at start-up if missing, by name: Keyword, Text,
    /// KeywordList, Int, Double, Bool or Datetime.
    pub search_attributes: BTreeMap<String, SearchAttributeType>,
}

/// The type of a search attribute, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SearchAttributeType(pub ValueType);

impl TryFrom<String> for SearchAttributeType {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        ValueType::from_name(&name).map(Self).ok_or_else(|| {
            let known = ValueType::ALL.map(ValueType::name).join(", ");
            format!("{name} is no type of search attributes; there are {known}")
        })
    }
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self { name: "active".into(), shards: 4, namespaces: Vec::new(), search_attributes: BTreeMap::new() }
    }
}
