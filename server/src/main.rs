//! The binary `everrow`.

use std::process::ExitCode;

fn main() -> ExitCode {
    server::cli::run()
}
