//! A node in this process, on an embedded store in a directory of its own, and clients of it.

use std::time::Duration;

use cluster::env::Env;
use proto::temporal::api::namespace::v1::NamespaceFilter;
use proto::temporal::api::operatorservice::v1::operator_service_client::OperatorServiceClient;
use proto::temporal::api::workflowservice::v1 as public;
use proto::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use server::config::{Config, EngineKind};
use server::node::Node;
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// The namespace that every test finds.
pub(crate) const NAMESPACE: &str = "default";

pub(crate) struct Given {
    pub(crate) node: Node,
    pub(crate) channel: Channel,
    pub(crate) directory: TempDir,
}

/// A node on an empty directory.
pub(crate) async fn a_node() -> Given {
    a_node_in(tempfile::tempdir().expect("there is room for a directory")).await
}

/// A node on what an earlier one left behind.
pub(crate) async fn a_node_in(directory: TempDir) -> Given {
    let config = config(&directory);
    a_node_with(directory, config).await
}

/// The same, on other terms.
pub(crate) async fn a_node_with(directory: TempDir, config: Config) -> Given {
    let node = Node::start(config, Env::system()).await.expect("the node starts");
    let channel = connect(&node).await;
    Given { node, channel, directory }
}

/// A node whose workflows reach into other namespaces.
pub(crate) async fn a_node_across_namespaces() -> Given {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut config = config(&directory);
    config.history.cross_namespace_commands = true;
    a_node_with(directory, config).await
}

pub(crate) fn config(directory: &TempDir) -> Config {
    let mut config = Config::default();
    config.frontend.listen.set_port(0);
    config.cluster.shards = 2;
    config.cluster.namespaces = vec![NAMESPACE.into()];
    config.store.engine = EngineKind::Embedded;
    config.store.embedded.data = directory.path().join("data");
    // What is tested here is not the disk.
    config.store.embedded.fsync = false;
    config
}

pub(crate) async fn connect(node: &Node) -> Channel {
    let address = format!("http://{}", node.address());
    Channel::from_shared(address).expect("an address").connect().await.expect("the node listens")
}

impl Given {
    pub(crate) fn client(&self) -> WorkflowServiceClient<Channel> {
        WorkflowServiceClient::new(self.channel.clone())
    }

    pub(crate) fn operator(&self) -> OperatorServiceClient<Channel> {
        OperatorServiceClient::new(self.channel.clone())
    }

    /// Stops the node, and hands back what it stored.
    pub(crate) async fn stop(self) -> TempDir {
        drop(self.channel);
        self.node.shutdown().await;
        self.directory
    }
}

/// The request, with the patience of a poll.
pub(crate) fn within<T>(timeout: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

/// The typed detail of an error, if it has one of this type.
pub(crate) fn detail<M: prost::Message + prost::Name + Default>(status: &Status) -> Option<M> {
    use prost::Message as _;
    let details = proto::google::rpc::Status::decode(status.details()).ok()?.details;
    let detail = details.into_iter().find(|detail| detail.type_url.ends_with(&M::type_url()))?;
    M::decode(detail.value.as_slice()).ok()
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, message: &str) -> Status {
    let status = answer.expect_err(message);
    assert_eq!((status.code(), status.message()), (code, message));
    status
}

pub(crate) fn hours(hours: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: hours * 3600, nanos: 0 })
}

pub(crate) fn register(name: &str) -> public::RegisterNamespaceRequest {
    public::RegisterNamespaceRequest {
        namespace: name.into(),
        workflow_execution_retention_period: hours(24),
        ..Default::default()
    }
}

pub(crate) fn with_deleted() -> Option<NamespaceFilter> {
    Some(NamespaceFilter { include_deleted: true })
}
