//! Identifiers, each its own type so that two cannot be swapped.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use uuid::Uuid;

use crate::time::{NANOS_PER_MILLI, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceId(pub Uuid);

/// Encodes the start time of its run, by which visibility finds the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub Uuid);

/// Events of a run count from 1. Zero stands for "none" in the public API; ours say `Option` where they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub i64);

/// One run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutionKey {
    pub namespace_id: NamespaceId,
    pub workflow_id: Arc<str>,
    pub run_id: RunId,
}

impl std::hash::Hash for ExecutionKey {
    /// Hashes only the run id, to save time: it is unique, except in requests for runs that do not exist.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.run_id.hash(state);
    }
}

impl RunId {
    /// Run id for a start at this time: a UUID of version 7. Its 74 random bits keep the runs of a millisecond apart.
    #[must_use]
    pub fn new(starts_at: Timestamp, random: &[u8; 10]) -> Self {
        let millis = u64::try_from(starts_at.0 / NANOS_PER_MILLI).unwrap_or_default();
        Self(uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid())
    }

    /// The millisecond in which the run started. `None` for ids of an older format.
    #[must_use]
    pub fn started_within(self) -> Option<RangeInclusive<Timestamp>> {
        const BITS_AFTER_MILLIS: u32 = 80;
        let millis = i64::try_from(self.0.as_u128() >> BITS_AFTER_MILLIS).expect("48 bits fit");
        let first = millis.saturating_mul(NANOS_PER_MILLI);
        let last = first.saturating_add(NANOS_PER_MILLI - 1);
        (self.0.get_version() == Some(uuid::Version::SortRand)).then_some(Timestamp(first)..=Timestamp(last))
    }
}

impl EventId {
    pub const FIRST: Self = Self(1);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for NamespaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ExecutionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace_id, self.workflow_id, self.run_id)
    }
}
