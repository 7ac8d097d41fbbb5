//! The search attributes that the commands of a workflow task set: checked against what their namespaces define.

use std::collections::BTreeMap;

use cluster::errors::ServiceError;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::common::v1::SearchAttributes;
use workflow::{NamespaceId, RefusedSearchAttributes};

use super::shard::Shard;

impl Shard {
    /// Writes the types beside the values of all commands, and returns the refused ones by command index.
    pub(super) async fn admit_search_attributes(
        &self,
        own: NamespaceId,
        commands: &mut [Command],
    ) -> Result<BTreeMap<usize, RefusedSearchAttributes>, ServiceError> {
        let mut refused = BTreeMap::new();
        for (place, command) in commands.iter_mut().enumerate() {
            let Some((namespace, attributes)) = carried(command) else { continue };
            let namespace = if namespace.is_empty() {
                self.namespaces.by_id(own).await?
            } else {
                self.namespaces.by_name(&namespace).await?
            };
            if let Err(refusal) = namespace.search_attributes().admit(attributes) {
                refused.insert(place, refusal);
            }
        }
        Ok(refused)
    }
}

/// The search attributes of a command, and the namespace of the run that would have them; empty for the own one.
#[expect(deprecated, reason = "workers still name a namespace")]
fn carried(command: &mut Command) -> Option<(String, &mut SearchAttributes)> {
    let what = command.attributes.as_mut()?;
    if let Attributes::UpsertWorkflowSearchAttributesCommandAttributes(upsert) = what {
        Some((String::new(), upsert.search_attributes.as_mut()?))
    } else if let Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(again) = what {
        Some((String::new(), again.search_attributes.as_mut()?))
    } else if let Attributes::StartChildWorkflowExecutionCommandAttributes(start) = what {
        Some((start.namespace.clone(), start.search_attributes.as_mut()?))
    } else {
        None
    }
}
