//! `cargo xtask scale`: this server alone, with more and more workflows at once, and with many that wait for a timer.
//!
//! A machine's speed may differ by a third from one minute to the next, and at the top of the ladder all processors are busy, so
//! that a doubling gains little. So there are many short rounds, up and down the ladder in turns, and what is told of a
//! doubling is the median of the ratios of two steps that stood side by side, with the interval in which it lies.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::servers::{Home, Running, Side};
use super::table::{self, Results};
use super::{Bench, Extent, Options, figure, meters, record};

const LADDER: [usize; 7] = [16, 32, 64, 128, 256, 512, 1000];
/// The least with which an interval leaves out two rounds at each end.
const ROUNDS: usize = 12;
/// Of a step.
const DURATION: Duration = Duration::from_secs(14);
/// At the start of a step all workflows begin together; after two of the longest latencies they are everywhere.
const MIXING: Duration = Duration::from_secs(4);
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
    let ladder = climb(bench, home, &server)?;
    server.stop()?;
    // Anew: what the ladder left in memory would hide what open runs take.
    let server = bench.start(home, Side::Ours)?;
    let open = open_runs(bench, home, &server)?;
    server.stop()?;
    Ok(format!("{ladder}\n{open}"))
}

fn climb(bench: &Bench<'_>, home: Home, server: &Running) -> Result<String> {
    bench.drive(server, "one-activity", Extent::Count(WARM_UP), WARM_UP_AT_ONCE)?;
    let mut results = Results::default();
    for round in 0..bench.options.rounds.unwrap_or(ROUNDS) {
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

/// What ended in a second while the load was whole: neither as it began nor as it ran out.
fn steady_rate(figures: &Value) -> Result<f64> {
    let timeline = figures.pointer("/timeline").and_then(Value::as_array).context("the figures lack a timeline")?;
    let mut rates = Vec::new();
    for second in timeline {
        let at = figure(second, "/at_s")?;
        if at >= MIXING.as_secs_f64() && at + 1.0 <= DURATION.as_secs_f64() {
            rates.push(figure(second, "/operations_per_s")?);
        }
    }
    let seconds = (DURATION - MIXING).as_secs();
    ensure!(rates.len() as u64 == seconds, "{} seconds were measured, not {seconds}", rates.len());
    Ok(rates.iter().sum::<f64>() / rates.len() as f64)
}

/// What an open run costs that has nothing to do but wait, in memory and in statements.
fn open_runs(bench: &Bench<'_>, home: Home, server: &Running) -> Result<String> {
    let n_runs = bench.options.open_runs;
    ensure!(n_runs > 0, "no run would be open");
    let before = meters::memory_bytes(server.pid())?;
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
}
