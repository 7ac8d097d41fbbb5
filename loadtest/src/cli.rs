//! The command line of `everrow-stress`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use crate::plan::{Extent, Load, Places, Plan, ScenarioName};
use crate::report::{self, Figures};
use crate::stress;

/// Loads a server that speaks Temporal's API, measures it, and verifies that nothing was lost.
///
/// Brings its own workers. Exits with 0 if every workflow completed once and as it should, with 1 if not.
#[derive(Debug, Parser)]
#[command(name = "everrow-stress", version)]
struct Arguments {
    /// Scenario to repeat.
    #[arg(value_enum, default_value = "one-activity")]
    scenario: ScenarioName,
    /// Address of the server.
    #[arg(long, default_value = "127.0.0.1:7233")]
    address: String,
    /// Size of the scenario; each has its own default.
    #[arg(long)]
    size: Option<u32>,

    /// Closed loop: operations in flight; the next starts when one ends.
    #[arg(long, default_value_t = 64, conflicts_with = "rate")]
    concurrency: usize,
    /// Closed loop in steps: 64,128,64 is the operations in flight in each step, repeated until the end.
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["rate", "concurrency", "count", "ramp"])]
    steps: Vec<usize>,
    /// Duration of each step.
    #[arg(long, value_parser = parse_duration, default_value = "10s", requires = "steps")]
    step: Duration,
    /// Open loop: operations per second; latency counts from the time at which each was due.
    #[arg(long)]
    rate: Option<f64>,
    /// Open loop: operations in flight at most.
    #[arg(long, default_value_t = 10_000)]
    in_flight_max: usize,

    /// Stop after this many operations.
    #[arg(long, conflicts_with = "duration")]
    count: Option<u64>,
    /// Stop after this time: 30s, 5m, 1h. [default: 10s]
    #[arg(long, value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Reach the full load only after this time.
    #[arg(long, value_parser = parse_duration, default_value = "0s")]
    ramp: Duration,
    /// Unmeasured operations before the measured ones.
    #[arg(long, default_value_t = 0)]
    warm_up: u64,

    /// The namespace; registered if it is missing.
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Namespaces to spread the workflows over; if several, a number is appended to the name of each.
    #[arg(long, default_value_t = 1)]
    namespaces: usize,
    /// Task queues per namespace to spread the workflows over.
    #[arg(long, default_value_t = 1)]
    task_queues: usize,
    /// Pollers of each kind per task queue. [default: half of the operations in flight, 8 to 512]
    #[arg(long)]
    pollers: Option<usize>,
    /// Connections for calls, and as many for polls.
    #[arg(long, default_value_t = 2)]
    connections: usize,
    /// Padding bytes beside each input and result.
    #[arg(long, default_value_t = 0)]
    payload_bytes: usize,

    /// Workflows whose every event is checked at the end: a number, or all (up to 100000).
    #[arg(long, default_value = "100", value_parser = parse_histories)]
    histories: usize,
    /// Write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long)]
    html: Option<PathBuf>,
}

const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// A poller is busy until its task is durably started: too few pollers become the bottleneck.
fn pollers_for(load: &Load) -> usize {
    (load.at_once() / 2).clamp(8, 512)
}

/// Bounds the memory of the workflows that are kept for the final check.
const HISTORIES_MAX: usize = 100_000;

