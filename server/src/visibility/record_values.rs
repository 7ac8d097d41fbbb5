//! Attribute values of a run's record, and its entry in a list response. Pure.

use std::borrow::Cow;

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use cluster::search_attributes::payload;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::value::Value;
use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::workflow::v1::WorkflowExecutionInfo;

use super::query::evaluate;
use super::query::filter::Filter;
use super::query::status;

/// Whether a filter matches a run; no filter matches all.
pub(super) fn matches(filter: Option<&Filter>, record: &Record) -> bool {
    filter.is_none_or(|filter| evaluate::matches(filter, &|attribute| value_of(record, attribute).map(Cow::Owned)))
}

pub(super) fn value_of(record: &Record, attribute: &Attribute) -> Option<Value> {
    match attribute {
        Attribute::System(attribute) => system_value(record, *attribute),
        Attribute::Indexed { name, value_type } => {
            let value = payload::decode(name, record.search_attributes.indexed_fields.get(name)?)?;
            // A value stored under another type, before the attribute was redefined, counts as unset.
            Some(value).filter(|value| value.value_type() == *value_type)
        }
    }
}

fn system_value(record: &Record, attribute: SystemAttribute) -> Option<Value> {
    let keyword = |text: &str| Some(Value::Keyword(text.to_owned()));
    let closed = record.closed;
    match attribute {
        SystemAttribute::WorkflowId => keyword(&record.workflow_id),
        SystemAttribute::RunId => keyword(&record.run_id.to_string()),
        SystemAttribute::WorkflowType => keyword(&record.workflow_type),
        SystemAttribute::StartTime => Some(Value::Datetime(record.started_at)),
        SystemAttribute::ExecutionTime => Some(Value::Datetime(record.executes_at)),
        SystemAttribute::CloseTime => closed.map(|closed| Value::Datetime(closed.at)),
        SystemAttribute::ExecutionStatus => keyword(status::name(record.status)),
        SystemAttribute::TaskQueue => keyword(&record.task_queue),
        SystemAttribute::HistoryLength => closed.map(|closed| Value::Int(closed.history_length)),
        SystemAttribute::ExecutionDuration => {
            closed.map(|closed| Value::Int(closed.at.0.saturating_sub(record.executes_at.0)))
        }
        SystemAttribute::StateTransitionCount => closed.map(|closed| Value::Int(closed.state_transitions)),
        SystemAttribute::HistorySizeBytes => closed.map(|closed| Value::Int(closed.history_size)),
        SystemAttribute::ParentWorkflowId => record.parent.as_ref().and_then(|parent| keyword(&parent.workflow_id)),
        SystemAttribute::ParentRunId => record.parent.as_ref().and_then(|parent| keyword(&parent.run_id)),
        SystemAttribute::RootWorkflowId => keyword(&root_of(record).workflow_id),
        SystemAttribute::RootRunId => keyword(&root_of(record).run_id),
    }
}

fn root_of(record: &Record) -> WorkflowExecution {
    record.root.clone().unwrap_or_else(|| execution_of(record))
}

fn execution_of(record: &Record) -> WorkflowExecution {
    WorkflowExecution { workflow_id: record.workflow_id.to_string(), run_id: record.run_id.to_string() }
}

/// A run's entry in a list response.
pub(super) fn shown(record: Record) -> WorkflowExecutionInfo {
    let closed = record.closed;
    let duration = closed.map(|closed| closed.at.since(record.executes_at));
    WorkflowExecutionInfo {
        execution: Some(execution_of(&record)),
        r#type: Some(WorkflowType { name: record.workflow_type.clone() }),
        start_time: Some(record.started_at.into()),
        execution_time: Some(record.executes_at.into()),
        close_time: closed.map(|closed| closed.at.into()),
        execution_duration: duration.and_then(|duration| duration.try_into().ok()),
        status: record.status.into(),
        history_length: closed.map(|closed| closed.history_length).unwrap_or_default(),
        history_size_bytes: closed.map(|closed| closed.history_size).unwrap_or_default(),
        state_transition_count: closed.map(|closed| closed.state_transitions).unwrap_or_default(),
        root_execution: Some(root_of(&record)),
        parent_execution: record.parent,
        task_queue: record.task_queue,
        memo: Some(record.memo),
        search_attributes: Some(record.search_attributes),
        ..Default::default()
    }
}
