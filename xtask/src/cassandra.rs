//! A single-node Cassandra for tests: its jars come from Maven, its data stays below `.everrow`.
//!
//! Several may run at once on different ports. Only the process whose id is in the node's own pid file is ever ended.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::tools;

/// Not Cassandra's own 9042, so that a node of the user's is left alone.
pub(crate) const DEFAULT_PORT: u16 = 9142;
/// The least on which the suites pass; the node then takes 1 to 2 GiB in all.
const DEFAULT_HEAP: &str = "1000m";
/// It boots in about 20 CPU seconds; a machine that builds at the same time takes several times that.
const BOOT_TIMEOUT: Duration = Duration::from_secs(300);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Changes with the version in `pom.xml`, so that the jars of another version are fetched.
const LIBRARY: &str = "cassandra/lib-5.0.9";

const POM: &str = "tests/cassandra/pom.xml";
const TEMPLATES: [(&str, &str); 3] = [
    ("cassandra.yaml", include_str!("../../tests/cassandra/cassandra.yaml")),
    ("logback.xml", include_str!("../../tests/cassandra/logback.xml")),
    ("jvm.options", include_str!("../../tests/cassandra/jvm.options")),
];

#[derive(Debug)]
pub(crate) struct Node {
    port: u16,
    data: PathBuf,
    heap: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Started {
    ByUs,
    WasRunning,
}

pub(crate) fn command(arguments: &[String]) -> Result<()> {
    let Some((verb, options)) = arguments.split_first() else { bail!("cassandra start, stop or status?") };
    let node = Node::parse(options)?;
    match verb.as_str() {
        "start" => node.start().map(drop),
        "stop" => node.stop(),
        "status" => node.status(),
        _ => bail!("cassandra start, stop or status? not {verb}"),
    }
}

impl Node {
    pub(crate) fn on_port(port: u16) -> Self {
        let data = tools::workshop().join(format!("cassandra/node-{port}"));
        Self { port, data, heap: DEFAULT_HEAP.to_owned() }
    }

    /// For load: with the heap that Cassandra's own start script would choose on this machine, a quarter of its memory up to 8 GiB.
    /// On the least that the suites pass on, half of its processor time is garbage collection once there is data.
    pub(crate) fn with_usual_heap(self) -> Result<Self> {
        let memory = fs::read_to_string("/proc/meminfo").context("cannot tell how much memory there is")?;
        let line =
            memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).context("a machine without memory")?;
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        let mebibytes = (kibibytes / 1024 / 4).clamp(1024, 8192);
        Ok(Self { heap: format!("{mebibytes}m"), ..self })
    }

    fn parse(options: &[String]) -> Result<Self> {
        let mut node = Self::on_port(DEFAULT_PORT);
        let mut data = None;
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let value = rest.next().with_context(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--port" => node = Self { heap: node.heap, ..Self::on_port(value.parse()?) },
                "--data" => data = Some(std::path::absolute(value)?),
                "--heap" => node.heap.clone_from(value),
                _ => bail!("unknown option {option}"),
            }
        }
        node.data = data.unwrap_or(node.data);
        Ok(node)
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Where its counters are asked for.
    pub(crate) fn jmx_port(&self) -> u16 {
        self.port + 2
    }

    /// The process, if it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.running_pid()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns when CQL is answered.
    pub(crate) fn start(&self) -> Result<Started> {
        if self.running_pid().is_some() {
            self.wait_until_answered(None)?;
            eprintln!("cassandra is running on {}", self.address());
            return Ok(Started::WasRunning);
        }
        ensure!(
            !answers_cql(self.address()),
            "something else answers CQL on {}; choose another --port",
            self.address()
        );
        tools::require("Java 17 (or 11)", || find_java().is_some(), "openjdk-17-jre-headless")?;
        let java = find_java().context("Java was found a moment ago")?;
        let library = fetch_jars()?;
        self.write_configuration(&library)?;
        let began_at = Instant::now();
        let mut child = self.spawn(&java)?;
        fs::write(self.pid_file(), child.id().to_string())?;
        self.wait_until_answered(Some(&mut child))?;
        let took = began_at.elapsed().as_secs();
        eprintln!("cassandra answers on {} after {took} s (commitlog_sync: periodic, paxos: v2)", self.address());
        Ok(Started::ByUs)
    }

