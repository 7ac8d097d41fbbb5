//! `everrow dev`: the server on one machine, with no configuration file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use cluster::config::SearchAttributeType;
use cluster::search_attributes::custom::is_reserved;

use super::{Failure, serve};
use crate::config::{Config, EngineKind, PORT};

/// The namespace that every tutorial uses.
const DEFAULT_NAMESPACE: &str = "default";

#[derive(Debug, Clone, Args)]
pub(super) struct DevArgs {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(super) ip: IpAddr,
    /// The port of the gRPC API; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    pub(super) port: u16,
    /// The port of the HTTP/JSON API; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(super) http_port: u16,
    /// The port of `/metrics`, for Prometheus; 0 takes any free one. Without it metrics are not served.
    #[arg(long, value_name = "PORT")]
    pub(super) metrics_port: Option<u16>,
    /// The data directory; created if missing.
    #[arg(long, value_name = "DIR", default_value = "everrow-data", conflicts_with = "in_memory")]
    pub(super) data: PathBuf,
    /// Keep all data in memory; it is lost at exit.
    #[arg(long)]
    pub(super) in_memory: bool,
    /// Number of shards of a new data directory. Cannot change later.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..=16_384))]
    pub(super) shards: i32,
    /// A namespace to create if missing, besides `default`. May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(super) namespace: Vec<String>,
    /// A custom search attribute to define in these namespaces if missing. TYPE is Keyword, Text, KeywordList, Int,
    /// Double, Bool or Datetime. May be given more than once.
    #[arg(long, value_name = "NAME=TYPE", value_parser = search_attribute)]
    pub(super) search_attribute: Vec<(String, SearchAttributeType)>,
    /// Log level: error, warn, info, debug or trace; also by module (`info,server::history=debug`).
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(super) log_level: String,
}

impl DevArgs {
    pub(super) fn config(self) -> Config {
        let mut config = Config::default();
        config.frontend.listen = SocketAddr::new(self.ip, self.port);
        config.http.address = Some(SocketAddr::new(self.ip, self.http_port));
        config.metrics.address = self.metrics_port.map(|port| SocketAddr::new(self.ip, port));
        config.cluster.shards = self.shards;
        config.cluster.namespaces = std::iter::once(DEFAULT_NAMESPACE.to_owned()).chain(self.namespace).collect();
        config.cluster.search_attributes = self.search_attribute.into_iter().collect();
        config.store.engine = if self.in_memory { EngineKind::Memory } else { EngineKind::Embedded };
        config.store.embedded.data = self.data;
        config.log.level = self.log_level;
        config
    }
}

pub(super) fn run(args: DevArgs) -> Result<(), Failure> {
    serve::run(args.config())
}

fn search_attribute(text: &str) -> Result<(String, SearchAttributeType), String> {
    let (name, kind) = text.split_once('=').ok_or("it must be NAME=TYPE")?;
    if name.is_empty() || is_reserved(name) {
        return Err(format!("search attribute {name} is reserved by the system"));
    }
    Ok((name.to_owned(), kind.to_owned().try_into()?))
}
