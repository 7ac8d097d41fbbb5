//! `cargo xtask scale`: this server alone, with more and more workflows at once, and with many that wait for a timer.
//!
//! What a workflow costs is read from the meters, step by step up and down the ladder. Whether a doubling gains or loses is
//! another matter: the store's flushes, compactions and collections come in bursts of seconds that take a third of the
//! machine, and at the top of the ladder, with all processors busy, a doubling gains less than that. So the upper steps change
//! every few seconds under one load, down and up, many times over; reported for a doubling is the median of the ratios
//! of two steps in the same climb, with the interval in which it lies.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::servers::{Home, Running, Side};
use super::table::{self, Results};
use super::{Bench, Extent, Options, figure, meters, record};

const LADDER: [usize; 7] = [16, 32, 64, 128, 256, 512, 1000];
const LADDER_ROUNDS: usize = 4;
/// Of a step of the ladder.
const DURATION: Duration = Duration::from_secs(14);
/// At the start of a step of the ladder all workflows begin together; after two of the longest latencies they are
/// everywhere.
const MIXING: Duration = Duration::from_secs(4);

/// Down and up, so that whatever becomes slower or faster meanwhile does the same to all. The first step only leads in.
const STAIRS: [usize; 10] = [1000, 1000, 512, 256, 128, 64, 128, 256, 512, 1000];
/// How often.
const CLIMBS: usize = 20;
/// Of a step of the stairs.
const STEP_SECONDS: usize = 8;
/// At the start of a step newcomers join, over a quarter of it, or those of the step before end.
const STEP_MIXING_SECONDS: usize = 4;
/// Workflows before the first step: a Cassandra that was just started compiles its own code for a minute of load, and takes up to
/// a third of its processor time for that.
const WARM_UP: usize = 30_000;
const WARM_UP_AT_ONCE: usize = 256;

/// How many runs are being opened at once.
const OPENING: usize = 128;
/// What was under way when the last run was opened is over then: queues, lists, the engine's own work.
const SETTLING: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Result<()> {
    let bench = Bench::of_ours(options)?;
    for home in &options.homes {
        let told = match home {
            Home::Cassandra => bench.with_cassandra(|| measure(&bench, Home::Cassandra))?,
            Home::OneMachine => measure(&bench, Home::OneMachine)?,
        };
        eprintln!("\n{}\n{told}", home.name());
    }
    Ok(())
}

fn measure(bench: &Bench<'_>, home: Home) -> Result<String> {
    let server = bench.start(home, Side::Ours)?;
    bench.drive(&server, "one-activity", Extent::Count(WARM_UP), WARM_UP_AT_ONCE)?;
    let ladder = ladder(bench, home, &server)?;
    let stairs = stairs(bench, &server)?;
    server.stop()?;
    // A new process: what the ladder left in memory would hide what open runs take.
    let server = bench.start(home, Side::Ours)?;
    let open = open_runs(bench, home, &server)?;
    server.stop()?;
    Ok(format!("{ladder}\n{stairs}\n{open}"))
}

fn ladder(bench: &Bench<'_>, home: Home, server: &Running) -> Result<String> {
    let mut results = Results::default();
    for round in 0..LADDER_ROUNDS {
        let mut steps = LADDER;
        if round % 2 == 1 {
            steps.reverse();
        }
        for at_once in steps {
            let before = bench.read_meters(home, server.pid())?;
            let figures = bench.drive(server, "one-activity", Extent::Duration(DURATION), at_once)?;
            let spent = bench.read_meters(home, server.pid())?.since(&before);
            let step = at_once.to_string();
            let rate = steady_rate(&figures)?;
            results.add(&step, Side::Ours, table::THROUGHPUT, rate);
            record(&mut results, &step, Side::Ours, &figures, &spent)?;
            eprintln!("==> round {}, {step} at once: {rate:.0} a second", round + 1);
        }
    }
    Ok(table::of_ours(&results, &LADDER.map(|at_once| at_once.to_string())))
}

fn stairs(bench: &Bench<'_>, server: &Running) -> Result<String> {
    let steps = STAIRS.map(|at_once| at_once.to_string()).join(",");
    let n_seconds = STAIRS.len() * STEP_SECONDS;
    let load = ["--steps", &steps, "--step", &format!("{STEP_SECONDS}s"), "--duration", &format!("{n_seconds}s")];
    let load = load.map(str::to_owned);
    let mut results = Results::default();
    for climb in 0..bench.options.rounds.unwrap_or(CLIMBS) {
        let rates = rates(&bench.drive_with(server, "one-activity", &load)?)?;
        ensure!(rates.len() >= n_seconds, "only {} seconds were measured, of {n_seconds}", rates.len());
        let rates = of_climb(&rates[..n_seconds]);
        eprintln!("==> climb {}: {rates:.0?}", climb + 1);
        for (at_once, rate) in rates {
            results.add(&at_once.to_string(), Side::Ours, table::THROUGHPUT, rate);
        }
    }
    let mut steps = STAIRS.to_vec();
    steps.sort_unstable();
    steps.dedup();
    let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
    Ok(table::steps_of_ours(&results, &steps))
}

