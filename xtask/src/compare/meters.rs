//! What servers and Cassandra have spent: processor time and memory from `/proc`, statements from Cassandra's own counters.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cassandra::{self, Node};
use crate::tools;

/// What `/proc` counts in: a hundredth of a second on every Linux that has not been built otherwise.
const MS_PER_TICK: f64 = 10.0;

/// Memory is at rest if it changed by no more than a fiftieth between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
const LOOKS_MAX: usize = 30;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) server_cpu_ms: f64,
    pub(super) cassandra: Option<CassandraReading>,
}

/// As a client counts: a batch is one statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CassandraReading {
    pub(super) cpu_ms: f64,
    pub(super) conditional_writes: f64,
    pub(super) plain_writes: f64,
    pub(super) plain_reads: f64,
}

impl Reading {
    pub(super) fn take(server: u32, cassandra: Option<&Node>) -> Result<Self> {
        let cassandra = cassandra.map(CassandraReading::take).transpose()?;
        Ok(Self { server_cpu_ms: cpu_ms(server)?, cassandra })
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        let cassandra = self.cassandra.as_ref().zip(before.cassandra.as_ref()).map(|(now, then)| CassandraReading {
            cpu_ms: now.cpu_ms - then.cpu_ms,
            conditional_writes: now.conditional_writes - then.conditional_writes,
            plain_writes: now.plain_writes - then.plain_writes,
            plain_reads: now.plain_reads - then.plain_reads,
        });
        Self { server_cpu_ms: self.server_cpu_ms - before.server_cpu_ms, cassandra }
    }
}

impl CassandraReading {
    fn take(node: &Node) -> Result<Self> {
        let counts = client_requests(node)?;
        let count = |scope: &str| counts.iter().find(|(name, _)| name == scope).map(|(_, n)| *n);
        let conditional_writes = count("CASWrite").context("Cassandra does not count CASWrite")?;
        let reads = count("Read").context("Cassandra does not count Read")?;
        Ok(Self {
            cpu_ms: cpu_ms(node.pid().context("Cassandra has ended")?)?,
            conditional_writes,
            plain_writes: count("Write").context("Cassandra does not count Write")?,
            // With `paxos_variant: v2`, which our node has, the read within a conditional write is not counted among them.
            plain_reads: reads,
        })
    }
}

/// The counts of `ClientRequest` by their scope, asked for through JMX by a tool that comes with Cassandra.
fn client_requests(node: &Node) -> Result<Vec<(String, f64)>> {
    let java = cassandra::find_java().context("Java was there to run Cassandra")?;
    let library = cassandra::fetch_jars()?;
    let mut tool = Command::new(java);
    tool.arg("-cp").arg(format!("{}/*", library.display())).arg("org.gridkit.jvmtool.SJK");
    tool.args(["mx", "--socket", &format!("127.0.0.1:{}", node.jmx_port()), "--get", "--allMatched"]);
    tool.args(["--field", "Count", "--bean", "org.apache.cassandra.metrics:type=ClientRequest,scope=*,name=Latency"]);
    let told = tools::output_of(&mut tool).context("Cassandra does not tell its counters")?;
    let counts = parse_beans(&told);
    if counts.is_empty() {
        bail!("Cassandra told no counters, but {told}");
    }
    Ok(counts)
}

/// A line names the bean, and the next one that ends in a number is its count.
fn parse_beans(told: &str) -> Vec<(String, f64)> {
    let mut scope = None;
    let mut counts = Vec::new();
    for line in told.lines() {
        if let Some((_, rest)) = line.split_once("scope=") {
            scope = rest.split(',').next().map(str::to_owned);
        } else if let Some(count) = line.split_whitespace().next_back().and_then(|word| word.parse().ok()) {
            counts.extend(scope.take().map(|scope| (scope, count)));
        }
    }
    counts
}

pub(super) fn cpu_ms(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} has ended"))?;
    // The name, which may hold spaces, ends with the last bracket; user and system time are the 12th and 13th after it.
    let fields: Vec<&str> = stat[stat.rfind(')').context("a stat without a name")? + 1..].split_whitespace().collect();
    let ticks = |n: usize| -> Result<f64> { Ok(fields.get(n).context("a stat that is too short")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) * MS_PER_TICK)
}

/// Resident memory.
pub(super) fn memory_bytes(pid: u32) -> Result<u64> {
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid} has ended"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a status without memory")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}

/// Resident memory of a server that was just started. It listens a moment before it is ready, and has half of it by then.
pub(super) fn idle_memory_bytes(pid: u32) -> Result<u64> {
    let mut before = memory_bytes(pid)?;
    for _ in 0..LOOKS_MAX {
        thread::sleep(BETWEEN_LOOKS);
        let now = memory_bytes(pid)?;
        if now.abs_diff(before) <= before / 50 {
            return Ok(now);
        }
        before = now;
    }
    bail!("the memory of process {pid} does not come to rest")
}

#[cfg(test)]
mod tests {
    //! What tools print, and what is made of it.

    use super::*;

    #[test]
    fn each_bean_gets_the_count_below_its_name() {
        let told = "org.apache.cassandra.metrics:type=ClientRequest,scope=CASWrite,name=Latency\n12\n\
                    org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency\n  30\n";
        assert_eq!(parse_beans(told), [("CASWrite".to_owned(), 12.0), ("Read".to_owned(), 30.0)]);
    }

    #[test]
    fn this_process_has_spent_time_and_memory() {
        let pid = std::process::id();
        assert!(cpu_ms(pid).is_ok_and(|ms| ms >= 0.0));
        assert!(memory_bytes(pid).is_ok_and(|bytes| bytes > 100_000));
    }
}
