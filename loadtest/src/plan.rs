//! The plan of a run: scenario, extent, load and server. Made by the command line.

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
    /// Workflows that do nothing; latency is from the start of each until visibility returns it.
    ListedOpen,
    /// The same, from the end of each until visibility returns it as completed.
    ListedClosed,
    /// Workflows of one activity that are all started before the first worker polls.
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
    /// `concurrency` operations in flight; the next begins when one ends.
    Closed { concurrency: usize },
    /// The same with one concurrency per step; repeated after the last.
    Stepped { steps: Vec<usize>, each: Duration },
    /// `rate` operations per second, whatever becomes of them. Latency counts from the time at which one was due.
    Open { rate: f64, in_flight_max: usize },
}

/// When the load ends.
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
    /// Size of the scenario; each has its own default.
    pub size: Option<u32>,
    pub load: Load,
    pub extent: Extent,
    /// Time from no load to the full load.
    pub ramp: Duration,
    /// Operations before the clock starts.
    pub warm_up: u64,
    pub place: Places,
    pub payload_bytes: usize,
    /// Workflows whose history is checked at the end.
    pub histories: usize,
}

/// Namespaces and task queues that the workflows are spread over, and their pollers.
#[derive(Debug, Clone, Serialize)]
pub struct Places {
    pub namespaces: Vec<String>,
    pub task_queues: usize,
    /// Of each kind, for each task queue.
    pub pollers: usize,
    pub connections: usize,
}

impl Load {
    /// Operations in flight at most.
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
