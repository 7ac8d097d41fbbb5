//! `everrow data`: checks and repairs a data directory of the embedded store that no server has open.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use persistence::embedded::upkeep::{self, Report};
use persistence::error::StoreError;

use super::Failure;
use super::output::say;
use crate::config::LogConfig;
use crate::telemetry;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Reads everything, and reports what is missing or damaged. Exit code 3 if something is.
    Check(DataDirectory),
    /// Cuts what cannot be read, and reports what was dropped. The files as they were are kept in a folder beside them.
    Repair(DataDirectory),
}

#[derive(Debug, Args)]
pub(super) struct DataDirectory {
    /// The directory that a server was started with.
    #[arg(long, value_name = "DIR", default_value = "everrow-data")]
    data: PathBuf,
}

pub(super) fn run(action: Action) -> Result<(), Failure> {
    telemetry::install(&LogConfig::default()).map_err(Failure::Usage)?;
    let (done, DataDirectory { data }) = match action {
        Action::Check(directory) => (upkeep::check(&directory.data), directory),
        Action::Repair(directory) => (upkeep::repair(&directory.data), directory),
    };
    let Report { lines, is_sound } = done.map_err(|error: StoreError| Failure::Store(error.to_string()))?;
    lines.iter().for_each(say);
    if is_sound {
        say(format_args!("{}: nothing that was acknowledged is missing or damaged", data.display()));
        return Ok(());
    }
    let data = data.display();
    Err(Failure::Store(format!("{data} is damaged; restore a backup, or see `everrow data repair --data {data}`")))
}
