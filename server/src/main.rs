//! The binary `everrow`.

use std::process::ExitCode;

/// A transition is many small, short-lived allocations on whichever thread is free: this one is made for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    server::cli::run()
}