/// The rate of each step of the stairs in one climb, the mean of going down and up.
fn of_climb(rates: &[f64]) -> BTreeMap<usize, f64> {
    let mut seconds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (at_once, step) in STAIRS.iter().zip(rates.chunks(STEP_SECONDS)).skip(1) {
        seconds.entry(*at_once).or_default().extend(&step[STEP_MIXING_SECONDS..]);
    }
    seconds.into_iter().map(|(at_once, rates)| (at_once, mean(&rates))).collect()
}

/// What ended in a second while the load was whole: neither as it began nor as it ran out.
fn steady_rate(figures: &Value) -> Result<f64> {
    let (first, end) = (MIXING.as_secs() as usize, DURATION.as_secs() as usize);
    let rates = rates(figures)?;
    let steady = rates.get(first..end).with_context(|| format!("only {} seconds were measured", rates.len()))?;
    Ok(mean(steady))
}

/// What ended in each second.
fn rates(figures: &Value) -> Result<Vec<f64>> {
    let timeline = figures.pointer("/timeline").and_then(Value::as_array).context("the figures lack a timeline")?;
    let mut rates = Vec::new();
    for (n, second) in timeline.iter().enumerate() {
        ensure!(figure(second, "/at_s")? == n as f64, "a timeline that is not of seconds");
        rates.push(figure(second, "/operations_per_s")?);
    }
    Ok(rates)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What an open run costs that has nothing to do but wait, in memory and in statements.
fn open_runs(bench: &Bench<'_>, home: Home, server: &Running) -> Result<String> {
    let n_runs = bench.options.open_runs;
    ensure!(n_runs > 0, "no run would be open");
    let before = meters::idle_memory_bytes(server.pid())?;
    bench.drive(server, "open-runs", Extent::Count(n_runs), OPENING)?;
    std::thread::sleep(SETTLING);
    let after = meters::memory_bytes(server.pid())?;
    let at_rest = bench.read_meters(home, server.pid())?;
    std::thread::sleep(IDLE);
    let spent = bench.read_meters(home, server.pid())?.since(&at_rest);
    let statements = spent.cassandra.map_or("not counted".to_owned(), |spent| {
        format!("{} LWTs, {} writes, {} reads", spent.conditional_writes, spent.plain_writes, spent.plain_reads)
    });
    Ok(format!(
        "{n_runs} open runs: {} bytes of memory each (the server has {} MiB, and had {} before)\n\
         In {} s without a request: {} ms of the server's processor time; statements: {statements}\n",
        after.saturating_sub(before) / n_runs as u64,
        after >> 20,
        before >> 20,
        IDLE.as_secs(),
        spent.server_cpu_ms,
    ))
}

#[cfg(test)]
mod tests {
    //! Which seconds count.

    use serde_json::json;

    use super::*;

    #[test]
    fn only_seconds_of_the_whole_load_count() {
        let rate = |at: u64| if (4..14).contains(&at) { 100.0 + at as f64 } else { 1.0 };
        let seconds: Vec<Value> = (0..16).map(|at| json!({ "at_s": at, "operations_per_s": rate(at) })).collect();
        let told = steady_rate(&json!({ "timeline": seconds })).expect("a rate");
        assert_eq!(told, 108.5);
        assert!(steady_rate(&json!({ "timeline": seconds[..10] })).is_err(), "a step that broke off");
    }

    #[test]
    fn a_step_of_the_stairs_counts_once_those_before_it_have_ended() {
        // It all becomes faster with time.
        let second = |n: usize| {
            let (step, at) = (n / STEP_SECONDS, n % STEP_SECONDS);
            if at < 4 { 0.0 } else { STAIRS[step] as f64 + 10.0 * step as f64 }
        };
        let rates: Vec<f64> = (0..STAIRS.len() * STEP_SECONDS).map(second).collect();
        let expected = [(64, 114.0), (128, 178.0), (256, 306.0), (512, 562.0), (1000, 1050.0)];
        assert_eq!(of_climb(&rates), BTreeMap::from(expected));
    }
}
