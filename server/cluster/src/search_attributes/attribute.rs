//! The attributes by name and type: those that every run has, those that the server defines for all namespaces, and
//! one that a namespace defines for itself.

use persistence::stores::visibility::value::ValueType;

/// A search attribute of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// Has its own field in the run's record.
    System(SystemAttribute),
    /// Among the run's search attributes: predefined by the server, or custom to the namespace.
    Indexed { name: String, value_type: ValueType },
}

/// Attributes of every run; clients cannot set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SystemAttribute {
    WorkflowId,
    RunId,
    WorkflowType,
    StartTime,
    ExecutionTime,
    /// Not set while the run is open.
    CloseTime,
    /// A keyword as `Running`, `ContinuedAsNew`, `TimedOut`.
    ExecutionStatus,
    TaskQueue,
    /// Not set while the run is open.
    HistoryLength,
    /// In nanoseconds, from the execution time to the close. Not set while the run is open.
    ExecutionDuration,
    /// Not set while the run is open.
    StateTransitionCount,
    /// Not set while the run is open.
    HistorySizeBytes,
    /// Not set if the run has no parent.
    ParentWorkflowId,
    ParentRunId,
    RootWorkflowId,
    RootRunId,
}

/// An attribute that the server defines in all namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predefined {
    pub name: &'static str,
    pub value_type: ValueType,
    /// Clients may set it too; only older attributes allow it, for compatibility.
    pub settable: bool,
}

/// Prefix of the server's names.
pub const RESERVED_PREFIX: &str = "Temporal";

/// Hides a run from every query that does not name it: the server's own runs (schedules, batches) have it set.
pub const NAMESPACE_DIVISION: &str = "TemporalNamespaceDivision";

/// The schedule that started a run, and the scheduled time.
pub const SCHEDULED_BY_ID: &str = "TemporalScheduledById";
pub const SCHEDULED_START_TIME: &str = "TemporalScheduledStartTime";
/// Whether a schedule is paused.
pub const SCHEDULE_PAUSED: &str = "TemporalSchedulePaused";

/// The division of schedules.
pub const SCHEDULES: &str = "TemporalScheduler";

const fn settable(name: &'static str, value_type: ValueType) -> Predefined {
    Predefined { name, value_type, settable: true }
}

const fn kept(name: &'static str, value_type: ValueType) -> Predefined {
    Predefined { name, value_type, settable: false }
}

pub const PREDEFINED: [Predefined; 17] = [
    settable("TemporalChangeVersion", ValueType::KeywordList),
    settable("BinaryChecksums", ValueType::KeywordList),
    settable("BuildIds", ValueType::KeywordList),
    settable("BatcherNamespace", ValueType::Keyword),
    settable("BatcherUser", ValueType::Keyword),
    settable(SCHEDULED_START_TIME, ValueType::Datetime),
    settable(SCHEDULED_BY_ID, ValueType::Keyword),
    settable(SCHEDULE_PAUSED, ValueType::Bool),
    settable(NAMESPACE_DIVISION, ValueType::Keyword),
    settable("TemporalPauseInfo", ValueType::KeywordList),
    settable("TemporalReportedProblems", ValueType::KeywordList),
    kept("TemporalWorkerDeploymentVersion", ValueType::Keyword),
    kept("TemporalWorkflowVersioningBehavior", ValueType::Keyword),
    kept("TemporalWorkerDeployment", ValueType::Keyword),
    kept("TemporalUsedWorkerDeploymentVersions", ValueType::KeywordList),
    kept("TemporalExternalPayloadCount", ValueType::Int),
    kept("TemporalExternalPayloadSizeBytes", ValueType::Int),
];

impl Attribute {
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::System(attribute) => attribute.name(),
            Self::Indexed { name, .. } => name,
        }
    }

    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::System(attribute) => attribute.value_type(),
            Self::Indexed { value_type, .. } => *value_type,
        }
    }

    /// Conditions search within the value, so a negated one also matches an unset value.
    #[must_use]
    pub fn is_searched_within(&self) -> bool {
        matches!(self.value_type(), ValueType::Text | ValueType::KeywordList)
    }

    #[must_use]
    pub fn namespace_division() -> Self {
        Self::Indexed { name: NAMESPACE_DIVISION.to_owned(), value_type: ValueType::Keyword }
    }
}

impl SystemAttribute {
    pub const ALL: [Self; 16] = [
        Self::WorkflowId,
        Self::RunId,
        Self::WorkflowType,
        Self::StartTime,
        Self::ExecutionTime,
        Self::CloseTime,
        Self::ExecutionStatus,
        Self::TaskQueue,
        Self::HistoryLength,
        Self::ExecutionDuration,
        Self::StateTransitionCount,
        Self::HistorySizeBytes,
        Self::ParentWorkflowId,
        Self::ParentRunId,
        Self::RootWorkflowId,
        Self::RootRunId,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkflowId => "WorkflowId",
            Self::RunId => "RunId",
            Self::WorkflowType => "WorkflowType",
            Self::StartTime => "StartTime",
            Self::ExecutionTime => "ExecutionTime",
            Self::CloseTime => "CloseTime",
            Self::ExecutionStatus => "ExecutionStatus",
            Self::TaskQueue => "TaskQueue",
            Self::HistoryLength => "HistoryLength",
            Self::ExecutionDuration => "ExecutionDuration",
            Self::StateTransitionCount => "StateTransitionCount",
            Self::HistorySizeBytes => "HistorySizeBytes",
            Self::ParentWorkflowId => "ParentWorkflowId",
            Self::ParentRunId => "ParentRunId",
            Self::RootWorkflowId => "RootWorkflowId",
            Self::RootRunId => "RootRunId",
        }
    }

    #[must_use]
    pub fn value_type(self) -> ValueType {
        match self {
            Self::StartTime | Self::ExecutionTime | Self::CloseTime => ValueType::Datetime,
            Self::HistoryLength | Self::ExecutionDuration | Self::StateTransitionCount | Self::HistorySizeBytes => {
                ValueType::Int
            }
            Self::WorkflowId
            | Self::RunId
            | Self::WorkflowType
            | Self::ExecutionStatus
            | Self::TaskQueue
            | Self::ParentWorkflowId
            | Self::ParentRunId
            | Self::RootWorkflowId
            | Self::RootRunId => ValueType::Keyword,
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| attribute.name() == name)
    }
}

impl Predefined {
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        PREDEFINED.into_iter().find(|attribute| attribute.name == name)
    }
}
