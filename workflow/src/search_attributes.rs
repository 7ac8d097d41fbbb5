//! Search attributes that commands carry: whether they may be set, and what they weigh. What is defined where is known
//! outside of the core, which is told of refusals only.

use std::collections::BTreeMap;

use prost::Message;
use proto::temporal::api::common::v1::SearchAttributes;
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;

use crate::commands::{BadCommand, Completion};
use crate::draft::Draft;
use crate::input::RefusedSearchAttributes;

const CAUSE: WorkflowTaskFailedCause = WorkflowTaskFailedCause::BadSearchAttributes;

/// Fails if one of them means nothing in its namespace. That is told before anything else of the command.
pub(crate) fn check_defined(completion: &Completion) -> Result<(), BadCommand> {
    match &completion.refused_search_attributes {
        Some(RefusedSearchAttributes::Undefined(reason)) => Err(BadCommand::new(CAUSE, reason.clone())),
        Some(RefusedSearchAttributes::Wrong(_)) | None => Ok(()),
    }
}

/// Fails if they may not be set for another reason, which `told` puts into the words of the command.
pub(crate) fn check_admitted(completion: &Completion, told: impl FnOnce(&str) -> String) -> Result<(), BadCommand> {
    match &completion.refused_search_attributes {
        Some(RefusedSearchAttributes::Undefined(reason) | RefusedSearchAttributes::Wrong(reason)) => {
            Err(BadCommand::new(CAUSE, told(reason)))
        }
        None => Ok(()),
    }
}

/// Trying again makes nothing smaller: the run ends.
pub(crate) fn check_size(
    draft: &Draft,
    cause: WorkflowTaskFailedCause,
    attributes: Option<&SearchAttributes>,
) -> Result<(), BadCommand> {
    let Some(attributes) = attributes else { return Ok(()) };
    let limits = &draft.facts.limits;
    // By name: of several that are too big it is always the same one that is told.
    let fields: BTreeMap<_, _> = attributes.indexed_fields.iter().collect();
    for (name, value) in fields {
        let (size, limit) = (value.data.len(), limits.search_attribute_value_size);
        if size > limit {
            let reason = format!("search attribute {name} value size {size} exceeds size limit {limit}");
            return Err(BadCommand::fatal(cause, &reason));
        }
    }
    let (size, limit) = (attributes.encoded_len(), limits.search_attributes_size);
    if size > limit {
        let reason = format!("total size of search attributes {size} exceeds size limit {limit}");
        return Err(BadCommand::fatal(cause, &reason));
    }
    Ok(())
}
