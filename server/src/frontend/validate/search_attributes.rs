//! Search attributes: which there are, and whether a request may set them.

use prost::Message as _;
use proto::temporal::api::common::v1::SearchAttributes;
use proto::temporal::api::enums::v1::IndexedValueType::{self, Bool, Datetime, Int, Keyword, KeywordList};

use super::invalid;
use crate::errors::ServiceError;

const ATTRIBUTES_MAX: usize = 100;
const VALUE_BYTES_MAX: usize = 2 << 10;
const TOTAL_BYTES_MAX: usize = 40 << 10;

/// What every workflow has. The server sets them.
pub(crate) const SYSTEM: [(&str, IndexedValueType); 16] = [
    ("WorkflowId", Keyword),
    ("RunId", Keyword),
    ("WorkflowType", Keyword),
    ("StartTime", Datetime),
    ("ExecutionTime", Datetime),
    ("CloseTime", Datetime),
    ("ExecutionStatus", Keyword),
    ("TaskQueue", Keyword),
    ("HistoryLength", Int),
    ("ExecutionDuration", Int),
    ("StateTransitionCount", Int),
    ("HistorySizeBytes", Int),
    ("ParentWorkflowId", Keyword),
    ("ParentRunId", Keyword),
    ("RootWorkflowId", Keyword),
    ("RootRunId", Keyword),
];

/// Known everywhere without being registered; SDKs set some of them.
pub(crate) const PREDEFINED: [(&str, IndexedValueType); 11] = [
    ("TemporalChangeVersion", KeywordList),
    ("BinaryChecksums", KeywordList),
    ("BuildIds", KeywordList),
    ("BatcherNamespace", Keyword),
    ("BatcherUser", Keyword),
    ("TemporalScheduledStartTime", Datetime),
    ("TemporalScheduledById", Keyword),
    ("TemporalSchedulePaused", Bool),
    ("TemporalNamespaceDivision", Keyword),
    ("TemporalPauseInfo", KeywordList),
    ("TemporalReportedProblems", KeywordList),
];

/// Known everywhere too, but only the server sets them.
pub(crate) const SET_BY_SERVER: [(&str, IndexedValueType); 6] = [
    ("TemporalWorkerDeploymentVersion", Keyword),
    ("TemporalWorkflowVersioningBehavior", Keyword),
    ("TemporalWorkerDeployment", Keyword),
    ("TemporalUsedWorkerDeploymentVersions", KeywordList),
    ("TemporalExternalPayloadCount", Int),
    ("TemporalExternalPayloadSizeBytes", Int),
];

pub(crate) fn check(attributes: Option<&SearchAttributes>) -> Result<(), ServiceError> {
    let Some(attributes) = attributes else { return Ok(()) };
    let n_fields = attributes.indexed_fields.len();
    if n_fields > ATTRIBUTES_MAX {
        return Err(invalid(format!("number of search attributes {n_fields} exceeds limit {ATTRIBUTES_MAX}")));
    }
    for (name, value) in &attributes.indexed_fields {
        if SYSTEM.iter().chain(&SET_BY_SERVER).any(|(system, _)| system == name) {
            return Err(invalid(format!("{name} attribute can't be set in SearchAttributes")));
        }
        if !PREDEFINED.iter().any(|(predefined, _)| predefined == name) {
            return Err(invalid(format!("search attribute {name} is not defined")));
        }
        let size = value.data.len();
        if size > VALUE_BYTES_MAX {
            let message = format!("search attribute {name} value size {size} exceeds size limit {VALUE_BYTES_MAX}");
            return Err(invalid(message));
        }
    }
    let total = attributes.encoded_len();
    if total > TOTAL_BYTES_MAX {
        return Err(invalid(format!("total size of search attributes {total} exceeds size limit {TOTAL_BYTES_MAX}")));
    }
    Ok(())
}
