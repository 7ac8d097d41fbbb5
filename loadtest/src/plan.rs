//! What is to be done: which scenario, how much of it, how fast, and against whom. Made by the command line.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// The scenarios; the file of each says what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScenarioName {
    /// Workflows that complete in their first task.
    NoOp,
    /// Workflows of one activity.
    OneActivity,
    /// Workflows of activities one after the other (10, or --size).
    Chain,
    /// Workflows of activities all at once (100, or --size).
    FanOut,
    /// Signals, all to one workflow.
    SignalsToOne,
    /// Signals to many workflows (64, or --size).
    SignalsToMany,
    /// Workflows of timers that all fire in the same second (10 each, or --size).
    Timers,
    /// Workflows of children with one activity each (3, or --size).
    Children,
    /// Workflows that continue as new (5 times, or --size).
    ContinueAsNew,
    /// Updates of many workflows (64, or --size), waited for until completed.
    Updates,
    /// Queries of many workflows (64, or --size).
    Queries,
    /// Lists, each filtered to one of many open workflows (64, or --size).
    Lists,
    /// Workflows that do nothing; latency is from the start of each until a list tells of it.
    ListedOpen,
    /// The same, from the end of each until a list tells that it has completed.
    ListedClosed,
    /// Workflows of one activity that are all started before the first worker comes.
    Backlog,
    /// Workflows that are left open, with a timer that is far away (1, or --size).
    OpenRuns,
    /// All kinds at once, in shares as a service might have them.
    Mixed,
}

/// How operations begin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// So many at once; the next begins when one ends.
    Closed { concurrency: usize },
    /// The same, but first so many, then so many, and so on; over again after the last.
    Stepped { steps: Vec<usize>, each: Duration },
    /// So many a second, whatever becomes of them. Latency counts from the moment at which one was to begin.
    Open { rate: f64, in_flight_max: usize },
}

/// When it is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    Count(u64),
    Duration(Duration),
}

#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub address: String,
    pub scenario: ScenarioName,
    /// How many of what the scenario has many of; each has its own default.
    pub size: Option<u32>,
    pub load: Load,
    pub extent: Extent,
    /// From nothing to the full load.
    pub ramp: Duration,
    /// Operations before the clock starts.
    pub warm_up: u64,
    pub place: Places,
    pub payload_bytes: usize,
    /// Of how many workflows the history is read and checked at the end.
    pub histories: usize,
}

/// Over what the workflows are spread, and who works there.
#[derive(Debug, Clone, Serialize)]
pub struct Places {
    pub namespaces: Vec<String>,
    pub task_queues: usize,
    /// Of each kind, for each task queue.
    pub pollers: usize,
    pub connections: usize,
}

impl Load {
    /// How many operations may be under way at once.
    #[must_use]
    pub fn at_once(&self) -> usize {
        match self {
            Self::Closed { concurrency } => *concurrency,
            Self::Stepped { steps, .. } => steps.iter().copied().max().unwrap_or(0),
            Self::Open { in_flight_max, .. } => *in_flight_max,
        }
    }
}

impl ScenarioName {
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
