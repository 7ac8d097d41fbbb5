//! The visibility record of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::everrow::record;
use proto::temporal::api::common::v1::{Memo, SearchAttributes, WorkflowExecution};
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use workflow::{Listing, NamespaceId, RunId, Timestamp};

use super::value::Value;
use crate::stores::rows::run::{decode_listing, encode_listing};

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub namespace_id: NamespaceId,
    pub workflow_id: Arc<str>,
    pub run_id: RunId,
    pub workflow_type: String,
    pub task_queue: String,
    pub status: WorkflowExecutionStatus,
    pub started_at: Timestamp,
    /// When its first workflow task is due.
    pub executes_at: Timestamp,
    /// Unset while the run is open.
    pub closed: Option<Close>,
    pub memo: Memo,
    pub search_attributes: SearchAttributes,
    pub parent: Option<WorkflowExecution>,
    /// Unset if it is its own root.
    pub root: Option<WorkflowExecution>,
    pub listing: Listing,
    /// Counts the run's transitions: of two records of a run the higher one is newer. Row versions derive from it.
    pub version: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    pub at: Timestamp,
    pub history_length: i64,
    pub history_size: i64,
    pub state_transitions: i64,
}

/// An index term of a run, besides its times and its status: an index's name, and the key of a value in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    pub index: Arc<str>,
    pub key: Vec<u8>,
}

/// Names of the indexes that every run is in.
pub const WORKFLOW_ID: &str = "WorkflowId";
pub const WORKFLOW_TYPE: &str = "WorkflowType";
/// Only children are in these.
pub const PARENT_WORKFLOW_ID: &str = "ParentWorkflowId";
pub const ROOT_WORKFLOW_ID: &str = "RootWorkflowId";

/// Longer values are truncated: an index only names candidates.
const TERM_BYTES_MAX: usize = 256;

impl Term {
    #[must_use]
    pub fn new(index: impl Into<Arc<str>>, key: &[u8]) -> Self {
        Self { index: index.into(), key: bounded(key).to_vec() }
    }

    /// The terms of one search attribute. An index is of one attribute and one type.
    pub fn of_attribute<'a>(name: &'a str, value: &'a Value) -> impl Iterator<Item = Self> + 'a {
        let index: Arc<str> = attribute_index(name, value).into();
        value.index_keys().into_iter().map(move |key| Self::new(Arc::clone(&index), &key))
    }
}

/// The part of a value's key that an index stores.
#[must_use]
pub fn bounded(key: &[u8]) -> &[u8] {
    &key[..key.len().min(TERM_BYTES_MAX)]
}

/// Index name of a search attribute with values of this type.
#[must_use]
pub fn attribute_index(name: &str, value: &Value) -> String {
    format!("{name}:{}", value.value_type().name())
}

impl Record {
    /// Index terms of the fields that every run has.
    pub(super) fn own_terms(&self) -> Vec<Term> {
        let mut terms = vec![
            Term::new(WORKFLOW_ID, self.workflow_id.as_bytes()),
            Term::new(WORKFLOW_TYPE, self.workflow_type.as_bytes()),
        ];
        terms.extend(self.parent.iter().map(|parent| Term::new(PARENT_WORKFLOW_ID, parent.workflow_id.as_bytes())));
        terms.extend(self.root.iter().map(|root| Term::new(ROOT_WORKFLOW_ID, root.workflow_id.as_bytes())));
        terms
    }

    pub(super) fn encode(&self) -> record::VisibleRun {
        record::VisibleRun {
            workflow_id: self.workflow_id.to_string(),
            workflow_type: self.workflow_type.clone(),
            task_queue: self.task_queue.clone(),
            status: self.status.into(),
            executes_at: self.executes_at.0,
            closed: self.closed.map(|closed| record::VisibleClose {
                at: closed.at.0,
                history_length: closed.history_length,
                history_size: closed.history_size,
                state_transitions: closed.state_transitions,
            }),
            memo: (!self.memo.fields.is_empty()).then(|| self.memo.clone()),
            search_attributes: (!self.search_attributes.indexed_fields.is_empty())
                .then(|| self.search_attributes.clone()),
            parent: self.parent.clone(),
            root: self.root.clone(),
            listing: Some(encode_listing(self.listing)),
        }
    }

    pub(super) fn decode(place: Place, version: i64, stored: record::VisibleRun) -> Self {
        let status = stored.status();
        Self {
            namespace_id: place.namespace_id,
            workflow_id: stored.workflow_id.into(),
            run_id: place.run_id,
            workflow_type: stored.workflow_type,
            task_queue: stored.task_queue,
            status,
            started_at: place.started_at,
            executes_at: Timestamp(stored.executes_at),
            closed: stored.closed.map(|closed| Close {
                at: Timestamp(closed.at),
                history_length: closed.history_length,
                history_size: closed.history_size,
                state_transitions: closed.state_transitions,
            }),
            memo: stored.memo.unwrap_or_default(),
            search_attributes: stored.search_attributes.unwrap_or_default(),
            parent: stored.parent,
            root: stored.root,
            listing: decode_listing(stored.listing.unwrap_or_default()),
            version,
        }
    }
}

/// Fields of the key of a record's row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) namespace_id: NamespaceId,
    pub(super) started_at: Timestamp,
    pub(super) run_id: RunId,
}

/// Decoded search attributes by name, on which the server evaluates queries.
pub type Attributes = BTreeMap<String, Value>;
