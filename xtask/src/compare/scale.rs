//! `cargo xtask scale`: this server alone, with more and more workflows at once, and with many that wait for a timer.
//!
//! Rounds go up and down the ladder in turns, so that a machine that becomes slower meanwhile does not look like a server
//! that does.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::gauge::Gauge;
use super::servers::{Home, Running, Side};
use super::table::{self, Results};
use super::{Bench, Options, meters, record, throughput};

const LADDER: [usize; 7] = [16, 32, 64, 128, 256, 512, 1000];
/// Workflows of a step: twelve for each one that is under way at the top, so that the first and the last ones weigh little. As
/// many at the bottom: what Cassandra does in the background (flushes, compaction) comes by the workflow, in bursts of seconds, so a
/// shorter step would mostly miss it and look the better for that.
const COUNT: usize = 12_000;
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
    bench.drive(server, "one-activity", WARM_UP, WARM_UP_AT_ONCE)?;
    let mut results = Results::default();
    for round in 0..bench.options.rounds {
        let mut steps = LADDER;
        if round % 2 == 1 {
            steps.reverse();
        }
        for at_once in steps {
            let before = bench.read_meters(home, server.pid())?;
            let gauge = Gauge::start();
            let figures = bench.drive(server, "one-activity", COUNT, at_once)?;
            let speed = gauge.stop()?;
            let spent = bench.read_meters(home, server.pid())?.since(&before);
            let step = at_once.to_string();
            record(&mut results, &step, Side::Ours, &figures, &spent)?;
            results.add(&step, Side::Ours, table::SPEED, speed);
            eprintln!("==> round {}, {step} at once: {:.0} a second", round + 1, throughput(&figures)?);
        }
    }
    let steps = LADDER.map(|at_once| at_once.to_string());
    results.add_at_equal_speed(&steps);
    Ok(table::of_ours(&results, &steps))
}

/// What an open run costs that has nothing to do but wait, in memory and in statements.
fn open_runs(bench: &Bench<'_>, home: Home, server: &Running) -> Result<String> {
    let n_runs = bench.options.open_runs;
    ensure!(n_runs > 0, "no run would be open");
    let before = meters::memory_bytes(server.pid())?;
    bench.drive(server, "open-runs", n_runs, OPENING)?;
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
