//! `cargo xtask compare`: the stress driver against this server and the official one, in turns, on one machine.
//!
//! A turn starts one server alone, warms it up, and takes every scenario with the meters read before and after. Rounds
//! alternate who goes first. Reported are the median of the rounds, and the ratio of the two medians.

mod meters;
pub(crate) mod scale;
mod servers;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::meters::Reading;
use self::servers::{Home, Side};
use self::table::Results;
use crate::cassandra::{Node, Started};
use crate::tools;

/// A node for this alone, so that nobody else's statements are counted.
const CASSANDRA_PORT: u16 = 9342;
/// Of a comparison.
const ROUNDS: usize = 5;
const SCENARIOS: [&str; 4] = ["no-op", "one-activity", "chain", "signals-to-one"];

#[derive(Debug)]
pub(crate) struct Options {
    /// As many as each command is made for, unless it is given.
    rounds: Option<usize>,
    scenarios: Vec<String>,
    /// Operations that are measured, for each scenario and round; a tenth of it warms up.
    count: usize,
    concurrency: usize,
    homes: Vec<Home>,
    their_shards: u32,
    /// Runs that wait for a timer while the server is idle.
    open_runs: usize,
    /// Where `everrow` and `everrow-stress` are; they are built if this is not given.
    binaries: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            rounds: None,
            scenarios: Vec::new(),
            count: 500,
            concurrency: 64,
            homes: Vec::new(),
            their_shards: 4,
            open_runs: 100_000,
            binaries: None,
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let value = rest.next().with_context(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--rounds" => options.rounds = Some(value.parse()?),
                "--scenario" => options.scenarios.push(value.clone()),
                "--count" => options.count = value.parse()?,
                "--concurrency" => options.concurrency = value.parse()?,
                "--their-shards" => options.their_shards = value.parse()?,
                "--open-runs" => options.open_runs = value.parse()?,
                "--binaries" => options.binaries = Some(std::path::absolute(value)?),
                "--on" => options.homes.push(match value.as_str() {
                    "cassandra" => Home::Cassandra,
                    "one-machine" => Home::OneMachine,
                    _ => bail!("--on cassandra or one-machine?"),
                }),
                _ => bail!("unknown option {option}"),
            }
        }
        ensure!(options.rounds != Some(0) && options.count > 0, "nothing would be measured");
        if options.scenarios.is_empty() {
            options.scenarios = SCENARIOS.map(str::to_owned).to_vec();
        }
        if options.homes.is_empty() {
            options.homes = vec![Home::Cassandra, Home::OneMachine];
        }
        Ok(options)
    }
}

/// How long the driver goes on.
#[derive(Clone, Copy)]
enum Extent {
    Count(usize),
    Duration(Duration),
}

/// What every turn needs.
struct Bench<'a> {
    options: &'a Options,
    driver: PathBuf,
    servers: servers::Binaries,
    node: Node,
    /// Where configurations, data and logs of this comparison are.
    folder: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bench = Bench::of_ours(options)?;
    bench.servers.theirs = servers::fetch_reference()?;
    for home in &options.homes {
        let results = match home {
            Home::Cassandra => bench.with_cassandra(|| {
                servers::set_up_reference_schema(&bench.servers, options.their_shards, &bench.node)?;
                bench.rounds(Home::Cassandra)
            })?,
            Home::OneMachine => bench.rounds(Home::OneMachine)?,
        };
        let text = table::text(*home, options, &results);
        fs::write(bench.folder.join(format!("{}.md", home.name())), &text)?;
        eprintln!("{text}");
    }
    Ok(())
}

/// Where the release build is.
fn build() -> Result<PathBuf> {
    tools::step("release build", tools::cargo().args(["build", "--release", "-p", "server", "-p", "loadtest"]))?;
    Ok(tools::binaries()?.with_file_name("release"))
}

impl<'a> Bench<'a> {
    /// Without the official server.
    fn of_ours(options: &'a Options) -> Result<Self> {
        let release = match &options.binaries {
            Some(folder) => folder.clone(),
            None => build()?,
        };
        let folder = tools::workshop().join("compare");
        fs::create_dir_all(&folder)?;
        let servers = servers::Binaries { ours: release.join("everrow"), theirs: PathBuf::new() };
        let node = Node::on_port(CASSANDRA_PORT).with_usual_heap()?;
        Ok(Self { options, driver: release.join("everrow-stress"), servers, node, folder })
    }

    fn with_cassandra<T>(&self, measure: impl FnOnce() -> Result<T>) -> Result<T> {
        let started = self.node.start()?;
        let results = measure();
        if started == Started::ByUs {
            self.node.stop()?;
        }
        results
    }

