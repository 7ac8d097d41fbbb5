//! `everrow-stress`: see `--help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match loadtest::cli::run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
