//! Everrow's own tooling, in place of scripts: `cargo xtask help` lists what it does.

mod cassandra;
mod compare;
mod suites;
mod tidy;
mod tools;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  cassandra start|stop|status [--port 9142] [--data DIR] [--heap 1000m]
        a single-node Cassandra 5 for tests, fetched by Maven and run by Java 17
  test [--suite rust|python|golden|go|cli|ui]… [FILTER…]
        start Cassandra, run the Rust tests, the acceptance tests with the official SDKs and command line and the golden comparison, stop Cassandra
  compare [--rounds 5] [--scenario NAME]… [--count 500] [--concurrency 64] [--on cassandra|one-machine]… [--their-shards 4]
          [--binaries FOLDER]
        the stress driver against this server and the official one, in turns, on one Cassandra and then in their
        single-machine modes; prints a table of ratios
  scale [--rounds 20] [--on cassandra|one-machine]… [--open-runs 100000] [--binaries FOLDER]
        this server alone: its throughput with more and more workflows at once, and what runs cost that only wait
  tidy  the style rules that the compiler does not know
  ci    formatting, clippy, tests, tidy: all that must be green";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((command, rest)) = arguments.split_first() else { bail!("{USAGE}") };
    match command.as_str() {
        "cassandra" => cassandra::command(rest),
        "test" => suites::run(&suites::Selection::parse(rest)?),
        "compare" => compare::run(&compare::Options::parse(rest)?),
        "scale" => compare::scale::run(&compare::Options::parse(rest)?),
        "tidy" if rest.is_empty() => tidy::run(&tools::repository()),
        "ci" if rest.is_empty() => ci(),
        "help" | "--help" | "-h" => {
            eprintln!("{USAGE}");
            Ok(())
        }
        _ => bail!("{USAGE}"),
    }
}

fn ci() -> Result<()> {
    tools::step("formatting", tools::cargo().args(["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    tools::step("clippy", tools::cargo().args(lints))?;
    tidy::run(&tools::repository())?;
    suites::run(&suites::Selection::default())
}