    fn rounds(&self, home: Home) -> Result<Results> {
        let mut results = Results::default();
        let n_rounds = self.options.rounds.unwrap_or(ROUNDS);
        for round in 0..n_rounds {
            let turns = if round % 2 == 0 { [Side::Ours, Side::Theirs] } else { [Side::Theirs, Side::Ours] };
            for side in turns {
                eprintln!("==> {}, round {} of {}: {}", home.name(), round + 1, n_rounds, side.name());
                self.turn(home, side, &mut results).with_context(|| format!("{} {}", home.name(), side.name()))?;
            }
        }
        Ok(results)
    }

    /// One server, alone, from its start to its end.
    fn turn(&self, home: Home, side: Side, results: &mut Results) -> Result<()> {
        let server = self.start(home, side)?;
        let idle_bytes = meters::idle_memory_bytes(server.pid())?;
        results.add("", side, "memory when idle, MiB", mebibytes(idle_bytes));
        for scenario in &self.options.scenarios {
            let (count, at_once) = (self.options.count, self.options.concurrency);
            self.drive(&server, scenario, Extent::Count((count / 10).max(20)), at_once)?;
            let before = self.read_meters(home, server.pid())?;
            let figures = self.drive(&server, scenario, Extent::Count(count), at_once)?;
            let after = self.read_meters(home, server.pid())?;
            results.add(scenario, side, table::THROUGHPUT, throughput(&figures)?);
            record(results, scenario, side, &figures, &after.since(&before))?;
            results.add(scenario, side, "memory, MiB", mebibytes(meters::memory_bytes(server.pid())?));
        }
        server.stop()
    }

    fn start(&self, home: Home, side: Side) -> Result<servers::Running> {
        self.servers.start(home, side, self.options.their_shards, (&self.node, &self.folder))
    }

    fn read_meters(&self, home: Home, server: u32) -> Result<Reading> {
        let cassandra = match home {
            Home::Cassandra => Some(&self.node),
            Home::OneMachine => None,
        };
        Reading::take(server, cassandra)
    }

    fn drive(&self, server: &servers::Running, scenario: &str, extent: Extent, at_once: usize) -> Result<Value> {
        let mut load = vec!["--concurrency".to_owned(), at_once.to_string()];
        load.extend(["--pollers".to_owned(), (at_once / 2).max(8).to_string()]);
        load.extend(match extent {
            Extent::Count(count) => ["--count".to_owned(), count.to_string()],
            Extent::Duration(duration) => ["--duration".to_owned(), format!("{}s", duration.as_secs())],
        });
        self.drive_with(server, scenario, &load)
    }

    fn drive_with(&self, server: &servers::Running, scenario: &str, load: &[String]) -> Result<Value> {
        let json = self.folder.join("figures.json");
        let mut driver = Command::new(&self.driver);
        driver.args([scenario, "--histories", "0", "--address", &server.address()]).args(load);
        let output = driver.arg("--json").arg(&json).stdin(Stdio::null()).output().context("cannot run the driver")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{scenario} failed: {said}");
        Ok(serde_json::from_slice(&fs::read(&json)?)?)
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn figure(figures: &Value, pointer: &str) -> Result<f64> {
    figures.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("the figures lack {pointer}"))
}

/// By Little's law, so that one operation that waited for a time-out at the very end does not stand for all.
fn throughput(figures: &Value) -> Result<f64> {
    Ok(figure(figures, "/plan/load/closed/concurrency")? / (figure(figures, "/latency/mean_ms")? / 1000.0))
}

/// Everything by the operation: a workflow, or a signal where that is what is done.
fn record(results: &mut Results, scenario: &str, side: Side, figures: &Value, spent: &Reading) -> Result<()> {
    let operations = figure(figures, "/operations")?;
    results.add(scenario, side, "latency p50, ms", figure(figures, "/latency/p50_ms")?);
    results.add(scenario, side, "latency p99, ms", figure(figures, "/latency/p99_ms")?);
    results.add(scenario, side, "driver CPU ms per operation", figure(figures, "/driver_cpu_ms")? / operations);
    results.add(scenario, side, "server CPU ms per operation", spent.server_cpu_ms / operations);
    if let Some(cassandra) = &spent.cassandra {
        results.add(scenario, side, "Cassandra CPU ms per operation", cassandra.cpu_ms / operations);
        results.add(scenario, side, "LWTs per operation", cassandra.conditional_writes / operations);
        results.add(scenario, side, "plain writes per operation", cassandra.plain_writes / operations);
        results.add(scenario, side, "plain reads per operation", cassandra.plain_reads / operations);
    }
    Ok(())
}
