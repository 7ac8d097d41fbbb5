//! The command line. Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration, 3 the store cannot be
//! reached, has the wrong schema, or has lost data.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use cluster::version;
use thiserror::Error;

use crate::config::{Config, ConfigError};
use crate::node::StartError;

mod admin;
mod data;
mod dev;
mod output;
mod schema;
mod serve;

#[cfg(test)]
mod tests;

/// A durable-execution server that speaks Temporal's API. Without a command it runs `everrow dev`.
#[derive(Debug, Parser)]
#[command(name = "everrow", version, long_version = version::LONG, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration, 3 the store cannot \
                        be reached, has the wrong schema, or has lost data."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    dev: dev::DevArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs all services in one process, for development: no configuration file, data in a local directory.
    Dev(dev::DevArgs),
    /// Runs all services in one process, as the configuration file says.
    Server(ConfigFile),
    /// Manages the schema on Cassandra or ScyllaDB.
    Schema {
        #[command(subcommand)]
        action: schema::Action,
    },
    /// Checks or repairs the embedded store's data directory, while no server has it open.
    Data {
        #[command(subcommand)]
        action: data::Action,
    },
    /// Queries a running node.
    Admin {
        #[command(subcommand)]
        action: admin::Action,
    },
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// The configuration file (TOML). Every key has a default; `EVERROW__SECTION__KEY` in the environment overrides it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Failure of the process, by exit code.
#[derive(Debug, Error)]
enum Failure {
    #[error("{0}")]
    Runtime(String),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Store(String),
}

/// Runs the process.
#[must_use]
pub fn run() -> ExitCode {
    match execute(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&failure);
            failure.exit_code()
        }
    }
}

fn execute(cli: Cli) -> Result<(), Failure> {
    match cli.command.unwrap_or(Command::Dev(cli.dev)) {
        Command::Dev(args) => dev::run(args),
        Command::Server(file) => serve::run(load(&file.config)?),
        Command::Schema { action } => schema::run(action),
        Command::Data { action } => data::run(action),
        Command::Admin { action } => admin::run(action),
    }
}

fn load(file: &Path) -> Result<Config, Failure> {
    Ok(Config::load(file, std::env::vars())?)
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Runtime(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Store(_) => ExitCode::from(3),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let message = error.to_string();
        match error {
            StartError::Config(_) => Self::Usage(message),
            StartError::Store { .. } | StartError::Schema(_) | StartError::OtherCluster(_) => Self::Store(message),
            StartError::Listen { .. } | StartError::Service(_) => Self::Runtime(message),
        }
    }
}
