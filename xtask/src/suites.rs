//! `cargo xtask test`: every suite, one function each. A suite that cannot run fails; none is skipped in silence.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cassandra::{self, Node, Started};
use crate::tools;

/// Host and port of the Cassandra that suites use. If it is set already, that one is used and left alone.
const CASSANDRA: &str = "EVERROW_TEST_CASSANDRA";
/// The server that the acceptance suites run.
const BINARY: &str = "EVERROW_TEST_BINARY";
/// The official command line.
const CLI: &str = "EVERROW_TEST_CLI";
/// The server of the official web UI.
const UI: &str = "EVERROW_TEST_UI";
const UI_VERSION: &str = "v2.54.1";
/// What pytest returns when the filter leaves nothing to run.
const PYTEST_NOTHING_COLLECTED: i32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suite {
    Rust,
    Python,
    Golden,
    Go,
    Cli,
    Hostile,
    Ui,
}

/// Which suites, and which tests of them. Nothing chosen means all but the web UI, which wants a browser.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    suites: Vec<Suite>,
    filters: Vec<String>,
}

impl Selection {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--suite" => selection.suites.push(match rest.next().map(String::as_str) {
                    Some("rust") => Suite::Rust,
                    Some("python") => Suite::Python,
                    Some("golden") => Suite::Golden,
                    Some("go") => Suite::Go,
                    Some("cli") => Suite::Cli,
                    Some("hostile") => Suite::Hostile,
                    Some("ui") => Suite::Ui,
                    _ => bail!("--suite rust, python, golden, go, cli, hostile or ui?"),
                }),
                option if option.starts_with('-') => bail!("unknown option {option}"),
                filter => selection.filters.push(filter.to_owned()),
            }
        }
        Ok(selection)
    }

    fn suites(&self) -> &[Suite] {
        const USUAL: [Suite; 6] = [Suite::Rust, Suite::Python, Suite::Golden, Suite::Go, Suite::Cli, Suite::Hostile];
        if self.suites.is_empty() { &USUAL } else { &self.suites }
    }
}

pub(crate) fn run(selection: &Selection) -> Result<()> {
    if let Ok(address) = std::env::var(CASSANDRA) {
        eprintln!("==> using the Cassandra at {address} ({CASSANDRA} is set)");
        return run_suites(selection, &address);
    }
    let node = Node::on_port(cassandra::DEFAULT_PORT);
    let started = node.start()?;
    let outcome = run_suites(selection, &node.address().to_string());
    if started == Started::ByUs {
        let stopped = node.stop();
        // What the suites say is worth more than that the node did not end.
        return outcome.and(stopped);
    }
    outcome
}

fn run_suites(selection: &Selection, cassandra: &str) -> Result<()> {
    let environment = Environment { cassandra: cassandra.to_owned(), binary: tools::binaries()?.join("everrow") };
    tools::step("build", tools::cargo().args(["build", "--workspace"]))?;
    ensure!(environment.binary.is_file(), "the build left no {}", environment.binary.display());
    for suite in selection.suites() {
        match suite {
            Suite::Rust => rust(&environment, &selection.filters)?,
            Suite::Python => pytest("tests/python", &environment, &selection.filters, &[])?,
            Suite::Golden => pytest("tests/golden", &environment, &selection.filters, &[])?,
            Suite::Go => go(&environment, &selection.filters)?,
            Suite::Cli => cli(&environment, &selection.filters)?,
            Suite::Hostile => pytest("tests/hostile", &environment, &selection.filters, &[])?,
            Suite::Ui => ui(&environment, &selection.filters)?,
        }
    }
    Ok(())
}

struct Environment {
    cassandra: String,
    binary: PathBuf,
}

impl Environment {
    fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(CASSANDRA, &self.cassandra).env(BINARY, &self.binary)
    }
}

/// Unit, conformance, end-to-end and simulation tests of every crate.
fn rust(environment: &Environment, filters: &[String]) -> Result<()> {
    let mut cargo = tools::cargo();
    cargo.args(["test", "--workspace", "--"]).args(filters);
    tools::step("Rust tests", environment.apply(&mut cargo))
}

/// For all suites in Python; one may have more of its own.
const REQUIREMENTS: &str = "tests/python/requirements.txt";

/// A suite in Python, with the official SDK in a virtual environment of our own.
fn pytest(suite: &str, environment: &Environment, filters: &[String], variables: &[(&str, &PathBuf)]) -> Result<()> {
    let venv = tools::workshop().join("venv");
    let interpreter = venv.join("bin/python");
    if !interpreter.is_file() {
        tools::step("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&venv))
            .context("Python 3 with venv is needed (Debian and Ubuntu: apt-get install python3-venv)")?;
    }
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    for requirements in [REQUIREMENTS.to_owned(), format!("{suite}/requirements.txt")] {
        let requirements = tools::repository().join(requirements);
        if requirements.is_file() {
            pip.arg("--requirement").arg(requirements);
        }
    }
    tools::step("pip install", &mut pip)?;

    let mut pytest = Command::new(&interpreter);
    pytest.args(["-m", "pytest"]).current_dir(tools::repository().join(suite)).envs(variables.iter().copied());
    if !filters.is_empty() {
        pytest.args(["-k", &filters.join(" or ")]);
    }
    eprintln!("==> {suite}");
    let status = environment.apply(&mut pytest).status().context("cannot run pytest")?;
    let nothing_asked_for = !filters.is_empty() && status.code() == Some(PYTEST_NOTHING_COLLECTED);
    ensure!(status.success() || nothing_asked_for, "{suite} failed ({status})");
    Ok(())
}

/// Acceptance with the official command line, which is built from its module at the first time.
fn cli(environment: &Environment, filters: &[String]) -> Result<()> {
    let folder = tools::workshop().join(format!("temporal-cli-{}", tools::TEMPORAL_CLI_VERSION));
    let program = tools::temporal_cli(&folder)?;
    pytest("tests/cli", environment, filters, &[(CLI, &program)])
}

/// The official web UI in a browser. Not among the usual suites: a browser is much to ask of a machine.
fn ui(environment: &Environment, filters: &[String]) -> Result<()> {
    let is_there = |program: &str| tools::output_of(Command::new(program).arg("--version")).is_some();
    let any_is_there = || ["chromium", "chromium-browser", "google-chrome"].into_iter().any(is_there);
    tools::require("Chromium", any_is_there, "chromium")?;
    let folder = tools::workshop().join(format!("ui-server-{UI_VERSION}"));
    let module = format!("github.com/temporalio/ui-server/v2/cmd/server@{UI_VERSION}");
    let program = tools::go_program(&folder, "server", &module)?;
    pytest("tests/ui", environment, filters, &[(UI, &program)])
}

/// Acceptance with the official Go SDK.
fn go(environment: &Environment, filters: &[String]) -> Result<()> {
    ensure!(
        tools::output_of(Command::new("go").arg("version")).is_some(),
        "Go is needed for the acceptance tests and was not found; install it from your distribution or go.dev"
    );
    let mut command = Command::new("go");
    // A passed run is not a proof for the server of today: nothing comes from Go's cache of results.
    command.args(["test", "-count=1"]).current_dir(tools::repository().join("tests/go"));
    if !filters.is_empty() {
        command.args(["-run", &filters.join("|")]);
    }
    tools::step("Go acceptance tests", environment.apply(command.arg("./...")))
}
