//! `everrow admin`: queries a running node.

use clap::Subcommand;
use proto::everrow::admin::ExplainListRequest;
use proto::everrow::admin::admin_service_client::AdminServiceClient;
use tonic::transport::Channel;

use super::Failure;
use super::output::say;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Explains how visibility answers a list with this query: which rows it reads, and why these.
    ExplainList {
        /// The query, as `temporal workflow list --query` takes it.
        query: String,
        /// A node's gRPC address.
        #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7233")]
        address: String,
        #[arg(long, value_name = "NAME", default_value = "default")]
        namespace: String,
    },
}

pub(super) fn run(action: Action) -> Result<(), Failure> {
    let Action::ExplainList { query, address, namespace } = action;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Runtime(format!("cannot start the runtime: {error}")))?;
    let lines = runtime.block_on(explain(&address, ExplainListRequest { namespace, query }))?;
    lines.iter().for_each(say);
    Ok(())
}

async fn explain(address: &str, request: ExplainListRequest) -> Result<Vec<String>, Failure> {
    let endpoint = Channel::from_shared(format!("http://{address}"));
    let endpoint = endpoint.map_err(|error| Failure::Usage(format!("{address} is no address: {error}")))?;
    let unreachable = |error| Failure::Runtime(format!("cannot reach a node at {address}: {error}"));
    let mut client = AdminServiceClient::new(endpoint.connect().await.map_err(unreachable)?);
    let answer = client.explain_list(request).await.map_err(|status| Failure::Runtime(status.message().to_owned()))?;
    Ok(answer.into_inner().lines)
}
