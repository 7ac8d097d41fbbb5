//! Branches of history, as run states and history trees store them.

use proto::everrow::record;
use workflow::{Branch, BranchRange, EventId, VersionHistoryItem};

use super::{Decoded, uuid, uuid_bytes};

pub(crate) fn encode(branch: &Branch) -> record::Branch {
    let Branch { tree_id, branch_id, ancestors } = branch;
    record::Branch {
        tree_id: uuid_bytes(*tree_id),
        branch_id: uuid_bytes(*branch_id),
        ancestors: ancestors
            .iter()
            .map(|BranchRange { branch_id, begin, end }| record::BranchRange {
                branch_id: uuid_bytes(*branch_id),
                begin: begin.0,
                end: end.0,
            })
            .collect(),
    }
}

pub(crate) fn decode(branch: record::Branch) -> Decoded<Branch> {
    let ancestors = branch.ancestors.into_iter().map(|range| {
        Ok(BranchRange {
            branch_id: uuid(&range.branch_id, "ancestor's branch_id")?,
            begin: EventId(range.begin),
            end: EventId(range.end),
        })
    });
    Ok(Branch {
        tree_id: uuid(&branch.tree_id, "tree_id")?,
        branch_id: uuid(&branch.branch_id, "branch_id")?,
        ancestors: ancestors.collect::<Decoded<_>>()?,
    })
}

pub(crate) fn encode_versions(items: &[VersionHistoryItem]) -> Vec<record::VersionHistoryItem> {
    items
        .iter()
        .map(|VersionHistoryItem { event_id, version }| record::VersionHistoryItem {
            event_id: event_id.0,
            version: *version,
        })
        .collect()
}

pub(crate) fn decode_versions(items: Vec<record::VersionHistoryItem>) -> Vec<VersionHistoryItem> {
    items
        .into_iter()
        .map(|item| VersionHistoryItem { event_id: EventId(item.event_id), version: item.version })
        .collect()
}
