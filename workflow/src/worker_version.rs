//! Worker versions as search attributes of the runs whose workflow tasks they completed. Derived from completed events
//! and recorded in no other event.

use std::collections::HashMap;
use std::sync::Arc;

use proto::temporal::api::common::v1::{Payload, WorkerVersionStamp};
use proto::temporal::api::history::v1::WorkflowTaskCompletedEventAttributes;

use crate::state::ExecutionState;

const BUILD_IDS: &str = "BuildIds";
const BINARY_CHECKSUMS: &str = "BinaryChecksums";
/// Marks a run whose last task was completed by an unversioned worker.
const UNVERSIONED: &str = "unversioned";
const ASSIGNED_PREFIX: &str = "assigned:";
/// Bytes of a search attribute value at most: the oldest versions are dropped.
const VALUE_SIZE_MAX: usize = 2048;

/// Indexes the run by the version of the worker that completed a workflow task.
#[expect(deprecated, reason = "old workers send a version")]
pub(crate) fn apply_completed(state: &mut ExecutionState, completed: &WorkflowTaskCompletedEventAttributes) {
    let known = list(state.search_attributes.indexed_fields.get(BUILD_IDS));
    let build_ids = bounded(build_ids(&known, completed.worker_version.as_ref()));
    if build_ids != known {
        set(state, BUILD_IDS, &build_ids);
    }
}

/// Indexes the run by the checksums of all its reset points.
pub(crate) fn apply_checksums(state: &mut ExecutionState) {
    let checksums = state.reset_points.iter().map(|point| &point.binary_checksum);
    let checksums: Vec<String> = checksums.filter(|checksum| !checksum.is_empty()).cloned().collect();
    set(state, BINARY_CHECKSUMS, &checksums);
}

/// The unversioned marker comes first, if it applies; then all versions in order of arrival.
fn build_ids(known: &[String], stamp: Option<&WorkerVersionStamp>) -> Vec<String> {
    let is_ruled = stamp.is_some_and(|stamp| stamp.use_versioning);
    let rule = (!is_ruled).then(|| UNVERSIONED.to_owned());
    let is_rule = |build_id: &&String| *build_id == UNVERSIONED || build_id.starts_with(ASSIGNED_PREFIX);
    let mut build_ids: Vec<String> =
        rule.into_iter().chain(known.iter().filter(|build_id| !is_rule(build_id)).cloned()).collect();
    let new = stamp.filter(|stamp| !stamp.build_id.is_empty()).map(named);
    build_ids.extend(new.filter(|build_id| !known.contains(build_id)));
    build_ids
}

fn named(stamp: &WorkerVersionStamp) -> String {
    let kind = if stamp.use_versioning { "versioned" } else { UNVERSIONED };
    format!("{kind}:{}", stamp.build_id)
}

fn bounded(mut build_ids: Vec<String>) -> Vec<String> {
    while build_ids.len() > 1 && encoded(&build_ids).len() > VALUE_SIZE_MAX {
        // The marker stays: queries for versions in use depend on it.
        let oldest = usize::from(build_ids[0] == UNVERSIONED);
        build_ids.remove(oldest);
    }
    build_ids.retain(|build_id| build_id.len() <= VALUE_SIZE_MAX);
    build_ids
}

fn list(value: Option<&Payload>) -> Vec<String> {
    value.and_then(|value| serde_json::from_slice(&value.data).ok()).unwrap_or_default()
}

fn encoded(values: &[String]) -> Vec<u8> {
    serde_json::to_vec(values).expect("strings are always encoded")
}

/// Encodes a list of keywords as a search attribute.
pub(crate) fn keywords(values: &[String]) -> Payload {
    let metadata = [("encoding", "json/plain"), ("type", "KeywordList")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), bytes::Bytes::from_static(value.as_bytes())));
    Payload { metadata: HashMap::from(metadata), data: encoded(values).into(), ..Default::default() }
}

fn set(state: &mut ExecutionState, name: &str, values: &[String]) {
    let fields = &mut Arc::make_mut(&mut state.search_attributes).indexed_fields;
    fields.insert(name.to_owned(), keywords(values));
}
