//! The binary in a process of its own: what only a process has are its memory, its descriptors and its end.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::PATIENCE;

pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) http_address: SocketAddr,
    _directory: TempDir,
}

impl Process {
    /// `everrow dev` on a directory of its own, in a shell that has first done `setup` (such as `ulimit -n 100`).
    pub(crate) fn start(setup: &str) -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let data = directory.path().join("data");
        let script = format!("{setup}; exec \"$0\" dev --port 0 --http-port 0 --shards 1 --data \"$1\"");
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_everrow")])
            .arg(&data)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let after = |what: &str| {
            let rest = line.split(what).nth(1).unwrap_or_else(|| panic!("no {what} in {line:?}"));
            let text = rest.split([',', '\n']).next().expect("an address");
            text.trim().parse().unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        Self { address: after("gRPC on "), http_address: after("HTTP on "), child, _directory: directory }
    }

    /// Resident memory in MiB.
    pub(crate) fn memory_mib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.trim().trim_end_matches("kB").trim().parse::<usize>().expect("a number") / 1024
    }

    /// The soft limit of open files.
    pub(crate) fn files_max(&self) -> usize {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).expect("it runs");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("it has a limit");
        line.split_whitespace().next().and_then(|soft| soft.parse().ok()).expect("a number")
    }

    /// Asks it to end, and says how it did and how long that took.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().expect("it is asked to end");
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return (status, began.elapsed());
            }
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