/// Runs the driver; returns whether all went well.
///
/// # Errors
/// If there is nothing to report: the server cannot be reached, or a file cannot be written.
pub fn run() -> Result<bool> {
    let arguments = Arguments::parse();
    let plan = arguments.plan()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(stress::run(plan))?;
    let figures = Figures::of(&outcome);
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&figures)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &arguments.html {
        std::fs::write(path, report::page(&figures)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    eprintln!("{}", figures.summary());
    Ok(figures.is_good)
}

impl Arguments {
    fn plan(&self) -> Result<Plan> {
        for (name, n) in [
            ("concurrency", self.concurrency),
            ("in-flight-max", self.in_flight_max),
            ("namespaces", self.namespaces),
            ("task-queues", self.task_queues),
            ("pollers", self.pollers.unwrap_or(1)),
        ] {
            ensure!(n > 0, "--{name} 0 would do nothing");
        }
        ensure!(self.size != Some(0), "--size 0 would do nothing");
        ensure!(!self.steps.contains(&0) && !self.step.is_zero(), "a step of nothing");
        let load = match self.rate {
            None if !self.steps.is_empty() => Load::Stepped { steps: self.steps.clone(), each: self.step },
            None => Load::Closed { concurrency: self.concurrency },
            Some(rate) if rate.is_finite() && rate > 0.0 => Load::Open { rate, in_flight_max: self.in_flight_max },
            Some(rate) => bail!("--rate {rate} is no rate"),
        };
        let extent = match self.count {
            Some(count) => Extent::Count(count),
            None => Extent::Duration(self.duration.unwrap_or(DURATION_DEFAULT)),
        };
        let pollers = self.pollers.unwrap_or_else(|| pollers_for(&load));
        Ok(Plan {
            address: self.address.clone(),
            scenario: self.scenario,
            size: self.size,
            load,
            extent,
            ramp: self.ramp,
            warm_up: self.warm_up,
            place: Places {
                namespaces: self.namespace_names(),
                task_queues: self.task_queues,
                pollers,
                connections: self.connections,
            },
            payload_bytes: self.payload_bytes,
            histories: self.histories,
        })
    }

    fn namespace_names(&self) -> Vec<String> {
        if self.namespaces == 1 {
            return vec![self.namespace.clone()];
        }
        (0..self.namespaces).map(|n| format!("{}-{n}", self.namespace)).collect()
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let parsed = units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*ms).map(Duration::from_millis)
    });
    parsed.ok_or_else(|| format!("{text:?} is no duration; 500ms, 30s, 5m and 1h are"))
}

fn parse_histories(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(HISTORIES_MAX),
        number => number.parse().map(|n: usize| n.min(HISTORIES_MAX)).map_err(|_| "a number, or all".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    //! What is typed becomes a plan, or is refused with a reason.

    use super::*;

    fn plan(arguments: &[&str]) -> Result<Plan> {
        let given = std::iter::once("everrow-stress").chain(arguments.iter().copied());
        Arguments::try_parse_from(given)?.plan()
    }

    #[test]
    fn nothing_given_is_a_closed_loop_of_ten_seconds() {
        let plan = plan(&[]).expect("all has a default");
        assert_eq!(plan.load, Load::Closed { concurrency: 64 });
        assert_eq!(plan.extent, Extent::Duration(Duration::from_secs(10)));
        assert_eq!(plan.place.namespaces, ["default"]);
    }

    #[test]
    fn a_rate_makes_an_open_loop() {
        let plan = plan(&["no-op", "--rate", "12.5", "--count", "7", "--namespaces", "2"]).expect("a plan");
        assert_eq!(plan.load, Load::Open { rate: 12.5, in_flight_max: 10_000 });
        assert_eq!((plan.scenario, plan.extent), (ScenarioName::NoOp, Extent::Count(7)));
        assert_eq!(plan.place.namespaces, ["default-0", "default-1"]);
    }

    #[test]
    fn steps_are_as_many_as_are_given() {
        let plan = plan(&["--steps", "64,128", "--step", "7s"]).expect("a plan");
        assert_eq!(plan.load, Load::Stepped { steps: vec![64, 128], each: Duration::from_secs(7) });
        assert_eq!(plan.place.pollers, 64, "enough for the highest");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            &["--rate", "0"][..],
            &["--rate", "1", "--concurrency", "1"],
            &["--concurrency", "0"],
            &["--duration", "5"],
            &["--count", "1", "--duration", "1s"],
            &["--steps", "1,2", "--count", "5"],
            &["--steps", "1,0"],
            &["--steps", "1,2", "--step", "0s"],
            &["dancing"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)));
        }
    }
}
