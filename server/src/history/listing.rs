//! Visibility records and changes of a run. Pure.

use std::collections::BTreeMap;

use cluster::search_attributes::payload;
use persistence::stores::visibility::record::{Close, Record, Term};
use persistence::stores::visibility::{Change, Known, Put, Removal};
use proto::temporal::api::common::v1::Payload;
use workflow::{EventId, ExecutionState};

use super::describe::shown_status;

/// The visibility write for a new or changed run: `replaced` has the indexed values of search attributes that changed
/// since.
pub(crate) fn changed(record: Record, known: Known, replaced: &BTreeMap<String, Payload>) -> Change {
    let now = record.search_attributes.indexed_fields.iter();
    let is_new = |name: &String| known != Known::Surely || replaced.contains_key(name);
    let terms = now.filter(|(name, _)| is_new(name)).flat_map(terms_of).collect();
    let stale = replaced.iter().flat_map(terms_of).collect();
    Change::Put(Box::new(Put { terms, stale, known, record }))
}

/// Visibility removal of a deleted run.
pub(crate) fn removed(state: &ExecutionState) -> Box<Removal> {
    removed_record(record_of(state))
}

pub(crate) fn removed_record(record: Record) -> Box<Removal> {
    let terms = record.search_attributes.indexed_fields.iter().flat_map(terms_of).collect();
    Box::new(Removal { terms, record })
}

/// Also removes the terms of replaced values, still indexed.
pub(crate) fn remove_replaced(removal: &mut Removal, replaced: &BTreeMap<String, Payload>) {
    removal.terms.extend(replaced.iter().flat_map(terms_of));
    removal.terms.sort();
    // A batch may name a row only once.
    removal.terms.dedup();
}

/// Index terms; none if the value does not decode.
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
