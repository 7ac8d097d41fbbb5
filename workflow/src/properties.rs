//! Search attributes, memo and markers that a workflow writes.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use prost::encoding::{encoded_len_varint, key_len};
use proto::temporal::api::command::v1::{
    ModifyWorkflowPropertiesCommandAttributes, RecordMarkerCommandAttributes,
    UpsertWorkflowSearchAttributesCommandAttributes,
};
use proto::temporal::api::common::v1::Payload;
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::history::v1::{
    MarkerRecordedEventAttributes, UpsertWorkflowSearchAttributesEventAttributes,
    WorkflowPropertiesModifiedEventAttributes,
};

use crate::commands::{BadCommand, Completion};
use crate::draft::{Annotation, Draft, Entry};
use crate::search_attributes;
use crate::state::ExecutionState;

/// Decides on an `UpsertWorkflowSearchAttributes` command.
pub(crate) fn upsert_search_attributes(
    draft: &mut Draft,
    completion: &mut Completion,
    command: UpsertWorkflowSearchAttributesCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadSearchAttributes;
    search_attributes::check_defined(completion)?;
    let bad =
        |reason: &str| BadCommand::new(cause, format!("{reason} is not set on UpsertWorkflowSearchAttributesCommand."));
    let upsert = command.search_attributes.ok_or_else(|| bad("SearchAttributes"))?;
    if upsert.indexed_fields.is_empty() {
        return Err(bad("IndexedFields"));
    }
    search_attributes::check_admitted(completion, str::to_owned)?;
    if fields_size(&upsert.indexed_fields) > draft.facts.limits.blob_size {
        return Err(BadCommand::fatal(cause, "UpsertWorkflowSearchAttributesCommandAttributes exceeds size limit."));
    }
    search_attributes::check_value_sizes(draft, cause, &upsert)?;
    let before = &draft.state.search_attributes;
    let size = completion.search_attributes_size.unwrap_or_else(|| before.encoded_len());
    let size = merged_size(size, &before.indexed_fields, &upsert.indexed_fields);
    search_attributes::check_total_size(draft, cause, size)?;
    completion.search_attributes_size = Some(size);
    let what =
        Attributes::UpsertWorkflowSearchAttributesEventAttributes(UpsertWorkflowSearchAttributesEventAttributes {
            workflow_task_completed_event_id: completion.event_id.0,
            search_attributes: Some(upsert),
        });
    draft.record(Entry { annotation, ..what.into() });
    Ok(())
}

/// Decides on a `ModifyWorkflowProperties` command.
pub(crate) fn modify(
    draft: &mut Draft,
    completion: &mut Completion,
    command: ModifyWorkflowPropertiesCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadModifyWorkflowPropertiesAttributes;
    let bad = |reason: &str| BadCommand::new(cause, format!("{reason} is not set on ModifyWorkflowPropertiesCommand."));
    let upsert = command.upserted_memo.ok_or_else(|| bad("UpsertedMemo"))?;
    if upsert.fields.is_empty() {
        return Err(bad("UpsertedMemo.Fields"));
    }
    if fields_size(&upsert.fields) > draft.facts.limits.blob_size {
        return Err(BadCommand::fatal(cause, "ModifyWorkflowPropertiesCommandAttributes exceeds size limit."));
    }
    let size = completion.memo_size.unwrap_or_else(|| draft.state.memo.encoded_len());
    let size = merged_size(size, &draft.state.memo.fields, &upsert.fields);
    if size > draft.facts.limits.blob_size {
        let oversized = "ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.";
        return Err(BadCommand::fatal(cause, oversized));
    }
    completion.memo_size = Some(size);
    let what = Attributes::WorkflowPropertiesModifiedEventAttributes(WorkflowPropertiesModifiedEventAttributes {
        workflow_task_completed_event_id: completion.event_id.0,
        upserted_memo: Some(upsert),
    });
    draft.record(Entry { annotation, ..what.into() });
    Ok(())
}

/// Decides on a `RecordMarker` command.
pub(crate) fn record_marker(
    draft: &mut Draft,
    completion: &Completion,
    command: RecordMarkerCommandAttributes,
    annotation: Annotation,
) -> Result<(), BadCommand> {
    let cause = WorkflowTaskFailedCause::BadRecordMarkerAttributes;
    let name = &command.marker_name;
    if name.is_empty() {
        return Err(BadCommand::new(cause, "MarkerName is not set on RecordMarkerCommand."));
    }
    let (length, limit) = (name.len(), draft.facts.limits.id_length);
    if length > limit {
        let reason = format!(
            "MarkerName on RecordMarkerCommand exceeds length limit. MarkerName={name} Length={length} Limit={limit}"
        );
        return Err(BadCommand::new(cause, reason));
    }
    let size: usize = command.details.iter().map(|(key, details)| key.len() + details.encoded_len()).sum();
    if size > draft.facts.limits.blob_size {
        return Err(BadCommand::fatal(cause, "RecordMarkerCommandAttributes.Details exceeds size limit."));
    }
    let what = Attributes::MarkerRecordedEventAttributes(MarkerRecordedEventAttributes {
        marker_name: command.marker_name,
        details: command.details,
        workflow_task_completed_event_id: completion.event_id.0,
        header: command.header,
        failure: command.failure,
    });
    draft.record(Entry { annotation, ..what.into() });
    Ok(())
}

pub(crate) fn apply_search_attributes(
    state: &mut ExecutionState,
    upsert: &UpsertWorkflowSearchAttributesEventAttributes,
) {
    let Some(upsert) = &upsert.search_attributes else { return };
    merge(&mut Arc::make_mut(&mut state.search_attributes).indexed_fields, &upsert.indexed_fields);
}

pub(crate) fn apply_modified(state: &mut ExecutionState, modified: &WorkflowPropertiesModifiedEventAttributes) {
    let Some(upsert) = &modified.upserted_memo else { return };
    merge(&mut Arc::make_mut(&mut state.memo).fields, &upsert.fields);
}

/// A null removes a field, any other value sets it.
pub(crate) fn merge(fields: &mut HashMap<String, Payload>, upsert: &HashMap<String, Payload>) {
    for (name, value) in upsert {
        if is_null(value) {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
}

/// The encoded size of fields after a merge, without merging: a completion may have thousands of merges.
fn merged_size(size: usize, fields: &HashMap<String, Payload>, upsert: &HashMap<String, Payload>) -> usize {
    let mut size = size;
    for (name, value) in upsert {
        size -= fields.get(name).map_or(0, |old| entry_size(name, old));
        size += if is_null(value) { 0 } else { entry_size(name, value) };
    }
    size
}

/// Encoded size of one field of a memo or of search attributes, both of which consist of one map.
fn entry_size(name: &str, value: &Payload) -> usize {
    const TAG: u32 = 1;
    let field = |size: usize| if size == 0 { 0 } else { key_len(TAG) + encoded_len_varint(wide(size)) + size };
    let (name, value) = (field(name.len()), field(value.encoded_len()));
    key_len(TAG) + encoded_len_varint(wide(name + value)) + name + value
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).expect("a size fits in 64 bits")
}

/// An absent value as data converters encode it: no data, a null, or, formerly, an empty list.
pub(crate) fn is_null(value: &Payload) -> bool {
    value.data.is_empty() || value.data == "null" || value.data == "[]"
}

fn fields_size(fields: &HashMap<String, Payload>) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.data.len()).sum()
}

#[cfg(test)]
mod tests;
