//! A run as lists are to tell of it. Pure.

use std::collections::BTreeMap;

use cluster::search_attributes::payload;
use persistence::stores::visibility::record::{Close, Record, Term};
use persistence::stores::visibility::{Change, Known, Put, Removal};
use proto::temporal::api::common::v1::Payload;
use workflow::{EventId, ExecutionState};

use super::describe::shown_status;

/// A run is new to lists, or other than they know it: `replaced` is what they know of its search attributes that are
/// other ones now.
pub(crate) fn changed(record: Record, known: Known, replaced: &BTreeMap<String, Payload>) -> Change {
    let now = record.search_attributes.indexed_fields.iter();
    let is_new = |name: &String| known != Known::Surely || replaced.contains_key(name);
    let terms = now.filter(|(name, _)| is_new(name)).flat_map(terms_of).collect();
    let stale = replaced.iter().flat_map(terms_of).collect();
    Change::Put(Box::new(Put { terms, stale, known, record }))
}

/// The run is deleted.
pub(crate) fn removed(state: &ExecutionState) -> Box<Removal> {
    removed_record(record_of(state))
}

pub(crate) fn removed_record(record: Record) -> Box<Removal> {
    let terms = record.search_attributes.indexed_fields.iter().flat_map(terms_of).collect();
    Box::new(Removal { terms, record })
}

/// Lists still know what the run had before, and forget that too.
pub(crate) fn remove_replaced(removal: &mut Removal, replaced: &BTreeMap<String, Payload>) {
    removal.terms.extend(replaced.iter().flat_map(terms_of));
    removal.terms.sort();
    // A batch names a row once.
    removal.terms.dedup();
}

/// What cannot be read as a value, nothing is found by.
fn terms_of((name, value): (&String, &Payload)) -> Vec<Term> {
    payload::decode(name, value).map(|value| Term::of_attribute(name, &value).collect()).unwrap_or_default()
}

pub(crate) fn record_of(state: &ExecutionState) -> Record {
    let (key, started) = (&state.key, &state.started);
    let parent = started.parent.as_ref();
    Record {
        namespace_id: key.namespace_id,
        workflow_id: key.workflow_id.clone(),
        run_id: key.run_id,
        workflow_type: started.workflow_type.clone(),
        task_queue: started.task_queue.clone(),
        status: shown_status(state),
        started_at: started.began_at(),
        executes_at: started.began_at() + started.first_task_backoff,
        closed: state.closed.as_ref().map(|closed| Close {
            at: closed.at,
            history_length: state.next_event_id.0 - EventId::FIRST.0,
            history_size: state.history_size,
            state_transitions: state.unrecorded.db_record_version,
        }),
        memo: state.memo.as_ref().clone(),
        search_attributes: workflow::shown_search_attributes(state),
        parent: parent.map(|parent| parent.execution.clone()),
        root: parent.and_then(|parent| parent.root.clone()),
        listing: state.unrecorded.listing,
        version: state.unrecorded.db_record_version,
    }
}

#[cfg(test)]
mod tests;
