//! A node in this process, and the driver as a process of its own.

use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cluster::env::Env;
use persistence::counted::Counts;
use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use serde_json::Value;
use server::config::{Config, EngineKind};
use server::node::Node;
use tempfile::TempDir;
use tonic::transport::Channel;

/// Interval of the shards' visibility writes.
const ROUND: Duration = Duration::from_millis(100);

pub(crate) struct Given {
    node: Node,
    pub(crate) directory: TempDir,
}

pub(crate) async fn a_node() -> Given {
    a_node_with(|_| {}).await
}

/// A node whose settings were changed from those that every test finds.
pub(crate) async fn a_node_with(change: impl FnOnce(&mut Config)) -> Given {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut config = Config::default();
    config.frontend.listen.set_port(0);
    config.cluster.shards = 2;
    config.cluster.namespaces = vec!["default".into()];
    config.store.engine = EngineKind::Embedded;
    config.store.embedded.data = directory.path().join("data");
    // What is tested here is not the disk.
    config.store.embedded.fsync = false;
    change(&mut config);
    let node = Node::start(config, Env::system()).await.expect("the node starts");
    Given { node, directory }
}

impl Given {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What the node has sent to its store.
    pub(crate) fn counts(&self) -> &Counts {
        self.node.counts()
    }

    /// How often it has read, once it does not any more by itself: a new node reads what is left in its queues, once more if
    /// something came meanwhile, a round of its lists later at the latest; and it learns its workflow ids.
    pub(crate) async fn reads_at_rest(&self) -> u64 {
        let reads = || self.counts().reads.load(Ordering::Relaxed);
        let mut before = u64::MAX;
        while before != reads() {
            before = reads();
            tokio::time::sleep(3 * ROUND).await;
        }
        before
    }

    pub(crate) async fn client(&self) -> WorkflowServiceClient<Channel> {
        let address = format!("http://{}", self.node.address());
        let channel = Channel::from_shared(address).expect("an address").connect().await.expect("the node listens");
        WorkflowServiceClient::new(channel)
    }

    /// Runs the driver; how it ended, and its figures.
    pub(crate) async fn stress(&self, arguments: &[&str]) -> (Output, Value) {
        let json = self.path("figures.json");
        let address = self.node.address().to_string();
        let mut arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        arguments.extend(["--address".into(), address, "--json".into(), json.display().to_string()]);
        let output = run(arguments).await;
        let text = std::fs::read_to_string(&json).unwrap_or_else(|error| {
            panic!("no figures ({error}); the driver said {}", String::from_utf8_lossy(&output.stderr))
        });
        (output, serde_json::from_str(&text).expect("the figures are JSON"))
    }

    pub(crate) async fn stop(self) {
        self.node.shutdown().await;
    }
}

/// Waits elsewhere, so that the node in this process goes on.
pub(crate) async fn run(arguments: Vec<String>) -> Output {
    let driver = tokio::task::spawn_blocking(move || {
        std::process::Command::new(env!("CARGO_BIN_EXE_everrow-stress")).args(arguments).output()
    });
    driver.await.expect("nobody ends it").expect("the driver runs")
}
