//! Search attributes that commands carry: whether they may be set, and their sizes. The core has no definitions: the
//! caller passes refusals in.

use prost::Message;
use proto::temporal::api::common::v1::SearchAttributes;
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;

use crate::commands::{BadCommand, Completion};
use crate::draft::Draft;
use crate::input::RefusedSearchAttributes;

const CAUSE: WorkflowTaskFailedCause = WorkflowTaskFailedCause::BadSearchAttributes;

/// Fails if an attribute is not defined in its namespace. Checked before anything else of the command.
pub(crate) fn check_defined(completion: &Completion) -> Result<(), BadCommand> {
    match &completion.refused_search_attributes {
        Some(RefusedSearchAttributes::Undefined(reason)) => Err(BadCommand::new(CAUSE, reason.clone())),
        Some(RefusedSearchAttributes::Wrong(_)) | None => Ok(()),
    }
}

/// Fails if the attributes are refused for any reason. The closure formats that reason for the command.
pub(crate) fn check_admitted(completion: &Completion, told: impl FnOnce(&str) -> String) -> Result<(), BadCommand> {
    match &completion.refused_search_attributes {
        Some(RefusedSearchAttributes::Undefined(reason) | RefusedSearchAttributes::Wrong(reason)) => {
            Err(BadCommand::new(CAUSE, told(reason)))
        }
        None => Ok(()),
    }
}

/// Fails fatally: a retry makes nothing smaller.
pub(crate) fn check_size(
    draft: &Draft,
    cause: WorkflowTaskFailedCause,
    attributes: Option<&SearchAttributes>,
) -> Result<(), BadCommand> {
    let Some(attributes) = attributes else { return Ok(()) };
    check_value_sizes(draft, cause, attributes)?;
    check_total_size(draft, cause, attributes.encoded_len())
}

pub(crate) fn check_value_sizes(
    draft: &Draft,
    cause: WorkflowTaskFailedCause,
    attributes: &SearchAttributes,
) -> Result<(), BadCommand> {
    let limit = draft.facts.limits.search_attribute_value_size;
    // The smallest name, so that the error is deterministic if several values are too large.
    let oversized = attributes.indexed_fields.iter().filter(|(_, value)| value.data.len() > limit);
    let Some((name, value)) = oversized.min_by_key(|(name, _)| name.as_str()) else { return Ok(()) };
    let size = value.data.len();
    let reason = format!("search attribute {name} value size {size} exceeds size limit {limit}");
    Err(BadCommand::fatal(cause, &reason))
}

pub(crate) fn check_total_size(draft: &Draft, cause: WorkflowTaskFailedCause, size: usize) -> Result<(), BadCommand> {
    let limit = draft.facts.limits.search_attributes_size;
    if size > limit {
        let reason = format!("total size of search attributes {size} exceeds size limit {limit}");
        return Err(BadCommand::fatal(cause, &reason));
    }
    Ok(())
}