    /// Ends the node's process, if there is one, and waits until it is gone.
    pub(crate) fn stop(&self) -> Result<()> {
        let Some(pid) = self.running_pid() else {
            eprintln!("cassandra is not running on {}", self.address());
            return Ok(());
        };
        signal(pid, "TERM")?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.running_pid() == Some(pid) {
            if Instant::now() > deadline {
                signal(pid, "KILL")?;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        fs::remove_file(self.pid_file())?;
        eprintln!("cassandra on {} is stopped", self.address());
        Ok(())
    }

    fn status(&self) -> Result<()> {
        match (self.running_pid(), answers_cql(self.address())) {
            (Some(pid), true) => eprintln!("cassandra answers on {} (process {pid})", self.address()),
            (Some(pid), false) => {
                bail!("process {pid} does not answer on {} (yet); see {}", self.address(), self.log())
            }
            (None, true) => bail!("{} answers CQL, but was not started from here", self.address()),
            (None, false) => bail!("cassandra is not running on {}", self.address()),
        }
        Ok(())
    }

    fn write_configuration(&self, library: &Path) -> Result<()> {
        for folder in ["conf", "data", "commitlog", "saved_caches", "hints", "cdc_raw", "logs", "tmp"] {
            fs::create_dir_all(self.data.join(folder))?;
        }
        let jmx_port = self.jmx_port();
        for (name, template) in TEMPLATES {
            let text = template
                .replace("@PORT@", &self.port.to_string())
                .replace("@STORAGE_PORT@", &(self.port + 1).to_string())
                .replace("@JMX_PORT@", &jmx_port.to_string())
                .replace("@HEAP@", &self.heap)
                .replace("@DATA@", &self.data.display().to_string())
                .replace("@LIB@", &library.display().to_string());
            fs::write(self.data.join("conf").join(name), text)?;
        }
        Ok(())
    }

    fn spawn(&self, java: &Path) -> Result<Child> {
        let output = fs::File::create(self.data.join("logs/stdout.log"))?;
        let errors = output.try_clone()?;
        Command::new(java)
            .arg(format!("@{}", self.data.join("conf/jvm.options").display()))
            .arg("org.apache.cassandra.service.CassandraDaemon")
            .current_dir(&self.data)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot run {}", java.display()))
    }

    /// `child` is the process if it is ours to watch: then its death ends the wait.
    fn wait_until_answered(&self, mut child: Option<&mut Child>) -> Result<()> {
        let deadline = Instant::now() + BOOT_TIMEOUT;
        while !answers_cql(self.address()) {
            let ended = match &mut child {
                Some(child) => child.try_wait()?,
                None => None,
            };
            if let Some(status) = ended {
                bail!("cassandra ended ({status}); see {}", self.log());
            }
            ensure!(Instant::now() < deadline, "cassandra did not answer in {BOOT_TIMEOUT:?}; see {}", self.log());
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// The process in the pid file, if it still runs and is this node: ids are given out again.
    fn running_pid(&self) -> Option<u32> {
        let pid: u32 = fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()?;
        let command = command_line(pid)?;
        command.contains(&*self.data.join("conf/jvm.options").to_string_lossy()).then_some(pid)
    }

    fn pid_file(&self) -> PathBuf {
        self.data.join("cassandra.pid")
    }

    fn log(&self) -> String {
        self.data.join("logs").display().to_string()
    }
}

/// Copies the jars into the cache, once. Another xtask may do the same: the first to finish wins.
pub(crate) fn fetch_jars() -> Result<PathBuf> {
    let library = tools::workshop().join(LIBRARY);
    if library.is_dir() {
        return Ok(library);
    }
    tools::require("Maven (mvn)", || tools::output_of(Command::new("mvn").arg("--version")).is_some(), "maven")?;
    let partial = library.with_extension(format!("partial-{}", std::process::id()));
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "dependency:copy-dependencies", "-DincludeScope=runtime", "--file"]);
    maven.arg(tools::repository().join(POM)).arg(format!("-DoutputDirectory={}", partial.display()));
    tools::step("mvn: the jars of Cassandra", &mut maven)?;
    if fs::rename(&partial, &library).is_err() {
        fs::remove_dir_all(&partial)?;
    }
    ensure!(library.is_dir(), "cannot create {}", library.display());
    Ok(library)
}

/// The `java` of `JAVA_HOME` or of the path, if it is of a version that Cassandra 5 runs on.
pub(crate) fn find_java() -> Option<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    home.into_iter().chain([PathBuf::from("java")]).find(|java| {
        let version = tools::output_of(Command::new(java).arg("-version")).unwrap_or_default();
        version.contains("\"17.") || version.contains("\"11.")
    })
}

/// What a process was started as; `None` if there is no such process, or only its remains.
fn command_line(pid: u32) -> Option<String> {
    let line = match fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(line) => String::from_utf8_lossy(&line).into_owned(),
        Err(_) => tools::output_of(Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]))?,
    };
    (!line.is_empty()).then_some(line)
}

/// By the shell's own `kill`: a slim container has no program of that name.
pub(crate) fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status()?;
    ensure!(status.success(), "cannot send {name} to process {pid}");
    Ok(())
}

/// Asks for OPTIONS and expects SUPPORTED: a socket that merely accepts is not yet a database.
fn answers_cql(address: SocketAddr) -> bool {
    const OPTIONS_REQUEST: [u8; 9] = [0x04, 0, 0, 0, 0x05, 0, 0, 0, 0];
    const SUPPORTED: u8 = 0x06;
    let probe = || -> std::io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
        stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
        stream.write_all(&OPTIONS_REQUEST)?;
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        Ok(header[4])
    };
    probe().is_ok_and(|opcode| opcode == SUPPORTED)
}
