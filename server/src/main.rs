//! The binary `everrow`.

use std::process::ExitCode;

/// A transition makes many small, short-lived allocations on any thread, which this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    server::cli::run()
}
