//! Run counts of a namespace in a shard, by status: written in the commits that change them, so always exact.

use std::collections::BTreeMap;

use proto::everrow::record;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;

/// By the public status; a status without runs has no entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunCounts {
    counts: BTreeMap<i32, i64>,
}

impl RunCounts {
    /// Counts a status change of a run; `None`: it is new, or deleted.
    pub fn change(&mut self, before: Option<WorkflowExecutionStatus>, after: Option<WorkflowExecutionStatus>) {
        self.add(before, -1);
        self.add(after, 1);
    }

    /// Adds the counts of another shard.
    pub fn merge(&mut self, other: &Self) {
        for (status, count) in &other.counts {
            *self.counts.entry(*status).or_default() += count;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (WorkflowExecutionStatus, i64)> + '_ {
        let known = |status: i32| WorkflowExecutionStatus::try_from(status).unwrap_or_default();
        self.counts.iter().map(move |(status, count)| (known(*status), *count))
    }

    fn add(&mut self, status: Option<WorkflowExecutionStatus>, change: i64) {
        let Some(status) = status else { return };
        let count = self.counts.entry(status.into()).or_default();
        *count += change;
        if *count == 0 {
            self.counts.remove(&status.into());
        }
    }

    pub(super) fn encode(&self) -> record::RunCounts {
        let counts = self.counts.iter().map(|(status, count)| record::StatusCount { status: *status, count: *count });
        record::RunCounts { counts: counts.collect() }
    }

    pub(super) fn decode(record: &record::RunCounts) -> Self {
        Self { counts: record.counts.iter().map(|entry| (entry.status, entry.count)).collect() }
    }
}
