//! The two servers: how each is got, started on a store, and ended.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::cassandra::{self, Node};
use crate::tools;

/// The official server, and the command line tool that holds its single-machine mode.
const SERVER_VERSION: &str = "v1.32.0";
const SERVER_MODULE: &str = "go.temporal.io/server";

const OUR_PORT: u16 = 7433;
const THEIR_PORT: u16 = 7533;
const START_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    Cassandra,
    OneMachine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Ours,
    Theirs,
}

/// Programs to be run.
pub(super) struct Binaries {
    pub(super) ours: PathBuf,
    /// A folder with `server`, `cassandra` (the schema tool), `temporal`.
    pub(super) theirs: PathBuf,
}

/// A server that answers.
pub(super) struct Running {
    child: Child,
    port: u16,
}

impl Home {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cassandra => "cassandra",
            Self::OneMachine => "one-machine",
        }
    }
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "Everrow",
            Self::Theirs => "the official server",
        }
    }
}

/// Builds the official server from its modules, once, outside of the repository's files.
pub(super) fn fetch_reference() -> Result<PathBuf> {
    let folder = tools::workshop().join(format!("reference-{SERVER_VERSION}"));
    fs::create_dir_all(&folder)?;
    let modules = [
        ("server", format!("{SERVER_MODULE}/cmd/server@{SERVER_VERSION}")),
        ("cassandra", format!("{SERVER_MODULE}/cmd/tools/cassandra@{SERVER_VERSION}")),
    ];
    for (binary, module) in modules {
        tools::go_program(&folder, binary, &module)?;
    }
    tools::temporal_cli(&folder)?;
    Ok(folder)
}

/// The number of shards cannot change later, so each has a keyspace of its own.
fn their_keyspace(shards: u32) -> String {
    format!("temporal_compare_{shards}")
}

/// Makes the official server's keyspace, if it is not there.
pub(super) fn set_up_reference_schema(binaries: &Binaries, shards: u32, node: &Node) -> Result<()> {
    let keyspace = their_keyspace(shards);
    // It goes when the data go.
    let done = node.data().join(format!("{keyspace}-is-set-up"));
    if done.is_file() {
        return Ok(());
    }
    let tool = || {
        let mut tool = Command::new(binaries.theirs.join("cassandra"));
        tool.args(["--endpoint", "127.0.0.1", "--port", &node.address().port().to_string(), "--timeout", "120"]);
        tool
    };
    tools::step("their keyspace", tool().args(["create", "--keyspace", &keyspace, "--rf", "1"]))?;
    let in_keyspace = ["--keyspace", &keyspace];
    tools::step("their schema", tool().args(in_keyspace).args(["setup-schema", "--version", "0.0"]))?;
    let mut update = tool();
    update.args(in_keyspace).args(["update-schema", "--schema-name", "cassandra/temporal"]);
    tools::step("their schema's versions", &mut update)?;
    fs::write(done, "")?;
    Ok(())
}

impl Binaries {
    /// Starts a server alone, and waits until it listens.
    pub(super) fn start(
        &self,
        home: Home,
        side: Side,
        their_shards: u32,
        (node, folder): (&Node, &Path),
    ) -> Result<Running> {
        let folder = folder.join(format!("{}-{side:?}", home.name()));
        fs::create_dir_all(&folder)?;
        let (mut command, port) = match (side, home) {
            (Side::Ours, Home::Cassandra) => (self.ours_on_cassandra(node, &folder)?, OUR_PORT),
            (Side::Ours, Home::OneMachine) => (self.ours_on_one_machine(&folder), OUR_PORT),
            (Side::Theirs, Home::Cassandra) => (self.theirs_on_cassandra(node, &folder, their_shards)?, THEIR_PORT),
            (Side::Theirs, Home::OneMachine) => (self.theirs_on_one_machine(&folder)?, THEIR_PORT),
        };
        let log = fs::File::create(folder.join("server.log"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let mut running = Running { child, port };
        running.wait_until_it_listens(&folder)?;
        Ok(running)
    }

    fn ours_on_cassandra(&self, node: &Node, folder: &Path) -> Result<Command> {
        let config = folder.join("everrow.toml");
        let text = format!(
            "[cluster]\nnamespaces = [\"default\"]\n[frontend]\nlisten = \"127.0.0.1:{OUR_PORT}\"\n[store]\nengine = \"cassandra\"\n\
             [store.cassandra]\ncontact_points = [\"{}\"]\nkeyspace = \"everrow_compare\"\nreplication = 1\n[log]\nlevel = \"warn\"\n",
            node.address()
        );
        fs::write(&config, text)?;
        let mut command = Command::new(&self.ours);
        command.args(["server", "--config"]).arg(config);
        Ok(command)
    }

    fn ours_on_one_machine(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.ours);
        command.args(["dev", "--port", &OUR_PORT.to_string(), "--data"]).arg(folder.join("data"));
        command
    }

    fn theirs_on_one_machine(&self, folder: &Path) -> Result<Command> {
        let mut command = Command::new(self.theirs.join("temporal"));
        command.args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error"]);
        command.args(["--port", &THEIR_PORT.to_string(), "--db-filename"]).arg(folder.join("temporal.db"));
        // It keeps a file of its own there, which is not to be the user's.
        command.env("HOME", folder).env("XDG_CONFIG_HOME", folder);
        Ok(command)
    }

    /// All four services in one process, as ours; visibility in memory, which costs it least.
    fn theirs_on_cassandra(&self, node: &Node, folder: &Path, shards: u32) -> Result<Command> {
        let limits = folder.join("limits.yaml");
        fs::write(&limits, THEIR_LIMITS)?;
        let text = THEIR_CONFIG
            .replace("@CASSANDRA_PORT@", &node.address().port().to_string())
            .replace("@KEYSPACE@", &their_keyspace(shards))
            .replace("@SHARDS@", &shards.to_string())
            .replace("@PORT@", &THEIR_PORT.to_string())
            .replace("@LIMITS@", &limits.display().to_string());
        let config = folder.join("temporal.yaml");
        fs::write(&config, text)?;
        let mut command = Command::new(self.theirs.join("server"));
        command.arg("--config-file").arg(config).args(["--allow-no-auth", "start"]);
        Ok(command)
    }
}

const THEIR_CONFIG: &str = include_str!("reference.yaml");
/// Its limits of requests are for a shared cluster; here they would hide what it can do.
const THEIR_LIMITS: &str = include_str!("reference-limits.yaml");

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn address(&self) -> String {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)).to_string()
    }

    fn wait_until_it_listens(&mut self, folder: &Path) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(self.address()).is_err() {
            let log = folder.join("server.log");
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the server ended ({status}); see {}", log.display());
            }
            ensure!(Instant::now() < deadline, "the server does not listen; see {}", log.display());
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    pub(super) fn stop(mut self) -> Result<()> {
        cassandra::signal(self.pid(), "TERM")?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// A turn that broke off leaves no server behind.
impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
