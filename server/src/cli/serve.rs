//! Runs a node until a signal stops it.

use cluster::env::Env;
use cluster::version;
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use super::output::say;
use crate::config::{Config, EngineKind};
use crate::node::{Node, descriptors};
use crate::telemetry;

/// For reads of the embedded engine, which mostly find their blocks in memory: more threads than this only cost memory.
const BLOCKING_THREADS: usize = 16;

pub(super) fn run(config: Config) -> Result<(), Failure> {
    telemetry::install(&config.log).map_err(Failure::Usage)?;
    descriptors::raise();
    warn_of_open_doors(&config);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(|error| Failure::Runtime(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> Result<(), Failure> {
    let broken = |error| Failure::Runtime(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    let place = place(&config);
    let mut node = Node::start(config, Env::system()).await?;
    let http = node.http_address().map(|address| format!(", HTTP on {address}")).unwrap_or_default();
    let metrics = node.metrics_address().map(|address| format!(", metrics on {address}")).unwrap_or_default();
    say(format_args!("everrow {} is ready: gRPC on {}{http}{metrics}, {place}", version::EVERROW, node.address()));
    let outcome = tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        failure = node.failed() => Err(Failure::Runtime(failure)),
    };
    tracing::info!("shutting down");
    node.shutdown().await;
    outcome
}

/// TLS and authorisation are not built: any client that reaches an address may do everything.
fn warn_of_open_doors(config: &Config) {
    let listeners = [
        ("gRPC", "frontend.listen", Some(config.frontend.listen)),
        ("HTTP", "http.address", config.http.address),
        ("metrics", "metrics.address", config.metrics.address),
    ];
    for (serves, setting, address) in listeners {
        let Some(address) = address.filter(|address| !address.ip().is_loopback()) else { continue };
        tracing::warn!(
            serves,
            setting,
            %address,
            "LISTENING BEYOND THIS MACHINE WITHOUT TLS AND AUTHORISATION: everybody who reaches this address can read \
             and change everything; keep it behind a firewall or a proxy that authenticates"
        );
    }
}

/// Location of the data, for the banner.
fn place(config: &Config) -> String {
    match config.store.engine {
        EngineKind::Embedded => format!("data in {}", config.store.embedded.data.display()),
        EngineKind::Cassandra => format!("data in keyspace {}", config.store.cassandra.keyspace),
        EngineKind::Memory => "data in memory only".into(),
    }
}
