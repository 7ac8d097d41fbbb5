//! The repository's place, and other programs: found, run, and named when they fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the repository").to_owned()
}

/// Where downloads and running nodes live: ignored by git, and kept by `cargo clean`.
pub(crate) fn workshop() -> PathBuf {
    repository().join(".everrow")
}

/// Where cargo puts the binaries of this build: next to this very program.
pub(crate) fn binaries() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where xtask itself is")?;
    // The tests of xtask run from the `deps` folder below.
    let folder = program.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    Ok(folder.context("xtask is not in a folder")?.to_owned())
}

pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(repository());
    command
}

/// Runs a command in view of the user and fails if it does.
pub(crate) fn step(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("==> {what}");
    let status = command.status().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(status.success(), "{what} failed ({status})");
    Ok(())
}

/// A program built from its Go module, which names its version: once, outside of the repository's files.
pub(crate) fn go_program(folder: &Path, binary: &str, module: &str) -> Result<PathBuf> {
    let program = folder.join(binary);
    if !program.is_file() {
        let mut go = Command::new("go");
        step(&format!("go install {module}"), go.args(["install", module]).env("GOBIN", folder))
            .context("Go is needed; install it from your distribution or go.dev")?;
    }
    Ok(program)
}

/// The last version that installs as a module: later ones replace one of their own.
pub(crate) const TEMPORAL_CLI_VERSION: &str = "v1.5.1";

/// The official command line, which has a development server inside.
pub(crate) fn temporal_cli(folder: &Path) -> Result<PathBuf> {
    go_program(folder, "temporal", &format!("github.com/temporalio/cli/cmd/temporal@{TEMPORAL_CLI_VERSION}"))
}

/// Both output streams of a command that succeeded; `None` if it cannot be run or fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let both = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&both).into_owned())
}

/// Fails with the cure if a program is missing and cannot be installed here.
pub(crate) fn require(program: &str, present: impl Fn() -> bool, debian_package: &str) -> Result<()> {
    if present() {
        return Ok(());
    }
    let is_root = output_of(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    let has_apt = output_of(Command::new("apt-get").arg("--version")).is_some();
    if !(is_root && has_apt) {
        bail!(
            "{program} is needed and was not found; install it (Debian and Ubuntu: apt-get install {debian_package})"
        );
    }
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command
    };
    step("apt-get update", apt().args(["--quiet", "update"]))?;
    let install = ["install", "--yes", "--quiet", "--no-install-recommends", debian_package];
    step(&format!("apt-get install {debian_package}"), apt().args(install))?;
    ensure!(present(), "{program} is still not found after apt-get install {debian_package}");
    Ok(())
}
