//! `everrow data`: checks and repairs a data directory of the embedded store that no server has open.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use persistence::embedded::upkeep::{self, Report};
use persistence::error::StoreError;

use super::Failure;
use super::output::say;
use crate::config::LogConfig;
use crate::telemetry;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Reads all data, and reports what is missing or damaged. Exit code 3 if anything is.
    Check(DataDirectory),
    /// Cuts unreadable data, and reports what was dropped. The original files are kept in a folder beside them.
    Repair(DataDirectory),
}

#[derive(Debug, Args)]
pub(super) struct DataDirectory {
    /// The data directory of a server.
    #[arg(long, value_name = "DIR", default_value = "everrow-data")]
    data: PathBuf,
}

pub(super) fn run(action: Action) -> Result<(), Failure> {
    telemetry::install(&LogConfig::default()).map_err(Failure::Usage)?;
    match action {
        Action::Check(DataDirectory { data }) => {
            let sound = "nothing that was acknowledged is missing or damaged";
            let way_out = format!("restore a backup, or see `everrow data repair --data {}`", data.display());
            report(&data, upkeep::check(&data), (sound, &way_out))
        }
        Action::Repair(DataDirectory { data }) => {
            let sound = "a server can open it; what was dropped is named above";
            report(&data, upkeep::repair(&data), (sound, "restore a backup: the rest cannot be repaired"))
        }
    }
}

fn report(
    data: &Path,
    done: Result<Report, StoreError>,
    (sound, way_out): (&'static str, &str),
) -> Result<(), Failure> {
    let Report { lines, is_sound } = done.map_err(|error| Failure::Store(error.to_string()))?;
    lines.iter().for_each(say);
    if !is_sound {
        return Err(Failure::Store(format!("{} is damaged; {way_out}", data.display())));
    }
    say(format_args!("{}: {sound}", data.display()));
    Ok(())
}
